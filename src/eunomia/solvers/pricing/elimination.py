"""One step of the interior point method: each row's block is eliminated, what is left is a system in (y, t).

With weights θ = x / z of its shares, a row's time weighs A = Σ θ and its level C = Σ θ (T − T̄)² + v / μ, T̄ = Σ θ T / A
the mean speed. A row adds s² (θ_k δ_kl − θ_k θ_l / A − θ_k (T_k − T̄) θ_l (T_l − T̄) / C) to the matrix of the prices.
Its products x z and v μ are driven to its own part of the common goal, `aim`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.pricing.needs import needs
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.sums import greatest, summed

_BLOCK = 64  # rows of a block, and lanes of its sums
V, NU, MU, DV, DNU, DMU, CORR = range(7)  # rows of `state`: surplus v, dual ν of time and μ of level, their directions


class Terms(NamedTuple):
    """What does not change from step to step; see `barrier`."""

    rows: NeedRows
    worth: Floats  # (column + 1, row), or (0, 0): an optional array would be compiled once more
    aim: Floats  # (row,)
    top: float


class Iterate(NamedTuple):
    """Where the method is, and each row's direction from there."""

    x: Floats  # (column + 1, row)
    dx: Floats
    fault: Floats  # (column + 1, row) of second order
    state: Floats  # (7, row)
    y: Floats  # (column + 1,) 0 last


@kernel(error_model="numpy")
def _weigh(
    rows: NeedRows, worth: Floats, at: Iterate, o: int, nb: int, z: Floats, unit: Floats, theta: Floats,
    sums: Floats,
) -> None:  # fmt: skip
    """Write z, 1 / z and θ (column, lane), and 1 / A, T̄, 1 / C, Σ T x and 1 / μ (5, lane)."""
    x, state, y = at.x, at.state, at.y
    T, K = rows.T, rows.T.shape[0] - 1
    A, mean, C, level, light = sums[0], sums[1], sums[2], sums[3], sums[4]
    size, v, nu, mu = rows.size[o : o + nb], state[V, o : o + nb], state[NU, o : o + nb], state[MU, o : o + nb]
    for j in range(nb):
        A[j] = 0.0
        mean[j] = 0.0
        level[j] = 0.0
        light[j] = 1.0 / mu[j]
        C[j] = v[j] * light[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        xk = x[k, o : o + nb]
        price = y[k]
        for j in range(nb):
            z[k, j] = nu[j] + size[j] * price - Tk[j] * mu[j]
        if worth.size:
            for j in range(nb):
                z[k, j] -= worth[k, o + j]
        for j in range(nb):
            inverse = 1.0 / z[k, j]
            weight = xk[j] * inverse
            unit[k, j] = inverse
            theta[k, j] = weight
            A[j] += weight
            mean[j] += weight * Tk[j]
            level[j] += xk[j] * Tk[j]
    for j in range(nb):
        A[j] = 1.0 / A[j]
        mean[j] *= A[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            off = Tk[j] - mean[j]
            C[j] += theta[k, j] * off * off
    for j in range(nb):
        C[j] = 1.0 / C[j]


@kernel(error_model="numpy")
def _pull(
    rows: NeedRows, o: int, nb: int, theta: Floats, sums: Floats, share: Floats, slack: Floats, slope: Floats,
    own: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write to own (2, lane) how a row's time and level prices answer share = ρ / z and slack; add demand to out.

    out (column + 1, lane).
    """
    T, K = rows.T, rows.T.shape[0] - 1
    A, mean, C = sums[0], sums[1], sums[2]
    time, level, size = own[0], own[1], rows.size[o : o + nb]
    for j in range(nb):
        time[j] = 0.0
        level[j] = -slack[j]
    for k in range(K + 1):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            time[j] += share[k, j]
            level[j] -= (Tk[j] - mean[j]) * share[k, j]
    for j in range(nb):
        time[j] *= A[j]
        level[j] *= C[j]
        out[K, j] -= slope[j] * level[j]
    for k in range(K):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            out[k, j] += size[j] * (share[k, j] - theta[k, j] * (time[j] - (Tk[j] - mean[j]) * level[j]))


@kernel(error_model="numpy")
def system(of: Terms, t: float, at: Iterate, matrix: Floats, right: Floats, sums: Floats) -> None:
    """Add up the system in (y, t) over all rows: matrix, right sides (affine, centring), Σ μ r', products, Σ μ r''."""
    rows, top, aim, x, state = of.rows, of.top, of.aim, at.x, at.state
    T, K, n = rows.T, rows.T.shape[0] - 1, rows.T.shape[1]
    z, theta, share = np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK))
    unit, of_row = np.empty((K + 1, _BLOCK)), np.empty((5, _BLOCK))
    own, need = np.empty((2, _BLOCK)), np.empty((4, _BLOCK))
    prices, demands, worths = np.zeros((K + 1, K + 1, _BLOCK)), np.zeros((2, K + 1, _BLOCK)), np.zeros((3, _BLOCK))
    # lanes of rows side by side; the sums over lanes come at the end, in a fixed order
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t, need[0], need[1], need[2])
        _weigh(rows, of.worth, at, o, nb, z, unit, theta, of_row)
        size, v, mu = rows.size[o : o + nb], state[V, o : o + nb], state[MU, o : o + nb]
        # needs: the slope and bend of the requirement in t, and how far the row is from it
        for j in range(nb):
            need[1, j] *= top
            need[3, j] = of_row[3, j] - need[0, j]  # v + rp
            worths[0, j] += mu[j] * need[1, j]
            worths[1, j] += mu[j] * v[j]
            worths[2, j] += 2.0 * top * top * mu[j] * need[2, j]
            prices[K, K, j] += need[1, j] * need[1, j] * of_row[2, j]
        for k in range(K + 1):
            xk = x[k, o : o + nb]
            for j in range(nb):
                worths[1, j] += xk[j] * z[k, j]
                share[k, j] = -xk[j]
        # what rows ask of each column: of the affine step, then of a step towards the centre
        _pull(rows, o, nb, theta, of_row, share, need[3], need[1], own, demands[0])
        for j in range(nb):
            need[3, j] = -of_row[4, j] * aim[o + j]
        for k in range(K + 1):
            for j in range(nb):
                unit[k, j] *= aim[o + j]
        _pull(rows, o, nb, theta, of_row, unit, need[3], need[1], own, demands[1])
        # how their demand changes with prices and t: diagonal, then the rank-2 part of each row
        for k in range(K):
            Tk = T[k, o : o + nb]
            for j in range(nb):
                weight = size[j] * theta[k, j]
                prices[k, k, j] += weight * size[j]
                z[k, j] = weight * of_row[0, j]
                theta[k, j] = weight
                share[k, j] = weight * (Tk[j] - of_row[1, j])
                own[1, j] = share[k, j] * of_row[2, j]
                prices[k, K, j] += own[1, j] * need[1, j]
            for c in range(k + 1):
                for j in range(nb):
                    prices[k, c, j] -= z[k, j] * theta[c, j] + own[1, j] * share[c, j]
    # sums over the lanes; prices and t enter with opposite signs
    lanes = min(_BLOCK, n)
    matrix[K, K] += summed(prices[K, K], lanes)
    for k in range(3):
        sums[k] += summed(worths[k], lanes)
    for k in range(K + 1):
        right[0, k] += summed(demands[0, k], lanes)
        right[1, k] += summed(demands[1, k], lanes)
    for k in range(K):
        level = summed(prices[k, K], lanes)
        matrix[k, K] -= level
        matrix[K, k] += level
        for c in range(k + 1):
            matrix[k, c] += summed(prices[k, c], lanes)


@kernel(error_model="numpy")
def direction(
    of: Terms, t: float, at: Iterate, step: Floats, centre: float, corrected: bool, right: Floats
) -> tuple[float, float]:
    """Write every row's direction; return the longest primal and dual steps.

    Of the predictor, right gathers what its second-order fault asks of the system.
    """
    rows, top, aim, x, dx, fault, state = of.rows, of.top, of.aim, at.x, at.dx, at.fault, at.state
    T, K, n = rows.T, rows.T.shape[0] - 1, rows.T.shape[1]
    z, theta, share = np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK)), np.empty((K + 1, _BLOCK))
    unit, of_row = np.empty((K + 1, _BLOCK)), np.empty((5, _BLOCK))
    own, need = np.empty((2, _BLOCK)), np.empty((4, _BLOCK))
    demands, unused = np.zeros((K + 1, _BLOCK)), np.zeros((K + 1, _BLOCK))
    back, dual = np.ones(_BLOCK), np.ones(_BLOCK)  # reciprocals of the steps
    # lanes of rows side by side, as in `system`
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t, need[0], need[1], need[2])
        _weigh(rows, of.worth, at, o, nb, z, unit, theta, of_row)
        size, v, corr, goal = rows.size[o : o + nb], state[V, o : o + nb], state[CORR, o : o + nb], aim[o : o + nb]
        dv, dnu, dmu = state[DV, o : o + nb], state[DNU, o : o + nb], state[DMU, o : o + nb]
        # what each row's equations ask for, with the target of the centre and the predictor's second order
        for j in range(nb):
            need[1, j] *= top
            rho = centre * goal[j] - (corr[j] if corrected else 0.0)
            need[3, j] = of_row[3, j] - need[0, j] - rho * of_row[4, j]
        for k in range(K + 1):
            xk = x[k, o : o + nb]
            faultk = fault[k, o : o + nb]
            for j in range(nb):
                rho = centre * goal[j] - (faultk[j] if corrected else 0.0)
                share[k, j] = rho * unit[k, j] - xk[j]
        # what follows for the row's own unknowns with prices and t held
        _pull(rows, o, nb, theta, of_row, share, need[3], need[1], own, unused)
        # then what the steps of prices and t add: the row's need, time and slack
        for j in range(nb):
            need[2, j] = need[1, j] * step[K]
            need[0, j] = 0.0
        for k in range(K):
            Tk = T[k, o : o + nb]
            for j in range(nb):
                weight = size[j] * theta[k, j] * step[k]
                need[0, j] += weight
                need[2, j] += weight * (Tk[j] - of_row[1, j])
        for j in range(nb):
            rise = own[1, j] + need[2, j] * of_row[2, j]
            part = rise * of_row[4, j]
            dmu[j] = rise
            dnu[j] = own[0, j] - need[0, j] * of_row[0, j] + of_row[1, j] * rise
            rho = centre * goal[j] - (corr[j] if corrected else 0.0)
            dv[j] = rho * of_row[4, j] - v[j] * (1.0 + part)
            back[j] = max(back[j], -dv[j] / v[j])
            dual[j] = max(dual[j], -part)
        # then its shares, and how far both steps may go
        for k in range(K + 1):
            Tk = T[k, o : o + nb]
            xk = x[k, o : o + nb]
            dxk = dx[k, o : o + nb]
            faultk = fault[k, o : o + nb]
            price = step[k] if k < K else 0.0
            for j in range(nb):
                rise = dnu[j] + size[j] * price - Tk[j] * dmu[j]
                move = share[k, j] - theta[k, j] * rise
                dxk[j] = move
                back[j] = max(back[j], -move / xk[j])
                dual[j] = max(dual[j], -rise * unit[k, j])
                z[k, j] = move * rise
            # of the predictor: products of changes, which the corrector has to undo
            if not corrected:
                for j in range(nb):
                    faultk[j] = z[k, j]
                    share[k, j] = -z[k, j] * unit[k, j]
        if not corrected:
            for j in range(nb):
                corr[j] = dv[j] * dmu[j]
                need[3, j] = corr[j] * of_row[4, j]
            _pull(rows, o, nb, theta, of_row, share, need[3], need[1], own, demands)
    lanes = min(_BLOCK, n)
    if not corrected:
        for k in range(K + 1):
            right[k] += summed(demands[k], lanes)
    return 1.0 / greatest(back, lanes), 1.0 / greatest(dual, lanes)
