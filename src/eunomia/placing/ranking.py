"""A stable order of numbers in time that grows with how many there are: what priorities of a round need."""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.kernels import BARE
from eunomia.model.arrays import Floats, Ints

_BITS = 8  # of a number's place, sorted by at a time, in two turns
_BINS = 1 << _BITS
_PATIENCE = 2  # moves per number after which what is nearly sorted turns out not to be
_NEAR = 2.0**-52  # of a spread: closer to the least than that is close


@njit(**BARE)
def _sort(key: Floats, by: Floats, place: Ints, ends: Ints, half: Ints, order: Ints) -> bool:
    """Sort by key, equal ones as they stand; say whether it is done, which takes a `by` that spreads the numbers well.

    `by` is finite and rises with the key, and not all of it is the same. They are sorted by their place between the
    least and the largest `by`, the lower bits first; who is then still in the wrong place is moved. `place`, `half`
    (number,) and `ends` (2, bin) are scratch space.
    """
    n, least, last = len(key), by.min(), _BINS * _BINS - 1
    scale = last / (by.max() - least)
    ends[:] = 0
    for i in range(n):
        place[i] = min(int((by[i] - least) * scale), last)
        ends[0, place[i] & (_BINS - 1)] += 1
        ends[1, place[i] >> _BITS] += 1
    for turn in range(2):
        before = 0
        for b in range(_BINS):
            here = ends[turn, b]
            ends[turn, b] = before
            before += here
    for i in range(n):
        b = place[i] & (_BINS - 1)
        half[ends[0, b]] = i
        ends[0, b] += 1
    for i in half:
        b = place[i] >> _BITS
        order[ends[1, b]] = i
        ends[1, b] += 1
    left = _PATIENCE * n
    for i in range(1, n):
        item, j = order[i], i - 1
        while j >= 0 and key[order[j]] > key[item]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item
        left -= i - 1 - j
        if left < 0:
            return False
    return True


@njit(cache=True)
def rising(key: Floats) -> Ints:
    """Return the places of finite numbers from the least to the largest; equal ones in order of their places."""
    n, order = len(key), np.arange(len(key))
    if n < 2 or key.min() == key.max():
        return order
    spread = key.max() - key.min()
    if not spread < np.inf or not _BINS * _BINS / spread < np.inf:
        return np.argsort(key, kind="mergesort")
    place, ends, half = np.empty(n, dtype=np.int64), np.empty((2, _BINS), dtype=np.int64), np.empty(n, dtype=np.int64)
    if _sort(key, key, place, ends, half, order):
        return order
    # A few lie far from all others: by how far they lie from the least.
    if _sort(key, np.log2(np.maximum(key - key.min(), spread * _NEAR)), place, ends, half, order):
        return order
    return np.argsort(key, kind="mergesort")
