"""One step of the interior point method: each row's block is eliminated, what is left is a system in (y, t).

With weights θ = x / z of its shares, a row's time weighs A = Σ θ and its level C = Σ θ (T − T̄)² + v / μ, T̄ = Σ θ T / A
the mean speed. A row adds s² (θ_k δ_kl − θ_k θ_l / A − θ_k (T_k − T̄) θ_l (T_l − T̄) / C) to the matrix of the prices.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.prices.needs import Curve, needs

_BLOCK = 128
V, NU, MU, DV, DNU, DMU, CORR = range(7)  # rows of `state`: surplus v, dual ν of time and μ of level, their directions


@kernel(fastmath=True, error_model="numpy")
def _weigh(
    T: Floats, s: Floats, x: Floats, state: Floats, y: Floats, o: int, nb: int, z: Floats, theta: Floats, sums: Floats
) -> None:
    """Write z and θ (column, lane), and A, T̄, C and Σ T x (4, lane)."""
    K = T.shape[0] - 1
    A, mean, C, level = sums[0], sums[1], sums[2], sums[3]
    size, v, nu, mu = s[o : o + nb], state[V, o : o + nb], state[NU, o : o + nb], state[MU, o : o + nb]
    for j in range(nb):
        A[j] = 0.0
        mean[j] = 0.0
        level[j] = 0.0
        C[j] = v[j] / mu[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        xk = x[k, o : o + nb]
        price = y[k]
        for j in range(nb):
            worth = nu[j] + size[j] * price - Tk[j] * mu[j]
            z[k, j] = worth
            theta[k, j] = xk[j] / worth
            A[j] += theta[k, j]
            mean[j] += theta[k, j] * Tk[j]
            level[j] += xk[j] * Tk[j]
    for j in range(nb):
        mean[j] /= A[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            off = Tk[j] - mean[j]
            C[j] += theta[k, j] * off * off


@kernel(fastmath=True, error_model="numpy")
def _pull(
    T: Floats,
    s: Floats,
    o: int,
    nb: int,
    theta: Floats,
    sums: Floats,
    share: Floats,
    slack: Floats,
    slope: Floats,
    own: Floats,
    out: Floats,
) -> None:
    """Write to own (2, lane) how a row's time and level prices answer share = ρ / z and slack; add demand to out."""
    K = T.shape[0] - 1
    A, mean, C = sums[0], sums[1], sums[2]
    time, level, size = own[0], own[1], s[o : o + nb]
    for j in range(nb):
        time[j] = 0.0
        level[j] = -slack[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            time[j] += share[k, j]
            level[j] -= (Tk[j] - mean[j]) * share[k, j]
    total = 0.0
    for j in range(nb):
        time[j] /= A[j]
        level[j] /= C[j]
        total += slope[j] * level[j]
    out[K] -= total
    for k in range(K):
        Tk = T[k, o : o + nb]
        total = 0.0
        for j in range(nb):
            total += size[j] * (share[k, j] - theta[k, j] * (time[j] - (Tk[j] - mean[j]) * level[j]))
        out[k] += total


@kernel(fastmath=True, error_model="numpy")
def system(
    T: Floats,
    s: Floats,
    a: Floats,
    b: Curve,
    e: Curve,
    cap: Curve,
    top: float,
    t: float,
    x: Floats,
    state: Floats,
    y: Floats,
    matrix: Floats,
    right: Floats,
    worth: Floats,
) -> None:
    """Add up the system in (y, t) over all rows: matrix, right sides (affine, centring), worth = [Σ μ r', products]."""
    K, n = T.shape[0] - 1, T.shape[1]
    z, theta, share = np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK))
    sums, own, need = np.empty((4, _BLOCK)), np.empty((2, _BLOCK)), np.empty((4, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs(a, b, e, cap, o, nb, t, need[0], need[1], need[2])
        _weigh(T, s, x, state, y, o, nb, z, theta, sums)
        size, v, mu = s[o : o + nb], state[V, o : o + nb], state[MU, o : o + nb]
        total, level, curved, product = 0.0, 0.0, 0.0, 0.0
        for j in range(nb):
            need[1, j] *= top
            need[3, j] = sums[3, j] - need[0, j]  # v + rp
            total += mu[j] * need[1, j]
            curved += 2.0 * top * top * mu[j] * need[2, j]
            level += need[1, j] * need[1, j] / sums[2, j]
            product += mu[j] * v[j]
        worth[0] += total
        worth[2] += curved
        matrix[K, K] += level
        for k in range(K + 1):
            xk = x[k, o : o + nb]
            for j in range(nb):
                product += xk[j] * z[k, j]
                share[k, j] = -xk[j]
        worth[1] += product
        _pull(T, s, o, nb, theta, sums, share, need[3], need[1], own, right[0])
        for j in range(nb):
            need[3, j] = -1.0 / mu[j]
        for k in range(K + 1):
            for j in range(nb):
                share[k, j] = 1.0 / z[k, j]
        _pull(T, s, o, nb, theta, sums, share, need[3], need[1], own, right[1])
        for k in range(K):
            Tk = T[k, o : o + nb]
            total, level = 0.0, 0.0
            for j in range(nb):
                weight = size[j] * theta[k, j]
                total += weight * size[j]
                z[k, j] = weight / sums[0, j]
                theta[k, j] = weight
                share[k, j] = weight * (Tk[j] - sums[1, j])
                level += share[k, j] * need[1, j] / sums[2, j]
            matrix[k, k] += total
            matrix[k, K] -= level
            matrix[K, k] += level
            for j in range(nb):
                own[1, j] = share[k, j] / sums[2, j]
            for c in range(k + 1):
                total = 0.0
                for j in range(nb):
                    total += z[k, j] * theta[c, j] + own[1, j] * share[c, j]
                matrix[k, c] -= total


@kernel(fastmath=True, error_model="numpy")
def direction(
    T: Floats,
    s: Floats,
    a: Floats,
    b: Curve,
    e: Curve,
    cap: Curve,
    top: float,
    t: float,
    x: Floats,
    state: Floats,
    y: Floats,
    step: Floats,
    centre: float,
    corrected: bool,
    dx: Floats,
    fault: Floats,
    right: Floats,
) -> tuple[float, float]:
    """Write every row's direction; return the longest primal and dual steps.

    Of the predictor, right gathers what its second-order fault (column, row) asks of the system.
    """
    K, n = T.shape[0] - 1, T.shape[1]
    z, theta, share = np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK))
    sums, own, need = np.empty((4, _BLOCK)), np.empty((2, _BLOCK)), np.empty((4, _BLOCK))
    unused = np.zeros(K + 1)
    back, dual = 1.0, 1.0  # reciprocals of the steps
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs(a, b, e, cap, o, nb, t, need[0], need[1], need[2])
        _weigh(T, s, x, state, y, o, nb, z, theta, sums)
        size, v, mu, corr = s[o : o + nb], state[V, o : o + nb], state[MU, o : o + nb], state[CORR, o : o + nb]
        dv, dnu, dmu = state[DV, o : o + nb], state[DNU, o : o + nb], state[DMU, o : o + nb]
        for j in range(nb):
            need[1, j] *= top
            rho = centre - (corr[j] if corrected else 0.0)
            need[3, j] = sums[3, j] - need[0, j] - rho / mu[j]
        for k in range(K + 1):
            xk = x[k, o : o + nb]
            faultk = fault[k, o : o + nb]
            for j in range(nb):
                rho = centre - (faultk[j] if corrected else 0.0)
                share[k, j] = rho / z[k, j] - xk[j]
        _pull(T, s, o, nb, theta, sums, share, need[3], need[1], own, unused)
        for j in range(nb):
            need[2, j] = need[1, j] * step[K]
            need[0, j] = 0.0
        for k in range(K):
            Tk = T[k, o : o + nb]
            for j in range(nb):
                weight = size[j] * theta[k, j] * step[k]
                need[0, j] += weight
                need[2, j] += weight * (Tk[j] - sums[1, j])
        for j in range(nb):
            rise = own[1, j] + need[2, j] / sums[2, j]
            dmu[j] = rise
            dnu[j] = own[0, j] - need[0, j] / sums[0, j] + sums[1, j] * rise
            rho = centre - (corr[j] if corrected else 0.0)
            dv[j] = rho / mu[j] - v[j] * (1.0 + rise / mu[j])
            back = max(back, -dv[j] / v[j])
            dual = max(dual, -rise / mu[j])
        for k in range(K + 1):
            Tk = T[k, o : o + nb]
            xk = x[k, o : o + nb]
            dxk = dx[k, o : o + nb]
            faultk = fault[k, o : o + nb]
            price = step[k] if k < K else 0.0
            for j in range(nb):
                worth = dnu[j] + size[j] * price - Tk[j] * dmu[j]
                move = share[k, j] - theta[k, j] * worth
                dxk[j] = move
                back = max(back, -move / xk[j])
                dual = max(dual, -worth / z[k, j])
                if not corrected:
                    faultk[j] = move * worth
                    share[k, j] = -move * worth / z[k, j]
        if not corrected:
            for j in range(nb):
                corr[j] = dv[j] * dmu[j]
                need[3, j] = corr[j] / mu[j]
            _pull(T, s, o, nb, theta, sums, share, need[3], need[1], own, right)
    return 1.0 / back, 1.0 / dual
