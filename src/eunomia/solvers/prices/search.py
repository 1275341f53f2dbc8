"""The highest level of many rows: prices by samples, boxes around them, an exact program for the few rows left.

Columns whose price cannot be told from zero are taken as free: a row then has one free alternative, the fastest of
them, and their capacity is looked at afterwards, when the level is known. If it does not suffice they have a price
after all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.prices.assemble import Edges
from eunomia.solvers.prices.narrow import Codes
from eunomia.solvers.prices.needs import ALWAYS
from eunomia.solvers.prices.relaxed import columns_of, relaxed
from eunomia.solvers.prices.response import FREE, classify
from eunomia.solvers.prices.rows import Rows
from eunomia.solvers.prices.table import Table, cheap, guess, table_of
from eunomia.solvers.prices.vertex import Vertex
from eunomia.solvers.program import NoOptimum

_NEAR_TOP = 0.97  # from here on it is worth while to look first whether capacity suffices for the top
_HOPELESS = 1.1  # times the capacity asked for at good prices: too much at all prices, or nearly
_ROUNDING = 1e-11  # part of a column's capacity
_NO_PLACES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Found:
    """The level, a level that none exceeds, the value of each column (sum 1 or all 0) and what every row gets."""

    t: float
    bound: float
    value: Floats  # (column,)
    edges: Edges
    idle: Ints  # rows whose level costs nothing
    free: Ints  # columns without a price


def highest(
    rows: Rows,
    limit: Floats,
    *,
    start: Floats | None = None,
    fixed: Floats | None = None,
    top: float = np.inf,
) -> Found:
    """Return the highest level ≤ top of all rows; start (column,): value of the columns in an earlier answer.

    Raises Unserved where a row has a need that no column with capacity serves, NoOptimum where no proof is found.
    """
    table = table_of(rows, limit, fixed, top)
    centre, spread = guess(table, start)
    free = table.open if centre.t >= _NEAR_TOP * table.top else cheap(table, centre, spread)
    looked = False  # whether capacity suffices for the top has been looked at
    for _ in range(len(limit) + 3):
        priced = np.setdiff1d(table.open, free)
        some = relaxed(table, centre, spread, priced, free, patient=looked)
        if some is None:
            free = table.open
            continue
        found, codes = some
        edges, lacking = _route(table, found, codes, priced, free)
        if edges is not None:
            value = np.zeros(len(limit))
            value[priced] = found.value
            idle = np.setdiff1d(np.flatnonzero(codes.right == FREE), codes.open, assume_unique=True)
            return Found(found.t, max(found.bound, found.t), value, edges, idle, free)
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
    spare = table.limit - whole @ rows.size[codes.open] - edges.demand() - table.fixed[0] - found.t * table.fixed[1]
    idle = right == FREE
    idle[codes.open] = False
    need, _ = rows.need(found.t)
    todo = np.flatnonzero(idle & (need > 0))
    short = spare[free] < -_ROUNDING * table.limit[free]
    if short.any():
        return None, free[short]
    if len(todo) == 0:
        return edges, free
    some = rows.some(todo)
    some = Rows(some.T[free], some.base, some.size, np.full(len(todo), ALWAYS), None, None, need[todo])
    if len(free) == 1:
        right[todo] = free[0]
        asked = float((some.size * need[todo] / some.T[0]).sum())
        return (edges, free) if asked <= spare[free[0]] * (1 + 1e-12) else (None, free)
    return _share_out(edges, some, todo, spare[free], free)


def _share_out(edges: Edges, some: Rows, todo: Ints, spare: Floats, free: Ints) -> tuple[Edges | None, Ints]:
    """Route rows with given needs over several columns: least θ with demand ≤ θ · spare, as the level 2 − θ."""
    K = len(free)
    closed = (spare <= 0) & (some.T > 0).any(axis=1)
    need, best = np.asarray(some.cap), some.T[spare > 0].max(axis=0, initial=0.0)
    if (best < need * (1 - 1e-12)).any():
        return None, free[closed] if closed.any() else free
    some = replace(some, cap=np.minimum(need, best))
    fixed = np.zeros((3, K))
    fixed[1] = spare
    routes = _at_once(table_of(some, 2 * spare, fixed, 2.0))
    if routes is not None:
        over = routes.demand() / np.maximum(spare, 1e-300)
        if (over <= 1).all():
            return edges.with_routes(todo, free, routes), free
        if (over > _HOPELESS).any():
            return None, free[over > 1]
    routed = highest(some, 2 * spare, fixed=fixed, top=2.0)
    if routed.t < 1 - 1e-12:
        return None, free[(routed.value > 1e-9) | closed]
    return edges.with_routes(todo, free, routed.edges), free


def _at_once(table: Table) -> Edges | None:
    """Return what rows do at the prices of a sample; None where nothing has a price."""
    centre, _ = guess(table, rough=True)
    if not centre.value.any():
        return None
    rows, opened = table.rows, table.open
    n, t = rows.count, 1.0
    left, right, unsure = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8), np.empty(n + 1, dtype=np.int64)
    price = centre.value[opened] / table.limit[opened]
    demand = np.zeros((3, len(opened)))
    T = rows.T[opened]
    found = classify(T, rows.base, rows.size, *rows.curve, price, price, np.full(3, t), left, right, demand, unsure)
    left[unsure[:found]] = FREE
    right[unsure[:found]] = T[:, unsure[:found]].argmax(axis=0)
    name = np.append(opened, FREE).astype(np.int8)
    return Edges(len(table.limit), rows, t, name[left], name[right], _NO_PLACES, np.empty((len(table.limit), 0)))
