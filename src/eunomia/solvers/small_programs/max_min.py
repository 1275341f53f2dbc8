"""The highest level of few rows with straight needs.

    maximise t   subject to   Σ_k T_ki x_ki ≥ α_i t + β_i,   Σ_k x_ki ≤ 1,   Σ_i s_i x_ki ≤ N_k,   x ≥ 0,   β ≤ 0

At prices p what level t costs is convex and straight between the levels at which some row changes its mixture; so the
level that gains most is where the rise of the cost passes the rise of t. That is one answer of the simplex method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.sorting import sort_into
from eunomia.solvers.small_programs.simplex import STEPS, Basis, begin, enter_answer, enter_unused, mix, prices


class _Level(NamedTuple):
    """A program: T (column, row), size and needs a t + b (row,), capacity (column,), a level that no row exceeds."""

    T: Floats
    size: Floats
    a: Floats
    b: Floats
    capacity: Floats
    top: float


@kernel(allocates=False)
def _hull(T: Floats, cost: Floats, i: int, order: Ints) -> int:
    """Write the columns on row i's lower hull over speed, slowest first; return how many. It begins at (0, 0)."""
    K, found, speed, paid = len(T), 0, 0.0, 0.0
    while True:
        best, least = -1, np.inf
        for k in range(K):
            if T[k, i] > speed:
                rise = (cost[k] - paid) / (T[k, i] - speed)
                if rise < least or (rise == least and T[k, i] > T[best, i]):
                    best, least = k, rise
        if best < 0:
            return found
        order[found] = best
        found += 1
        speed, paid = T[best, i], cost[best]


@kernel(allocates=False)
def _gainful(
    T: Floats, size: Floats, a: Floats, b: Floats, price: Floats, low: float, high: float, floats: Floats, ints: Ints
) -> float:
    """Return the level in low … high that gains most at these prices of one unit of each column.

    floats, ints (3, row * (column + 1)): scratch space.
    """
    K, n = T.shape
    at, rise, cost = floats[0], floats[1], floats[2]
    order, place, half = ints[0], ints[1], ints[2]
    found, slope = 0, 0.0
    for i in range(n):
        for k in range(K):
            cost[k] = size[i] * price[k]
        corners = _hull(T, cost, i, order)
        speed, paid, before = 0.0, 0.0, 0.0
        for c in range(corners):
            k = order[c]
            steep = a[i] * (cost[k] - paid) / (T[k, i] - speed)
            when = (speed - b[i]) / a[i]  # the level at which this edge begins
            if when <= low:
                slope += steep - before
            elif when < high and steep != before:
                at[found], rise[found] = when, steep - before
                found += 1
            speed, paid, before = T[k, i], cost[k], steep
    if slope > 1.0:
        return low
    sort_into(at, found, place, half)
    for c in range(found):
        slope += rise[place[c]]
        if slope > 1.0:
            return float(at[place[c]])
    return high


@kernel(allocates=False)
def _answer(
    T: Floats, size: Floats, a: Floats, b: Floats, price: Floats, t: float, x: Floats, demand: Floats, floats: Floats,
    ints: Ints,
) -> float:  # fmt: skip
    """Write the cheapest shares for level t (column, row) and their demand (column,); return what they cost."""
    K, n = T.shape
    order, cost = ints[0], floats[2]
    total = 0.0
    for k in range(K):
        demand[k] = 0.0
        for i in range(n):
            x[k, i] = 0.0
    for i in range(n):
        need = a[i] * t + b[i]
        if need <= 0.0:
            continue
        for k in range(K):
            cost[k] = size[i] * price[k]
        corners = _hull(T, cost, i, order)
        left, slow = -1, 0.0
        for c in range(corners):
            right = order[c]
            if T[right, i] >= need or c == corners - 1:
                share = min((need - slow) / (T[right, i] - slow), 1.0)
                x[right, i] = share
                demand[right] += size[i] * share
                total += cost[right] * share
                if left >= 0:
                    x[left, i] = 1.0 - share
                    demand[left] += size[i] * (1.0 - share)
                    total += cost[left] * (1.0 - share)
                break
            left, slow = right, T[right, i]
    return total


@kernel(allocates=False)
def _equal(
    T: Floats, size: Floats, a: Floats, b: Floats, capacity: Floats, top: float, x: Floats, demand: Floats
) -> float:
    """Write the shares and the demand when all have the same part of every column; return the level that it reaches."""
    K, n = T.shape
    level, used, there = top, 0.0, 0.0
    for i in range(n):
        used += size[i]
    for k in range(K):
        there += capacity[k]
    part = min(1.0 / used, 1.0 / there)
    for i in range(n):
        speed = 0.0
        for k in range(K):
            x[k, i] = part * capacity[k] if T[k, i] > 0.0 else 0.0
            demand[k] += size[i] * x[k, i]
            speed += T[k, i] * x[k, i]
        level = min(level, (speed - b[i]) / a[i])
    return max(level, 0.0)


@kernel(allocates=False)
def _worth(amount: Floats, value: Floats) -> float:
    """Return what the basis is worth."""
    total = 0.0
    for j in range(len(value)):
        total += max(amount[j], 0.0) * value[j]
    return total


@kernel()
def highest(
    T: Floats, size: Floats, a: Floats, b: Floats, capacity: Floats, top: float
) -> tuple[Floats, float, float, Floats]:
    """Return x (column, row), t, a level that no x exceeds, and what all of each column is worth (column,), sum 1.

    T (column, row), size, a, b (row,), capacity (column,) above 0, top a level that no row exceeds. Where no answer is
    found in a fair number of steps the bound is inf.
    """
    K, n = T.shape
    x, demand, worths = np.zeros((K, n)), np.zeros(K), np.zeros(K)
    low = _equal(T, size, a, b, capacity, top, x, demand)
    found = begin(capacity, demand, low / top, x)
    bound = _improve(found, _Level(T, size, a, b, capacity, top), low, x, demand)
    mix(found, x)
    reached = 0.0
    for j in range(K + 1):
        if found.amount[j] > 0.0:
            reached += found.amount[j] * found.value[j]
    total = 0.0
    for k in range(K):
        total += found.price[k]
    for k in range(K):
        worths[k] = found.price[k] / total if total > 0.0 else found.price[k]
    return x, reached * top, bound, worths


@kernel()
def _improve(found: Basis, of: _Level, low: float, x: Floats, demand: Floats) -> float:
    """Let answers enter the basis until none gains; return a level that no x exceeds. x and demand are overwritten."""
    T, size, a, b, capacity, top = of
    K, n, high, bound = len(T), len(size), top, np.inf
    floats, ints, each = np.empty((3, n * (K + 1))), np.empty((3, n * (K + 1)), np.int64), np.empty(K)
    for _ in range(STEPS):
        if enter_unused(found, prices(found), x):
            continue
        one, total = found.price[K], 0.0
        for k in range(K):
            each[k] = found.price[k] * top / capacity[k]
            total += found.price[k]
        t = _gainful(T, size, a, b, each, low, high, floats, ints)
        paid = _answer(T, size, a, b, each, t, x, demand, floats, ints) / top
        worth = t / top
        bound = min(bound, (worth - paid + total) * top)
        low, high = max(low, _worth(found.amount, found.value) * top), min(high, bound * (1 + 1e-12))
        if worth - paid - one <= 1e-14 or not enter_answer(found, capacity, demand, worth, x):
            break
    return bound
