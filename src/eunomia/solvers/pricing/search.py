"""The highest level of many rows: prices by samples, boxes around them, an exact program for the few rows left.

Columns whose price cannot be distinguished from zero are taken as free: a row then has one free alternative, the
fastest of them, and their capacity is looked at afterwards, when the level is known. If it does not suffice they have a
price after all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.pricing.assemble import Edges
from eunomia.solvers.pricing.box_refinement import Codes, LevelBox
from eunomia.solvers.pricing.final_lp import Vertex
from eunomia.solvers.pricing.needs import ALWAYS
from eunomia.solvers.pricing.relaxed import TableSearch, columns_of, no_codes, relaxed
from eunomia.solvers.pricing.response import FREE
from eunomia.solvers.pricing.rows import NeedRows, reach
from eunomia.solvers.pricing.table import Table, cheap, guess, table_of
from eunomia.solvers.program import Infeasible, NoOptimum

_NEAR_TOP = 0.97  # from here on it is worth while to look first whether capacity suffices for the top
_HOPELESS = 1.1  # times the capacity asked for at good prices: too much at all prices, or nearly
_ROUNDING = 1e-11  # part of a column's capacity
_NO_PLACES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LevelOptimum:
    """The level, a level that none exceeds, the value of each column (sum 1 or all 0) and what every row gets."""

    t: float
    bound: float
    value: Floats  # (column,)
    edges: Edges
    idle: Ints  # rows whose level costs nothing
    free: Ints  # columns without a price


def highest(rows: NeedRows, limit: Floats, *, fixed: Floats | None = None, top: float = np.inf) -> LevelOptimum:
    """Return the highest level ≤ top of all rows.

    Raises NoServingColumn where no column with capacity serves a row with a need, NoOptimum where no proof is found.
    """
    table = table_of(rows, limit, fixed, top)
    begin = guess(table)
    centre, spread, scarce = begin.centre, begin.spread, begin.scarce
    free = table.open if centre.t >= _NEAR_TOP * table.top and not scarce else cheap(table, centre, spread)
    looked = False  # whether capacity suffices for the top has been looked at
    for _ in range(len(limit) + 3):
        priced = np.setdiff1d(table.open, free)
        try:
            found, codes = relaxed(table, begin, priced, free)
        except NoOptimum:
            if looked:
                raise
            free = table.open  # a row that no sample met may hold the level so low that nothing has a price
            continue
        edges, lacking = _route(table, found, codes, priced, free)
        if edges is not None:
            value = np.zeros(len(limit))
            value[priced] = found.value
            idle = np.setdiff1d(np.flatnonzero(codes.right == FREE), codes.open, assume_unique=True)
            return LevelOptimum(found.t, max(found.bound, found.t), value, edges, idle, free)
        seeming = cheap(table, centre, spread)
        free = seeming if len(seeming) < len(free) and not looked else np.setdiff1d(free, lacking)
        looked = True
    raise NoOptimum("every choice of columns without a price fails; check the data for entries many decades apart")


def _route(table: Table, found: Vertex, codes: Codes, priced: Ints, free: Ints) -> tuple[Edges | None, Ints]:
    """Give the rows that need no price their level on the free columns; return all edges, or the columns that lack."""
    rows, K = table.rows, len(table.limit)
    left, right = columns_of(table, priced, free, codes)
    whole = np.zeros((K, len(codes.open)))
    right[codes.open] = FREE
    if len(priced):
        whole[priced] = found.x
    edges = Edges(K, rows, found.t, left, right, codes.open, whole)
    if len(free) == 0:
        return edges, free
    speed = rows.T[np.ix_(free, codes.open)]
    if len(codes.open):
        whole[free[speed.argmax(axis=0)], np.arange(len(codes.open))] = found.u
    spare = table.limit - table.fixed[0] - found.t * table.fixed[1]
    if len(priced):
        spare = spare - edges.used()
    idle = right == FREE
    idle[codes.open] = False
    need = rows.need(found.t)[0]
    idle &= need > 0
    todo = np.flatnonzero(idle)
    short = spare[free] < -_ROUNDING * table.limit[free]
    if short.any():
        return None, free[short]
    if len(todo) == 0:
        return edges, free
    some = rows._replace(b=None, e=None, cap=need, a=np.full(len(need), ALWAYS)).some(todo).over(free)
    if len(free) == 1:
        right[todo] = free[0]
        asked = float((some.size * need[todo] / some.T[0]).sum())
        return (edges, free) if asked <= spare[free[0]] * (1 + 1e-12) else (None, free)
    return _share_out(edges, some, todo, spare[free], free)


def _share_out(edges: Edges, some: NeedRows, todo: Ints, spare: Floats, free: Ints) -> tuple[Edges | None, Ints]:
    """Route rows with given needs over several columns: least θ with demand ≤ θ · spare, as the level 2 − θ."""
    K = len(free)
    closed = spare <= 0
    closed[closed] = some.T[closed].max(axis=1) > 0
    need, capped = np.asarray(some.cap), np.empty(some.count)
    if reach(some.T, np.flatnonzero(spare > 0), need, capped) * (1 - 1e-12) > 1:
        return None, free[closed] if closed.any() else free
    some = some._replace(cap=capped)
    fixed = np.zeros((3, K))
    fixed[1] = spare
    table = table_of(some, 2 * spare, fixed, 2.0)
    routes = _at_once(table, 1.0)
    if routes is not None:
        over = routes[1] / np.maximum(spare, 1e-300)
        if (over <= 1).all():
            return edges.with_routes(todo, free, routes[0]), free
        if (over > _HOPELESS).any() and not table.alike:  # those that are alike all turn to the same column
            return None, free[over > 1]
    try:
        routed = highest(some, 2 * spare, fixed=fixed, top=2.0)
    except Infeasible:  # the needs take more than twice what these columns have
        return None, free
    if routed.t < 1 - 1e-12:
        return None, free[(routed.value > 1e-9) | closed]
    return edges.with_routes(todo, free, routed.edges), free


def _at_once(table: Table, t: float) -> tuple[Edges, Floats] | None:
    """Return what rows do at level t and the prices of a sample, and how much of each column they use.

    Returns None where nothing has a price.
    """
    centre = guess(table, rough=True).centre
    if not centre.value.any():
        return None
    rows, opened = table.rows, table.open
    value, codes = centre.value[opened], no_codes(table)
    search = TableSearch(table.limit[opened], table.top, table, opened, _NO_PLACES, codes)
    part = search.settle(search.whole(), LevelBox(value, value, np.full(3, t), 0.0))
    fastest = part.rows.T.argmax(axis=0)
    codes.left[part.places], codes.right[part.places] = FREE, fastest
    share = np.minimum(part.rows.need(t)[0] / part.rows.T.max(axis=0), 1.0)
    used = np.zeros(len(table.limit))
    used[opened] = part.fixed[0] + np.bincount(fastest, part.rows.size * share, len(opened))
    left, right = columns_of(table, opened, _NO_PLACES, codes)
    nothing = np.empty((len(used), 0))
    return Edges(len(used), rows, t, left, right, _NO_PLACES, nothing), used - table.fixed[0] - t * table.fixed[1]
