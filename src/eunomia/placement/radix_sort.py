"""A stable order of numbers in time that grows with how many there are: what priorities of a round need."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints

_BITS = 8  # of a number's place, sorted by at a time, in two turns
_BINS = 1 << _BITS
_WHICH = 40  # bits for which number it is: more than there is memory for
_FEW = 512  # of them numpy sorts no slower
_PATIENCE = 2  # moves per number after which what is nearly sorted turns out not to be
_NEAR = 2.0**-52  # of a spread: closer to the least than that is close


@kernel(allocates=False)
def _span(key: Floats) -> tuple[float, float]:
    """Return the least and the largest of some numbers. Four at a time, as each waits for the one before."""
    n, whole = len(key), len(key) & ~3
    a = b = c = d = e = f = g = h = key[0]
    for i in range(0, whole, 4):
        p, q, r, s = key[i], key[i + 1], key[i + 2], key[i + 3]
        a, b, c, d = min(a, p), min(b, q), min(c, r), min(d, s)
        e, f, g, h = max(e, p), max(f, q), max(g, r), max(h, s)
    for i in range(whole, n):
        a, e = min(a, key[i]), max(e, key[i])
    return min(a, b, c, d), max(e, f, g, h)


@kernel(allocates=False)
def _settle(key: Floats, order: Ints) -> bool:
    """Sort numbers that nearly stand in order by moving those that do not; False = they do not nearly."""
    left, before = _PATIENCE * len(order), key[order[0]]
    for i in range(1, len(order)):
        item = order[i]
        mine = key[item]
        if before <= mine:
            before = mine
            continue
        j = i - 1  # the largest so far stays the last
        while j >= 0 and key[order[j]] > mine:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item
        left -= i - 1 - j
        if left < 0:
            return False
    return True


@kernel(allocates=False)
def _sort(key: Floats, by: Floats, least: float, most: float, ends: Ints, place: Ints, half: Ints, order: Ints) -> bool:
    """Sort by key, equal ones as they stand; return whether it succeeded: `by` must spread the numbers well.

    `by` is finite, increases with the key, and reaches from `least` to `most`, which differ. It sorts by their
    place in between, the lower bits first; numbers still in the wrong place are moved. `place`, `half` (number,) and
    `ends` (2, bin) are scratch space; `half` holds a number's place and, in its lower bits, which it is.
    """
    last = _BINS * _BINS - 1
    scale = last / (most - least)
    low, high = ends[0], ends[1]
    for b in range(_BINS):
        low[b] = high[b] = 0
    for i in range(len(key)):
        place[i] = min(int((by[i] - least) * scale), last)
        low[place[i] & (_BINS - 1)] += 1
        high[place[i] >> _BITS] += 1
    below = under = 0
    for b in range(_BINS):
        here, there = low[b], high[b]
        low[b], high[b] = below, under
        below, under = below + here, under + there
    for i in range(len(key)):
        b = place[i] & (_BINS - 1)
        half[low[b]] = place[i] << _WHICH | i
        low[b] += 1
    for i in range(len(key)):
        b = half[i] >> _WHICH + _BITS
        order[high[b]] = half[i] & (1 << _WHICH) - 1
        high[b] += 1
    done: bool = _settle(key, order)
    return done


def rising(key: Floats) -> Ints:
    """Return the places of finite numbers from the least to the largest; equal ones in order of their places."""
    n = len(key)
    if n < _FEW:
        return np.argsort(key, kind="stable")
    least, most = _span(key)
    spread = most - least
    if spread == 0.0:
        return np.arange(n)
    if not spread < np.inf or not _BINS * _BINS / spread < np.inf:
        return np.argsort(key, kind="stable")
    order, place, half = np.empty((3, n), dtype=np.int64)
    ends = np.empty((2, _BINS), dtype=np.int64)
    if _sort(key, key, least, most, ends, place, half, order):
        return order
    # A few lie far from all others: by how far they lie from the least.
    by = np.log2(np.maximum(key - least, spread * _NEAR))
    low, high = _span(by)
    if _sort(key, by, low, high, ends, place, half, order):
        return order
    return np.argsort(key, kind="stable")
