"""How the largest total is searched for: prices of a sample of the rows, boxes of prices, what rows use in a box.

Prices of a sample of M rows are right to about 1/√M. In a box of that width around them most rows choose the same at
every price; they are decided, and what they use is taken off the capacity. A sample of the others errs by as much less
as they are fewer, so the next box is narrower by √M, and so on until few rows are open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import NO_INTS, Array, Floats, Ints
from eunomia.solvers.constraint_blocks import Groups, blocks_of, lifted
from eunomia.solvers.linear_totals.response import OPEN
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.pricing.refinement import BoxSearch
from eunomia.solvers.program import NoOptimum, Program

FEW = 300  # open rows that the general solver takes over
SAMPLE = 800  # half of the rows that the interior point method is asked to solve for at once, without floors
_WIDTH = 12.0  # of a box, in typical errors of a sample's prices
_NARROW = 1e-5  # relative half-width of a box around prices that are not a sample's
_LEAST = 1e-13  # half-width of a box over the ceiling of prices
_FREE = 1e-3  # of the typical price: a price that may well be zero
_TIED = 1e-2  # relative width of a box below which open rows are tied if they stay open
_DEAR = 1e-2  # of the ceiling: a price at which one asks whether the floors can be met at all
_MISSES = 16  # boxes missed after which all are twice as wide
_ROUNDING = 1e-9  # relative: by how much capacities may be overdrawn by rounding alone


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


@dataclass(frozen=True, slots=True)
class PriceScale:
    """How large the prices of a problem are."""

    middle: float  # a price of the right order: the mean worth per unit of size of some rows
    ceiling: float  # a price above all that may come out

    @classmethod
    def of(cls, part: LinearRows) -> PriceScale:
        """Look at some rows."""
        few = slice(None, None, max(1, len(part.size) // 512))
        return cls(float((np.abs(part.worth[:, few]).max(axis=0) / part.size[few]).mean()), part.ceiling)

    def half(self, centre: Floats, spread: float) -> Floats:
        """Return the half width of a box around prices, (column,)."""
        half = spread * (centre + 0.02 * self.middle) + _LEAST * self.ceiling
        return np.where(centre < _FREE * self.middle, np.maximum(half, 2 * centre), half)


@dataclass(frozen=True, slots=True)
class PriceBox:
    """The least and the greatest price of each column, (column,), around a centre."""

    low: Floats
    high: Floats
    centre: Floats
    spread: float  # half-width over price
    of: PriceScale

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the least and the greatest prices."""
        return self.low, self.high

    def misses(self, centre: Floats, spread: float) -> bool:
        half = self.of.half(centre, spread)
        return bool(((centre + half < self.low) | (centre - half > self.high)).any())

    def touches(self, centre: Floats) -> bool:
        return bool((((centre <= self.low * (1 + 1e-9)) & (self.low > 0)) | (centre >= self.high * (1 - 1e-9))).any())

    def nearest(self, centre: Floats) -> Floats:
        return np.clip(centre, self.low, self.high)


@dataclass(frozen=True, slots=True)
class OpenRows:
    """The rows that the box leaves open, their problem, and the capacity left for them."""

    rows: LinearRows
    places: Ints  # (row,) in the whole problem
    room: Floats  # (column,)
    box: PriceBox


@dataclass(frozen=True, slots=True)
class TotalSearch(BoxSearch[OpenRows, LinearRows, Floats, Exact]):
    """The search over a problem, with the choices of the decided rows."""

    problem: LinearRows
    capacity: Floats
    choice: Array  # (row,)
    scale: PriceScale

    @classmethod
    def of(cls, problem: LinearRows, capacity: Floats) -> TotalSearch:
        """Begin with every row open."""
        choice = np.full(len(problem.size), OPEN, dtype=np.int8 if problem.free else np.int16)
        return cls(problem, capacity, choice, PriceScale.of(problem))

    def whole(self) -> OpenRows:
        """Return all rows, at any price."""
        columns = len(self.capacity)
        box = PriceBox(np.zeros(columns), np.full(columns, np.inf), np.zeros(columns), 1.0, self.scale)
        return OpenRows(self.problem, np.arange(len(self.choice)), self.capacity, box)

    def merged(self, part: OpenRows) -> LinearRows:
        return part.rows

    def done(self, part: OpenRows, rows: LinearRows, before: LinearRows | None) -> bool:
        """Return whether few rows are open, prices are known well enough, or what is open is tied at any price."""
        spread, left = part.box.spread, len(rows.size)
        tied = before is not None and spread < _TIED and left > 0.9 * len(before.size)
        return left <= FEW or spread <= _NARROW or tied

    def look(self, part: OpenRows, rows: LinearRows, attempt: int) -> tuple[OpenRows, Floats, float] | None:
        """Return the part, prices of it (column,), and how far off they may be; None where there are none."""
        caution, sample = 2.0 ** (attempt // _MISSES), 2 * int(SAMPLE * _caution(rows))
        whole = len(rows.size) <= sample
        price = _prices(rows if whole else rows.sample(sample, attempt), part.room, 1e-7 if whole else 1e-4)
        if not np.isfinite(price).all():
            return None
        if (price > _DEAR * rows.ceiling).any():
            self.problem.refuse_if_proven(self.capacity, price)
        if whole:
            return part, price, caution * _NARROW
        return part, price, part.box.spread * min(0.5, caution * _caution(rows) * _WIDTH / float(np.sqrt(sample)))

    def box(self, centre: Floats, spread: float, within: PriceBox) -> PriceBox:
        """Return the box of relative half width `spread` around prices, cut off where it leaves `within`."""
        half = self.scale.half(centre, spread)
        low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 2 * self.scale.ceiling)
        low, high = np.clip(low, within.low, within.high), np.clip(high, within.low, within.high)
        return PriceBox(low, high, centre, spread, self.scale)

    def settle(self, part: OpenRows, box: PriceBox) -> OpenRows:
        """Decide what can be decided in the box; return what stays open."""
        choice = np.empty(len(part.places), dtype=self.choice.dtype)
        used = part.rows.choose((box.low + box.high) / 2, (box.high - box.low) / 2, choice)
        self.choice[part.places] = choice
        left = np.flatnonzero(choice == OPEN)
        return OpenRows(part.rows.only(left), part.places[left], part.room - used, box)

    def finish(self, part: OpenRows) -> tuple[Exact, Floats | None]:
        """Return the optimum of the open rows, and its prices if they press against the box."""
        found = exactly(part.rows, part.room, *part.box.ends)
        if (np.abs(found.torn) <= _ROUNDING * self.capacity).all():
            return found, None
        self.problem.refuse_if_proven(self.capacity, found.price)
        return found, found.price


def _caution(part: LinearRows) -> float:
    """Return by how much samples and boxes are larger: rows held by floors say little about each of many prices."""
    return 1.0 if part.free else max(1.0, len(part.worth) / 4)


def _prices(part: LinearRows, room: Floats, tolerance: float) -> Floats:
    """Return prices of a few thousand rows: by an interior point, or by the general solver where that gets nowhere."""
    price = part.centre(room, tolerance)
    if price is not None:
        return price
    try:
        return exactly(part, room, np.zeros(len(room)), np.full(len(room), 2 * part.ceiling)).price
    except NoOptimum:
        return np.full(len(room), np.nan)
