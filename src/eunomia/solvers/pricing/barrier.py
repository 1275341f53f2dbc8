"""A primal-dual interior point method that never forms a matrix larger than the number of columns plus one.

    maximise t / top + Σ c·x   subject to   T_i·x_i + f_i u_i − v_i = r_i(t),   Σ_k x_ik + u_i = 1,
                              Σ_i s_i x_ik + σ_k + h_k(t) = N_k,  t = top (1 − q),   x, u, v, σ, q ≥ 0

u is the free alternative (idle, or the fastest column without a price) and h what rows that are not listed ask for. Of
the highest level there are no worths c; of the largest total r and h do not depend on t.
Predictor and corrector as in S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J.
Optimization 2 (1992).
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.pricing.elimination import DMU, DNU, DV, MU, NU, Iterate, Terms, V, direction, system
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.sums import inner_product, total

_STEPS = 60
_LOST = 1e4  # an error so much above the best one will not become better any more
_TRIFLE = 1e-6  # value of all capacity, in parts of the level, below which prices are not asked for
_SHORT = 0.99  # how far towards the boundary a step goes


@kernel(error_model="numpy")
def solve_dense(matrix: Floats, right: Floats) -> bool:
    """Solve matrix · z = right in place by elimination with row pivoting; False where the matrix is singular."""
    n = len(right)
    for c in range(n):
        best = c
        for i in range(c + 1, n):
            if abs(matrix[i, c]) > abs(matrix[best, c]):
                best = i
        if not abs(matrix[best, c]) > 0.0:
            return False
        if best != c:
            for j in range(n):
                matrix[c, j], matrix[best, j] = matrix[best, j], matrix[c, j]
            right[c], right[best] = right[best], right[c]
        for i in range(c + 1, n):
            ratio = matrix[i, c] / matrix[c, c]
            for j in range(c, n):
                matrix[i, j] -= ratio * matrix[c, j]
            right[i] -= ratio * right[c]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            right[i] -= matrix[i, j] * right[j]
        right[i] /= matrix[i, i]
    return True


@kernel(error_model="numpy")
def _begin(of: Terms, limit: Floats, asked: Floats, mean: float, at: Iterate, sigma: Floats) -> None:
    """Write a start at which all products are near the mean; asked (column,) is what rows that are not listed take."""
    s, x, state, K = of.rows.size, at.x, at.state, len(limit)
    x[:] = 1.0 / (K + 1)
    demand = total(s) / (K + 1)
    for k in range(K):
        part = min(1.0, 0.5 * max(limit[k] - asked[k], 0.05 * limit[k]) / demand)
        x[k] *= part
        sigma[k] = limit[k] - max(asked[k], 0.0) - demand * part
        sigma[k] = max(sigma[k], 0.05 * limit[k])
    x[K] = 1.0
    for k in range(K):
        x[K] -= x[k]
        at.y[k] = mean / sigma[k]
    for i in range(len(s)):
        state[V, i] = 0.25
        state[MU, i] = mean / 0.25
        state[NU, i] = state[MU, i] + mean / 0.25


@kernel(error_model="numpy")
def _begin_with(of: Terms, worth: Floats, limit: Floats, mean: float, at: Iterate, sigma: Floats) -> None:
    """Write a start in which the products of each row are near its own part of the mean, however far rows are apart."""
    rows, aim, x, state, y = of.rows, of.aim, at.x, at.state, at.y
    T, s, K, n = rows.T, rows.size, len(y) - 1, len(rows.size)
    whole, size = 0.0, 0.0
    for i in range(n):
        best = 0.0
        for k in range(K):
            best = max(best, abs(worth[k, i]))
        if s[i] > 0.0:
            whole, size = whole + best, size + s[i]
    for k in range(K):
        y[k], sigma[k] = whole / size, limit[k]  # what a unit of size is worth in the mean
    for i in range(n):
        own, gain, best = mean / 0.25 * aim[i], 0.0, K
        state[V, i], state[MU, i] = 0.25, own
        for k in range(K):
            more = worth[k, i] + T[k, i] * own - s[i] * y[k]
            if more > gain:
                gain, best = more, k
        state[NU, i] = gain + own
        rest = 1.0
        for k in range(K + 1):
            z = state[NU, i] - T[k, i] * own - worth[k, i] + (s[i] * y[k] if k < K else 0.0)
            x[k, i] = own / (z * (K + 1))
            rest -= x[k, i] if k != best else 0.0
        x[best, i] = rest
        for k in range(K):
            sigma[k] -= s[i] * x[k, i]
    for k in range(K):
        sigma[k] = max(sigma[k], 0.05 * limit[k])


@kernel(error_model="numpy")
def _columns(
    of: Terms, at: Iterate, d: float, limit: Floats, fixed: Floats, sigma: Floats, matrix: Floats, right: Floats,
    sums: Floats,
) -> float:  # fmt: skip
    """Add the columns' own terms to the system; return the greatest part of a limit by which one is missed."""
    K, y, top, missing = len(limit), at.y, of.top, 0.0
    for k in range(K):
        for c in range(k):
            matrix[c, k] = matrix[k, c]
        h = fixed[0, k] + d * (fixed[1, k] + d * fixed[2, k])
        rise = top * (fixed[1, k] + 2.0 * d * fixed[2, k])
        fault_k = inner_product(of.rows.size, at.x[k]) + sigma[k] + h - limit[k]
        missing = max(missing, abs(fault_k) / limit[k])
        sums[0] += y[k] * rise
        sums[1] += y[k] * sigma[k]
        sums[2] += 2.0 * top * top * y[k] * fixed[2, k]
        matrix[k, k] += sigma[k] / y[k]
        matrix[k, K] -= rise
        matrix[K, k] += rise
        right[0, k] += fault_k - sigma[k]
        right[1, k] += 1.0 / y[k]
    return missing


@kernel(error_model="numpy")
def barrier(
    rows: NeedRows, worth: Floats, aim: Floats, limit: Floats, fixed: Floats, anchor: float, top: float,
    begin: float, goal: float,
) -> tuple[Floats, float, float, int]:  # fmt: skip
    """Solve the program to a relative gap `goal`; return y (column,), t, its error and the steps taken.

    rows: `in_any_form`, speeds and needs in parts of the row's best speed; the last column is free, base is not used;
    worth (column + 1, row), about 1 in all, or (0, 0) without worths; aim (row,) the part of the common product that a
    row's products have; limit N > 0 (column,); fixed (3, column): h(t) = Σ_d fixed[d] (t − anchor)^d; t ≤ top, begun at
    `begin` without worths.
    """
    K, n = rows.T.shape[0] - 1, rows.T.shape[1]
    x, dx, fault = np.empty((K + 1, n)), np.empty((K + 1, n)), np.empty((K + 1, n))
    state = np.empty((7, n))
    y, sigma, dsigma, dworth = np.zeros(K + 1), np.empty(K), np.empty(K), np.empty(K)
    of, at = Terms(rows, worth, aim, top), Iterate(x, dx, fault, state, y)
    mean = 10.0 / (n * (K + 2))
    _begin(of, limit, fixed[0], mean, at, sigma)
    q = mean if worth.size else 1.0 - begin / top  # with worths t is at the top from the start, at its price of 1
    if worth.size:
        _begin_with(of, worth, limit, mean, at, sigma)
    price_q = mean / q
    gap = 1.0
    t = begin
    best, best_t, best_y = 1e300, begin, y.copy()
    steps = 0
    while steps < _STEPS:
        steps += 1
        t = top * (1.0 - q)
        matrix, right, sums = np.zeros((K + 1, K + 1)), np.zeros((3, K + 1)), np.zeros(3)
        system(of, t, at, matrix, right, sums)  # the system in (y, t), all rows eliminated
        missing = _columns(of, at, t - anchor, limit, fixed, sigma, matrix, right, sums)
        average = (sums[1] + q * price_q) / (n * (K + 2) + K + 1)
        gap = (sums[1] + q * price_q) / max(abs(1.0 - q), 1e-30)
        fault_q = 1.0 - sums[0] - price_q
        value = 0.0
        for k in range(K):
            value += y[k] * limit[k]
        quality = max(gap / min(max(value, _TRIFLE), 1.0), missing, abs(fault_q))  # how far from optimal and feasible
        if quality < best:  # the best point is returned: rounding makes later ones worse
            best, best_t, best_y = quality, t, y.copy()
        if best < goal or quality > _LOST * best:
            break
        matrix[K, K] += price_q / q + sums[2]
        right[0, K] += fault_q + price_q
        right[1, K] -= 1.0 / q
        step = right[0].copy()
        if not solve_dense(matrix.copy(), step):
            break
        primal, dual = direction(of, t, at, step, 0.0, False, right[2])  # predictor: straight to the optimum
        dq = -step[K]
        dprice_q = -price_q - price_q * dq / q
        fault_second = dq * dprice_q  # what it misses by in second order, of columns and of t
        for k in range(K):
            dsigma[k] = -sigma[k] * (1.0 + step[k] / y[k])
            primal = min(primal, 1.0 / max(1.0, -dsigma[k] / sigma[k]))
            dual = min(dual, 1.0 / max(1.0, -step[k] / y[k]))
            dworth[k] = dsigma[k] * step[k]
            right[2, k] -= dworth[k] / y[k]
        right[2, K] += fault_second / q
        primal = min(primal, 1.0 / max(1.0, -dq / q))
        dual = min(dual, 1.0 / max(1.0, -dprice_q / price_q))
        centre = average * max((1.0 - primal) * (1.0 - dual) * (1.0 - dual), 1e-4)  # long steps: little centring
        step = right[0] + centre * right[1] + right[2]
        if not solve_dense(matrix, step):
            break
        primal, dual = direction(of, t, at, step, centre, True, right[2])  # corrector: the same system, centred
        dq = -step[K]
        dprice_q = (centre - fault_second - price_q * dq) / q - price_q
        for k in range(K):
            dsigma[k] = (centre - dworth[k] - sigma[k] * step[k]) / y[k] - sigma[k]
            primal = min(primal, 1.0 / max(1.0, -dsigma[k] / sigma[k]))
            dual = min(dual, 1.0 / max(1.0, -step[k] / y[k]))
        primal = min(primal, 1.0 / max(1.0, -dq / q))
        dual = min(dual, 1.0 / max(1.0, -dprice_q / price_q))
        primal = min(1.0, _SHORT * primal)  # move, short of where anything would be 0
        dual = min(1.0, _SHORT * dual)
        for k in range(K + 1):
            for i in range(n):
                x[k, i] += primal * dx[k, i]
        for i in range(n):
            state[V, i] += primal * state[DV, i]
            state[NU, i] += dual * state[DNU, i]
            state[MU, i] += dual * state[DMU, i]
        for k in range(K):
            sigma[k] += primal * dsigma[k]
            y[k] += dual * step[k]
        q += primal * dq
        price_q += dual * dprice_q
    return best_y[:K], best_t, best, steps
