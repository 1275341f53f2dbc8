"""How the highest level is searched for: samples of the rows, boxes of their prices, what rows ask for in a box.

A sample of the rows gives prices to about 1 / √M. In a box around them most rows have a certain answer, which leaves
the program as a known demand; the error of the next sample shrinks with the part of the demand that is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.barrier import barrier
from eunomia.solvers.pricing.newton import PriceMarket, widths
from eunomia.solvers.pricing.refinement import BoxSearch
from eunomia.solvers.pricing.response import classify
from eunomia.solvers.pricing.rows import NeedRows, drawn, sample

FoundT = TypeVar("FoundT")
FEW = 1024  # rows that the interior point method takes at once
LAST = 120  # rows for the exact program
_EXACT = 0.05  # gap of a sampled program, in half widths of the box that it is for
_MARGIN = 0.95  # half width of a box in standard errors of a sample's prices
_UNLUCKY, _LEARNT = 8, 0.25  # boxes missed from which on they are wider, and by how much of it for each
_ROUGH, _FINE, _SHARP = 1e-3, 1e-4, 1e-9  # gaps
_POINT = 1e-5  # half width of a box that is not meant to be an estimate
_NEARLY_FULL = 1 - 1e-6  # a row that must be full leaves the interior point method no interior
_LESS_FULL = 1 - 1e-4  # where the method loses its way from there
_LOST = 0.5  # error of the method's answer from which on it tells nothing
_NOTHING = 1e-6  # value of all capacity, in parts of the level, from which on it counts
_LEVEL = 2.0  # half width of the level's interval, in those of the prices: it hardly matters to what is certain
_WIDER = 2.0  # of a sample's box that was missed
_TRUSTING = 4  # tries in which a box that was missed may be drawn anew without being wider
_IDLE = 0.7  # part of its rows that a box must not leave open
_ASIDE = 2.0  # half widths beside a box that was missed, up to which prices are still taken as known
_TRUST = 4.0  # half width of a box in what Newton's method takes for its error
_AT_ONCE = 0.025  # part of the rows that it is meant to leave: to leave fewer, later passes over few rows are cheaper
_GAIN = 0.5  # a box that is not smaller than so much of the last one is not worth its pass


@dataclass(frozen=True, slots=True)
class Centre:
    """Where prices seem to be: value q (column,) of each column's whole capacity, sum 1 or 0; level t."""

    value: Floats
    t: float
    looked: bool = False  # all rows were looked at: beyond the box it is for this is still about right
    blur: float = 0.0  # how far off the level may be, relative, where that is more than follows from the values


@dataclass(frozen=True, slots=True)
class LevelBox:
    """low, high (column,) of the values q, the levels (least, middle, most), and the relative half width meant."""

    low: Floats
    high: Floats
    t: Floats
    spread: float

    def reaches(self, t: float) -> bool:
        """Return whether the level is one of the box."""
        return bool(self.t[0] <= t <= self.t[2] * (1 + 1e-13))

    @property
    def middle(self) -> Floats:
        """Return the values in the middle, (column,)."""
        return 0.5 * (self.low + self.high)

    def nearest(self, centre: Centre) -> Centre:
        """Return the centre, or where it left the box."""
        t = float(np.clip(centre.t, self.t[0], self.t[2]))
        return Centre(np.clip(centre.value, self.low, self.high), t)

    def leads_to(self, centre: Centre) -> bool:
        """Return whether a centre is known well enough, and near enough, for a box of the same width around it."""
        width = self.spread * widths(centre.value)
        near = np.abs(centre.value - np.clip(centre.value, self.low, self.high)) <= _ASIDE * width
        reach = _ASIDE * _LEVEL * self.spread
        return centre.looked and bool(near.all()) and self.t[0] * (1 - reach) <= centre.t <= self.t[2] * (1 + reach)

    def misses(self, centre: Centre, spread: float) -> bool:
        """Return whether a centre known to within `spread` is surely outside, or too close to a side to tell."""
        width = spread * widths(centre.value)
        low, high = np.maximum(self.low, centre.value - width), np.minimum(self.high, centre.value + width)
        reach = _LEVEL * spread
        level = self.t[0] <= centre.t * (1 + reach) and centre.t * (1 - reach) <= self.t[2]
        return bool((low > high).any() or low.sum() > 1 or high.sum() < 1) or not level

    def touches(self, centre: Centre, top: float) -> bool:
        """Return whether prices or level lie at a side of the box beyond which others are possible, or beyond it."""
        under = (centre.value <= self.low * (1 + 1e-9)) & (self.low > 0)
        over = (centre.value >= self.high * (1 - 1e-9)) & (self.high < 1)
        beside = centre.t <= self.t[0] or (centre.t >= self.t[2] and self.t[2] < top)
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
class Search(BoxSearch[Part, NeedRows, Centre, FoundT]):
    """A search by rows that stand for all: capacities N (column,) above 0, no level above top."""

    limit: Floats
    top: float
    slope: Floats | None = None  # (column, column) derivative of what all rows ask for in the values, if it is known

    def merged(self, part: Part) -> NeedRows:
        """Return the rows of a part: of a sample none are merged."""
        return part.rows

    def done(self, part: Part, rows: NeedRows, before: NeedRows | None) -> bool:
        """Return whether the interior point method may take these rows, or a box left nearly all of them open."""
        return rows.count <= FEW or self.idle(rows, before)

    @staticmethod
    def idle(rows: NeedRows, before: NeedRows | None) -> bool:
        """Return whether a box left nearly all rows open."""
        return before is not None and rows.count > _IDLE * before.count

    def centre(self, rows: NeedRows, fixed: Floats, anchor: float, begin: float, goal: float) -> Centre:
        """Return the optimum of `rows` beside what is settled."""
        best = np.maximum(rows.T.max(axis=0), rows.base)
        T = np.concatenate((rows.T, rows.base[None])) / best
        begin = min(begin, 0.999 * self.top)
        for full, part in ((_NEARLY_FULL, 1.0), (_LESS_FULL, 0.5)):
            cap = None if rows.cap is None else np.minimum(rows.cap / best, full)
            scaled = rows._replace(T=T, a=rows.a / best, cap=cap)
            aim, worth = np.ones(rows.count), np.empty((0, 0))
            y, t, error, _ = barrier(scaled, worth, aim, self.limit, fixed, anchor, self.top, part * begin, goal)
            if error < _LOST:
                break
        value = y * self.limit
        known = _NOTHING < value.sum() < np.inf
        return Centre(value / value.sum() if known else np.zeros(len(y)), t)

    def box(self, centre: Centre, spread: float, within: LevelBox | None) -> LevelBox:
        """Return the box of relative half width `spread` around a centre, cut off where it leaves `within`."""
        width = spread * widths(centre.value)
        low, high = np.maximum(centre.value - width, 0.0), np.minimum(centre.value + width, 1.0)
        if spread >= 1:  # nothing is known
            low, high = np.zeros(len(low)), np.ones(len(low))
        reach = min(max(_LEVEL * spread, centre.blur), 0.9)
        least, most = centre.t * (1 - reach), min(centre.t * (1 + reach), self.top)
        if within is not None:
            low, high = np.clip(low, within.low, within.high), np.clip(high, within.low, within.high)
            least, most = (float(np.clip(t, within.t[0], within.t[2])) for t in (least, most))
        return LevelBox(low, high, np.array([least, 0.5 * (least + most), most]), spread)

    def misses(self, box: LevelBox, centre: Centre, spread: float) -> bool:
        return box.misses(centre, spread)

    def touches(self, box: LevelBox, centre: Centre) -> bool:
        return box.touches(centre, self.top)

    def aim(self, box: LevelBox, met: Centre, attempt: int) -> tuple[Centre, bool]:
        known = attempt < _TRUSTING and box.leads_to(met)
        return met if known else box.nearest(met), known

    def settle(self, part: Part | None, box: LevelBox, codes: Codes | None = None) -> Part:
        """Return the part without the rows whose answer is certain in the box; write their codes."""
        assert part is not None
        rows, K = part.rows, len(self.limit)
        unsure = np.empty(rows.count + 1, dtype=np.int64)
        left, right = np.empty(rows.count, dtype=np.int8), np.empty(rows.count, dtype=np.int8)
        demand = np.zeros((3, K))
        low, high = box.low / self.limit, box.high / self.limit
        found = classify(rows, low, high, box.t, left, right, demand, unsure)
        if codes is not None:
            codes.left[part.places], codes.right[part.places] = left, right
        if found == rows.count:
            return replace(part, box=box)
        kept = unsure[:found].copy()
        f, d = part.fixed, float(box.t[1]) - part.anchor
        moved = np.stack((f[0] + d * (f[1] + d * f[2]), f[1] + 2 * d * f[2], f[2]))
        load = part.load * found / max(rows.count, 1)
        return Part(rows.some(kept), part.places[kept], moved + demand, float(box.t[1]), load, box, part.exact)

    def finish(self, part: Part) -> tuple[FoundT | None, Centre | None]:
        """Return no optimum: of a sample only its prices are wanted."""
        return None, None

    def look(self, part: Part, rows: NeedRows, attempt: int) -> tuple[Part, Centre, float] | None:
        """Return the part, where its prices seem to be, and how far off that may be; None where nothing has a price."""
        centre, spread = self.seen(part, rows, FEW, attempt)
        return (part, centre, spread) if centre.value.any() else None

    def seen(self, part: Part, rows: NeedRows, most: int, attempt: int) -> tuple[Centre, float]:
        """Return where the prices of a part seem to be, of which `rows` are the sorts, and how far off that may be.

        Up to `most` rows are looked at one and all.
        """
        t = float(part.box.t[1])
        balance = self.balance(part) if attempt < _UNLUCKY else None
        if balance is not None:
            return balance
        if rows.count <= most:
            return self.centre(rows, part.fixed, part.anchor, t, _SHARP), _POINT
        weight = rows.size * rows.need(t)[0] / np.maximum(rows.T.max(axis=0), rows.base)
        some = sample(rows, weight, FEW, attempt)
        load = part.load if rows is part.rows else part.load * drawn(weight, FEW)
        margin = 1 + _LEARNT * max(attempt - _UNLUCKY, 0)
        spread = max(margin * self.doubt(FEW) * load, _POINT)
        return self.centre(some, part.fixed, part.anchor, t, min(_ROUGH, _EXACT * spread)), spread

    def doubt(self, count: int) -> float:
        """Return how far prices of a sample may be off, relative: the worst of all columns."""
        return _MARGIN * float(np.sqrt(elementary.log(2 * len(self.limit)) / count))

    def balance(self, part: Part) -> tuple[Centre, float] | None:
        """Return the same by Newton's method, which looks at all rows; None where it does not get near."""
        if self.slope is None:
            return None
        few = part.box.spread * max(0.3 * LAST / part.rows.count, _AT_ONCE)  # a box of this width leaves few rows open
        market = PriceMarket(part.rows, part.fixed, part.anchor, self.limit)
        found = market.balance(part.box.middle, float(part.box.t[1]), self.top, self.slope, few / _TRUST)
        if found is None:
            return None
        value, t, off = found
        spread = max(_TRUST * off, few)
        return (Centre(value, t, True), spread) if spread < _GAIN * part.box.spread else None

    def steps(self, rows: NeedRows, fixed: Floats, begin: Centre) -> tuple[Centre, float, Floats] | None:
        """Return the optimum of rows that stand for all, from near it: else None. The rest as `approach` does."""
        if not begin.value.all():
            return None
        market, doubt = PriceMarket(rows, fixed, 0.0, self.limit), self.doubt(rows.count)
        slope = market.slope(begin.value, begin.t)
        found = market.balance(begin.value, begin.t, self.top, slope, _EXACT * doubt)
        return None if found is None or found[2] >= doubt else (Centre(found[0], found[1]), doubt, slope)

    def approach(self, rows: NeedRows, fixed: Floats, whole: bool) -> tuple[Centre, float, Floats | None]:
        """Return the optimum of rows that stand for all, or are all, the half width of a box to draw around it.

        Third, the derivative of what is asked for in the values, if it was measured.
        """
        begin = 0.1 * self.top
        if whole:
            return self.centre(rows, fixed, 0.0, begin, _SHARP), _POINT, None
        if rows.count <= 1.5 * FEW:
            return self.centre(rows, fixed, 0.0, begin, _ROUGH), self.doubt(rows.count), None
        best = rows.T.max(axis=0)
        some = sample(rows, rows.size * rows.need(0.5 * self.top)[0] / best, FEW)
        centre = self.centre(some, fixed, 0.0, begin, _ROUGH)
        spread = self.doubt(FEW)
        if not centre.value.any():
            return centre, spread, None
        found = self.steps(rows, fixed, centre)
        if found is not None:
            return found
        box = self.box(centre, spread, None)
        part = Part(rows, np.arange(rows.count), fixed, 0.0, 1.0, box, 0.0)
        stack = [self.settle(part, box)]
        missed = self.descend(stack)
        part, last = stack[-1], stack[-1].box
        if missed is None and part.rows.count <= 2 * FEW:
            centre = self.centre(part.rows, part.fixed, part.anchor, float(last.t[1]), _FINE)
            if not last.misses(centre, _EXACT * last.spread):
                return centre, self.doubt(rows.count), None
        return Centre(last.middle, (missed or centre).t), _WIDER * last.spread, None

    def over(self, rows: NeedRows, value: Floats, fixed: Floats, t: float) -> tuple[float, float]:
        """Return what level t costs at given values (column,) beyond all capacity, and the derivative in t."""
        excess, rise = PriceMarket(rows, fixed, 0.0, self.limit).excess(value, t)
        return float(dot(value, excess)), float(dot(value, rise))

    def level_at(self, rows: NeedRows, value: Floats, fixed: Floats) -> float:
        """Return about the level at which what rows ask for costs all capacity, at given values (column,)."""
        t = self.top
        for _ in range(30):
            over, rise = self.over(rows, value, fixed, t)
            step = over / rise if rise > 0 else 0.0
            t -= step
            if abs(step) <= 1e-4 * t:
                break
        return min(max(t, 1e-6 * self.top), self.top)


PriceSearch: TypeAlias = Search[Any]  # of a sample: without an exact end
