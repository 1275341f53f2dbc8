"""A simplex method whose columns are answers of all rows to prices.

    maximise Σ_j v_j λ_j   subject to   Σ_j d_jk λ_j ≤ N_k,   Σ_j λ_j = 1,   λ ≥ 0

An answer j is worth v_j and uses d_jk of column k. Nobody lists the answers: the one that gains most at the prices of
the basis is asked for, and enters. The basis has one member for each column of capacity and one more, so a step costs
next to nothing, and where no answer gains, the prices are the proof (column generation: G. B. Dantzig and P. Wolfe,
"Decomposition Principle for Linear Programs", Operations Research 8(1), 1960).
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats

STEPS = 400  # more than any small problem takes; beyond it the general solver is asked
_LOOSE = 1e-13  # of all capacity: what a member may lack when another leaves (P. M. J. Harris, 1973)
_STEEP = 1e-9  # entry of the entering column that may leave, relative to its largest
_REFINED = 3  # times that an answer of the inverse is held against the basis: answers may be much alike
_ROUNDING = 1e-14  # of the largest worth
_SINGULAR = 1e-14  # pivot below which a basis has no inverse worth having


@kernel()
def begin(capacity: Floats, demand: Floats, worth: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return basis, its inverse, its members' amounts and worths: unused capacity, and one answer that fits.

    The basis has a row for each column of capacity, in parts of it, and one for Σ λ = 1; all sides are 1.
    """
    K = len(capacity)
    basis, inverse = np.eye(K + 1), np.eye(K + 1)
    amount, value = np.ones(K + 1), np.zeros(K + 1)
    basis[:K, K] = demand / capacity
    value[K] = worth
    invert(basis, inverse, amount)
    return basis, inverse, amount, value


@kernel()
def invert(basis: Floats, inverse: Floats, amount: Floats) -> bool:
    """Write the inverse of the basis and the amounts that reach all sides; return whether there is one."""
    size = len(basis)
    work = basis.copy()
    inverse[:] = np.eye(size)
    for c in range(size):
        best = c + np.argmax(np.abs(work[c:, c]))
        if abs(work[best, c]) < _SINGULAR:
            return False
        for j in range(size):
            work[c, j], work[best, j] = work[best, j], work[c, j]
            inverse[c, j], inverse[best, j] = inverse[best, j], inverse[c, j]
        pivot = work[c, c]
        work[c] /= pivot
        inverse[c] /= pivot
        for i in range(size):
            if i != c and work[i, c] != 0.0:
                times = work[i, c]
                work[i] -= times * work[c]
                inverse[i] -= times * inverse[c]
    amount[:] = 0.0
    for _ in range(_REFINED):
        left = np.ones(size)
        for i in range(size):
            for j in range(size):
                left[i] -= basis[i, j] * amount[j]
        for i in range(size):
            for j in range(size):
                amount[i] += inverse[i, j] * left[j]
    return True


@kernel()
def prices(basis: Floats, inverse: Floats, value: Floats, price: Floats) -> int:
    """Write what each side of the basis is worth (row,), the last one that of one answer.

    Returns the column whose unused capacity should come back into the basis, for its price is below 0; -1 = none.
    """
    size = len(value)
    price[:] = 0.0
    for _ in range(_REFINED):
        left = value.copy()
        for j in range(size):
            for i in range(size):
                left[j] -= price[i] * basis[i, j]
        for i in range(size):
            for j in range(size):
                price[i] += left[j] * inverse[j, i]
    found, least, scale = -1, 0.0, np.abs(value).max()
    for k in range(size - 1):
        if price[k] < min(least, -_ROUNDING * scale):
            found, least = k, price[k]
        price[k] = max(price[k], 0.0)
    return found


@kernel()
def enter(basis: Floats, inverse: Floats, amount: Floats, value: Floats, column: Floats, worth: float) -> int:
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
    least = np.inf
    for i in range(size):
        if step[i] > _STEEP * largest:
            least = min(least, (max(amount[i], 0.0) + _LOOSE) / step[i])
    out = -1
    for i in range(size):  # of those that are used up first, the one that leaves the best basis
        if step[i] > _STEEP * largest and max(amount[i], 0.0) <= least * step[i] and (out < 0 or step[i] > step[out]):
            out = i
    if out < 0:
        return -1
    before = basis[:, out].copy()
    basis[:, out] = column
    if not invert(basis, inverse, amount):
        basis[:, out] = before
        invert(basis, inverse, amount)
        return -1
    value[out] = worth
    return out
