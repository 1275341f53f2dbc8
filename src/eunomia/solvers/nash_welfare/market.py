"""What rows share and what is found for them: a market, a point of it, and what the point is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eunomia.model import elementary
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.equations import least_squares
from eunomia.model.products import dot
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows, Tally, settled
from eunomia.solvers.nash_welfare.response import Edges

_NEXT_TO_NOTHING = 1e-11  # of all weight: what prices held back by a box may leave on the table
_ROUNDING = 1e-6  # of a capacity: what an interior point may leave over or take too much
_BITS, _BIT = 8, 0.5  # corrections, and how much of a share one takes
_NOTHING = 1e-10  # of a row's level: shares that bring less are left out


@dataclass(frozen=True, slots=True)
class NashMarket:
    """What rows share: capacity and bounds of the prices (column,), those settled, and the weight W of all rows."""

    capacity: Floats
    weight: float
    tally: Tally
    low: Floats
    high: Floats

    @staticmethod
    def of(capacity: Floats, weight: float) -> NashMarket:
        """Return the market in which nothing is settled; no price is above W / N."""
        return NashMarket(capacity, weight, Tally.none(len(capacity)), np.zeros_like(capacity), 2.0 * weight / capacity)

    def scale(self) -> Floats:
        """Return the prices (column,) at which every column alike takes in all weight."""
        return self.weight / (len(self.capacity) * self.capacity)

    def unit(self, price: Floats) -> Floats:
        """Return what a price is measured against: itself, or where it is near 0 a part of what others cost."""
        others = 0.1 * float(dot(price, self.capacity)) / (len(price) * self.capacity)
        return np.maximum(np.maximum(price, others), 1e-3 * self.scale())

    def within(self, price: Floats, box: Floats, tally: Tally) -> NashMarket:
        """Return the market in which more rows are settled and prices stay in price ± box."""
        low, high = np.maximum(self.low, price - box), np.minimum(self.high, price + box)
        return NashMarket(self.capacity, self.weight, self.tally + tally, low, high)

    def less(self, tally: Tally) -> NashMarket:
        """Return the market without some of the rows that are settled."""
        return NashMarket(self.capacity, self.weight, self.tally - tally, self.low, self.high)

    def holds(self, inner: Point, rows: NashRows, outer: NashMarket) -> bool:
        """Tell whether the point of the rows was kept from better prices by the outer market's bounds only.

        Where it was kept by more, but what it leaves over or takes too much is worth next to nothing, it is as good.
        """
        price, held = inner.price, self.held(inner.price, outer)
        if not held.any():
            return True
        used = inner.tally.demand(price) + (inner.x[1:] * rows.size[inner.open]).sum(axis=1)
        return bool((np.abs(self.capacity - used) * price)[held].sum() <= _NEXT_TO_NOTHING * self.weight)

    def held(self, price: Floats, outer: NashMarket) -> NDArray[np.bool_]:
        """Tell which prices (column,) are on bounds that are not the outer market's too."""
        edge = 0.01 * (self.high - self.low)
        return ((price - self.low < edge) & (self.low > outer.low)) | (
            (self.high - price < edge) & (self.high < outer.high)
        )

    def middle(self, price: Floats, box: Floats) -> tuple[Floats, Floats]:
        """Return the middle and half the widths of that part of a box which is within the bounds."""
        low, high = np.maximum(self.low, price - box), np.minimum(self.high, price + box)
        return 0.5 * (low + high), 0.5 * (high - low)

    def inner(self, price: Floats) -> Floats:
        """Return the prices, moved off the bounds."""
        edge = 0.05 * (self.high - self.low)
        return np.clip(price, self.low + np.minimum(edge, 1e-3 * self.scale()), self.high - edge)


@dataclass(frozen=True, slots=True)
class Point:
    """Prices (column,), the edges of rows (row,), and x (1 + column, open row), idle first, of those that are OPEN.

    doubt: how far the value of the tally may be from the best of its rows, where edges were found for merged rows.
    """

    price: Floats
    tally: Tally
    chosen: Edges
    open: Ints
    x: Floats
    doubt: float = 0.0

    @staticmethod
    def empty() -> Point:
        """Return the point of no rows."""
        return Point(np.empty(0), Tally.none(0), np.empty(0, dtype=np.int16), NO_INTS, np.empty((1, 0)))


def totals(point: Point, rows: NashRows, market: NashMarket) -> tuple[float, float]:
    """Return Σ w log(T·x) at the point, and the dual value at its prices, which no x exceeds."""
    price, ties = point.price, rows.part(point.open)
    level = (ties.rate * point.x[1:]).sum(axis=0)
    value = point.tally.value(price)
    at_best = settled(ties, price, -price)[0].value(price)
    objective = value + float(dot(price, point.tally.demand(price)) + dot(ties.weight, elementary.log(level)))
    return float(objective), float(value + at_best + dot(price, market.capacity)) + point.doubt


def fitted(point: Point, rows: NashRows, market: NashMarket) -> Point:
    """Return the point with rounding taken out of the open rows' shares: scarce columns full, none over-full.

    The correction is the least one relative to the shares: s x (λ_k − Σ x λ) with λ from K equations.
    """
    x, ties = point.x.copy(), rows.part(point.open)
    y = (ties.rate * x[1:]).sum(axis=0)
    x[1:][ties.rate * x[1:] <= _NOTHING * y] = 0.0
    x[1:] /= np.maximum(x[1:].sum(axis=0), 1.0)
    change = x[1:] * _change(point, x, ties, ties.size, market)
    if (np.abs(change) <= 10.0 * _ROUNDING).all():
        x[1:] = np.maximum(x[1:] + change, 0.0)
        x[1:] /= np.maximum(x[1:].sum(axis=0), 1.0)
    return replace(point, x=x)


def made_to_fit(point: Point, rows: NashRows, market: NashMarket) -> Point:
    """Return a point whose open rows fit the columns, light rows making room for heavy ones, bit by bit."""
    x, ties = point.x.copy(), rows.part(point.open)
    for _ in range(_BITS):
        x[1:] *= 1.0 + np.clip(_change(point, x, ties, ties.size / ties.weight, market), -_BIT, _BIT)
        x[1:] /= np.maximum(x[1:].sum(axis=0), 1.0)
    return replace(point, x=x)


def _change(point: Point, x: Floats, ties: NashRows, ease: Floats, market: NashMarket) -> Floats:
    """Return by how much of itself each share is to change (column, row) that columns are full; ease (row,)."""
    scarce = point.price * market.capacity > 1e-9 * market.weight
    missing = market.capacity - point.tally.demand(point.price) - (x[1:] * ties.size).sum(axis=1)
    bound = np.flatnonzero((scarce & (missing < _ROUNDING * market.capacity)) | (missing < 0.0))
    eased = x[1:] * (ease * ties.size)
    system = np.diag(eased.sum(axis=1)) - dot(eased, x[1:].T)
    pull = np.zeros(len(missing))
    pull[bound] = least_squares(system[np.ix_(bound, bound)], missing[bound], rcond=1e-10)
    return np.asarray(ease * (pull[:, None] - (pull[:, None] * x[1:]).sum(axis=0)))
