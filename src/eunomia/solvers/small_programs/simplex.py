"""A simplex method whose columns are answers of all rows to prices.

    maximise Σ_j v_j λ_j   subject to   Σ_j d_jk λ_j ≤ N_k,   Σ_j λ_j = 1,   λ ≥ 0

An answer j is worth v_j and uses d_jk of column k. The answers are not enumerated: the one that gains most at the
prices of the basis is asked for, and enters. The basis has one member for each column of capacity and one more, so a
step costs next to nothing, and where no answer gains, the prices are the proof (column generation: G. B. Dantzig and P.
Wolfe, "Decomposition Principle for Linear Programs", Operations Research 8(1), 1960).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats

STEPS = 400  # more than any small problem takes; beyond it the general solver is asked
_LOOSE = 1e-13  # of all capacity: what a member may lack when another leaves (P. M. J. Harris, 1973)
_STEEP = 1e-9  # entry of the entering column that may leave, relative to its largest
_REFINED = 3  # times that an answer of the inverse is held against the basis: answers may be much alike
_ROUNDING = 1e-14  # of the largest worth
_SINGULAR = 1e-14  # pivot below which a basis has no inverse worth having


class Basis(NamedTuple):
    """A row for each column of capacity, in parts of it, and one for Σ λ = 1; all sides are 1."""

    matrix: Floats  # (row, member)
    inverse: Floats
    amount: Floats  # (member,) λ
    value: Floats  # (member,)
    price: Floats  # (row,) what each side is worth, the last one that of one answer
    column: Floats  # (row,) what may enter: its parts of all capacity, and 1 for an answer or 0 for unused capacity
    members: Floats  # (member, column, row of the problem) shares; 0 for unused capacity
    scratch: Floats  # (3 + row, row)


@kernel()
def begin(capacity: Floats, demand: Floats, worth: float, x: Floats) -> Basis:
    """Return the basis of unused capacity and one answer that fits: its demand (column,), worth and shares x."""
    K, n = x.shape
    square = np.empty((2, K + 1, K + 1))
    each = np.zeros((4, K + 1))
    scratch = np.empty((K + 4, K + 1))
    found = Basis(square[0], square[1], each[0], each[1], each[2], each[3], np.zeros((K + 1, K, n)), scratch)
    basis, value = found.matrix, found.value
    for i in range(K + 1):
        for j in range(K + 1):
            basis[i, j] = 1.0 if i == j else 0.0
        value[i] = 0.0
    for k in range(K):
        basis[k, K] = demand[k] / capacity[k]
    value[K] = worth
    invert(found)
    keep(found, K, x, True)
    return found


@kernel(allocates=False)
def invert(found: Basis) -> bool:
    """Write the inverse of the basis and the amounts that reach all sides; return whether there is one."""
    basis, inverse, amount = found.matrix, found.inverse, found.amount
    size, work, left = len(basis), found.scratch[3:], found.scratch[0]
    for i in range(size):
        for j in range(size):
            work[i, j] = basis[i, j]
            inverse[i, j] = 1.0 if i == j else 0.0
    for c in range(size):
        best = c
        for i in range(c + 1, size):
            if abs(work[i, c]) > abs(work[best, c]):
                best = i
        if abs(work[best, c]) < _SINGULAR:
            return False
        for j in range(size):
            work[c, j], work[best, j] = work[best, j], work[c, j]
            inverse[c, j], inverse[best, j] = inverse[best, j], inverse[c, j]
        pivot = work[c, c]
        for j in range(size):
            work[c, j] /= pivot
            inverse[c, j] /= pivot
        for i in range(size):
            times = work[i, c]
            if i != c and times != 0.0:
                for j in range(size):
                    work[i, j] -= times * work[c, j]
                    inverse[i, j] -= times * inverse[c, j]
    for i in range(size):
        amount[i] = 0.0
    for _ in range(_REFINED):
        for i in range(size):
            left[i] = 1.0
            for j in range(size):
                left[i] -= basis[i, j] * amount[j]
        for i in range(size):
            for j in range(size):
                amount[i] += inverse[i, j] * left[j]
    return True


@kernel(allocates=False)
def prices(found: Basis) -> int:
    """Write the prices; return the column whose unused capacity should re-enter, as its price is below 0; -1 = none."""
    basis, inverse, value, price = found.matrix, found.inverse, found.value, found.price
    size, left = len(value), found.scratch[0]
    for i in range(size):
        price[i] = 0.0
    for _ in range(_REFINED):
        for j in range(size):
            left[j] = value[j]
            for i in range(size):
                left[j] -= price[i] * basis[i, j]
        for i in range(size):
            for j in range(size):
                price[i] += left[j] * inverse[j, i]
    spare, least, scale = -1, 0.0, 0.0
    for j in range(size):
        scale = max(scale, abs(value[j]))
    for k in range(size - 1):
        if price[k] < min(least, -_ROUNDING * scale):
            spare, least = k, price[k]
        price[k] = max(price[k], 0.0)
    return spare


@kernel(allocates=False)
def enter_unused(found: Basis, k: int, x: Floats) -> bool:
    """Put unused capacity of column k into the basis; False where it cannot, or k is -1."""
    for i in range(len(found.column)):
        found.column[i] = 1.0 if i == k else 0.0
    return k >= 0 and enter(found, 0.0, x, False)


@kernel(allocates=False)
def enter_answer(found: Basis, capacity: Floats, demand: Floats, worth: float, x: Floats) -> bool:
    """Put an answer into the basis, its demand (column,) and its shares x (column, row); False where it cannot."""
    for k in range(len(capacity)):
        found.column[k] = demand[k] / capacity[k]
    found.column[len(capacity)] = 1.0
    return enter(found, worth, x, True)


@kernel(allocates=False)
def enter(found: Basis, worth: float, x: Floats, is_answer: bool) -> bool:
    """Put `column` into the basis in place of a member; False where that cannot be."""
    basis, inverse, amount, value, column = found.matrix, found.inverse, found.amount, found.value, found.column
    size, step, before = len(value), found.scratch[1], found.scratch[2]
    largest = 0.0
    for i in range(size):
        step[i] = 0.0
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
        return False
    for i in range(size):
        before[i] = basis[i, out]
        basis[i, out] = column[i]
    if not invert(found):
        for i in range(size):
            basis[i, out] = before[i]
        invert(found)
        return False
    value[out] = worth
    keep(found, out, x, is_answer)
    return True


@kernel(allocates=False)
def keep(found: Basis, place: int, x: Floats, is_answer: bool) -> None:
    """Write shares (column, row) into a place among the members of the basis: those of an answer, else 0."""
    K, n = x.shape
    for k in range(K):
        for i in range(n):
            found.members[place, k, i] = x[k, i] if is_answer else 0.0


@kernel(allocates=False)
def mix(found: Basis, x: Floats) -> None:
    """Write the shares of the mixture of all members, (column, row)."""
    members, amount, (K, n) = found.members, found.amount, x.shape
    for k in range(K):
        for i in range(n):
            x[k, i] = 0.0
            for j in range(K + 1):
                if amount[j] > 0.0:
                    x[k, i] += amount[j] * members[j, k, i]
