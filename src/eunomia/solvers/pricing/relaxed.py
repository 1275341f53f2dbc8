"""The level when the columns without a price have all the capacity that is asked of them.

A box around the guess settles most rows, smaller boxes most of the rest, and an exact program the last; where it trades
capacity, or its level lies outside, the box was missed, and the level above draws a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.pricing.assemble import demand_at
from eunomia.solvers.pricing.box_refinement import Centre, Codes, LevelBox, Part, Search
from eunomia.solvers.pricing.final_lp import Vertex, vertex
from eunomia.solvers.pricing.response import FREE, screen
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.pricing.symmetry import sorts
from eunomia.solvers.pricing.table import NoServingColumn, PriceEstimate, Table
from eunomia.solvers.program import NoOptimum

_TRIES, _BOLD = 40, 2  # boxes, in all and where only few rows were looked at before
_MANY = 3000  # rows that the exact program takes only where there is no other way
_TRADED = 1e-10  # parts of a column's capacity
_WIDER = 2.0
_TRUSTING = 4  # tries in which a box that was missed may be drawn anew without being wider
_TRIED, _WORTH = 2048, 0.8  # rows that are tried, and the part of them left open below which a pass is worth while
_ANCHORED = 1e-5  # relative: how far from its anchor a curved demand is exact to the last digits
_NO_PLACES = np.empty(0, dtype=np.int64)


def relaxed(
    table: Table, guess: PriceEstimate, priced: Ints, free: Ints, *, patient: bool
) -> tuple[Vertex, Codes] | None:
    """Solve with unlimited capacity of the free columns; return the optimum and what every row does.

    Returns None where many rows are left and nothing seems to have a price: then the top may be the level.
    """
    n, centre, spread, slope = table.rows.count, guess.centre, guess.spread, guess.slope
    codes = Codes(np.full(n, FREE, dtype=np.int8), np.full(n, FREE, dtype=np.int8), _NO_PLACES)
    if len(priced) == 0:
        return Vertex(np.empty((0, 0)), np.empty(0), table.top, table.top, np.empty(0), 0.0), codes
    if slope is not None:
        priced_open = np.searchsorted(table.open, priced)
        slope = slope[np.ix_(priced_open, priced_open)]
    search = Search(table.limit[priced], table.top, table.alike, _renewal(table, priced, free, codes), slope)
    value = centre.value[priced]
    if not value.any():
        value, spread = np.ones(len(priced)), 1.0
    begin = replace(centre, value=value / value.sum())
    stack = [screened(table, search, priced, free, search.box(begin, spread, None), codes)]
    for attempt in range(_TRIES if table.weight is not None else _BOLD):
        met = search.descend(stack, codes, attempt=attempt)
        part = stack[-1]
        if met is None and search.merged(part).count > _MANY and not patient:
            return None
        if met is None:
            found = _finish(search, part)
            if found.traded <= _TRADED and part.box.reaches(found.t):
                return found, replace(codes, open=part.places)
            met = Centre(found.value if found.value.any() else part.box.middle, found.t)
        missed = stack[-1].box
        known = attempt < _TRUSTING and missed.leads_to(met)
        centre = met if known else missed.nearest(met)
        while len(stack) > 1 and stack[-2].box.touches(centre, table.top):
            stack.pop()
        spread = stack.pop().box.spread * (1.0 if known else _WIDER)
        spread = min(spread, 1.0)
        if stack:
            stack.append(search.settle(stack[-1], search.box(centre, spread, stack[-1].box), codes))
        else:
            stack.append(screened(table, search, priced, free, search.box(centre, spread, None), codes))
    raise NoOptimum(f"prices still leave their boxes after {_TRIES} tries; check the data for ties of many rows")


def screened(table: Table, search: Search, priced: Ints, free: Ints, box: LevelBox, codes: Codes) -> Part:
    """Settle all rows that are certain in the box, and return the others."""
    rows, limit, K = table.rows, table.limit[priced], len(priced)
    unsure, store = np.empty(rows.count + 1, dtype=np.int64), np.empty((rows.count, K + 5))
    demand = np.zeros((3, K))
    low, high = box.low / limit, box.high / limit
    left, right = codes.left, codes.right
    found = screen(rows, priced, free, low, high, box.t, left, right, demand, unsure, store)
    given, t = table.fixed.take(priced, axis=1), float(box.t[1])
    moved = np.stack((given[0] + t * (given[1] + t * given[2]), given[1] + 2 * t * given[2], given[2]))
    places, kept = unsure[:found].copy(), np.ascontiguousarray(store[:found].T)
    b, e = (None, None) if rows.b is None else kept[K + 3 :]
    cap = None if rows.cap is None else kept[K + 3]
    some = NeedRows(kept[:K], kept[K], kept[K + 1], kept[K + 2], b, e, cap)
    if ((some.a > 0) & (np.maximum(some.T.max(axis=0, initial=0.0), some.base) <= 0)).any():
        raise NoServingColumn
    part = Part(some, places, moved + demand, t, table.part(places), box, t)
    return search.settle(part, box, codes) if _curbed(search, part, box) else part


def _curbed(search: Search, part: Part, box: LevelBox) -> bool:
    """Return whether many rows seem to be certain of another than their first edge: some are tried."""
    if part.rows.count <= _TRIED:
        return True
    tried = part.rows.some(np.arange(0, part.rows.count, part.rows.count // _TRIED))
    left = search.settle(replace(part, rows=tried, places=np.arange(tried.count)), box, None).rows.count
    return left < _WORTH * tried.count


def _finish(search: Search, part: Part) -> Vertex:
    """Solve the last program exactly; where needs bend, what is settled is added up anew at the level itself."""
    t = float(part.box.t[1])
    for _ in range(_TRIES):
        if search.renew is not None:
            part = search.renew(part, t)
        low, high = part.box.low, part.box.high
        alike = sorts(part.rows, part.box.t[0], part.box.t[2]) if search.alike else None
        found = vertex(part.rows, search.limit, part.fixed, part.anchor, search.top, t, low, high, alike)
        straight = search.renew is None or abs(found.t - t) <= _ANCHORED * t
        if straight or not part.box.reaches(found.t):
            return found
        t = found.t
    raise NoOptimum("the level does not come to rest; check the data for entries many decades apart")


def _renewal(table: Table, priced: Ints, free: Ints, codes: Codes) -> Callable[[Part, float], Part] | None:
    """Return how to add up what the settled rows ask for at another level; None where needs are straight."""
    if table.rows.b is None:
        return None

    def renew(part: Part, t: float) -> Part:
        fixed = _settled_at(table, priced, free, replace(codes, open=part.places), t)
        return replace(part, fixed=fixed, anchor=t, exact=t)

    return renew


def _settled_at(table: Table, priced: Ints, free: Ints, codes: Codes, t: float) -> Floats:
    """Return what the settled rows ask of the priced columns around level t, (3, priced)."""
    left, right = columns_of(table, priced, free, codes)
    right = right.copy()
    right[codes.open] = FREE
    demand = table.fixed.copy()
    demand[0] += t * (demand[1] + t * demand[2])
    demand[1] += 2 * t * demand[2]
    demand_at(table.rows, t, left, right, demand)
    return demand[:, priced]


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
