"""Whole assignments to queues of single machines, with the published program's choice among equals.

Rows enter one by one along shortest augmenting paths (D. F. Crouse, "On Implementing 2D Rectangular Assignment
Algorithms", IEEE Transactions on Aerospace and Electronic Systems 52, 2016). Machines that are alike make many optima;
which one is found depends on the order in which columns are looked at. Here it is that of the widely used
implementation: columns from the first on, a free column before one that is held.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints


@kernel()
def served_first(time: Floats, waited: Floats) -> Ints:
    """Return the row that each machine serves first, (machine,); -1 = none.

    time (row, machine): how long a row takes there; a row at position k from the end of a queue costs k · time +
    waited, waited (row,). There are as many positions as rows.
    """
    rows, machines = time.shape
    columns = rows * machines
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    column_of, row_of = np.full(rows, -1), np.full(columns, -1)
    shortest, path, left = np.empty(columns), np.empty(columns, np.int64), np.empty(columns, np.int64)
    row_seen, column_seen = np.zeros(rows, np.bool_), np.zeros(columns, np.bool_)
    for entering in range(rows):
        shortest[:] = np.inf
        row_seen[:] = False
        column_seen[:] = False
        for i in range(columns):
            left[i] = columns - i - 1
        open_columns, lowest, row, sink = columns, 0.0, entering, -1
        while sink < 0:
            row_seen[row] = True
            at, best = -1, np.inf
            for i in range(open_columns):
                column = left[i]
                cost = (column // machines + 1) * time[row, column % machines] + waited[row]
                through = lowest + cost - row_price[row] - column_price[column]
                if through < shortest[column]:
                    path[column], shortest[column] = row, through
                if shortest[column] < best or (shortest[column] == best and row_of[column] < 0):
                    at, best = i, shortest[column]
            lowest, column = best, left[at]
            column_seen[column] = True
            if row_of[column] < 0:
                sink = column
            else:
                row = row_of[column]
            open_columns -= 1
            left[at] = left[open_columns]
        row_price[entering] += lowest
        for other in range(rows):
            if row_seen[other] and other != entering:
                row_price[other] += lowest - shortest[column_of[other]]
        for column in range(columns):
            if column_seen[column]:
                column_price[column] -= lowest - shortest[column]
        column, row = sink, -1
        while row != entering:
            row = path[column]
            row_of[column] = row
            column_of[row], column = column, column_of[row]
    first, position = np.full(machines, -1), np.full(machines, -1)
    for row in range(rows):
        machine, place = column_of[row] % machines, column_of[row] // machines
        if place > position[machine]:
            first[machine], position[machine] = row, place
    return first
