"""A primal-dual interior point for rows that share priced columns, reduced to one small system in the prices.

    maximise Σ_i w_i log(T_i·x_i)   subject to   Σ_k x_ik + x_i0 = 1,   Σ_i s_i x_ik + q_k + D_k(p) = N_k,   x, q ≥ 0

with D(p) the demand of rows already tallied (`aggregated_rows.py`). Column 0 of a block here is a row's idle time:
T = 0, p = 0. Row i's complementarity x z is driven to μ w_i, so that light rows are resolved as sharply as heavy ones.
Given a step dp of the prices a row moves share from column k to column j by the flow g_jk (c_j − c_k), where

    g_jk = θ_j θ_k (y² + Σ_l θ_l (T_l − T_j)(T_l − T_k)) / (S (y² + V)),   θ = x / z,   S = Σ θ,   V = Σ θ (T − T̄)²

is minus the off-diagonal of the inverse of its Hessian, written so that nothing cancels: rows keep Σ x = 1 to rounding.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.sums import summed, total

MOST_STEPS = 400
NEAR = 0.95  # of the way to a bound
PATIENCE = 8  # steps at the goal before an excess is taken to be rounding
ENDGAME = 1e-8
ALONE = 60  # steps in which rows go as far as each one can, which is fast but may cycle
SHORT = 0.1  # then all go the same part; where that is short, one step alone brings them back to the middle
EXACT, ROUNDING = 1e-12, 1e-6  # excess, of a capacity: none; what may be rounding, as ties make flows large
LOOSE, LEAST = 10.0, 1e-16  # capacities left over per μ; complementarity of columns that are not scarce
_STRIDE = 128  # rows of a block: its arrays stay in the first-level cache


@kernel(error_model="numpy")
def descend(matrix: Floats, right: Floats) -> bool:
    """Solve matrix · d = right in place by Cholesky after scaling to a unit diagonal; False when not positive."""
    K = len(right)
    scale = np.empty(K)
    for k in range(K):
        if not matrix[k, k] > 0.0:
            return False
        scale[k] = 1.0 / np.sqrt(matrix[k, k])
    for k in range(K):
        for j in range(k + 1):
            value = matrix[k, j] * scale[k] * scale[j]
            for m in range(j):
                value -= matrix[k, m] * matrix[j, m]
            matrix[k, j] = value / matrix[j, j] if j < k else np.sqrt(max(value, 1e-15))
    for k in range(K):
        value = right[k] * scale[k]
        for m in range(k):
            value -= matrix[k, m] * right[m]
        right[k] = value / matrix[k, k]
    for k in range(K - 1, -1, -1):
        value = right[k]
        for m in range(k + 1, K):
            value -= matrix[m, k] * right[m]
        right[k] = value / matrix[k, k]
    for k in range(K):
        right[k] *= scale[k]
    return True


@kernel(error_model="numpy")
def tallied(first: Floats, mixed: Floats, fixed: Floats, price: Floats, demand: Floats, slope: Floats) -> None:
    """Write the demand (column,) of tallied rows at the prices, and its negative derivative (column, column)."""
    K = len(price)
    for k in range(K):
        for low in range(K):
            slope[k, low] = 0.0
        demand[k] = fixed[k] + first[k] / price[k]
        slope[k, k] = first[k] / (price[k] * price[k])
    for low in range(K):
        for high in range(K):
            if mixed[low, high] > 0.0:
                step = 1.0 / (price[high] - price[low])
                flow, bend = mixed[low, high] * step, mixed[low, high] * step * step
                demand[high] += flow
                demand[low] -= flow
                slope[high, high] += bend
                slope[low, low] += bend
                slope[high, low] -= bend
                slope[low, high] -= bend


@kernel(error_model="numpy")
def _assemble(
    rate: Floats, size: Floats, weight: Floats, price: Floats, mu: float, x: Floats, z: Floats,
    g: Floats, b: Floats, pair: Floats, pull: Floats, used: Floats,
) -> float:  # fmt: skip
    """Write flows g (pair, row) and forces b (1 + column, row); sum them into pair (pair,), pull and used (column,).

    Returns Σ w x |T / y − u − s p / w + z|: how far the rows' prices are from fitting their shares.
    """
    K, n = rate.shape
    T, th, force = np.zeros((K + 1, _STRIDE)), np.empty((K + 1, _STRIDE)), np.empty((K + 1, _STRIDE))
    y, S, mean, V = np.empty(_STRIDE), np.empty(_STRIDE), np.empty(_STRIDE), np.empty(_STRIDE)
    dear, flow = np.empty(_STRIDE), np.empty(_STRIDE)
    stray = 0.0
    for k in range(K):
        pull[k], used[k] = 0.0, 0.0
    for q in range(len(pair)):
        pair[q] = 0.0
    # lanes of rows side by side; k = 0 is to be idle
    for o in range(0, n, _STRIDE):
        m = min(_STRIDE, n - o)
        for j in range(m):
            y[j], mean[j], V[j] = 0.0, 0.0, 0.0
            dear[j] = size[o + j] / weight[o + j]
            force[0, j] = mu / x[0, o + j]
            th[0, j] = x[0, o + j] / z[0, o + j]
            S[j] = th[0, j]
        # what a row gets (y), the weights x / z of its shares, and their mean rate
        for k in range(1, K + 1):
            for j in range(m):
                T[k, j] = rate[k - 1, o + j]
                th[k, j] = x[k, o + j] / z[k, o + j]
            for j in range(m):
                y[j] += T[k, j] * x[k, o + j]
                flow[j] = size[o + j] * x[k, o + j]
            for j in range(m):
                S[j] += th[k, j]
                mean[j] += th[k, j] * T[k, j]
            used[k - 1] += summed(flow, m)
        for j in range(m):
            mean[j] /= S[j]
        # the spread of its rates: with y² it is the pivot of the row's own block, which is eliminated
        for k in range(K + 1):
            for j in range(m):
                away = T[k, j] - mean[j]
                V[j] += th[k, j] * away * away
        for j in range(m):
            mean[j] = y[j] * y[j]
            S[j] = 1.0 / (S[j] * (mean[j] + V[j]))
        # the force on each share: marginal worth less price, and how far complementarity is from it
        for k in range(1, K + 1):
            p = price[k - 1]
            for j in range(m):
                slope = T[k, j] / y[j] - dear[j] * p
                V[j] = weight[o + j] * x[k, o + j] * abs(slope + z[k, o + j] - z[0, o + j])
                force[k, j] = slope + mu / x[k, o + j]
            stray += summed(V, m)
        # for each two columns: the flow between them that a difference of prices brings, and that of the forces
        q = 0
        for k in range(K + 1):
            for j in range(m):
                b[k, o + j] = force[k, j]
            for l in range(k):  # noqa: E741
                for j in range(m):
                    flow[j] = mean[j]
                for h in range(K + 1):
                    if h not in (k, l):
                        for j in range(m):
                            flow[j] += th[h, j] * (T[h, j] - T[k, j]) * (T[h, j] - T[l, j])
                for j in range(m):
                    flow[j] *= th[k, j] * th[l, j] * S[j]
                for j in range(m):
                    g[q, o + j] = flow[j]
                    flow[j] *= size[o + j]
                    V[j] = flow[j] * (force[k, j] - force[l, j])
                    flow[j] *= dear[j]
                moved = summed(V, m)
                pair[q] += summed(flow, m)
                pull[k - 1] += moved
                if l > 0:
                    pull[l - 1] -= moved
                q += 1
    return stray


@kernel(error_model="numpy")
def _steer(
    size: Floats, weight: Floats, step: Floats, mu: float, x: Floats, z: Floats, g: Floats, b: Floats,
    dx: Floats, dz: Floats, part: Floats,
) -> float:  # fmt: skip
    """Write every row's own step dx, dz (1 + column, row), and how far along it its own bounds allow: part (row,).

    step (column,) is the prices'. Returns the smallest part.
    """
    K, n = len(step), x.shape[1]
    far, shortest = np.empty(_STRIDE), 1.0
    for o in range(0, n, _STRIDE):
        m = min(_STRIDE, n - o)
        for j in range(m):
            far[j] = 0.0
        for k in range(K + 1):
            for j in range(m):
                dx[k, o + j] = 0.0
        for k in range(1, K + 1):
            for j in range(m):
                b[k, o + j] -= size[o + j] / weight[o + j] * step[k - 1]
        q = 0
        for k in range(K + 1):
            for l in range(k):  # noqa: E741
                for j in range(m):
                    flow = g[q, o + j] * (b[k, o + j] - b[l, o + j])
                    dx[k, o + j] += flow
                    dx[l, o + j] -= flow
                q += 1
        for k in range(K + 1):
            for j in range(m):
                i = o + j
                dz[k, i] = (mu - z[k, i] * dx[k, i]) / x[k, i] - z[k, i]
                far[j] = max(far[j], -dx[k, i] / x[k, i], -dz[k, i] / z[k, i])
        for j in range(m):
            part[o + j] = 1.0 if far[j] < NEAR else NEAR / far[j]
            shortest = part[o + j] if part[o + j] < shortest else shortest
    return shortest


@kernel(error_model="numpy")
def _move(weight: Floats, part: Floats, x: Floats, z: Floats, dx: Floats, dz: Floats) -> float:
    """Move every row its part of its step; return Σ w x z."""
    found, gap = 0.0, np.empty(len(part))
    for k in range(len(x)):
        for i in range(len(part)):
            x[k, i] += part[i] * dx[k, i]
            z[k, i] += part[i] * dz[k, i]
            gap[i] = weight[i] * x[k, i] * z[k, i]
        found += summed(gap, len(part))
    return found


@kernel(error_model="numpy")
def _widest(price: Floats, step: Floats, mixed: Floats) -> float:
    """Return the largest part of a price, or of a difference of prices that must stay positive, that the step takes."""
    K, most = len(price), 0.0
    for k in range(K):
        most = max(most, -step[k] / price[k])
        for high in range(K):
            if mixed[k, high] > 0.0:
                most = max(most, -(step[high] - step[k]) / (price[high] - price[k]))
    return most


@kernel(error_model="numpy")
def _begin(size: Floats, weight: Floats, price: Floats, x: Floats, z: Floats) -> None:
    """Fill x and z with a start in which no row spends much more than its weight."""
    K, n = len(price), len(size)
    for i in range(n):
        x[0, i] = 1.0
        for k in range(K):
            x[k + 1, i] = 1.0 / ((K + 1) * (1.0 + size[i] * price[k] / weight[i]))
            x[0, i] -= x[k + 1, i]
        for k in range(K + 1):
            z[k, i] = 1.0 / ((K + 1) * x[k, i])


@kernel(error_model="numpy")
def _add_pairs(pair: Floats, system: Floats) -> None:
    """Add the rows' flows per price difference, of pairs (k, l < k) with idle as 0, to the prices' system."""
    q = 0
    for k in range(len(system) + 1):
        for l in range(k):  # noqa: E741
            system[k - 1, k - 1] += pair[q]
            if l > 0:
                system[l - 1, l - 1] += pair[q]
                system[k - 1, l - 1] -= pair[q]
                system[l - 1, k - 1] -= pair[q]
            q += 1


@kernel(error_model="numpy")
def _targets(omega: Floats, capacity: Floats, low: Floats, price: Floats, target: Floats) -> None:
    """Write the complementarity per μ that spare capacity is driven to (column,): omega, less at prices near 0.

    Were it omega everywhere, what light rows pay would be lost in the price that μ alone gives to a column.
    """
    for k in range(len(omega)):
        least = min(omega[k], max(LOOSE * capacity[k] * price[k], LEAST * omega[k]))
        target[k] = omega[k] if low[k] > 0.0 else least


@kernel(error_model="numpy")
def interior(
    rate: Floats, size: Floats, weight: Floats, capacity: Floats, tally: tuple[Floats, Floats, Floats],
    low: Floats, high: Floats, price: Floats, goal: float, alone: int = ALONE, most: int = MOST_STEPS,
) -> tuple[Floats, int]:  # fmt: skip
    """Return x (1 + column, row), idle first, and the steps taken; price (column,) is the start and becomes the answer.

    Prices stay between low and high (column,): the answer is that of a market where capacity is bought back at low and
    sold at high without end. Ends when complementarity, per unit of weight, is about `goal` and the excess of the
    capacities no more than that or than rounding. rate (column, row); tally: first (column,), mixed (column, column)
    and fixed (column,) of what is settled. −1 steps: it broke down.
    """
    (K, n), (first, mixed, fixed) = rate.shape, tally
    x, z, b = np.empty((K + 1, n)), np.empty((K + 1, n)), np.empty((K + 1, n))
    dx, dz, parts = np.empty((K + 1, n)), np.empty((K + 1, n)), np.empty(n)
    pairs = K * (K + 1) // 2
    g, pair, pull, used = np.empty((pairs, n)), np.empty(pairs), np.empty(K), np.empty(K)
    demand, slope, system, step = np.empty(K), np.empty((K, K)), np.empty((K, K)), np.empty(K)
    _begin(size, weight, price, x, z)  # a start inside: shares and duals above 0
    # parts of the capacities' complementarity: spare (price − low), extra (high − price)
    omega, under = np.empty(K), np.empty(K)
    floor, roof = np.empty(K), np.empty(K)  # price − low and high − price: far closer to 0 than prices can tell
    spare, extra, above, below, left = np.empty(K), np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for k in range(K):
        omega[k] = capacity[k] * (high[k] - low[k])
        floor[k], roof[k] = price[k] - low[k], high[k] - price[k]
    _targets(omega, capacity, low, price, under)
    for k in range(K):
        spare[k], extra[k] = under[k] / floor[k] / (K + 1), omega[k] / roof[k] / (K + 1)
    own = max((K + 1) * total(weight), 1e-300)
    comp, mu, patience, before = 1.0, 0.3 / (K + 1), PATIENCE, np.inf
    for taken in range(most):
        stray = _assemble(rate, size, weight, price, mu, x, z, g, b, pair, pull, used)  # what rows use
        tallied(first, mixed, fixed, price, demand, slope)
        off = 0.0
        for k in range(K):
            left[k] = capacity[k] - demand[k] - used[k]
            off = max(off, abs((left[k] - spare[k] + extra[k]) / capacity[k]))
        if comp <= goal and stray <= 10.0 * goal * own:  # near enough: then until the excess is rounding
            patience -= 1
            if off <= EXACT + 1e-3 * goal or patience < 0 or 0.5 * before < off < ROUNDING:
                return x, taken
        before = off
        for k in range(K):
            for other in range(K):
                system[k, other] = slope[k, other]  # Newton's system in the prices alone
            system[k, k] += spare[k] / floor[k] + extra[k] / roof[k]
            step[k] = pull[k] - left[k] + mu * (under[k] / floor[k] - omega[k] / roof[k])
        _add_pairs(pair, system)
        if not descend(system, step):
            return x, -1
        widest, sound = _widest(price, step, mixed), True  # prices may move: not to their bounds, not past another
        for k in range(K):
            above[k] = (mu * under[k] - spare[k] * step[k]) / floor[k] - spare[k]
            below[k] = (mu * omega[k] + extra[k] * step[k]) / roof[k] - extra[k]
            widest = max(widest, -above[k] / spare[k])
            widest = max(widest, -below[k] / extra[k])
            widest = max(widest, -step[k] / floor[k])
            widest = max(widest, step[k] / roof[k])
            sound = sound and -np.inf < above[k] < np.inf and -np.inf < below[k] < np.inf
        if not (sound and widest < np.inf):
            return x, -1
        part = 1.0 if widest < NEAR else NEAR / widest
        if comp < ENDGAME and off < ROUNDING and part < SHORT:  # only rounding asks for such steps here
            return x, taken
        shortest = _steer(size, weight, step, mu, x, z, g, b, dx, dz, parts)  # each row's direction and longest step
        together = taken >= alone and n > 0 and min(part, shortest) > SHORT  # after `alone` steps one part for all
        if together:
            part = min(part, shortest)
            for i in range(n):
                parts[i] = part
        rows = _move(weight, parts, x, z, dx, dz)
        for k in range(K):
            price[k] += part * step[k]
            floor[k] += part * step[k]
            roof[k] -= part * step[k]
            spare[k] += part * above[k]
            extra[k] += part * below[k]
        _targets(omega, capacity, low, price, under)
        columns = 0.0
        for k in range(K):
            columns += (spare[k] * floor[k] + extra[k] * roof[k]) / omega[k]
        comp = max(rows / own, columns / K)  # complementarity, of rows and of columns
        if taken < alone:
            mu = max(comp * min(0.1, 30.0 * np.sqrt(comp)), min(mu, 0.1 * (off - ROUNDING)), 0.3 * goal)
        elif together:
            mu = max(comp * (0.03 if part > 0.9 else 0.15 if part > 0.6 else 0.5), 0.3 * goal)
        else:
            mu = max(comp, 0.3 * goal)
    return x, most
