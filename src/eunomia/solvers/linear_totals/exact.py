"""The optimum of few rows by the general solver, prices held inside a box."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.solvers.constraint_blocks import Groups, blocks_of, lifted
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.program import Program


@dataclass(frozen=True, slots=True)
class Exact:
    """The optimum of some rows with prices held inside a box."""

    row: Ints  # (entry,)
    column: Ints
    share: Floats
    price: Floats  # (column,)
    torn: (
        Floats  # (column,) above 0: overdrawn although the price is at the box's upper end; below 0: left, at its lower
    )

    @classmethod
    def nothing(cls, columns: int) -> Exact:
        """Return what is done without rows or columns."""
        return cls(NO_INTS, NO_INTS, np.empty(0), np.zeros(columns), np.zeros(columns))


def exactly(part: LinearRows, room: Floats, low: Floats, high: Floats) -> Exact:
    """Solve for the open rows over distinct rows by the general solver, prices held between low and high (column,).

    The dual of such a limit is to buy capacity at its upper end, and to be paid its lower end for what is left.
    """
    worth, size, columns = part.worth.T, part.size, len(room)
    rate, floor = np.zeros_like(worth), np.zeros(len(size))
    if not part.free:
        rate, floor = part.rate.T, np.where(np.isfinite(part.floor), part.floor, np.minimum(part.rate, 0.0).sum(axis=0))
    groups = Groups.alike(worth, size, rate, floor)
    groups = replace(groups, count=np.bincount(groups.of, part.counts()).astype(float))
    first, held = groups.first, len(groups.count)
    usable = (worth > 0) | (rate * floor[:, None] > 0)
    blocks = blocks_of(usable[first], size[first], groups.count, room, rate[first], floor[first])
    n, sold, bought = len(blocks.group), np.flatnonzero(low > 0), np.flatnonzero(np.isfinite(high))
    cost = np.concatenate((worth[first][blocks.group, blocks.column], low[sold], -high[bought]))
    row = np.concatenate((blocks.row, held + sold, held + bought))
    variable = np.concatenate((blocks.variable, n + np.arange(len(sold) + len(bought))))
    value = np.concatenate((blocks.value, np.ones(len(sold)), -np.ones(len(bought))))
    blocks.low[held + sold] = room[sold]
    solved = Program.of_entries(cost, row, variable, value, blocks.low, blocks.high).solve()
    price = np.maximum(solved.row_price[held : held + columns], 0.0)
    gain = np.where(usable, worth - size[:, None] * price, -np.inf)
    x = lifted(blocks.spread(solved.x[:n], groups, columns), rate, floor, gain)
    row, column = np.nonzero(x)
    torn = np.zeros(columns)
    torn[sold] -= solved.x[n : n + len(sold)]
    torn[bought] += solved.x[n + len(sold) :]
    return Exact(row, column, x[row, column], price, torn)
