"""A simplex method whose columns are answers of all rows to prices.

    maximise Σ_j v_j λ_j   subject to   Σ_j d_jk λ_j ≤ N_k,   Σ_j λ_j = 1,   λ ≥ 0

An answer j is worth v_j and uses d_jk of column k. Nobody lists the answers: the one that gains most at the prices of
the basis is asked for, and enters. The basis has one member for each column of capacity and one more, so a step costs
next to nothing, and where no answer gains, the prices are the proof (column generation: G. B. Dantzig and P. Wolfe,
"Decomposition Principle for Linear Programs", Operations Research 8(1), 1960).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Floats

STEPS = 400  # more than any small problem takes; beyond it the general solver is asked
_STEEP = 1e-11  # entry of the entering column that may leave, relative to its largest


@njit(cache=True)
def begin(capacity: Floats, demand: Floats, worth: float) -> tuple[Floats, Floats, Floats]:
    """Return inverse of the basis, its members' amounts and worths: unused capacity, and one answer that fits.

    The basis matrix has a row for each column of capacity, in parts of it, and one for Σ λ = 1.
    """
    K = len(capacity)
    inverse = np.eye(K + 1)
    amount, value = np.ones(K + 1), np.zeros(K + 1)
    for k in range(K):
        inverse[k, K] = -demand[k] / capacity[k]
        amount[k] = 1.0 - demand[k] / capacity[k]
    value[K] = worth
    return inverse, amount, value


@njit(cache=True)
def prices(inverse: Floats, value: Floats, price: Floats) -> float:
    """Write what all of each column is worth at the basis (column,), at least 0; return what one answer is worth."""
    size = len(value)
    for k in range(size - 1):
        total = 0.0
        for i in range(size):
            total += value[i] * inverse[i, k]
        price[k] = max(total, 0.0)
    one = 0.0
    for i in range(size):
        one += value[i] * inverse[i, size - 1]
    return one


@njit(cache=True)
def cheap(inverse: Floats, value: Floats) -> int:
    """Return the column whose unused capacity should come back into the basis, -1 = none: its price is below 0."""
    size, found, least = len(value), -1, -1e-13
    for k in range(size - 1):
        total, scale = 0.0, 0.0
        for i in range(size):
            term = value[i] * inverse[i, k]
            total += term
            scale += abs(term)
        if total < least * max(scale, 1e-300) and total < 0.0:
            found, least = k, total / max(scale, 1e-300)
    return found


@njit(cache=True)
def enter(inverse: Floats, amount: Floats, value: Floats, column: Floats, worth: float) -> int:
    """Put an answer, or unused capacity, into the basis; return whose place it takes, -1 = nobody's.

    column (row,): its parts of all capacity, and 1 for an answer or 0 for unused capacity.
    """
    size = len(value)
    step = np.zeros(size)
    largest = 0.0
    for i in range(size):
        for j in range(size):
            step[i] += inverse[i, j] * column[j]
        largest = max(largest, abs(step[i]))
    out, least = -1, np.inf
    for i in range(size):
        if step[i] > _STEEP * largest:
            ratio = max(amount[i], 0.0) / step[i]
            if ratio < least or (ratio == least and step[i] > step[out]):
                out, least = i, ratio
    if out < 0:
        return -1
    for i in range(size):
        amount[i] = least if i == out else amount[i] - least * step[i]
    pivot = step[out]
    for j in range(size):
        inverse[out, j] /= pivot
    for i in range(size):
        if i != out:
            for j in range(size):
                inverse[i, j] -= step[i] * inverse[out, j]
    value[out] = worth
    return out
