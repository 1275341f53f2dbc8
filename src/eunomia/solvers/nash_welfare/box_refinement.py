"""Prices for any number of rows: from samples to boxes of prices to the few rows that a box leaves open.

    prices of a sample → a box around them → one pass settles all rows whose edge is sure in the box
    → rows that the box cannot tell apart are merged (`symmetry.py`)
    → the same again with the open rows and the tally of the settled ones, until so few are open that all are taken

Sampling is a guess and nothing rests on it: the last prices must lie in every box. Where they do not, or where a box
leaves nearly all rows open, the sample's prices are corrected by what all rows want at them: a step of Newton's method
with the sample's second order, whose error is that of the step times that of the sample. So they get as sharp as ties
ask for, and as near as prices that a small change of capacity moves far ask for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows, recounted, settled
from eunomia.solvers.nash_welfare.barrier import ALONE, MOST_STEPS, interior
from eunomia.solvers.nash_welfare.market import NashMarket, Point, fitted
from eunomia.solvers.nash_welfare.response import OPEN, Edges
from eunomia.solvers.nash_welfare.symmetry import COARSE, MergedRows, merged
from eunomia.solvers.program import NoOptimum

FEW = 1536  # rows that are taken all at once
_SEVERAL = 4 * FEW  # rows that may be
_SOME = 128  # rows from which merging symmetric rows pays
_GOAL = 1e-10  # gap per unit of weight at which an interior point ends
_CLOSE = 1e-9  # where only its prices are wanted
_ROUGHER = 1e-8  # where the first fails
_ROUGH = 1e-5  # the same for a sample, whose prices are rougher than that
_TIES = (1e-6, 1e-4, 1e-2)  # half widths of the box, relative, that parts ties from rows with one best edge
_SHARPENING = 120  # steps that this may take
_MOST_BOXES = 8  # that prices may leave, or that leave too many open, before all rows are taken at once
_BELIEVED = 3  # boxes that are given up when only a sample says that prices leave them
_MOST_STEPS = 6  # that correct a sample's prices for one box
_ENOUGH = 1e-3  # the step, relative, at which a box is drawn
_TOO_MANY = 0.85  # of the rows: more open ones than this are not solved
_WIDTH = 2.0  # half width of a box in 1 / √picks; prices of samples are off by less than 1.7
_SHARP = 1e-8  # half width, relative, of the least box around corrected prices
_TIED = 1e-6  # the same where rows are tied: prices stay where they are, to what an interior point tells apart
_RESOLUTION = 1e-10  # of the mean weight per size: prices that rounding tells apart


class _Left(Exception):
    """The prices (column,) of a sample are held back by the box that its rows were chosen in."""

    def __init__(self, price: Floats):
        super().__init__()
        self.price = price


@dataclass(frozen=True, slots=True)
class _Inside:
    """What a box leaves: the open rows, which of them are symmetric, and their market."""

    chosen: Edges
    open: Ints
    part: NashRows
    alike: MergedRows | None
    market: NashMarket

    @staticmethod
    def of(rows: NashRows, market: NashMarket, price: Floats, box: Floats, coarse: bool = False) -> _Inside:
        """Settle the rows whose edge is sure in the box; merge the others, and if need be those nearly alike."""
        tally, chosen, open_rows = settled(rows, price, box)
        part = rows.part(open_rows)
        alike = merged(part, price, box) if len(part) > _SOME else None
        if alike is None and coarse and len(part) > _SEVERAL:
            alike = merged(part, price, box, COARSE)
        return _Inside(chosen, open_rows, part, alike, market.within(price, box, tally))

    @property
    def few(self) -> NashRows:
        """Return the rows that are left to solve for."""
        return self.part if self.alike is None else self.alike.rows

    def whole(self, inner: Point) -> Point:
        """Return a point of the few as one of all rows."""
        if self.alike is not None:
            inner = _parted(inner, self.alike, self.part, self.market)
        self.chosen[self.open] = inner.chosen
        return replace(inner, chosen=self.chosen, open=self.open[inner.open])


def best_point(rows: NashRows, market: NashMarket, outer: NashMarket | None = None, sharp: bool = True) -> Point:
    """Return the optimum of the rows in the market.

    outer: the market in which this one is a box, if any. Where it need not be `sharp`, prices are good to 1e-9.
    Raises _Left when a sample shows that the optimum is not in the box, and NoOptimum when the interior point does not
    converge.
    """
    if len(rows) <= FEW:
        return _whole(rows, market, None, sharp)
    sample = _sample(rows)
    price, box = _begun(rows, sample, market, outer)
    misses, resolution = 0, _RESOLUTION * rows.weight.sum() / rows.size.sum()
    for boxes in range(_MOST_BOXES):
        price, box = market.middle(price, np.maximum(box, resolution))
        inside = _Inside.of(rows, market, price, box, coarse=boxes > 1)
        if len(inside.few) <= _TOO_MANY * len(rows):
            inner, found = _tried(inside, price, market, misses < _BELIEVED, sharp)
            if inner is not None:
                return inside.whole(inner)
            misses += 1
            price, box = found, np.where(np.abs(found - price) > 0.9 * box, 10.0 * box, box)
        elif len(rows) <= _SEVERAL:
            break
        least = (_SHARP if inside.alike is None else _TIED) * elementary.power(10.0, misses)
        price, box = _corrected(rows, sample, market, price, box, least)
    return _whole(rows, market, price, sharp)


def _whole(rows: NashRows, market: NashMarket, start: Floats | None, sharp: bool) -> Point:
    """Return the optimum without boxes; start (column,): prices that are not far."""
    point = all_at_once(rows, market, start, sharp)
    return fitted(point, rows, market) if sharp else point


def _begun(rows: NashRows, sample: NashRows, market: NashMarket, outer: NashMarket | None) -> tuple[Floats, Floats]:
    """Return prices of a sample and half widths of a first box (column,)."""
    if len(sample) <= FEW:
        price = _interior(sample, market, market.scale(), _ROUGH)[0]
    else:
        price = best_point(sample, market, sharp=False).price
    if outer is not None and market.held(price, outer).any():
        raise _Left(price)
    width = _WIDTH * float(rows.weight.sum()) / market.weight / np.sqrt(len(sample))
    return price, width * market.unit(price)


def _sample(rows: NashRows) -> NashRows:
    return rows.sample(max(FEW * 3 // 4, len(rows) // 24))


def _tried(
    inside: _Inside, price: Floats, market: NashMarket, believe: bool, sharp: bool
) -> tuple[Point | None, Floats]:
    """Return the optimum of what a box leaves, or None where the box does not have it; and where it may be (column,).

    believe: take a sample's word for that.
    """
    few = inside.few
    try:
        if len(few) <= FEW:
            inner = _whole(few, inside.market, price, sharp)
        else:
            inner = best_point(few, inside.market, market if believe else None, sharp)
    except _Left as left:
        return None, left.price
    except NoOptimum:
        return None, price
    return (inner if inside.market.holds(inner, few, market) else None), inner.price


def _corrected(
    rows: NashRows, sample: NashRows, market: NashMarket, price: Floats, box: Floats, least: float
) -> tuple[Floats, Floats]:
    """Return prices at which the sample, and what the rows want more than it does at the prices, fill the columns.

    Also half the widths of a box around them (column,), at least `least` of the prices.
    """
    last = np.inf
    for _ in range(_MOST_STEPS):
        price = np.maximum(price, 1e-15 * market.scale())
        here, there = (settled(some, price, -price)[0] + market.tally for some in (rows, sample))
        more = here.demand(price) - there.demand(price)
        shifted = replace(market, capacity=np.maximum(market.capacity - more, 0.05 * market.capacity))
        try:
            found = _near(sample, shifted, price, box)
        except NoOptimum:
            return price, 10.0 * box
        moved, fine = np.abs(found - price), np.maximum(found, 1e-9 * market.unit(found))
        far = float((moved / fine).max())
        held = moved > 0.9 * box
        price, box = found, np.where(held, 10.0 * box, 2.0 * moved + max(0.2 * min(far, 1.0), least) * fine)
        if not held.any():
            if far < _ENOUGH or far > 0.5 * last:
                break
            last = far
    return price, box


def _near(sample: NashRows, market: NashMarket, price: Floats, box: Floats) -> Floats:
    """Return the prices of a sample within a box."""
    price, box = market.middle(price, box)
    inside = _Inside.of(sample, market, price, box)
    if len(inside.few) <= _SEVERAL:
        return _interior(inside.few, inside.market, price, _CLOSE)[0]
    return best_point(inside.few, inside.market, sharp=False).price


def _parted(point: Point, alike: MergedRows, rows: NashRows, market: NashMarket) -> Point:
    """Return the point of merged rows as one of the rows they were made from."""
    chosen, open_rows, x = alike.shares(rows, point.chosen, point.open, point.x)
    own, doubt = recounted(rows, chosen), point.doubt
    if len(open_rows) < len(rows):
        at_best = settled(rows.part(np.flatnonzero(chosen != OPEN)), point.price, -point.price)[0]
        doubt += abs(at_best.value(point.price) - own.value(point.price))
    return Point(point.price, market.tally + own, chosen, open_rows, x, doubt)


def _interior(
    rows: NashRows, market: NashMarket, start: Floats, goal: float, alone: int = ALONE, most: int = MOST_STEPS
) -> tuple[Floats, Floats]:
    """Return prices and x (1 + column, row) of the optimum; raise NoOptimum when the method breaks down."""
    tally, price = market.tally, market.inner(start)
    x, steps = interior(
        rows.rate, rows.size, rows.weight, market.capacity,
        (tally.first, tally.mixed, tally.fixed), market.low, market.high, price, goal, alone, most,
    )  # fmt: skip
    if not 0 <= steps < most:
        raise NoOptimum(f"the interior point found no optimum for {len(rows)} rows ({steps} steps)")
    return price, x


def all_at_once(rows: NashRows, market: NashMarket, start: Floats | None, sharp: bool = True) -> Point:
    """Return the optimum from one interior point, and from a second one over its ties, which makes edges exact.

    Without the second where it need not be `sharp`.
    """
    price, x = _interior(rows, market, market.scale() if start is None else start, _GOAL if sharp else _CLOSE)
    best = price
    for width in _TIES if sharp else ():
        inside = _Inside.of(rows, market, best, width * np.maximum(market.unit(best), 0.03 * market.scale()))
        few, ties = inside.few, inside.market
        try:
            best, shares = _interior(few, ties, best, _GOAL, most=_SHARPENING)
        except NoOptimum:
            break  # the first point is as good, only less sharp
        found = _all_open(best, shares, few, ties)
        if ties.holds(found, few, market):
            return inside.whole(found if inside.alike is None else fitted(found, few, market))
    return _all_open(price, x, rows, market)


def rougher_point(rows: NashRows, market: NashMarket) -> Point:
    """Return a point nearly as good from one interior point that keeps away from the optimum's own rounding."""
    price, x = _interior(rows, market, market.scale(), _ROUGHER, alone=0)
    return fitted(_all_open(price, x, rows, market), rows, market)


def _all_open(price: Floats, x: Floats, rows: NashRows, market: NashMarket) -> Point:
    return Point(price, market.tally, np.full(len(rows), OPEN, dtype=np.int16), np.arange(len(rows)), x)
