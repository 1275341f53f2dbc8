"""A stable order of numbers in time that grows with how many there are: what priorities of a round need."""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Floats, Ints

_FEW = 24  # numbers in a bucket that are sorted by insertion


@njit(cache=True)
def _insert(order: Ints, key: Floats, low: int, high: int) -> None:
    """Sort order[low:high] by key, which it nearly is; equal keys stay as they are."""
    for i in range(low + 1, high):
        item = order[i]
        value = key[item]
        j = i - 1
        while j >= low and key[order[j]] > value:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item


@njit(cache=True)
def rising(key: Floats) -> Ints:
    """Return the places of finite numbers from the least to the largest; equal ones in order of their places.

    Counts them into as many buckets as there are numbers, which are then sorted one by one.
    """
    n = len(key)
    if n < 2:
        return np.arange(n)
    least, spread = key.min(), key.max() - key.min()
    if not 0.0 < spread < np.inf:
        return np.argsort(key, kind="mergesort") if spread > 0.0 else np.arange(n)
    scale = (n - 1) / spread
    if not scale < np.inf:
        return np.argsort(key, kind="mergesort")
    bucket = np.empty(n, dtype=np.int64)
    first = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        bucket[i] = min(int((key[i] - least) * scale), n - 1)
        first[bucket[i] + 1] += 1
    for b in range(n):
        first[b + 1] += first[b]
    order, filled = np.empty(n, dtype=np.int64), first.copy()
    for i in range(n):
        order[filled[bucket[i]]] = i
        filled[bucket[i]] += 1
    for b in range(n):
        low, high = first[b], first[b + 1]
        if 1 < high - low <= _FEW:
            _insert(order, key, low, high)
        elif high - low > _FEW:
            part = order[low:high].copy()
            order[low:high] = part[np.argsort(key[part], kind="mergesort")]
    return order
