"""What each row wants at given prices, in one pass over the rates, and whose wishes a box of prices cannot change.

At prices p row i maximises w log(T·x) − s p·x over x ≥ 0, Σ x ≤ 1. Its points (0, 0) [idle] and (T_k, s p_k) have a
lower convex hull of cost over rate; the best point has the rate y at which w / y meets the hull's slope:

    on the edge from left L to right R:   y = w (T_R − T_L) / (s (p_R − p_L)),   x_R = (y − T_L) / (T_R − T_L) = 1 − x_L
    at a vertex, called here the edge from R to R:   y = T_R,   x_R = 1

The edge is written as one number, (1 + L) K + R with L = −1 for idle. A row whose edge is the same all over a box of
prices is *settled*: its demand and value are closed forms in p, and sums of them are kept in a *tally* (edge, 3):
Σ w, Σ s T_L / (T_R − T_L), Σ s.

Rates lie column by column and rows go in blocks of 256, so that every inner loop is one vector instruction after
another without branches.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.sums import summed

Edges: TypeAlias = NDArray[np.int16]

OPEN = -1  # the edge of a row that is not settled
STRIDE = 256
# Where a block's values begin in its one scratch array: an array with fixed places is seen not to overlap itself.
AL, PL, L, AR, PR, R, WALKING, RISE, RUN, ANEXT, PNEXT, NEXT = (STRIDE * place for place in range(12))
DL, DR, DOUBT, LEVER = (STRIDE * place for place in (7, 8, 9, 10))
_LN2 = 0.6931471805599453


@kernel(error_model="numpy")
def _logarithms(v: Floats, bits: Ints, m: int) -> None:
    """Replace the first m of v, all positive and normal, by their natural logarithms; bits is v seen as integers.

    v = 2^e f with f in [√½, √2): log f = 2 artanh r with r = (f − 1) / (f + 1), by its series up to r^21 (2e-17).
    """
    for j in range(m):
        e = (bits[j] - 0x3FE6A09E667F3BCD) >> 52
        bits[j] -= e << 52
        v[STRIDE + j] = e
    for j in range(m):
        r = (v[j] - 1.0) / (v[j] + 1.0)
        t = r * r
        series = 1.0 / 15 + t * (1.0 / 17 + t * (1.0 / 19 + t * (1.0 / 21)))
        series = 1.0 / 9 + t * (1.0 / 11 + t * (1.0 / 13 + t * series))
        series = 1.0 + t * (1.0 / 3 + t * (1.0 / 5 + t * (1.0 / 7 + t * series)))
        v[j] = v[STRIDE + j] * _LN2 + 2.0 * r * series


@kernel(error_model="numpy")
def walk(rate: Floats, ratio: Floats, price: Floats, o: int, m: int, f: Floats) -> None:
    """Find the edges of rows o … o + m: write AL, PL, L, AR, PR, R of f. ratio (row,) is w / s.

    The walk goes up the hull from idle for as long as w / T_R is above the slope of the next edge.
    """
    K = len(price)
    for j in range(m):
        f[AL + j], f[PL + j], f[L + j] = 0.0, 0.0, -1.0
        f[AR + j], f[PR + j], f[R + j] = rate[0, o + j], price[0], 0.0
    for k in range(1, K):
        p, name = price[k], float(k)
        for j in range(m):
            A = rate[k, o + j]
            better = A * f[PR + j] > f[AR + j] * p
            f[AR + j] = A if better else f[AR + j]
            f[PR + j] = p if better else f[PR + j]
            f[R + j] = name if better else f[R + j]
    left = 0.0
    for j in range(m):
        walking = 1.0 if ratio[j] > f[PR + j] else 0.0
        f[WALKING + j] = walking
        left += walking
    while left > 0.0:
        left = _one_edge_on(rate, ratio, price, o, m, f)


@kernel(error_model="numpy")
def _one_edge_on(rate: Floats, ratio: Floats, price: Floats, o: int, m: int, f: Floats) -> float:
    """Take walking rows to their hull's next edge, or to rest at a vertex; return how many walk on."""
    for j in range(m):
        f[RISE + j], f[RUN + j], f[NEXT + j] = 1e300, 1.0, -1.0
        f[ANEXT + j], f[PNEXT + j] = 1.0, 0.0
    for k in range(len(price)):
        p, name = price[k], float(k)
        for j in range(m):
            A = rate[k, o + j]
            dA, dp = A - f[AR + j], p - f[PR + j]
            better = (dA > 0.0) & (dp * f[RUN + j] < f[RISE + j] * dA)
            f[RISE + j] = dp if better else f[RISE + j]
            f[RUN + j] = dA if better else f[RUN + j]
            f[ANEXT + j] = A if better else f[ANEXT + j]
            f[PNEXT + j] = p if better else f[PNEXT + j]
            f[NEXT + j] = name if better else f[NEXT + j]
    left = 0.0
    for j in range(m):
        # On: the next edge's slope is below w / (s T_R). Else at rest: it is not, or there is no next edge.
        budget = ratio[j] * f[RUN + j]
        walking = f[WALKING + j] > 0.0
        on = walking & (budget > f[RISE + j] * f[AR + j])
        still = on & (budget > f[RISE + j] * f[ANEXT + j])
        f[L + j] = f[R + j] if walking else f[L + j]
        f[AL + j] = f[AR + j] if on else f[AL + j]
        f[PL + j] = f[PR + j] if on else f[PL + j]
        f[AR + j] = f[ANEXT + j] if on else f[AR + j]
        f[PR + j] = f[PNEXT + j] if on else f[PR + j]
        f[R + j] = f[NEXT + j] if on else f[R + j]
        f[WALKING + j] = 1.0 if still else 0.0
        left += f[WALKING + j]
    return left


@kernel(error_model="numpy")
def _doubts(rate: Floats, ratio: Floats, price: Floats, box: Floats, o: int, m: int, f: Floats) -> None:
    """Write DOUBT: 1 where the edge may change within price ± box, else 0. Replaces vertices by their tangents.

    Column k stays above the edge's line if p_k − (1 − θ) p_L − θ p_R ≥ d_k + |1 − θ| d_L + |θ| d_R with
    θ = (T_k − T_L) / (T_R − T_L); a vertex's line is its tangent, from (0, p_R − w / s), which moves with p_R.
    """
    for j in range(m):
        f[DL + j], f[DR + j] = 0.0, 0.0
    for k in range(len(price)):
        d, name = box[k], float(k)
        for j in range(m):
            f[DL + j] = d if f[L + j] == name else f[DL + j]
            f[DR + j] = d if f[R + j] == name else f[DR + j]
    for j in range(m):
        vertex = f[L + j] == f[R + j]
        rise, wide = f[PR + j] - f[PL + j], f[DL + j] + f[DR + j]
        budget = ratio[j] * (f[AR + j] - f[AL + j])
        inside = vertex | ((budget >= f[AL + j] * (rise + wide)) & (budget <= f[AR + j] * (rise - wide)))
        low = 0.0 if vertex else f[AL + j]
        paid = f[PR + j] - ratio[j] if vertex else f[PL + j]
        idle = low * f[PR + j] - f[AR + j] * paid >= f[AR + j] * f[DL + j] + low * f[DR + j]
        f[AL + j], f[PL + j] = low, paid
        f[DOUBT + j] = 0.0 if inside & idle else 1.0
    for k in range(len(price)):
        p, d, name = price[k], box[k], float(k)
        for j in range(m):
            A = rate[k, o + j]
            after, before, span = A - f[AL + j], f[AR + j] - A, f[AR + j] - f[AL + j]
            above = p * span - before * f[PL + j] - after * f[PR + j]
            sure = above >= d * span + abs(before) * f[DL + j] + abs(after) * f[DR + j]
            sure = sure | (f[L + j] == name) | (f[R + j] == name) | (A == 0.0)
            f[DOUBT + j] = f[DOUBT + j] if sure else 1.0


@kernel(error_model="numpy")
def settle(
    rate: Floats, size: Floats, weight: Floats, price: Floats, box: Floats, chosen: Edges, tally: Floats
) -> tuple[float, int]:
    """Add the rows whose edge is sure within price ± box to the tally (edge, 3); write edges, OPEN for the others.

    rate (column, row), every row positive somewhere; price > 0. Returns the part of the settled rows' value that does
    not depend on p, Σ w log(w (T_R − T_L) / s) − w and at vertices Σ w log T_R; and the number of open rows.
    """
    K, n = rate.shape
    f, ratio, logs = np.empty(15 * STRIDE), np.empty(STRIDE), np.empty(2 * STRIDE)
    bits = logs.view(np.int64)
    constant, left = 0.0, 0
    for o in range(0, n, STRIDE):
        m = min(STRIDE, n - o)
        s, w = size[o : o + m], weight[o : o + m]
        for j in range(m):
            ratio[j] = w[j] / s[j]
        walk(rate, ratio, price, o, m, f)
        _doubts(rate, ratio, price, box, o, m, f)
        for j in range(m):
            vertex = f[L + j] == f[R + j]
            span = f[AR + j] - f[AL + j]
            f[LEVER + j] = s[j] * f[AL + j] / span
            logs[j] = f[AR + j] if vertex else ratio[j] * span
            f[WALKING + j] = 0.0 if vertex else 1.0
        _logarithms(logs, bits, m)
        for j in range(m):
            logs[j] = (1.0 - f[DOUBT + j]) * w[j] * (logs[j] - f[WALKING + j])
        constant += summed(logs, m)
        for j in range(m):
            if f[DOUBT + j] > 0.0:
                chosen[o + j] = OPEN
                left += 1
            else:
                code = int((1.0 + f[L + j]) * K + f[R + j])
                chosen[o + j] = code
                tally[code, 0] += w[j]
                tally[code, 1] += f[LEVER + j]
                tally[code, 2] += s[j]
    return constant, left


@kernel(error_model="numpy")
def expand(
    rate: Floats, size: Floats, weight: Floats, price: Floats, chosen: Edges, share: Floats, level: Floats
) -> None:
    """Write each settled row's share of its right column (its left has the rest) and its level T·x at the prices."""
    K, n = rate.shape
    for i in range(n):
        code = chosen[i]
        if code >= 0:
            left, right = code // K - 1, code % K
            low = rate[left, i] if left >= 0 else 0.0
            paid = price[left] if left >= 0 else 0.0
            if left == right:
                share[i], level[i] = 1.0, low
            else:
                y = weight[i] * (rate[right, i] - low) / (size[i] * (price[right] - paid))
                y = min(max(y, low), rate[right, i])
                share[i], level[i] = (y - low) / (rate[right, i] - low), y


@kernel()
def listed(chosen: Edges, share: Floats, x: Floats, keep: Floats, row: Ints, column: Ints, value: Floats) -> int:
    """Write every share above 0 in order of rows and then columns; return how many.

    share (row,) is of settled rows' right columns; x (1 + column, open row), idle first, has the open rows in order;
    keep (column,) multiplies them.
    """
    K = len(x) - 1
    count, place = 0, 0
    for i in range(len(chosen)):
        code = chosen[i]
        for k in range(K):
            if code < 0:
                part = x[1 + k, place]
            elif k == code % K:
                part = share[i]
            else:
                part = 1.0 - share[i] if k == code // K - 1 else 0.0
            if part > 0.0:
                row[count], column[count], value[count] = i, k, part * keep[k]
                count += 1
        place += code < 0
    return count
