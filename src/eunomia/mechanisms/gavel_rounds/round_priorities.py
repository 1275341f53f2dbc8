"""Selects the entries of the next round: priorities, and one greedy pass over each type's list.

The caller sorts by the first key; ties are settled here.

Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI
2020, section 5 (round-based scheduling mechanism), as its published simulator does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.mechanisms.gavel_rounds.job_pairs import PairArrays
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.sorting import sorted_places

_UNSERVED = 1e9  # priority per unit of share of an entry that has received nothing


@kernel(allocates=False, forceinline=True)
def _priority(x: float, received: float, all_received: float) -> float:
    """Return the share over the fraction of the type's time that was received."""
    fraction = received / all_received if all_received != 0.0 else 0.0
    return x / fraction if fraction > 0.0 else x * _UNSERVED


@kernel(allocates=False)
def _alike(order: Ints, low: int, high: int, key: Floats) -> bool:
    """Return whether the key is the same all through order[low:high]."""
    at = low + 1
    while at < high and key[order[at]] == key[order[low]]:
        at += 1
    return at == high


@kernel(allocates=True)
def _settle(order: Ints, low: int, high: int, key: Floats) -> bool:
    """Sort order[low:high] by `key`, largest first and else as they came; return whether some differ."""
    n = high - low
    by = np.empty(n)
    for i in range(n):
        by[i] = order[low + i]
    part = sorted_places(by)
    for i in range(n):
        part[i] = int(by[part[i]])
    for i in range(n):
        order[low + i] = part[i]
        by[i] = -key[part[i]]
    if _alike(order, low, high, key):
        return False
    by_key = sorted_places(by)
    for i in range(n):
        order[low + i] = part[by_key[i]]
    return True


@kernel(allocates=False)
def _settle_ties(order: Ints, low: int, high: int, second: Floats, third: Floats) -> None:
    """Sort order[low:high], rows that are equal in what they are ranked by first, by `second`, then by `third`."""
    apart = _settle(order, low, high, second)
    at = low
    while at < high:
        end = at + 1
        while end < high and (not apart or second[order[end]] == second[order[at]]):
            end += 1
        if end > at + 1:
            _settle(order, at, end, third)
        at = end


@kernel(allocates=False)
def gather(
    spare: bool,
    group: Ints,
    n: int,
    all_received: Floats,
    free: Ints,
    taken: Bools,
    entry: Ints,
    type: Ints,
    keys: Floats,
    *arrays: Any,
) -> int:
    """List the entries of one list that could run, on each of the types in `group`; return their number.

    Those with a priority above 0, or with `spare` the others. `keys` (3, row) are what they are ranked by: priority,
    deficit, x; with `spare` deficit, x, x, since they all have the priority 0. `arrays` are those of `PairArrays`.
    """
    pairs = PairArrays(*arrays)
    m = 0
    for j in group:
        if free[j] == 0:
            continue
        for e in range(n):
            a, b, share = pairs.first[e], pairs.second[e], pairs.x[e, j]
            if pairs.rate[e, j] <= 0.0 or taken[a] or (b >= 0 and (pairs.mate_rate[e, j] <= 0.0 or taken[b])):
                continue
            value = 0.0
            if pairs.known[e] and share > 0.0:
                value = _priority(share, pairs.received[e, j], all_received[j])
            if (value > 0.0) == spare:
                continue
            entry[m], type[m] = e, j
            if spare:
                keys[0, m], keys[1, m], keys[2, m] = pairs.deficit[e, j], share, share
            else:
                keys[0, m], keys[1, m], keys[2, m] = value, pairs.deficit[e, j], share
            m += 1
    return m


@kernel(allocates=False)
def take(
    order: Ints,
    group: Ints,
    entry: Ints,
    type: Ints,
    keys: Floats,
    free: Ints,
    taken: Bools,
    overtake: bool,
    chosen: Ints,
    on: Ints,
    picked: int,
    *arrays: Any,
) -> int:
    """Choose entries that fit, by rank; `order` stands by the first key. Return how many of `chosen` are chosen now.

    `free` accelerators (type,) are used up; `taken` (job,) is set for all that are chosen. Who comes after the last
    free accelerator is not looked at. `arrays` are those of `PairArrays`.
    """
    pairs = PairArrays(*arrays)
    first_key, second_key, third_key = keys[0], keys[1], keys[2]
    low, left = 0, 0
    for j in group:
        left += free[j]
    while low < len(order) and left > 0:
        high = low + 1
        while high < len(order) and first_key[order[high]] == first_key[order[low]]:
            high += 1
        if high > low + 1:
            _settle_ties(order, low, high, second_key, third_key)
        for i in order[low:high]:
            e, j = entry[i], type[i]
            a, b, size = pairs.first[e], pairs.second[e], pairs.size[e]
            if free[j] == 0 or taken[a] or (b >= 0 and taken[b]):
                continue
            if size > free[j]:
                if not overtake:
                    left -= free[j]
                    free[j] = 0
                continue
            free[j] -= size
            left -= size
            taken[a] = True
            if b >= 0:
                taken[b] = True
            chosen[picked], on[picked] = e, j
            picked += 1
        low = high
    return picked
