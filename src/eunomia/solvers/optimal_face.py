"""Which of many optima: the points that prices leave open, and two of them to choose.

A point is optimal exactly when it uses no place that is dearer than it is worth, and leaves nothing over of what has a
price (complementary slackness). So prices that prove one optimum describe all of them, as constraints.

* `closest` moves the least from a previous point: few changes, and a corner, so most shares are zero.
* `central` lies inside: it uses every place that some optimum uses, and treats alike rows alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.products import row_dots
from eunomia.solvers.constraint_blocks import Blocks, Groups, blocks_of
from eunomia.solvers.program import INF, TOLERANCE, Program

_EQUAL = 1e-9  # relative: below it a difference of worths is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """All optima of a program over Σ_k x_ik ≤ 1, Σ_i s_i x_ik ≤ N_k, Σ_k T_ik x_ik ≥ f_i, x ≥ 0."""

    usable: Bools  # (row, column) places that an optimum may use
    size: Floats  # (row,)
    capacity: Floats  # (column,)
    rate: Floats  # (row, column)
    floor: Floats  # (row,)
    full_row: Bools  # (row,) whose time is all used
    full_column: Bools  # (column,) whose capacity is all used
    tight_floor: Bools  # (row,) that get their floor and no more

    @classmethod
    def of_prices(
        cls,
        worth: Floats,
        size: Floats,
        capacity: Floats,
        price: Floats,
        *,
        rate: Floats | None = None,
        floor: Floats | None = None,
        floor_price: Floats | None = None,
    ) -> Face:
        """Return the optima of max Σ worth x that the prices prove; worth is zero where the floors alone are at stake.

        worth, rate (row, column), size, floor, floor_price (row,), capacity, price (column,).
        """
        rows = len(size)
        rate = np.zeros_like(worth) if rate is None else rate
        floor = np.zeros(rows) if floor is None else floor
        floor_price = np.zeros(rows) if floor_price is None else floor_price
        earned, paid = worth + floor_price[:, None] * rate, size[:, None] * price
        rounding = _EQUAL * (np.abs(worth) + np.abs(floor_price[:, None] * rate) + paid).max(axis=1)  # (row,)
        gain = np.where(capacity > 0, earned - paid, -np.inf)
        best = np.maximum(gain.max(axis=1, initial=0.0), 0.0)
        useful = (worth > 0) | (paid == 0) | (rate * floor[:, None] > 0)
        return cls(
            usable=(gain >= (best - rounding)[:, None]) & useful & ((worth != 0) | (rate != 0)),
            size=size,
            capacity=capacity,
            rate=rate,
            floor=floor,
            full_row=best > rounding,
            full_column=price > _EQUAL * price.max(initial=0.0),
            tight_floor=floor_price * np.abs(rate).max(axis=1, initial=0.0) > rounding,
        )

    def blocks(self, groups: Groups) -> Blocks:
        """Return the constraints over groups of alike rows."""
        first, count = groups.first, groups.count
        blocks = blocks_of(
            self.usable[first], self.size[first], count, self.capacity, self.rate[first], self.floor[first]
        )
        held, columns = len(count), len(self.capacity)
        full = np.concatenate((self.full_row[first], self.full_column))
        sides = blocks.low[: held + columns], blocks.high[: held + columns]
        sides[0][full] = sides[1][full] * (1 - TOLERANCE)
        floors = np.flatnonzero(self.tight_floor[first][blocks.floored]) + held + columns
        blocks.high[floors] = blocks.low[floors] + TOLERANCE * np.abs(blocks.low[floors])
        return blocks

    def groups(self, *more: Array) -> Groups:
        """Group the rows that this face, and `more`, tell apart by nothing."""
        flags = self.full_row, self.tight_floor
        return Groups.alike(self.usable, self.rate, self.size, self.floor, *flags, *more)


def closest(face: Face, previous: Floats) -> Floats:
    """Return the optimum x (row, column) with the least Σ_ik s_i |x_ik − previous_ik|: a corner, the same each time."""
    groups = face.groups(previous)
    blocks, first = face.blocks(groups), groups.first
    before = previous[first][blocks.group, blocks.column] * groups.count[blocks.group]
    n, rows = len(before), len(blocks.low)
    # |total − before| = more + less, where total − more + less = before: a row for each variable.
    places, ones = np.arange(n), np.ones(n)
    row = np.concatenate((blocks.row, np.tile(rows + places, 3)))
    variable = np.concatenate((blocks.variable, places, n + places, 2 * n + places))
    value = np.concatenate((blocks.value, ones, -ones, ones))
    size = face.size[first][blocks.group]
    cost = np.concatenate((np.zeros(n), size, size))
    low, high = np.append(blocks.low, before), np.append(blocks.high, before)
    program = Program.of_entries(cost, row, variable, value, low, high, upper=_most(blocks, n), maximise=False)
    return blocks.spread(program.solve().x[:n], groups, len(face.capacity))


def _most(blocks: Blocks, n: int) -> Floats:
    """Return upper bounds that leave the simplex fewer places to look."""
    return np.concatenate((blocks.high[blocks.group], np.full(2 * n, INF)))


def central(face: Face) -> Floats:
    """Return an optimum x (row, column) well inside the others; it is the same whatever the order of the rows."""
    groups = face.groups()
    blocks = face.blocks(groups)
    cost = np.zeros(len(blocks.group))
    program = Program.of_entries(cost, blocks.row, blocks.variable, blocks.value, blocks.low, blocks.high)
    total = program.solve("interior", crossover=False).x
    return blocks.spread(total, groups, len(face.capacity))


def of_level(rate: Floats, size: Floats, capacity: Floats, x: Floats) -> Face:
    """Return the points that give every row what x does: all optima of a level program, if x is one.

    rate, x (row, column), size (row,), capacity (column,). Rows may lose 1e-9 of it to rounding.
    """
    nothing = np.zeros(len(size), dtype=bool)
    return Face(
        usable=(rate > 0) & (capacity > 0),
        size=size,
        capacity=capacity,
        rate=rate,
        floor=row_dots(rate, x) * (1 - _EQUAL),
        full_row=nothing,
        full_column=np.zeros(len(capacity), dtype=bool),
        tight_floor=nothing,
    )
