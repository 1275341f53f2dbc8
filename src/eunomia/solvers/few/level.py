"""The highest level of few rows with straight needs.

    maximise t   subject to   Σ_k T_ki x_ki ≥ α_i t + β_i,   Σ_k x_ki ≤ 1,   Σ_i s_i x_ki ≤ N_k,   x ≥ 0,   β ≤ 0

At prices p what level t costs is convex and straight between the levels at which some row changes its mixture; so the
level that gains most is where the rise of the cost passes the rise of t. That is one answer of the simplex method.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.few.simplex import STEPS, begin, cheap, enter, prices


@njit(cache=True)
def _hull(T: Floats, cost: Floats, i: int, order: Ints) -> int:
    """Write the columns on row i's lower hull over speed, slowest first; return how many. It begins at (0, 0)."""
    K, found, speed, paid = len(cost), 0, 0.0, 0.0
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


@njit(cache=True)
def _gainful(T: Floats, size: Floats, a: Floats, b: Floats, price: Floats, top: float) -> float:
    """Return the level, at most top, that gains most at these prices of one unit of each column."""
    K, n = T.shape
    at, rise = np.empty(n * (K + 1)), np.empty(n * (K + 1))
    order, cost = np.empty(K, dtype=np.int64), np.empty(K)
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
            if steep != before:
                at[found], rise[found] = max(when, 0.0), steep - before
                found += 1
            speed, paid, before = T[k, i], cost[k], steep
    sorted_places = np.argsort(at[:found])
    for place in sorted_places:
        slope += rise[place]
        if slope > 1.0:
            return min(at[place], top)
    return top


@njit(cache=True)
def _answer(T: Floats, size: Floats, a: Floats, b: Floats, price: Floats, t: float, x: Floats, demand: Floats) -> float:
    """Write the cheapest shares for level t (column, row) and their demand (column,); return what they cost."""
    K, n = T.shape
    order, cost = np.empty(K, dtype=np.int64), np.empty(K)
    x[:], demand[:] = 0.0, 0.0
    total = 0.0
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


@njit(cache=True)
def highest(
    T: Floats, size: Floats, a: Floats, b: Floats, capacity: Floats, top: float
) -> tuple[Floats, float, float, Floats]:
    """Return x (column, row), t, a level that no x exceeds, and what all of each column is worth (column,), sum 1.

    T (column, row), size, a, b (row,), capacity (column,) above 0, top a level that no row exceeds. Where no answer is
    found in a fair number of steps the bound is inf.
    """
    K, n = T.shape
    x, demand = np.zeros((K, n)), np.zeros(K)
    inverse, amount, value = begin(capacity, demand, 0.0)
    members = np.zeros((K + 1, K, n))  # the answers in the basis; 0 for unused capacity
    price, each, column = np.zeros(K), np.zeros(K), np.zeros(K + 1)
    bound = np.inf
    for _ in range(STEPS):
        spare = cheap(inverse, value)
        if spare >= 0:
            column[:] = 0.0
            column[spare] = 1.0
            out = enter(inverse, amount, value, column, 0.0)
            if out >= 0:
                members[out] = 0.0
                continue
        one = prices(inverse, value, price)
        for k in range(K):
            each[k] = price[k] * top / capacity[k]
        t = _gainful(T, size, a, b, each, top)
        paid = _answer(T, size, a, b, each, t, x, demand) / top
        worth = t / top
        total = 0.0
        for k in range(K):
            total += price[k]
        bound = min(bound, (worth - paid + total) * top)
        if worth - paid - one <= 1e-14:
            break
        for k in range(K):
            column[k] = demand[k] / capacity[k]
        column[K] = 1.0
        out = enter(inverse, amount, value, column, worth)
        if out < 0:
            break
        members[out] = x
    x[:] = 0.0
    reached = 0.0
    for j in range(K + 1):
        if amount[j] > 0.0:
            x += amount[j] * members[j]
            reached += amount[j] * value[j]
    total = price.sum()
    return x, reached * top, bound, price / total if total > 0 else price
