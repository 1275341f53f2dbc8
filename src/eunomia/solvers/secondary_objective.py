"""What a level leaves over, spent on a second objective: the best way where one is proven, else place by place."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.linear import best_total
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.small_programs.dispatch import FEW, few_total


def spent(
    second: Floats, size: Floats, capacity: Floats, rate: Floats, floor: Floats, x: Floats
) -> tuple[Floats, bool]:
    """Return shares (row, column) with the most Σ second · x that keep Σ_k rate x ≥ floor, and whether that is proven.

    x is a point that keeps them; second, rate (row, column), size, floor (row,), capacity (column,). Without a proof
    it is `topped_up`.
    """
    if len(size) <= FEW and (found := few_total(second, size, capacity, rate, floor, x)) is not None:
        return found, True
    try:
        return best_total(second, size, capacity, rate=rate, floor=floor).x, True
    except NoOptimum:
        return topped_up(x, second, size, capacity), False


def topped_up(x: Floats, second: Floats, size: Floats, capacity: Floats) -> Floats:
    """Return x (row, column) with idle time spent on idle capacity, the most `second` per capacity first.

    No share falls, so a level that x reaches stands; places with second ≤ 0 get nothing more.
    """
    row, column = np.nonzero(second > 0)
    order = np.argsort(-second[row, column] / size[row], kind="stable")
    filled = x.copy()
    idle, spare = np.maximum(1 - x.sum(axis=1), 0.0), np.maximum(capacity - dot(size, x), 0.0)
    _fill(filled, row[order], column[order], size, idle, spare)
    return filled


@kernel()
def _fill(x: Floats, row: Ints, column: Ints, size: Floats, idle: Floats, spare: Floats) -> None:
    """Give each place in turn what idle time and spare capacity allow."""
    for place in range(len(row)):
        i, k = row[place], column[place]
        more = min(idle[i], spare[k] / size[i])
        x[i, k] += more
        idle[i] -= more
        spare[k] = max(spare[k] - size[i] * more, 0.0)
