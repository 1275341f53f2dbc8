"""The largest total of few rows, from shares that keep all floors.

    maximise Σ_ik c_ki x_ki   subject to   Σ_k T_ki x_ki ≥ f_i,   Σ_k x_ki ≤ 1,   Σ_i s_i x_ki ≤ N_k,   x ≥ 0

At prices p a row takes the column that gains most, c_ki − s_i p_k, or nothing; where that is too slow for its floor,
the mixture of two columns that meets the floor and gains most.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.small_programs.simplex import STEPS, begin, enter_answer, enter_unused, mix, prices


@kernel(allocates=False)
def _mixture(T: Floats, gain: Floats, i: int, floor: float) -> tuple[int, int, float, float]:
    """Return two columns (−1 = idle), the first one's share, and the gain: the best that keeps the floor."""
    K = len(T)
    first, second, share, best = -1, -1, 0.0, -np.inf
    if floor <= 0.0:
        best = 0.0
    for k in range(K):
        if T[k, i] >= floor and gain[k] > best:
            first, second, share, best = k, -1, 1.0, gain[k]
    for k in range(K):
        if T[k, i] < floor or floor <= 0.0:
            continue
        for left in range(-1, K):
            slow = T[left, i] if left >= 0 else 0.0
            if slow >= floor:
                continue
            part = (floor - slow) / (T[k, i] - slow)
            got = part * gain[k] + ((1.0 - part) * gain[left] if left >= 0 else 0.0)
            if got > best:
                first, second, share, best = k, left, part, got
    return first, second, share, best


@kernel()
def largest(
    worth: Floats, T: Floats, size: Floats, floor: Floats, capacity: Floats, x: Floats
) -> tuple[Floats, float, float]:
    """Return x (column, row), its total, and a total that no x exceeds; inf where none is found in a fair time.

    worth, T, x (column, row), size, floor (row,), capacity (column,) above 0. x is a point that keeps every side.
    """
    K, n = worth.shape
    scale = total = gained = 0.0
    for i in range(n):
        largest = 0.0
        for k in range(K):
            largest = max(largest, abs(worth[k, i]))
        scale += largest
    scale = max(scale, 1e-300)
    demand = np.zeros(K)
    for k in range(K):
        for i in range(n):
            demand[k] += size[i] * x[k, i]
            total += worth[k, i] * x[k, i]
    gain, answer, best = np.empty(K), np.empty((K, n)), np.empty((K, n))
    found = begin(capacity, demand, total / scale, x)
    bound = np.inf
    for _ in range(STEPS):
        if enter_unused(found, prices(found), x):
            continue
        one = found.price[K]
        gained, total = _answer(worth, T, size, floor, capacity, scale, found.price, gain, answer, demand)
        paid = 0.0
        for k in range(K):
            paid += found.price[k]
        bound = min(bound, (gained + paid) * scale)
        if gained - one <= 1e-14 or not enter_answer(found, capacity, demand, total / scale, answer):
            break
    mix(found, best)
    total = 0.0
    for k in range(K):
        for i in range(n):
            total += worth[k, i] * best[k, i]
    return best, total, bound


@kernel(allocates=False)
def _answer(
    worth: Floats, T: Floats, size: Floats, floor: Floats, capacity: Floats, scale: float, price: Floats, gain: Floats,
    x: Floats, demand: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Write the best shares at these prices (column, row) and their demand (column,); return gain and total."""
    K, n = worth.shape
    for k in range(K):
        demand[k] = 0.0
        for i in range(n):
            x[k, i] = 0.0
    gained, total = 0.0, 0.0
    for i in range(n):
        for k in range(K):
            gain[k] = worth[k, i] / scale - size[i] * price[k] / capacity[k]
        first, second, share, best = _mixture(T, gain, i, floor[i])
        if first >= 0:
            x[first, i] = share
            demand[first] += size[i] * share
            total += worth[first, i] * share
        if second >= 0:
            x[second, i] = 1.0 - share
            demand[second] += size[i] * (1.0 - share)
            total += worth[second, i] * (1.0 - share)
        gained += best
    return gained, total
