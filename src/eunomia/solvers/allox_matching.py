"""Whole assignments to queues of single machines, with the published program's choice among equals.

Machines that are alike make many optima; which one is found depends on the order in which columns are looked at. Here
it is that of the widely used implementation (D. F. Crouse, "On Implementing 2D Rectangular Assignment Algorithms", IEEE
Transactions on Aerospace and Electronic Systems 52, 2016): the last column first, a free one before one that is held.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.assignment import held


def served_first(time: Floats, waited: Floats) -> Ints:
    """Return the row that each machine serves first, (machine,); -1 = none.

    time (row, machine): how long a row takes there; a row at position k from the end of a queue costs k · time +
    waited, waited (row,). There are as many positions as rows.
    """
    rows, machines = time.shape
    machine, position = np.tile(np.arange(machines), rows), np.repeat(np.arange(1, rows + 1), machines)
    alone, backwards = np.ones(len(machine), dtype=np.int64), np.arange(len(machine))[::-1].copy()
    slot = held(time, machine, position.astype(float), alone, waited, backwards)
    first = np.full(machines, -1)
    for row in np.argsort(position[slot], kind="stable").tolist():  # the farthest from the end is served first
        first[machine[slot[row]]] = row
    return first
