"""The optimum for many rows: narrow, solve for the open rows exactly, check the boxes, put the parts together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.blocks import Groups, blocks_of, lifted
from eunomia.solvers.program import NoOptimum, Program
from eunomia.solvers.totals.narrow import Narrowing, Rows
from eunomia.solvers.totals.response import BASE, proof, proof_freely

FEW = 200  # open rows that the general solver takes over
_ATTEMPTS = 60
_ROUNDING = 1e-9  # relative: by how much capacities may be overdrawn by rounding alone


@dataclass(frozen=True, slots=True)
class Found:
    """Where rows have shares, and the prices at which nobody would rather have others."""

    row: Ints
    column: Ints
    share: Floats
    price: Floats  # (column,)
    floor_price: Floats  # (row,)
    time_price: Floats  # (row,)


def optimum(rows: Rows, capacity: Floats) -> Found:
    """Return the optimum; capacity (column,) above 0. Raises Infeasible where the floors cannot all be met."""
    narrowing = Narrowing.of(rows, capacity)
    for _ in range(_ATTEMPTS):
        left, part, room = narrowing.narrow(FEW)
        found = _exactly(narrowing.masked(part), room, *narrowing.bounds())
        outside = np.where(np.abs(found.torn) > _ROUNDING * capacity, np.sign(found.torn), 0.0)
        if not outside.any():
            return _whole(narrowing, left[found.row], found)
        rows.refuse_if_proven(capacity, found.price)
        narrowing.missed(outside)
    raise NoOptimum("the boxes of prices kept missing; check the worths for entries many decades apart")


@dataclass(frozen=True, slots=True)
class _Exact:
    """The optimum of the open rows with prices held inside a box."""

    row: Ints  # (entry,)
    column: Ints
    share: Floats
    price: Floats  # (column,)
    torn: (
        Floats  # (column,) above 0: overdrawn although the price is at the box's upper end; below 0: left, at its lower
    )


def _exactly(part: Rows, room: Floats, low: Floats, high: Floats) -> _Exact:
    """Solve for the open rows over distinct rows by the general solver, prices held between low and high (column,).

    The dual of such a limit is to buy capacity at its upper end, and to be paid its lower end for what is left.
    """
    worth, size, columns = part.worth.T, part.size, len(room)
    rate, floor = np.zeros_like(worth), np.zeros(len(size))
    if not part.free:
        rate, floor = part.rate.T, np.where(np.isfinite(part.floor), part.floor, np.minimum(part.rate, 0.0).sum(axis=0))
    groups = Groups.alike(worth, size, rate, floor)
    first, held = groups.first, len(groups.count)
    usable = np.isfinite(worth) & ((worth > 0) | (rate * floor[:, None] > 0))
    blocks = blocks_of(usable[first], size[first], groups.count, room, rate[first], floor[first])
    n, bounded = len(blocks.group), np.flatnonzero(np.isfinite(high))
    cost = np.concatenate((worth[first][blocks.group, blocks.column], low, -high[bounded]))
    row = np.concatenate((blocks.row, held + np.arange(columns), held + bounded))
    variable = np.concatenate((blocks.variable, n + np.arange(columns + len(bounded))))
    value = np.concatenate((blocks.value, np.ones(columns), -np.ones(len(bounded))))
    blocks.low[held : held + columns] = room
    solved = Program.of_entries(cost, row, variable, value, blocks.low, blocks.high).solve()
    price = np.maximum(solved.row_price[held : held + columns], 0.0)
    gain = np.where(usable, worth - size[:, None] * price, -np.inf)
    x = lifted(blocks.spread(solved.x[:n], groups, columns), rate, floor, gain)
    row, column = np.nonzero(x)
    torn = np.where(low > 0, -solved.x[n : n + columns], 0.0)
    torn[bounded] += solved.x[n + columns :]
    return _Exact(row, column, x[row, column], price, torn)


def _whole(narrowing: Narrowing, row: Ints, found: _Exact) -> Found:
    """Put the shares of the open rows and the choices of the others together, with the proof at the prices."""
    rows, choice, price = narrowing.problem, narrowing.choice, found.price
    columns = len(price)
    alone = np.flatnonzero((choice >= 0) & (choice < columns))
    parts = [(alone, choice[alone].astype(np.int64), np.ones(len(alone))), (row, found.column, found.share)]
    if rows.free:
        floor_price, time_price = np.zeros(len(choice)), proof_freely(rows.worth, rows.size, price)
    else:
        floor_price, time_price = proof(rows.worth, rows.size, rows.rate, rows.floor, price)
        parts += _mixtures(rows, choice.astype(np.int64), columns)
    where, what, much = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Found(where, what, much, price, floor_price, time_price)


def _mixtures(rows: Rows, choice: Ints, columns: int) -> list[tuple[Ints, Ints, Floats]]:
    """Return the two halves of the decided mixtures of two places; idling is no entry."""
    mixed = np.flatnonzero(choice >= BASE)
    low, high = choice[mixed] // BASE - 1, choice[mixed] % BASE
    speed = np.vstack((rows.rate, np.zeros(rows.rate.shape[1])))
    slow, fast = speed[low, mixed], speed[high, mixed]
    part = (rows.floor[mixed] - slow) / (fast - slow)
    halves = ((low, 1 - part), (high, part))
    return [(mixed[k < columns], k[k < columns], much[k < columns]) for k, much in halves]
