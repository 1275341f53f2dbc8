"""What rows do at given prices, and which of them do the same at all prices of a box.

The cheapest way to a level r is an edge (L, R) of the lower convex hull of the points (speed, price) of the columns and
of the free alternative (f, 0), T_L < r ≤ T_R: x_R = (r − T_L) / (T_R − T_L), x_L = 1 − x_R. While prices stay in a box
and t in an interval, an edge is certain if no other point can come below it and r stays between its ends; demand of a
row whose edge is certain is a known function of t alone. Rows lie in memory one column after the other and are taken
in blocks without branches.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.pricing.needs import HUGE, needs
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.sums import summed

_BLOCK = 256
FREE = -1  # code of the free alternative


@kernel(error_model="numpy")
def add_edges(
    left: Floats, right: Floats, up: Floats, down: Floats, slope: Floats, bend: Floats, nb: int, lanes: Floats
) -> None:
    """Add to lanes (order, column, lane) what is used of each column, and its derivatives in the level.

    left, right: codes of each lane's ends; up, down: what it uses of the right and of the left; slope, bend: of up.
    """
    for k in range(lanes.shape[1]):
        mark = float(k)
        for j in range(nb):
            fast, slow = right[j] == mark, left[j] == mark
            lanes[0, k, j] += (up[j] if fast else 0.0) + (down[j] if slow else 0.0)
            lanes[1, k, j] += (slope[j] if fast else 0.0) - (slope[j] if slow else 0.0)
        if lanes.shape[0] > 2:
            for j in range(nb):
                fast, slow = right[j] == mark, left[j] == mark
                lanes[2, k, j] += (bend[j] if fast else 0.0) - (bend[j] if slow else 0.0)


@kernel(error_model="numpy")
def join(lanes: Floats, rows: int, demand: Floats) -> None:
    """Add the sums of the lanes (order, column, lane) to demand (order, column)."""
    count = min(rows, _BLOCK)
    for d in range(lanes.shape[0]):
        for k in range(lanes.shape[1]):
            demand[d, k] += summed(lanes[d, k], count)


@kernel(error_model="numpy")
def walk(T: Floats, base: Floats, o: int, nb: int, price: Floats, need: Floats, L: Floats, R: Floats) -> None:
    """Write the edge of each lane at the given prices: (speed, price, code) of its ends to L and R, (3, lane) each."""
    K, f = T.shape[0], base[o : o + nb]
    for j in range(nb):
        L[0, j] = f[j]
        L[1, j] = 0.0
        L[2, j] = -1.0
        R[0, j] = f[j]
        R[1, j] = HUGE
        R[2, j] = -2.0
    for _ in range(K):
        for k in range(K):
            Tk, p, mark = T[k, o : o + nb], price[k], float(k)
            for j in range(nb):
                A = Tk[j]
                closer = (p - L[1, j]) * (R[0, j] - L[0, j]) < (R[1, j] - L[1, j]) * (A - L[0, j])
                take = (L[0, j] < A) & closer
                R[0, j] = A if take else R[0, j]
                R[1, j] = p if take else R[1, j]
                R[2, j] = mark if take else R[2, j]
        short = 0.0
        for j in range(nb):
            on = (R[0, j] < need[j]) & (R[2, j] >= 0.0)
            short += 1.0 if on else 0.0
            L[0, j] = R[0, j] if on else L[0, j]
            L[1, j] = R[1, j] if on else L[1, j]
            L[2, j] = R[2, j] if on else L[2, j]
            R[1, j] = HUGE if on else R[1, j]
            R[2, j] = -2.0 if on else R[2, j]
        if short == 0.0:
            break


@kernel(error_model="numpy")
def doubts(
    T: Floats,
    base: Floats,
    o: int,
    nb: int,
    price: Floats,
    half: Floats,
    least: Floats,
    most: Floats,
    L: Floats,
    R: Floats,
    off: Floats,
    bad: Floats,
) -> None:
    """Write 1 to bad (lane,) where the edge may change: by prices ± half, or by needs between least and most.

    T (priced, row), base (row,); L, R as `walk` writes them; off (2, lane) is overwritten by how much the ends' prices
    may differ.
    """
    K = T.shape[0]
    for j in range(nb):
        off[0, j] = 0.0
        off[1, j] = 0.0
    for k in range(K):
        for j in range(nb):
            off[0, j] = half[k] if L[2, j] == k else off[0, j]
            off[1, j] = half[k] if R[2, j] == k else off[1, j]
    for j in range(nb):
        ahead, span = base[o + j] - L[0, j], R[0, j] - L[0, j]
        rest = span - ahead
        worse = -rest * L[1, j] - ahead * R[1, j] < abs(rest) * off[0, j] + abs(ahead) * off[1, j]
        out = (least[j] < L[0, j]) | (most[j] > R[0, j]) | (R[2, j] < 0.0)
        bad[j] = 1.0 if out | ((L[2, j] >= 0.0) & worse) else 0.0
    for k in range(K):
        Tk = T[k, o : o + nb]
        for j in range(nb):
            ahead, span = Tk[j] - L[0, j], R[0, j] - L[0, j]
            rest = span - ahead
            above = price[k] * span - rest * L[1, j] - ahead * R[1, j]
            worse = above < half[k] * span + abs(rest) * off[0, j] + abs(ahead) * off[1, j]
            bad[j] = 1.0 if worse & (L[2, j] != k) & (R[2, j] != k) else bad[j]


@kernel(error_model="numpy")
def classify(
    rows: NeedRows, low: Floats, high: Floats, t: Floats, left: Array, right: Array, demand: Floats, unsure: Ints
) -> int:
    """Settle the rows whose edge is certain while prices are between low and high, and the level is one of t.

    low, high (column,); t = (least, middle, most). Writes codes to left, right (row,), FREE of the free alternative and
    of both ends of a row that needs no price, adds to demand (3, column) the coefficients of (t − middle)^0, 1, 2, and
    lists the other rows in unsure; returns their number.
    """
    T, (K, n) = rows.T, rows.T.shape
    need, slope, bend = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    least, most = np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, off, bad = np.empty((3, _BLOCK)), np.empty((3, _BLOCK)), np.empty((2, _BLOCK)), np.empty(_BLOCK)
    lanes = np.zeros((2 if rows.b is None else 3, K, _BLOCK))
    price, half = 0.5 * (low + high), 0.5 * (high - low)
    found = 0
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        size, lefts, rights = rows.size[o : o + nb], left[o : o + nb], right[o : o + nb]
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t[0], least, slope, bend)
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t[2], most, slope, bend)
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t[1], need, slope, bend)
        f = rows.base[o : o + nb]
        walk(T, rows.base, o, nb, price, need, L, R)
        doubts(T, rows.base, o, nb, price, half, least, most, L, R, off, bad)
        for j in range(nb):
            idle = most[j] <= f[j]
            bad[j] = 0.0 if idle else bad[j]
            R[2, j] = -1.0 if idle else R[2, j]
            L[2, j] = -1.0 if idle else L[2, j]
            settled = (bad[j] == 0.0) & (not idle)
            gain = size[j] / (R[0, j] - L[0, j]) if settled else 0.0
            off[0, j] = (need[j] - L[0, j]) * gain
            off[1, j] = size[j] - off[0, j] if settled else 0.0
            slope[j] *= gain
            bend[j] *= gain
        add_edges(L[2], R[2], off[0], off[1], slope, bend, nb, lanes)
        for j in range(nb):
            lefts[j] = np.int8(L[2, j])
            rights[j] = np.int8(R[2, j])
            unsure[found] = o + j
            found += int(bad[j])
    join(lanes, n, demand)
    return found
