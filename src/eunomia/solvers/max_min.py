"""The highest common level that divisible capacity can lift every row to.

    maximise t   subject to   Σ_k T_ik x_ik ≥ r_i(t),   Σ_k x_ik ≤ 1,   Σ_i s_i x_ik ≤ N_k,   x ≥ 0

T rate, s size, N capacity, and what row i needs at level t: r_i(t) = a_i t / (b_i − e_i t), a need, b base, e age.
Few rows, or few that differ, are one linear program: rows that are alike are one row with a count, since permuting them
changes neither constraint nor objective. Many rows are solved in the prices p of the columns: at prices every row's
answer is known in closed form, and the level is the least t(p), the level at which all answers cost all capacity. A
box around the prices settles nearly all rows and an exact program the few that are left. The bound is of that
program's prices; it holds for all rows because the prices lie in the box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.linear import best_total
from eunomia.solvers.pricing.assemble import Edges
from eunomia.solvers.pricing.final_lp import vertex
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.pricing.search import LevelOptimum, highest
from eunomia.solvers.pricing.symmetry import count_distinct
from eunomia.solvers.pricing.table import NoServingColumn
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.small_programs.dispatch import FEW, few_level, few_total

__all__ = ["MaxMinResult", "NoOptimum", "highest_level"]

GAP = 1e-9  # relative: what an answer must prove
PRICED, FULL, FREE = 0, 1, 2
Second: TypeAlias = Callable[[Floats], Floats]  # rate (row, column) of some rows → what their shares are worth besides


@dataclass(frozen=True, slots=True)
class MaxMinResult:
    """A level, a level that no x can exceed, what capacity is worth, and the shares."""

    objective: float
    bound: float
    price: Floats  # (column,) Σ price · capacity = 1, or all 0 where capacity is not scarce
    edges: Edges
    idle: Ints  # rows whose level costs nothing
    spent_best: bool = True  # no x with this level has more of the second objective, if one was given

    @property
    def gap(self) -> float:
        """Return (bound − objective) relative to the bound."""
        return (self.bound - self.objective) / max(abs(self.bound), 1e-300)

    @property
    def x(self) -> Floats:
        """Return the shares as one dense array (row, column), a new one each time."""
        return self.edges.dense()

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Return row (ascending), column and share of every place above 0."""
        return self.edges.entries()

    @property
    def binding(self) -> Ints:
        """Return why a row has its share (row,): 0 its level is bought, 1 it is at full speed, 2 its level is free."""
        rows = self.edges.rows
        why = np.full(rows.count, PRICED)
        why[self.idle] = FREE
        need = rows.need(self.objective)[0]
        why[(need > 0) & (need >= rows.T.max(axis=0, initial=0.0) * (1 - 1e-12))] = FULL
        return why


def highest_level(
    rate: Floats,
    size: Floats,
    capacity: Floats,
    need: Floats,
    *,
    base: Floats | None = None,
    age: Floats | None = None,
    second: Second | None = None,
) -> MaxMinResult:
    """Solve the program above; rate (row, column), size, need, base, age (row,), capacity (column,).

    All are ≥ 0, sizes and bases above 0; a rate laid out by column costs no copy. Rows without a need, or whose rate is
    zero everywhere, get nothing and do not hold the others down. Of all optima with the highest level the one with
    the most Σ second(rate) · x is returned (where that is not proven, one that leaves nothing idle: `spent_best`), else
    any.
    Raises NoOptimum where the level cannot be proven to a relative gap of 1e-9.
    """
    rows = _rows(rate, size, need, base, age)
    if not rows.a[:FEW].any() and not rows.a.any():
        return _nothing(rows, len(capacity))
    try:
        few = _distinct(rows)
        found, best = _together(rows, capacity, second, few) if few else _by_prices(rows, capacity, second)
    except NoServingColumn:
        lost = (rows.a > 0) & (rows.T.max(axis=0, initial=0.0) <= 0)
        if not lost.any():
            return _nothing(rows, len(capacity))
        asked = np.where(lost, 0.0, rows.a)
        return highest_level(rate, size, capacity, asked, base=base, age=age, second=second)
    price = np.divide(found.value, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
    level = MaxMinResult(found.t, found.bound, price, found.edges, found.idle, best)
    if level.gap > GAP:
        raise NoOptimum(f"the level {level.objective} is proven to {level.gap:.1e} only, not to {GAP}")
    return level


def _rows(rate: Floats, size: Floats, need: Floats, base: Floats | None, age: Floats | None) -> NeedRows:
    """Return the table by columns. A row without a need has demand 0 at any age."""
    asks = np.asarray(need) > 0
    base = None if base is None else np.where(asks, base, 1.0)
    age = None if age is None else np.where(asks, age, 0.0)
    n = len(size)
    T = np.ascontiguousarray(np.asarray(rate, dtype=float).T)
    a = np.ascontiguousarray(need, dtype=float)
    aged = base is not None or age is not None
    b = np.ones(n) if aged and base is None else base
    e = np.zeros(n) if aged and age is None else age
    return NeedRows(T, np.zeros(n), np.asarray(size, dtype=float), a, b, e, None)


def _nothing(rows: NeedRows, columns: int) -> MaxMinResult:
    """Return the level 0, where no row has a need or a row cannot be served."""
    codes = np.full(rows.count, -1, dtype=np.int8)
    none = np.empty(0, dtype=np.int64)
    edges = Edges(columns, rows, 0.0, codes, codes, none, np.empty((columns, 0)))
    return MaxMinResult(0.0, 0.0, np.zeros(columns), edges, np.arange(rows.count))


def _distinct(rows: NeedRows) -> Classes | None:
    """Return the sorts of rows; None where many differ."""
    facts = [*rows.T, rows.size, *(v for v in (rows.a, rows.b, rows.e) if v is not None)]
    if rows.count > FEW and count_distinct(*facts)[0] > FEW // 2:
        return None
    found = group(*facts)
    return found if len(found) <= FEW else None


def _together(rows: NeedRows, capacity: Floats, second: Second | None, few: Classes) -> tuple[LevelOptimum, bool]:
    """Solve one linear program over the sorts of rows; return also whether what is left over is spent best."""
    first, sort, count = few.representative, few.of, few.count.astype(float)
    K, opened = len(capacity), np.flatnonzero(capacity > 0)
    asking = np.flatnonzero(rows.a[first] > 0)
    chosen = first[asking]
    some = rows.some(chosen, count[asking])
    some = some.over(opened)
    best = some.T.max(axis=0, initial=0.0)
    if (best <= 0).any():
        raise NoServingColumn
    top = float(
        (best * (1.0 if some.b is None else some.b) / (some.a + best * (0.0 if some.e is None else some.e))).min()
    )
    found = few_level(some, capacity[opened], top)
    if found is None:
        found = vertex(some, capacity[opened], np.zeros((3, len(opened))), 0.0, top, top)
    value, x = np.zeros(K), np.zeros((K, len(first)))
    value[opened] = found.value
    x[np.ix_(opened, asking)] = found.x
    best_spent = True
    if second is not None:
        everyone = rows.some(first, count)
        floor = everyone.need(found.t)[0] * (1 - 1e-12)
        reached = (everyone.T * x).sum(axis=0)
        worth, kept = second(everyone.T.T) * count[:, None], np.minimum(floor, reached)
        better, best_spent = spent(worth, everyone.size, capacity, everyone.T.T, kept, x.T)
        x = better.T
    codes = np.full(rows.count, -1, dtype=np.int8)
    edges = Edges(K, rows, found.t, codes, codes, np.arange(rows.count), x[:, sort])
    idle, free = np.flatnonzero(rows.a <= 0), np.empty(0, dtype=np.int64)
    return LevelOptimum(found.t, max(found.bound, found.t), value, edges, idle, free), best_spent


def _by_prices(rows: NeedRows, capacity: Floats, second: Second | None) -> tuple[LevelOptimum, bool]:
    """Solve in the prices of the columns, and spend what is left over on the rows whose level costs nothing."""
    found = highest(rows, capacity)
    if second is None or len(found.free) == 0 or len(found.idle) == 0:
        return found, True
    edges, idle, free = found.edges, found.idle, found.free
    x = edges.dense()[idle][:, free]
    spare = capacity[free] - edges.used()[free] + dot(rows.size[idle], x)
    rate = rows.T[np.ix_(free, idle)].T
    floor = np.minimum(rows.need(found.t)[0][idle], (rate * x).sum(axis=1)) * (1 - 1e-12)
    worth, left = second(rows.T.T[idle])[:, free], np.maximum(spare, 0.0)
    better, best = spent(worth, rows.size[idle], left, rate, floor, x)
    return LevelOptimum(found.t, found.bound, found.value, edges.instead(idle, free, better.T), idle, free), best


def spent(
    second: Floats, size: Floats, capacity: Floats, rate: Floats, floor: Floats, x: Floats
) -> tuple[Floats, bool]:
    """Return shares (row, column) with the most Σ second · x that keep Σ_k rate x ≥ floor, and whether that is proven.

    x is a point that keeps them; second, rate (row, column), size, floor (row,), capacity (column,). Without a proof
    it is `topped_up`.
    """
    if len(size) <= FEW and (found := few_total(second, size, capacity, rate, floor, x)) is not None:
        return found, True
    try:
        return best_total(second, size, capacity, rate=rate, floor=floor).x, True
    except NoOptimum:
        return topped_up(x, second, size, capacity), False


def topped_up(x: Floats, second: Floats, size: Floats, capacity: Floats) -> Floats:
    """Return x (row, column) with idle time spent on idle capacity, the most `second` per capacity first.

    No share falls, so a level that x reaches stands; places with second ≤ 0 get nothing more.
    """
    row, column = np.nonzero(second > 0)
    order = np.argsort(-second[row, column] / size[row], kind="stable")
    filled = x.copy()
    idle, spare = np.maximum(1 - x.sum(axis=1), 0.0), np.maximum(capacity - dot(size, x), 0.0)
    _fill(filled, row[order], column[order], size, idle, spare)
    return filled


@kernel()
def _fill(x: Floats, row: Ints, column: Ints, size: Floats, idle: Floats, spare: Floats) -> None:
    """Give each place in turn what idle time and spare capacity allow."""
    for place in range(len(row)):
        i, k = row[place], column[place]
        more = min(idle[i], spare[k] / size[i])
        x[i, k] += more
        idle[i] -= more
        spare[k] = max(spare[k] - size[i] * more, 0.0)
