"""The optimum for many rows: narrow, solve for the open rows exactly, check the boxes, put the parts together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.linear_totals.box_refinement import Narrowing
from eunomia.solvers.linear_totals.exact import Exact, exactly
from eunomia.solvers.linear_totals.response import BASE, proof, proof_freely
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.linear_totals.symmetry import alike, seem_alike

FEW = 200  # open rows that the general solver takes over
_ATTEMPTS = 60
_ROUNDING = 1e-9  # relative: by how much capacities may be overdrawn by rounding alone


@dataclass(frozen=True, slots=True)
class LinearOptimum:
    """Where rows have shares, and the prices at which no row prefers other columns."""

    row: Ints
    column: Ints
    share: Floats
    price: Floats  # (column,)
    floor_price: Floats  # (row,)
    time_price: Floats  # (row,)


def optimum(rows: LinearRows, capacity: Floats) -> LinearOptimum:
    """Return the optimum; capacity (column,) above 0. Raises Infeasible where the floors cannot all be met."""
    found = _counted(rows, capacity)
    if rows.free:
        floor_price, time_price = np.zeros(len(rows.size)), proof_freely(rows.worth, rows.size, found.price)
    else:
        floor_price, time_price = proof(rows.worth, rows.size, rows.rate, rows.floor, found.price)
    return LinearOptimum(found.row, found.column, found.share, found.price, floor_price, time_price)


def _counted(
    rows: LinearRows, capacity: Floats, limits: tuple[Floats, Floats] | None = None, known: float = 1.0
) -> Exact:
    """Solve for one row of each class where rows are alike, for all rows where not."""
    classes = alike(rows) if len(rows.size) > FEW else None
    if classes is None:
        return _narrowed(rows, capacity, limits, known)
    found = _narrowed(classes.rows, capacity, limits, known)
    row, column, share = classes.shares(found.row, found.column, found.share)
    return Exact(row, column, share, found.price, found.torn)


def _narrowed(rows: LinearRows, capacity: Floats, limits: tuple[Floats, Floats] | None, known: float) -> Exact:
    """Solve by narrowing boxes of prices within the limits, each (column,)."""
    narrowing = Narrowing.of(rows, capacity, limits, known)
    for _ in range(_ATTEMPTS):
        left, part, room = narrowing.narrow(FEW)
        part = narrowing.masked(part)
        if narrowing.boxes and len(left) > FEW and seem_alike(part.some()):
            found = _counted(part, room, narrowing.bounds(), narrowing.boxes[-1].relative)
        else:
            found = exactly(part, room, *narrowing.bounds())
        outside = np.where(np.abs(found.torn) > _ROUNDING * capacity, np.sign(found.torn), 0.0)
        if outside.any() and limits is None:
            rows.refuse_if_proven(capacity, found.price)
        if not outside.any() or not narrowing.missed(outside):
            return _whole(narrowing, left[found.row], found)
    # The boxes keep missing: the general solver takes all rows, which may take long.
    return exactly(rows, capacity, narrowing.low, narrowing.high)


def _whole(narrowing: Narrowing, row: Ints, found: Exact) -> Exact:
    """Put the shares of the open rows and the choices of the others together."""
    rows, choice, columns = narrowing.problem, narrowing.choice, len(found.price)
    alone = np.flatnonzero((choice >= 0) & (choice < columns))
    parts = [(alone, choice[alone].astype(np.int64), np.ones(len(alone))), (row, found.column, found.share)]
    if not rows.free:
        parts += _mixtures(rows, choice.astype(np.int64), columns)
    where, what, much = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Exact(where, what, much, found.price, found.torn)


def _mixtures(rows: LinearRows, choice: Ints, columns: int) -> list[tuple[Ints, Ints, Floats]]:
    """Return the two halves of the decided mixtures of two places; idling is no entry."""
    mixed = np.flatnonzero(choice >= BASE)
    low, high = choice[mixed] // BASE - 1, choice[mixed] % BASE
    speed = np.vstack((rows.rate, np.zeros(rows.rate.shape[1])))
    slow, fast = speed[low, mixed], speed[high, mixed]
    part = (rows.floor[mixed] - slow) / (fast - slow)
    halves = ((low, 1 - part), (high, part))
    return [(mixed[k < columns], k[k < columns], much[k < columns]) for k, much in halves]
