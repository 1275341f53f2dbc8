"""Prices for any number of rows: from samples to boxes of prices to the few rows that a box leaves open.

    prices of a sample → a box around them → one pass settles all rows whose edge is sure in the box
    → the same again with the open rows and the tally of the settled ones, until so few are open that all are taken

Sampling is a guess and nothing rests on it: the last prices must lie in every box. Where they do not, that box is drawn
again around them, and larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.smooth.alike import merged
from eunomia.solvers.smooth.barrier import ALONE, MOST_STEPS, interior
from eunomia.solvers.smooth.response import OPEN, Edges
from eunomia.solvers.smooth.tally import Rows, Tally, settled

FEW = 1536  # rows that are taken all at once
_GOAL = 1e-10  # gap per unit of weight at which an interior point ends
_ROUGHER = 1e-8  # where that fails
_ROUGH = 1e-5  # the same for a sample, whose prices are rougher than that
_TIES = (1e-6, 1e-4, 1e-2)  # half widths of the box, relative, that parts ties from rows with one best edge
_MOST_BOXES = 8  # that prices may leave before all rows are taken at once
_TOO_MANY = 0.85  # of the rows, to go on with as open ones
_START_BOX = 2e-3
_WIDTH = 2.0  # half width of a box in 1 / √picks; prices of samples are off by less than 1.7


@dataclass(frozen=True, slots=True)
class Market:
    """What rows share: capacity and bounds of the prices (column,), those settled, and the weight W of all rows."""

    capacity: Floats
    weight: float
    tally: Tally
    low: Floats
    high: Floats

    @staticmethod
    def of(capacity: Floats, weight: float) -> Market:
        """Return the market in which nothing is settled; no price is above W / N."""
        return Market(capacity, weight, Tally.none(len(capacity)), np.zeros_like(capacity), 2.0 * weight / capacity)

    def scale(self) -> Floats:
        """Return the prices (column,) at which every column alike takes in all weight."""
        return self.weight / (len(self.capacity) * self.capacity)

    def unit(self, price: Floats) -> Floats:
        """Return what a price is measured against: itself, or where it is near 0 a part of what others cost."""
        others = 0.1 * float(price @ self.capacity) / (len(price) * self.capacity)
        return np.maximum(np.maximum(price, others), 1e-3 * self.scale())

    def within(self, price: Floats, box: Floats, tally: Tally) -> Market:
        """Return the market in which more rows are settled and prices stay in price ± box."""
        low, high = np.maximum(self.low, price - box), np.minimum(self.high, price + box)
        return Market(self.capacity, self.weight, self.tally + tally, low, high)

    def less(self, tally: Tally) -> Market:
        """Return the market without some of the rows that are settled."""
        return Market(self.capacity, self.weight, self.tally - tally, self.low, self.high)

    def holds(self, price: Floats, outer: Market) -> bool:
        """Tell whether the prices were kept from leaving by the outer market's bounds only."""
        edge = 0.01 * (self.high - self.low)
        held = ((price - self.low < edge) & (self.low > outer.low)) | (
            (self.high - price < edge) & (self.high < outer.high)
        )
        return not held.any()

    def inner(self, price: Floats) -> Floats:
        """Return the prices, moved off the bounds."""
        edge = 0.05 * (self.high - self.low)
        return np.clip(price, self.low + np.minimum(edge, 1e-3 * self.scale()), self.high - edge)


@dataclass(frozen=True, slots=True)
class Point:
    """Prices (column,), the edges of rows (row,), and x (1 + column, open row), idle first, of those that are OPEN."""

    price: Floats
    tally: Tally
    chosen: Edges
    open: Ints
    x: Floats

    @staticmethod
    def empty() -> Point:
        """Return the point of no rows."""
        return Point(np.empty(0), Tally.none(0), np.empty(0, dtype=np.int16), NO_INTS, np.empty((1, 0)))


def totals(point: Point, rows: Rows, market: Market) -> tuple[float, float]:
    """Return Σ w log(T·x) at the point, and the dual value at its prices, which no x exceeds."""
    price, ties = point.price, rows.part(point.open)
    level = (ties.rate * point.x[1:]).sum(axis=0)
    value = point.tally.value(price)
    at_best = settled(ties, price, -price)[0].value(price)
    objective = value + float(price @ point.tally.demand(price) + ties.weight @ np.log(level))
    return float(objective), float(value + at_best + price @ market.capacity)


def best_point(rows: Rows, market: Market, start: Floats | None = None) -> Point:
    """Return the optimum of the rows in the market; start (column,) are prices of a problem nearly alike.

    Raises NoOptimum when the interior point does not converge.
    """
    if len(rows) <= FEW:
        return all_at_once(rows, market, start)
    picks = max(FEW * 3 // 4, len(rows) // 24)
    price, width = _of_a_sample(rows, market, picks) if start is None else (market.inner(start), _START_BOX)
    for boxes in range(_MOST_BOXES):
        box = width * market.unit(price)
        tally, chosen, open_rows = settled(rows, price, box)
        if len(open_rows) > _TOO_MANY * len(rows):
            alike = merged(rows)
            if alike is not None:
                return _parted(best_point(alike[0], market, price), alike[1])
            picks *= 4
            if picks > _TOO_MANY * len(rows):
                return all_at_once(rows, market, price)
            price, width = _of_a_sample(rows, market, picks)
            continue
        narrower = market.within(price, box, tally)
        inner = best_point(rows.part(open_rows), narrower, price if len(open_rows) <= FEW else None)
        if narrower.holds(inner.price, market):
            return _joined(inner, chosen, open_rows)
        price, width = inner.price, (3.0 if boxes < 2 else 10.0) * width
        if start is not None and boxes == 1:
            price, width = _of_a_sample(rows, market, picks)
    return all_at_once(rows, market, price)


def _joined(inner: Point, chosen: Edges, open_rows: Ints) -> Point:
    """Return the inner point, which is of the open rows, as one of all rows."""
    chosen[open_rows] = inner.chosen
    return Point(inner.price, inner.tally, chosen, open_rows[inner.open], inner.x)


def _parted(point: Point, became: Ints) -> Point:
    """Return the point of merged rows as one of the rows they were made from."""
    chosen = point.chosen[became]
    open_rows = np.flatnonzero(chosen == OPEN)
    place = np.searchsorted(point.open, became[open_rows])
    return Point(point.price, point.tally, chosen, open_rows, np.ascontiguousarray(point.x[:, place]))


def _of_a_sample(rows: Rows, market: Market, picks: int) -> tuple[Floats, float]:
    """Return the prices of a sample, and how far off they may be, relative."""
    sample = drawn(rows, picks)
    if len(sample) <= FEW:
        price, _ = _interior(sample, market, market.scale(), _ROUGH)
    else:
        price = best_point(sample, market).price
    return price, _WIDTH * float(rows.weight.sum()) / market.weight / np.sqrt(picks)


@njit(cache=True)
def _walk(size: Floats, weight: Floats, per_size: float, per_weight: float, places: Floats, found: Ints) -> None:
    """Write for each place, in rising order, the first row up to which the rows' chances sum to it."""
    total, q = 0.0, 0
    for i in range(len(size)):
        total += size[i] * per_size + weight[i] * per_weight
        while q < len(places) and places[q] <= total:
            found[q] = i
            q += 1


def drawn(rows: Rows, picks: int) -> Rows:
    """Return a sample that stands for the rows: drawn by weight and size, one from each of `picks` equal parts.

    Its total weight and size are the rows' own: where they just about fill the columns, prices hang on those.
    """
    per_weight, per_size = 0.5 / rows.weight.sum(), 0.5 / rows.size.sum()
    places = (np.arange(picks) + np.random.default_rng(len(rows)).random(picks)) / picks
    found = np.full(picks, len(rows) - 1)
    _walk(rows.size, rows.weight, per_size, per_weight, places, found)
    row, times = np.unique(found, return_counts=True)
    chance = rows.size[row] * per_size + rows.weight[row] * per_weight
    sample = rows.part(row, times / (picks * chance))
    size, weight = rows.size.sum() / sample.size.sum(), rows.weight.sum() / sample.weight.sum()
    return Rows(sample.rate, sample.size * size, sample.weight * weight)


def _interior(rows: Rows, market: Market, start: Floats, goal: float, alone: int = ALONE) -> tuple[Floats, Floats]:
    """Return prices and x (1 + column, row) of the optimum; raise NoOptimum when the method breaks down."""
    tally, price = market.tally, market.inner(start)
    x, steps = interior(
        rows.rate, rows.size, rows.weight, market.capacity, market.weight,
        tally.first, tally.mixed, tally.fixed, market.low, market.high, price, goal, alone,
    )  # fmt: skip
    if not 0 <= steps < MOST_STEPS:
        raise NoOptimum(f"the interior point found no optimum for {len(rows)} rows ({steps} steps)")
    return price, x


def all_at_once(rows: Rows, market: Market, start: Floats | None) -> Point:
    """Return the optimum from one interior point, and from a second one over its ties, which makes edges exact."""
    price, x = _interior(rows, market, market.scale() if start is None else start, _GOAL)
    sharp = price
    for width in _TIES:
        box = width * np.maximum(market.unit(sharp), 0.03 * market.scale())
        tally, chosen, open_rows = settled(rows, sharp, box)
        ties = market.within(sharp, box, tally)
        try:
            sharp, shares = _interior(rows.part(open_rows), ties, sharp, _GOAL)
        except NoOptimum:
            break  # the first point is as good, only less sharp
        if ties.holds(sharp, market):
            return Point(sharp, ties.tally, chosen, open_rows, shares)
    return _all_open(price, x, rows, market)


def rougher_point(rows: Rows, market: Market) -> Point:
    """Return a point nearly as good from one interior point that keeps away from the optimum's own rounding."""
    price, x = _interior(rows, market, market.scale(), _ROUGHER, alone=0)
    return _all_open(price, x, rows, market)


def _all_open(price: Floats, x: Floats, rows: Rows, market: Market) -> Point:
    return Point(price, market.tally, np.full(len(rows), OPEN, dtype=np.int16), np.arange(len(rows)), x)
