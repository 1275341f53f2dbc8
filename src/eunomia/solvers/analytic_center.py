"""A point of the central path of a level program: inside all of its optima, and no place quite empty.

    maximise t   subject to   T_i·x_i ≥ c_i + a_i t,   Σ_k x_ik ≤ 1,   Σ_i s_i x_ik ≤ N_k,   x ≥ 0

Every slack times its price is the same small number there (S. J. Wright, "Primal-Dual Interior-Point Methods", SIAM
1997, chapters 1 and 5). An interior-point solver stops near such a point, so that answers of one resemble those of
another; rows that are alike are treated alike, and the traces in places that no optimum uses tell how far from use
they are. A Newton step is two passes over the rows and a small system in the prices and t. What a slack becomes is
computed from its price, not from the shares: their sum would have lost its last digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.model.products import dot
from eunomia.solvers.pricing.barrier import solve_dense
from eunomia.solvers.sums import inner_product, total

_END = 1e-10  # slack times price where the path is left; t and all prices are about 1
_STEPS = 100
_CENTRED = 3  # whole steps at the end of the path


def inside(rate: Floats, size: Floats, capacity: Floats, need: Floats, fixed: Floats, level: float) -> Floats:
    """Return x (row, column) with t within about 1e-6 of the highest `level` = t*, which is above 0.

    rate (row, column); size, need = a and fixed = c (row,); capacity (column,). Rows without a need get nothing.
    """
    return _followed(rate, size, capacity, need, fixed, level, np.inf)


def middle(rate: Floats, size: Floats, capacity: Floats, need: Floats, highest: float, level: float) -> Floats:
    """Return the x (row, column) in the middle of all that give every row need · level; `highest` is above `level`.

    In the middle the product of all slacks is largest.
    """
    return _followed(rate, size, capacity, need, np.zeros(len(need)), highest, level / highest)


def _followed(
    rate: Floats, size: Floats, capacity: Floats, need: Floats, fixed: Floats, unit: float, stop: float
) -> Floats:
    """Return the x where the path ends, t being counted in `unit`; rows that need or do nothing are left out."""
    x = np.zeros_like(rate, dtype=float)
    some = np.flatnonzero((need > 0) & (rate.max(axis=1, initial=0.0) > 0))
    columns = np.flatnonzero(capacity > 0)
    if len(some) == 0 or len(columns) == 0:
        return x
    own = rate[some].max(axis=1)  # a row's own unit changes nothing but roundings
    T = np.ascontiguousarray(rate[np.ix_(some, columns)] / own[:, None])
    s, N = size[some].astype(float), capacity[columns].astype(float)
    found = _path(_Rows(T, s, need[some] * unit / own), N, fixed[some] / own, stop)
    found /= np.maximum(found.sum(axis=1, keepdims=True), 1.0)  # the last digits of what was summed up step by step
    found /= np.maximum(dot(s, found) / N, 1.0)
    x[np.ix_(some, columns)] = found
    return x


class _Rows(NamedTuple):
    """What does not change on the path."""

    T: Floats  # (row, column)
    s: Floats  # (row,)
    a: Floats  # (row,)


class _Point(NamedTuple):
    """Shares x, slacks w of time, q of levels, v of capacity, and their prices z, y, u, p; or a step of all."""

    x: Floats  # (row, column)
    z: Floats
    w: Floats  # (row,)
    y: Floats
    q: Floats  # (row,)
    u: Floats
    v: Floats  # (column,)
    p: Floats


class _Answers(NamedTuple):
    """What a row's new price e follows from, π and dt being the step: e = (own + a dt + s through·π) / fits."""

    through: Floats  # (row, column)
    fits: Floats  # (row,)
    own: Floats  # (row,)


@kernel()
def _longest(value: float, change: float, step: float) -> float:
    """Return the step up to which a positive value stays so."""
    return min(step, -value / change) if change < 0.0 else step


@kernel()
def _assemble(mu: float, rows: _Rows, at: _Point, answers: _Answers, matrix: Floats, right: Floats) -> None:
    """Write the system in the new prices π and the step of t, and how each row answers them."""
    T, s, a = rows
    x, z, w, y, q, u, v, p = at
    through, fits, own = answers
    n, K = T.shape
    inverse, moved = np.empty(K), np.empty(K)
    matrix[:] = 0.0
    right[:] = 0.0
    right[K] = 1.0
    matrix[K, K] = 0.0 if a.any() else 1.0  # without needs t stays, whatever its step
    for k in range(K):
        matrix[k, k] = v[k] / p[k]
        right[k] = mu / p[k]
    for i in range(n):
        # C = diag(z / x) + (y / w) 1 1ᵀ is what a row's own bounds answer to its step; C⁻¹ in closed form.
        beyond, sum_T, sum_h = w[i] / y[i], 0.0, 0.0
        for k in range(K):
            inverse[k] = x[i, k] / z[i, k]
            beyond += inverse[k]
            sum_T += inverse[k] * T[i, k]
            sum_h += inverse[k] * (mu / x[i, k] - mu / w[i])
        fits[i], own[i] = q[i] / u[i], mu / u[i]
        for k in range(K):
            through[i, k] = inverse[k] * (T[i, k] - sum_T / beyond)
            moved[k] = inverse[k] * (mu / x[i, k] - mu / w[i] - sum_h / beyond)
            fits[i] += T[i, k] * through[i, k]
            own[i] -= T[i, k] * moved[k]
        for k in range(K):
            part = s[i] * through[i, k] / fits[i]
            right[k] += s[i] * moved[k] + part * own[i]
            matrix[k, K] -= part * a[i]
            matrix[K, k] += part * a[i]
            matrix[k, k] += s[i] * s[i] * inverse[k]
            for m in range(K):
                matrix[k, m] -= s[i] * s[i] * inverse[k] * inverse[m] / beyond + part * s[i] * through[i, m]
        right[K] -= a[i] * own[i] / fits[i]
        matrix[K, K] += a[i] * a[i] / fits[i]


@kernel()
def _steer(mu: float, found: Floats, rows: _Rows, at: _Point, answers: _Answers, step: _Point) -> tuple[float, float]:
    """Write all steps for the new prices and the step of t in `found`; return how far primal and dual may go."""
    T, s, a = rows
    x, z, w, y, q, u, v, p = at
    through, fits, own = answers
    n, K = T.shape
    primal = dual = np.inf
    pull = np.empty(K)
    for i in range(n):
        e = own[i] + a[i] * found[K]
        for k in range(K):
            e += s[i] * through[i, k] * found[k]
        e /= fits[i]
        beyond, shared = w[i] / y[i], 0.0
        for k in range(K):
            pull[k] = mu / x[i, k] - mu / w[i] - s[i] * found[k] + T[i, k] * e
            beyond += x[i, k] / z[i, k]
            shared += x[i, k] / z[i, k] * pull[k]
        shared /= beyond
        dw = -shared * w[i] / y[i]
        dy = mu / w[i] - y[i] - y[i] / w[i] * dw
        dq, du = (mu - q[i] * e) / u[i], e - u[i]
        step.w[i], step.y[i], step.q[i], step.u[i] = dw, dy, dq, du
        for k in range(K):
            dx = x[i, k] / z[i, k] * (pull[k] - shared)
            dz = mu / x[i, k] - z[i, k] - z[i, k] / x[i, k] * dx
            step.x[i, k], step.z[i, k] = dx, dz
            primal, dual = _longest(x[i, k], dx, primal), _longest(z[i, k], dz, dual)
        primal = _longest(q[i], dq, _longest(w[i], dw, primal))
        dual = _longest(u[i], du, _longest(y[i], dy, dual))
    for k in range(K):
        step.v[k], step.p[k] = (mu - v[k] * found[k]) / p[k], found[k] - p[k]
        primal, dual = _longest(v[k], step.v[k], primal), _longest(p[k], step.p[k], dual)
    return min(1.0, 0.95 * primal), min(1.0, 0.95 * dual)


@kernel()
def _path(rows: _Rows, N: Floats, c: Floats, stop: float) -> Floats:
    """Follow the path from equal parts to its end; return x (row, column). N (column,), c (row,).

    Where t reaches `stop` it stays, and the path turns to the middle of what is left.
    """
    T, s, a = rows
    n, K = T.shape
    # begin with half of equal parts, in which no share, slack or capacity is 0
    x, v, t = np.empty((n, K)), N.copy(), np.inf
    w, q = np.empty(n), np.empty(n)
    for k in range(K):
        part = 0.5 * min(1.0 / K, N[k] / total(s))
        for i in range(n):
            x[i, k] = part
            v[k] -= s[i] * part
    for i in range(n):
        w[i], q[i] = 1.0 - total(x[i]), inner_product(T[i], x[i]) - c[i]
        t = min(t, q[i] / a[i])
    t -= max(0.5 * abs(t), 0.1)
    q -= a * t
    # what each of these times its dual is, is driven to μ
    mu, centred, free = 1.0, 0, True
    at = _Point(x, 1.0 / x, w, 1.0 / w, q, 1.0 / q, v, 1.0 / v)
    wide, each, single = np.empty((3, n, K)), np.empty((6, n)), np.empty((2, K))
    step = _Point(wide[0], wide[1], each[0], each[1], each[2], each[3], single[0], single[1])
    answers = _Answers(wide[2], each[4], each[5])
    matrix, found = np.empty((K + 1, K + 1)), np.empty(K + 1)
    for _ in range(_STEPS):
        # one step of Newton's method, shortened so that all that is positive stays so
        _assemble(mu, rows, at, answers, matrix, found)
        if not solve_dense(matrix, found):
            break
        primal, dual = _steer(mu, found, rows, at, answers, step)
        x += primal * step.x
        w += primal * step.w
        q += primal * step.q
        v += primal * step.v
        at.z[:] += dual * step.z
        at.y[:] += dual * step.y
        at.u[:] += dual * step.u
        at.p[:] += dual * step.p
        # the level t is one of the unknowns until it reaches `stop`; from then on it stays
        near = min(primal, dual)
        if free:
            t += float(primal * found[K])
            if t >= stop:
                q += a * (t - stop)
                rows, free, mu = _Rows(T, s, np.zeros(n)), False, 1.0
                at.z[:], at.y[:], at.u[:], at.p[:] = 1.0 / x, 1.0 / w, 1.0 / q, 1.0 / v
                continue
        # done after some whole steps at the last μ, or at μ = 1 where the level is fixed
        if (mu <= _END or not free) and near == 1.0:
            centred += 1
            if centred == _CENTRED:
                break
        # the next μ: a part of the gap, the smaller the longer this step was
        gap = inner_product(w, at.y) + inner_product(q, at.u) + inner_product(v, at.p)
        for i in range(n):
            gap += inner_product(x[i], at.z[i])
        if free:
            mu = max((0.1 if near > 0.9 else 0.3 if near > 0.5 else 0.8) * gap / (n * (K + 2) + K), _END)
    return x
