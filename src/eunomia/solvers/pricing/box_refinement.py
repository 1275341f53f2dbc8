"""Prices of rows at their highest level, to about 1 / √M where M of them stand for all, and boxes around prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.barrier import barrier
from eunomia.solvers.pricing.newton import PriceMarket, widths
from eunomia.solvers.pricing.rows import NeedRows, sample

FEW = 1024  # rows that the interior point method takes at once
EXACT = 0.05  # gap of a sampled program, in half widths of the box that it is for
_MARGIN = 0.95  # half width of a box in standard errors of a sample's prices
ROUGH, SHARP = 1e-3, 1e-9  # gaps
POINT = 1e-5  # half width of a box that is not meant to be an estimate
_NEARLY_FULL = 1 - 1e-6  # a row that must be full leaves the interior point method no interior
_LESS_FULL = 1 - 1e-4  # where the method loses its way from there
_LOST = 0.5  # error of the method's answer from which on it tells nothing
_NOTHING = 1e-6  # value of all capacity, in parts of the level, from which on it counts
LEVEL = 2.0  # half width of the level's interval, in those of the prices: it hardly matters to what is certain


@dataclass(frozen=True, slots=True)
class Centre:
    """Where prices seem to be: value q (column,) of each column's whole capacity, sum 1 or 0; level t."""

    value: Floats
    t: float


@dataclass(frozen=True, slots=True)
class LevelBox:
    """low, high (column,) of the values q, the levels (least, middle, most), and the relative half width meant."""

    low: Floats
    high: Floats
    t: Floats
    spread: float
    top: float = np.inf  # no level is above

    def reaches(self, t: float) -> bool:
        """Return whether the level is one of the box."""
        return bool(self.t[0] <= t <= self.t[2] * (1 + 1e-13))

    @property
    def middle(self) -> Floats:
        """Return the values in the middle, (column,)."""
        return 0.5 * (self.low + self.high)

    def nearest(self, centre: Centre) -> Centre:
        t = float(np.clip(centre.t, self.t[0], self.t[2]))
        return Centre(np.clip(centre.value, self.low, self.high), t)

    def misses(self, centre: Centre, spread: float) -> bool:
        width = spread * widths(centre.value)
        low, high = np.maximum(self.low, centre.value - width), np.minimum(self.high, centre.value + width)
        reach = LEVEL * spread
        level = self.t[0] <= centre.t * (1 + reach) and centre.t * (1 - reach) <= self.t[2]
        return bool((low > high).any() or low.sum() > 1 or high.sum() < 1) or not level

    def touches(self, centre: Centre) -> bool:
        under = (centre.value <= self.low * (1 + 1e-9)) & (self.low > 0)
        over = (centre.value >= self.high * (1 - 1e-9)) & (self.high < 1)
        beside = centre.t <= self.t[0] or (centre.t >= self.t[2] and self.t[2] < self.top)
        return bool(under.any() or over.any() or beside)


@dataclass(frozen=True, slots=True)
class Part:
    """A program: rows left open, and what the settled ask for, Σ_d fixed[d] (t − anchor)^d (3, column)."""

    rows: NeedRows
    places: Ints  # (row,) in the whole table
    fixed: Floats
    anchor: float
    load: float  # part of the whole demand that the open rows carry
    box: LevelBox  # where this program is that of all rows
    exact: float  # level at which what is settled was added up row by row


@dataclass(frozen=True, slots=True)
class Codes:
    """Ends of the edge of every row (row,), as places among the priced columns, FREE else; rows still open."""

    left: Array
    right: Array
    open: Ints


@dataclass(frozen=True, slots=True)
class SamplePrices:
    """Prices of rows that stand for all: capacities N (column,) above 0, no level above top."""

    limit: Floats
    top: float

    def centre(self, rows: NeedRows, fixed: Floats, anchor: float, begin: float, goal: float) -> Centre:
        """Return the optimum of `rows` beside what is settled."""
        best = np.maximum(rows.T.max(axis=0), rows.base)
        T = np.concatenate((rows.T, rows.base[None])) / best
        begin = min(begin, 0.999 * self.top)
        for full, part in ((_NEARLY_FULL, 1.0), (_LESS_FULL, 0.5)):
            cap = None if rows.cap is None else np.minimum(rows.cap / best, full)
            scaled = rows._replace(T=T, a=rows.a / best, cap=cap).in_any_form()
            aim, worth = np.ones(rows.count), np.empty((0, 0))
            y, t, error, _ = barrier(scaled, worth, aim, self.limit, fixed, anchor, self.top, part * begin, goal)
            if error < _LOST:
                break
        value = y * self.limit
        known = _NOTHING < value.sum() < np.inf
        return Centre(value / value.sum() if known else np.zeros(len(y)), t)

    def doubt(self, count: int) -> float:
        """Return how far prices of a sample may be off, relative: the worst of all columns."""
        return _MARGIN * float(np.sqrt(elementary.log(2 * len(self.limit)) / count))

    def steps(self, rows: NeedRows, fixed: Floats, begin: Centre) -> tuple[Centre, float, Floats] | None:
        """Return the optimum of rows that stand for all, from near it: else None. The rest as `approach` does."""
        if not begin.value.all():
            return None
        market, doubt = PriceMarket(rows, fixed, 0.0, self.limit), self.doubt(rows.count)
        slope = market.slope(begin.value, begin.t)
        found = market.balance(begin.value, begin.t, self.top, slope, EXACT * doubt)
        return None if found is None or found[2] >= doubt else (Centre(found[0], found[1]), doubt, slope)

    def approach(self, rows: NeedRows, fixed: Floats, whole: bool) -> tuple[Centre, float, Floats | None]:
        """Return the optimum of rows that stand for all, or are all, the half width of a box to draw around it.

        Third, the derivative of what is asked for in the values, if it was measured.
        """
        begin = 0.1 * self.top
        if whole:
            return self.centre(rows, fixed, 0.0, begin, SHARP), POINT, None
        if rows.count <= 1.5 * FEW:
            return self.centre(rows, fixed, 0.0, begin, ROUGH), self.doubt(rows.count), None
        best = rows.T.max(axis=0)
        some = sample(rows, rows.size * rows.need(0.5 * self.top)[0] / best, FEW)
        centre = self.centre(some, fixed, 0.0, begin, ROUGH)
        spread = self.doubt(FEW)
        found = self.steps(rows, fixed, centre)
        return (centre, spread, None) if found is None else found

    def over(self, rows: NeedRows, value: Floats, fixed: Floats, t: float) -> tuple[float, float]:
        """Return what level t costs at given values (column,) beyond all capacity, and the derivative in t."""
        excess, rise = PriceMarket(rows, fixed, 0.0, self.limit).excess(value, t)
        return float(dot(value, excess)), float(dot(value, rise))
