"""Prices of the columns for a few thousand rows, by a primal-dual interior point method that knows the blocks.

    maximise Σ_i m_i Σ_k c_ik x_ik − P Σ_k o_k
    subject to  x_i0 + Σ_k x_ik = 1,   Σ_k T_ik x_ik − q_i = f_i,   Σ_i m_i s_i x_ik + u_k − o_k = N_k,   all ≥ 0

Row i counts m_i times. The overflow o at a price P above all others keeps every sample feasible. Each row's
unknowns are eliminated by hand, so a step is one pass over the rows and one K × K system in the prices p. Duals:
y_i of time, λ_i of the floor, z_ik = y_i + s_i p_k − c_ik − λ_i T_ik. Products such as x_ik z_ik follow μ τ_i, where
τ_i is the size of the row's worths, so rows many decades apart are solved alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.sums import inner_product, total

_STEPS = 80
_STUCK = 1e-6  # a step after which there is nothing to be won by more
_SHORT = 0.99  # how far to go to the nearest boundary


@kernel()
def prices(
    worth: Floats,
    size: Floats,
    count: Floats,
    rate: Floats,
    floor: Floats,
    capacity: Floats,
    ceiling: float,
    tolerance: float,
) -> tuple[Floats, Floats, float]:
    """Return p (column,), the spread of it (column, column: inverse of the last system) and the relative gap reached.

    worth, rate (row, column) with worth −inf where a place is closed; size, count, floor (row,) with floor −inf where
    there is none; capacity (column,) above 0; ceiling P.
    """
    rows, columns = worth.shape
    unit = _units(worth)  # τ (row,)
    many, tau = total(count), inner_product(count, unit) / total(count)
    p = np.full(columns, min(_middle(worth, size, count, many), ceiling / 4))
    x, z = np.zeros((rows, columns)), np.ones((rows, columns))
    idle, y, over, lam = np.empty(rows), np.empty(rows), np.ones(rows), np.zeros(rows)
    _start(worth, size, rate, floor, unit, p, x, z, idle, y, over, lam)
    weight = tau * max(1.0, many / rows) * 3  # of the columns' own products
    u, o = capacity * 0.3 + 1e-300, capacity * 0.01 + 1e-300
    dx, dz = np.zeros((rows, columns)), np.zeros((rows, columns))
    rest = np.zeros((4, rows))  # steps of idle, y, over, lam
    system, right = np.empty((columns, columns)), np.empty(columns)
    centring, gap = 0.3, np.inf
    for _ in range(_STEPS):
        products, parts = _products(x, z, idle, y, over, lam, floor, count, unit)
        w = ceiling - p
        products += inner_product(u, p) + inner_product(o, w)
        mu = products / (parts + 2 * columns * weight)
        used = _used(x, size, count)
        off = capacity - used - u + o
        scale = inner_product(p, capacity) + _worth_of_time(count, y, lam, floor)
        gap = products / scale
        if gap < tolerance and (np.abs(off) <= tolerance * (capacity + used)).all():
            break
        goal = centring * mu
        system[:] = 0.0
        right[:] = goal * weight / p - u - goal * weight / w + o - off
        _assemble(goal, worth, size, count, rate, floor, unit, x, z, idle, y, over, lam, system, right)
        for k in range(columns):
            system[k, k] += u[k] / p[k] + o[k] / w[k]
        dp = _solved(system, right)
        du = goal * weight / p - u - u / p * dp
        do = goal * weight / w - o + o / w * dp
        primal, dual = _steps(goal, worth, size, rate, floor, unit, x, z, idle, y, over, lam, dp, dx, dz, rest)
        primal = min(primal, _reach(u, du), _reach(o, do))
        dual = min(dual, _reach(p, dp), _reach(w, -dp))
        primal, dual = min(1.0, _SHORT * primal), min(1.0, _SHORT * dual)
        x += primal * dx
        idle += primal * rest[0]
        over += primal * rest[2]
        u += primal * du
        o += primal * do
        z += dual * dz
        y += dual * rest[1]
        lam += dual * rest[3]
        p += dual * dp
        least = min(primal, dual)
        if least < _STUCK:
            break
        centring = 0.05 if least > 0.9 else (0.2 if least > 0.5 else 0.5)
    return p, system, gap


@kernel()
def _units(worth: Floats) -> Floats:
    """Return the size of each row's worths (row,), above 0."""
    rows, columns = worth.shape
    unit = np.zeros(rows)
    for i in range(rows):
        for k in range(columns):
            if worth[i, k] > -np.inf:
                unit[i] = max(unit[i], abs(worth[i, k]))
    least = 1e-12 * unit.max() + 1e-300
    for i in range(rows):
        unit[i] = max(unit[i], least)
    return unit


@kernel()
def _middle(worth: Floats, size: Floats, count: Floats, many: float) -> float:
    """Return a price of the right order: the mean worth per unit of size."""
    total = 0.0
    for i in range(len(size)):
        best = 0.0
        for k in range(worth.shape[1]):
            if worth[i, k] > -np.inf:
                best = max(best, abs(worth[i, k]))
        total += count[i] * best / size[i]
    return max(total / many, 1e-300)


@kernel()
def _start(
    worth: Floats,
    size: Floats,
    rate: Floats,
    floor: Floats,
    unit: Floats,
    p: Floats,
    x: Floats,
    z: Floats,
    idle: Floats,
    y: Floats,
    over: Floats,
    lam: Floats,
) -> None:
    """Start inside: time is kept exactly, floors and capacities not yet."""
    rows, columns = worth.shape
    for i in range(rows):
        fast, open_places, best = 0.0, 0, 0.0
        for k in range(columns):
            if worth[i, k] > -np.inf:
                fast, open_places = max(fast, abs(rate[i, k])), open_places + 1
        lam[i] = unit[i] / fast if floor[i] > -np.inf and fast > 0 else 0.0
        for k in range(columns):
            if worth[i, k] > -np.inf:
                best = max(best, worth[i, k] + lam[i] * rate[i, k] - size[i] * p[k])
        y[i] = best + unit[i]
        idle[i] = 1.0 / (1 + open_places)
        over[i] = max(fast / 2, abs(floor[i])) if lam[i] > 0 else 1.0
        for k in range(columns):
            if worth[i, k] > -np.inf:
                x[i, k] = idle[i]
                z[i, k] = y[i] + size[i] * p[k] - worth[i, k] - lam[i] * rate[i, k]


@kernel()
def _products(
    x: Floats, z: Floats, idle: Floats, y: Floats, over: Floats, lam: Floats, floor: Floats, count: Floats, unit: Floats
) -> tuple[float, float]:
    """Return Σ of the products of primal and dual, and the sum of their weights."""
    rows, columns = x.shape
    total, parts = 0.0, 0.0
    for i in range(rows):
        own, pairs = idle[i] * y[i], 1
        for k in range(columns):
            own += x[i, k] * z[i, k]
            pairs += 1 if x[i, k] > 0 else 0
        if lam[i] > 0:
            own, pairs = own + over[i] * lam[i], pairs + 1
        total, parts = total + count[i] * own, parts + count[i] * unit[i] * pairs
    return total, parts


@kernel()
def _worth_of_time(count: Floats, y: Floats, lam: Floats, floor: Floats) -> float:
    """Return Σ of the sizes of the rows' parts of the dual objective, above 0."""
    total = 1e-300
    for i in range(len(y)):
        total += count[i] * (y[i] + (lam[i] * abs(floor[i]) if lam[i] > 0 else 0.0))
    return total


@kernel()
def _used(x: Floats, size: Floats, count: Floats) -> Floats:
    used = np.zeros(x.shape[1])
    for i in range(len(size)):
        for k in range(x.shape[1]):
            used[k] += count[i] * size[i] * x[i, k]
    return used


@kernel()
def _row(
    i: int,
    goal: float,
    rate: Floats,
    floor: Floats,
    x: Floats,
    z: Floats,
    idle: Floats,
    y: Floats,
    over: Floats,
    lam: Floats,
) -> tuple[float, float, float, float, float, float]:
    """Return the row's 2 × 2 system [A −B; −B C] in its steps of y and λ, AC − B², and its right side without prices.

    The determinant is a sum of products ≥ 0, so that no difference of large numbers can make it vanish.
    """
    still, spare = idle[i] / y[i], over[i] / lam[i] if lam[i] > 0 else 1.0
    A, B, C, det = still, 0.0, spare, 0.0
    g1, g2 = goal / y[i] - idle[i] - (1.0 - idle[i]), 0.0
    for k in range(x.shape[1]):
        if x[i, k] > 0:
            d, a = x[i, k] / z[i, k], goal / z[i, k] - x[i, k]
            A += d
            g1 += a + x[i, k]
            if lam[i] > 0:
                B += d * rate[i, k]
                C += d * rate[i, k] * rate[i, k]
                g2 -= rate[i, k] * (a + x[i, k])
                for j in range(k):
                    if x[i, j] > 0:
                        apart = rate[i, k] - rate[i, j]
                        det += d * x[i, j] / z[i, j] * apart * apart
    if lam[i] > 0:
        g2 += floor[i] + over[i] + goal / lam[i] - over[i]
    return A, B, C, det + still * (C - spare) + spare * A, g1, g2


@kernel()
def _assemble(
    goal: float,
    worth: Floats,
    size: Floats,
    count: Floats,
    rate: Floats,
    floor: Floats,
    unit: Floats,
    x: Floats,
    z: Floats,
    idle: Floats,
    y: Floats,
    over: Floats,
    lam: Floats,
    system: Floats,
    right: Floats,
) -> None:
    """Add every row's part to the system in the steps of the prices."""
    rows, columns = x.shape
    d, slope_y, slope_l = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    for i in range(rows):
        t = goal * unit[i]
        A, B, C, det, g1, g2 = _row(i, t, rate, floor, x, z, idle, y, over, lam)
        y0, l0 = (C * g1 + B * g2) / det, (B * g1 + A * g2) / det
        for k in range(columns):
            d[k] = x[i, k] / z[i, k]
            slope_y[k] = (B * rate[i, k] - C) / det if lam[i] > 0 else -1.0 / A
            slope_l[k] = (A * rate[i, k] - B) / det if lam[i] > 0 else 0.0
        m, s = count[i] * size[i], size[i]
        for k in range(columns):
            if d[k] > 0:
                right[k] += m * (t / z[i, k] - x[i, k] - d[k] * (y0 - rate[i, k] * l0))
                system[k, k] += m * s * d[k]
                for j in range(columns):
                    system[k, j] += m * s * d[k] * d[j] * (slope_y[j] - rate[i, k] * slope_l[j])


@kernel()
def _steps(
    goal: float,
    worth: Floats,
    size: Floats,
    rate: Floats,
    floor: Floats,
    unit: Floats,
    x: Floats,
    z: Floats,
    idle: Floats,
    y: Floats,
    over: Floats,
    lam: Floats,
    dp: Floats,
    dx: Floats,
    dz: Floats,
    rest: Floats,
) -> tuple[float, float]:
    """Write every row's steps for the prices' steps dp; return how far primal and dual may go before one is zero."""
    rows, columns = x.shape
    primal, dual = np.inf, np.inf
    for i in range(rows):
        t = goal * unit[i]
        A, B, _, det, r1, r2 = _row(i, t, rate, floor, x, z, idle, y, over, lam)
        for k in range(columns):
            d = x[i, k] / z[i, k]
            r1 -= size[i] * d * dp[k]
            r2 += size[i] * d * rate[i, k] * dp[k]
        step_l = (B * r1 + A * r2) / det if lam[i] > 0 else 0.0
        step_y = (r1 + B * step_l) / A
        for k in range(columns):
            if x[i, k] > 0:
                dz[i, k] = step_y + size[i] * dp[k] - rate[i, k] * step_l
                dx[i, k] = t / z[i, k] - x[i, k] - x[i, k] / z[i, k] * dz[i, k]
                if dx[i, k] < 0:
                    primal = min(primal, -x[i, k] / dx[i, k])
                if dz[i, k] < 0:
                    dual = min(dual, -z[i, k] / dz[i, k])
        rest[0, i], rest[1, i] = t / y[i] - idle[i] - idle[i] / y[i] * step_y, step_y
        primal, dual = min(primal, _one(idle[i], rest[0, i])), min(dual, _one(y[i], step_y))
        if lam[i] > 0:
            rest[2, i], rest[3, i] = t / lam[i] - over[i] - over[i] / lam[i] * step_l, step_l
            primal, dual = min(primal, _one(over[i], rest[2, i])), min(dual, _one(lam[i], step_l))
    return primal, dual


@kernel()
def _solved(system: Floats, right: Floats) -> Floats:
    """Solve a positive definite system by Cholesky, in units in which its diagonal is 1 (numba's own needs scipy)."""
    n = len(right)
    unit, low, step = np.empty(n), np.zeros((n, n)), np.empty(n)
    for i in range(n):
        unit[i] = 1.0 / np.sqrt(system[i, i])
    for i in range(n):
        for j in range(i + 1):
            rest = system[i, j] * unit[i] * unit[j]
            for k in range(j):
                rest -= low[i, k] * low[j, k]
            low[i, j] = rest / low[j, j] if i > j else np.sqrt(max(rest, 1e-16))
    for i in range(n):
        step[i] = right[i] * unit[i]
        for k in range(i):
            step[i] -= low[i, k] * step[k]
        step[i] /= low[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            step[i] -= low[k, i] * step[k]
        step[i] /= low[i, i]
    for i in range(n):
        step[i] *= unit[i]
    return step


@kernel()
def _one(value: float, step: float) -> float:
    return -value / step if step < 0 else np.inf


@kernel()
def _reach(values: Floats, steps: Any) -> float:
    """Return how far one may go along the steps before a value is zero."""
    far = np.inf
    for k in range(len(values)):
        far = min(far, _one(values[k], steps[k]))
    return far
