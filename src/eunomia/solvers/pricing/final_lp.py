"""The exact end: a small linear program over the few rows whose choice the prices leave open.

Besides the shares of those rows it has trades: capacity of one column against capacity of all at the two ends of the
price's box. They keep the prices inside the box, where what the settled rows do is known; so without trades in
the optimum it is that of all rows, and else the prices tell where the box should have been.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.pricing.symmetry import DistinctRows
from eunomia.solvers.program import INF, Infeasible, NoOptimum, Program, Solved

_NEWTON = 60
_SAME = 1e-9  # relative: a tangent so close is exact to the square of it
_DUAL, _PRIMAL = 1, 4
# Simplex and scaling of the solver: none, its choice, by the largest entry, equilibration.
_ROADS = ((_DUAL, 0), (_DUAL, 1), (_DUAL, 4), (_DUAL, 2), (_PRIMAL, 0), (_PRIMAL, 2))
_PROVEN, _TOLERABLE = 1e-10, 1e-9  # error at which no other road is tried, and the largest that is an answer
_SMALL = 1e-3  # part of a row's best speed from which on its need is met as exactly as the others'


@dataclass(frozen=True, slots=True)
class Vertex:
    """x (column, row) and u (row,) shares, t, the value q of each column (sum 1, or 0 where t = top), trades made.

    No t within the box is above bound.
    """

    x: Floats
    u: Floats
    t: float
    bound: float
    value: Floats
    traded: float


def vertex(
    rows: NeedRows,
    limit: Floats,
    fixed: Floats,
    anchor: float,
    top: float,
    begin: float,
    low: Floats | None = None,
    high: Floats | None = None,
    alike: DistinctRows | None = None,
) -> Vertex:
    """Maximise t ≤ top over these rows and what the settled ask for, Σ_d fixed[d] (t − anchor)^d (3, column).

    low, high (column,) bound the part of each column in the value of all capacity. Where needs bend, the program is
    solved at their tangents from `begin` on until t stays. Rows that are alike count as one.
    """
    t = begin
    curved = rows.b is not None or rows.cap is not None or bool(fixed[2].any())
    for _ in range(_NEWTON):
        found = _tangent(rows, limit, fixed, anchor, top, t, low, high, alike)
        if not curved or abs(found.t - t) <= _SAME * abs(found.t):
            return found
        t = found.t
    raise NoOptimum(f"the level still moves after {_NEWTON} tangents; check the data for entries many decades apart")


def _tangent(
    rows: NeedRows,
    limit: Floats,
    fixed: Floats,
    anchor: float,
    top: float,
    t: float,
    low: Floats | None,
    high: Floats | None,
    alike: DistinctRows | None,
) -> Vertex:
    """Solve the program with needs and settled demand replaced by their tangents at t."""
    everyone, rows = rows, rows if alike is None else alike.merged(t)
    K, n = rows.T.shape
    best = np.maximum(rows.T.max(axis=0, initial=0.0), rows.base)
    need, slope = rows.need(t)
    unit = np.maximum(need, _SMALL * best)
    need, slope = need / unit, slope * top / unit
    d = t - anchor
    settled = (fixed[0] + d * (fixed[1] + d * fixed[2])) / limit
    rise = top * (fixed[1] + 2 * d * fixed[2]) / limit
    tau = t / top
    column, row = np.nonzero(rows.T > 0)
    spare = np.flatnonzero(rows.base > 0)
    shares, spares = len(row), len(spare)
    trades, sides = _trades(low, high, K)
    count = shares + spares + 1 + trades.shape[1]
    place = np.arange(shares)
    entries = [
        (row, place, rows.T[column, row] / unit[row]),
        (n + row, place, np.ones(shares)),
        (2 * n + column, place, rows.size[row] / limit[column]),
        (spare, shares + np.arange(spares), rows.base[spare] / unit[spare]),
        (n + spare, shares + np.arange(spares), np.ones(spares)),
        (np.arange(n), np.full(n, shares + spares), -slope),
        (2 * n + np.arange(K), np.full(K, shares + spares), rise),
        (2 * n + sides[0], shares + spares + 1 + sides[1], trades[sides[0], sides[1]]),
    ]
    cost, upper = np.zeros(count), np.full(count, INF)
    cost[shares + spares], upper[shares + spares] = 1.0, 1.0
    line, variable, amount = (np.concatenate([entry[part] for entry in entries]) for part in range(3))
    least = np.concatenate((need - slope * tau, np.full(n + K, -INF)))
    most = np.concatenate((np.full(n, INF), np.ones(n), 1 - settled + rise * tau))
    program = Program.of_entries(cost, line, variable, amount, least, most, upper=upper)
    solved = _solved(program, shares + spares, (line, variable, amount))
    x, u = np.zeros((K, n)), np.zeros(n)
    x[column, row] = solved.x[:shares]
    u[spare] = solved.x[shares : shares + spares]
    t = float(solved.x[shares + spares]) * top
    if alike is not None:
        x, u = alike.dealt(x, u, t)
    _top_up(everyone, x, u, everyone.need(t)[0])
    price = np.maximum(solved.row_price[2 * n :], 0.0)
    made = float(solved.x[shares + spares + 1 :].sum())
    return Vertex(x, u, t, solved.bound * top, price / max(price.sum(), 1e-300), made)


def _solved(program: Program, level: int, entries: tuple[Ints, Ints, Floats]) -> Solved:
    """Solve in the program's own units first, which tolerances are meant for, then by other roads, each refined.

    entries: row, variable and value, to see how far the answer is beyond its sides.
    """
    best, least = None, np.inf
    for simplex, scaling in _ROADS:
        program.highs.setOptionValue("simplex_strategy", simplex)
        program.highs.setOptionValue("simplex_scale_strategy", scaling)
        solved = _unbounded(program, level)
        error = _off(program, solved, entries)
        if error > _PROVEN:
            x = program.refined(solved.x)
            solved = replace(solved, x=x, objective=float(dot(program.cost, x)))
            error = _off(program, solved, entries)
        if best is None or error < least:
            best, least = solved, error
        if least <= _PROVEN:
            return best
        program.highs.clearSolver()
    assert best is not None
    if least > _TOLERABLE:
        raise NoOptimum(
            f"the last program is solved to {least:.1e} only; check the data for entries many decades apart"
        )
    return best


def _off(program: Program, solved: Solved, entries: tuple[Ints, Ints, Floats]) -> float:
    """Return the gap of an answer, or by how much it is beyond a side if that is more."""
    line, variable, amount = entries
    left = np.bincount(line, amount * solved.x[variable], minlength=program.rows)
    return max(solved.gap, float((left - program.high).max()), float((program.low - left).max()))


def _unbounded(program: Program, level: int) -> Solved:
    """Solve; a level near its bound is at times called infeasible: then without the bound, then on it."""
    try:
        return program.solve()
    except Infeasible:
        program.change_bounds(np.array([level]), 0.0, INF)
        solved = program.solve()
    if solved.x[level] <= 1:
        return solved
    program.change_bounds(np.array([level]), 1.0, 1.0)
    return program.solve()


def _top_up(rows: NeedRows, x: Floats, u: Floats, need: Floats) -> None:
    """Fix what the solver's tolerance left: a need far below a row's best speed is met to the last digits too."""
    reached = (rows.T * x).sum(axis=0) + rows.base * u
    lost = reached < 0.5 * need
    x[:, lost], u[lost] = 0.0, 0.0
    speed = rows.T.max(axis=0)
    spare, bought = (np.flatnonzero(lost & which) for which in (rows.base >= speed, rows.base < speed))
    u[spare] = need[spare] / rows.base[spare]
    x[rows.T[:, bought].argmax(axis=0), bought] = need[bought] / speed[bought]
    short = (reached < need) & ~lost
    more = need[short] / reached[short]
    x[:, short] *= more
    u[short] *= more


def _trades(low: Floats | None, high: Floats | None, K: int) -> tuple[Floats, tuple[Ints, Ints]]:
    """Return what each trade takes of each column (column, trade), and the places of what is not zero."""
    if low is None or high is None:
        none = np.empty(0, dtype=np.int64)
        return np.empty((K, 0)), (none, none)
    keep = low > 0
    dear = (np.eye(K) - low)[:, keep] if keep.any() else np.empty((K, 0))
    trades = np.concatenate((dear, high - np.eye(K)), axis=1)
    row, column = np.nonzero(trades)
    return trades, (row, column)
