"""The level when the columns without a price have all the capacity that is asked of them.

A box around the guess settles most rows, smaller boxes most of the rest, and an exact program the last; where it trades
capacity, or its level lies outside, the box was missed, and the level above draws a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.pricing.assemble import demand_at
from eunomia.solvers.pricing.box_refinement import (
    EXACT,
    FEW,
    LEVEL,
    POINT,
    ROUGH,
    SHARP,
    Centre,
    Codes,
    LevelBox,
    Part,
    SamplePrices,
)
from eunomia.solvers.pricing.final_lp import Vertex, vertex
from eunomia.solvers.pricing.newton import PriceMarket, widths
from eunomia.solvers.pricing.refinement import BoxSearch
from eunomia.solvers.pricing.response import FREE, classify
from eunomia.solvers.pricing.rows import NeedRows, drawn, sample
from eunomia.solvers.pricing.symmetry import DistinctRows, sorts
from eunomia.solvers.pricing.table import NoServingColumn, PriceEstimate, Table
from eunomia.solvers.program import NoOptimum

LAST = 120  # rows for the exact program
_UNLUCKY, _LEARNT = 8, 0.25  # boxes missed from which on they are wider, and by how much of it for each
_TRUST = 4.0  # half width of a box in what Newton's method takes for its error
_AT_ONCE = 0.025  # part of the rows that it is meant to leave: to leave fewer, later passes over few rows are cheaper
_GAIN = 0.5  # a box that is not smaller than so much of the last one is not worth its pass
_IDLE = 0.7  # part of its rows that a box must not leave open
_TRIES = 40  # boxes
_TRADED = 1e-10  # parts of a column's capacity
_BENT = 2e-4  # relative: as far from where it is exact the expansion of a curved demand in t serves
_ANCHORED = 1e-5  # relative: how far from its anchor a curved demand is exact to the last digits
_NO_PLACES = np.empty(0, dtype=np.int64)


def relaxed(table: Table, guess: PriceEstimate, priced: Ints, free: Ints) -> tuple[Vertex, Codes]:
    """Solve with unlimited capacity of the free columns; return the optimum and what every row does."""
    centre, spread, slope = guess.centre, guess.spread, guess.slope
    codes = no_codes(table)
    if len(priced) == 0:
        return Vertex(np.empty((0, 0)), np.empty(0), table.top, table.top, np.empty(0), 0.0), codes
    if slope is not None:
        priced_open = np.searchsorted(table.open, priced)
        slope = None if table.alike else slope[np.ix_(priced_open, priced_open)]
    search = TableSearch(table.limit[priced], table.top, table, priced, free, codes, slope)
    value = centre.value[priced]
    if not value.any():
        value, spread = np.ones(len(priced)), 1.0
    whole = search.whole()
    begin = search.box(replace(centre, value=value / value.sum()), spread, whole.box)
    found, part = search.refined([whole, search.settle(whole, begin)], _TRIES)
    return found, replace(codes, open=part.places)


def no_codes(table: Table) -> Codes:
    """Return codes of all rows, to be written."""
    n = table.rows.count
    return Codes(np.full(n, FREE, dtype=np.int8), np.full(n, FREE, dtype=np.int8), _NO_PLACES)


@dataclass(frozen=True, slots=True)
class TableSearch(SamplePrices, BoxSearch[Part, NeedRows, Centre, Vertex]):
    """The search over all rows of a table, whose codes it writes."""

    table: Table
    priced: Ints
    free: Ints
    codes: Codes
    slope: Floats | None = None  # (column, column) derivative of what all rows ask for in the values, if it is known

    def merged(self, part: Part) -> NeedRows:
        """Return what stands for the rows of a part: themselves, or one of each sort where many have equal speeds."""
        if not self.table.alike or part.rows.count <= LAST:
            return part.rows
        return self._sorts(part).merged(float(part.box.t[1]))

    def _sorts(self, part: Part) -> DistinctRows:
        return sorts(part.rows, float(part.box.t[0]), float(part.box.t[2]))

    def done(self, part: Part, rows: NeedRows, before: NeedRows | None) -> bool:
        """Return whether the exact program may take these rows, or a box left nearly all of them open."""
        return rows.count <= LAST or (before is not None and rows.count > _IDLE * before.count)

    def look(self, part: Part, rows: NeedRows, attempt: int) -> tuple[Part, Centre, float] | None:
        """Return the part, where its prices seem to be, and how far off that may be; None where nothing has a price.

        Where needs bend and the level is elsewhere, the part is added up anew there.
        """
        centre, spread = self._seen(part, rows, attempt)
        if self.table.rows.b is not None and abs(centre.t - part.exact) > _BENT * part.exact:
            part = self.anew(part, min(max(centre.t, part.box.t[0]), part.box.t[2]))
            centre, spread = self._seen(part, rows, attempt)
        return (part, centre, spread) if centre.value.any() else None

    def _seen(self, part: Part, rows: NeedRows, attempt: int) -> tuple[Centre, float]:
        """Return where the prices of a part seem to be, of which `rows` are the sorts, and how far off that may be."""
        t = float(part.box.t[1])
        balance = self._balance(part) if attempt < _UNLUCKY else None
        if balance is not None:
            return balance
        if rows.count <= 2 * FEW:  # a sample of nearly all would leave too many open for the last program
            return self.centre(rows, part.fixed, part.anchor, t, SHARP), POINT
        weight = rows.size * rows.need(t)[0] / np.maximum(rows.T.max(axis=0), rows.base)
        some = sample(rows, weight, FEW, attempt)
        load = part.load if rows is part.rows else part.load * drawn(weight, FEW)
        margin = 1 + _LEARNT * max(attempt - _UNLUCKY, 0)
        spread = max(margin * self.doubt(FEW) * load, POINT)
        return self.centre(some, part.fixed, part.anchor, t, min(ROUGH, EXACT * spread)), spread

    def _balance(self, part: Part) -> tuple[Centre, float] | None:
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
        return (Centre(value, t), spread) if spread < _GAIN * part.box.spread else None

    def box(self, centre: Centre, spread: float, within: LevelBox) -> LevelBox:
        """Return the box of relative half width `spread` around a centre, cut off where it leaves `within`."""
        width = spread * widths(centre.value)
        low, high = centre.value - width, centre.value + width
        if spread >= 1:  # nothing is known
            low, high = within.low, within.high
        low, high = np.clip(low, within.low, within.high), np.clip(high, within.low, within.high)
        reach = min(LEVEL * spread, 0.9)
        ends = centre.t * (1 - reach), centre.t * (1 + reach)
        least, most = (float(np.clip(t, within.t[0], within.t[2])) for t in ends)
        return LevelBox(low, high, np.array([least, 0.5 * (least + most), most]), spread, self.top)

    def whole(self) -> Part:
        """Return the program of all rows, at any price."""
        rows, none = self.table.rows, np.zeros(len(self.limit))
        base = rows.T[self.free].max(axis=0) if len(self.free) else rows.base
        given = self.table.fixed.take(self.priced, axis=1)
        box = LevelBox(none, none + 1, np.array([0.0, 0.5 * self.top, self.top]), 1.0, self.top)
        return Part(rows.over(self.priced)._replace(base=base), np.arange(rows.count), given, 0.0, 1.0, box, 0.0)

    def settle(self, part: Part, box: LevelBox) -> Part:
        """Return a part without the rows whose answer is certain in the box; write their codes."""
        whole = part.rows.count == self.table.rows.count
        settled, left, right = self._settled(part, box)
        into = slice(None) if whole else part.places
        self.codes.left[into], self.codes.right[into] = left, right
        best = np.maximum(settled.rows.T.max(axis=0, initial=0.0), settled.rows.base)
        if whole and ((settled.rows.a > 0) & (best <= 0)).any():
            raise NoServingColumn
        return replace(settled, load=self.table.part(settled.places), exact=float(box.t[1])) if whole else settled

    def _settled(self, part: Part, box: LevelBox) -> tuple[Part, Array, Array]:
        """Return the part without the rows whose answer is certain in the box; return the codes of all too."""
        rows, K = part.rows, len(self.limit)
        unsure = np.empty(rows.count + 1, dtype=np.int64)
        left, right = np.empty(rows.count, dtype=np.int8), np.empty(rows.count, dtype=np.int8)
        demand = np.zeros((3, K))
        low, high = box.low / self.limit, box.high / self.limit
        found = classify(rows, low, high, box.t, left, right, demand, unsure)
        if found == rows.count:
            return replace(part, box=box), left, right
        kept = unsure[:found].copy()
        f, d = part.fixed, float(box.t[1]) - part.anchor
        moved = np.stack((f[0] + d * (f[1] + d * f[2]), f[1] + 2 * d * f[2], f[2]))
        load = part.load * found / max(rows.count, 1)
        some = Part(rows.some(kept), part.places[kept], moved + demand, float(box.t[1]), load, box, part.exact)
        return some, left, right

    def finish(self, part: Part) -> tuple[Vertex, Centre | None]:
        """Return the optimum, and where its prices are if outside the box."""
        found = self._exact(part)
        if found.traded <= _TRADED and part.box.reaches(found.t):
            return found, None
        return found, Centre(found.value if found.value.any() else part.box.middle, found.t)

    def _exact(self, part: Part) -> Vertex:
        """Solve the last program exactly; where needs bend, what is settled is added up anew at the level itself."""
        t, curved = float(part.box.t[1]), self.table.rows.b is not None
        for _ in range(_TRIES):
            if curved:
                part = self.anew(part, t)
            alike = self._sorts(part) if self.table.alike else None
            low, high = part.box.low, part.box.high
            found = vertex(part.rows, self.limit, part.fixed, part.anchor, self.top, t, low, high, alike)
            if not curved or abs(found.t - t) <= _ANCHORED * t or not part.box.reaches(found.t):
                return found
            t = found.t
        raise NoOptimum("the level does not come to rest; check the data for entries many decades apart")

    def anew(self, part: Part, t: float) -> Part:
        """Return the part with what the settled rows ask of the priced columns added up around level t."""
        left, right = columns_of(self.table, self.priced, self.free, self.codes)
        right = right.copy()
        right[part.places] = FREE
        demand = self.table.fixed.copy()
        demand[0] += t * (demand[1] + t * demand[2])
        demand[1] += 2 * t * demand[2]
        demand_at(self.table.rows, t, left, right, demand)
        return replace(part, fixed=demand[:, self.priced], anchor=t, exact=t)


def columns_of(table: Table, priced: Ints, free: Ints, codes: Codes) -> tuple[Array, Array]:
    """Return the codes of all rows as columns of the table; the free alternative as the column that it is."""
    if len(free) == 0 and len(priced) == len(table.limit):
        return codes.left, codes.right
    name = np.append(priced, FREE).astype(np.int8)  # the last stands for the code −1
    left, right = name[codes.left], name[codes.right]
    if len(free):
        edge = np.flatnonzero((codes.left == FREE) & (codes.right != FREE))
        speed = table.rows.T[np.ix_(free, edge)]
        fastest = speed.argmax(axis=0)
        left[edge] = np.where(speed.max(axis=0, initial=0.0) > 0, free[fastest], FREE)
    return left, right
