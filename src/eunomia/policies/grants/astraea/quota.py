"""Phase 1: how many accelerators each tenant may hold after this pass, by giving them out on paper.

    n[u] = what u holds,  U[u], W[u] its used and entitled accelerator-seconds over the long term,  W[u] += Q[u] L
    while accelerators are free and some tenant has jobs left:
        u = argmin n[u] / Q[u]   if that is less than a fifth,   else argmin U[u] / W[u]
        the first of its jobs that fits:  n[u] += z,  U[u] += z L;  those before it are passed over

Q quota, z scale factor, L length of a lease; 0/0 = 1; ties go to the first tenant. A tenant may get more than its quota
when others ask for less.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints

FLOOR = 0.2  # of its quota: who holds less comes first


@kernel()
def _least(value: Floats, there: Bools) -> int:
    best = -1
    for u in range(len(value)):
        if there[u] and (best < 0 or value[u] < value[best]):
            best = u
    return best


@kernel()
def budgets(
    size: Ints, first: Ints, free: int, held: Ints, quota: Ints, used: Floats, entitled: Floats, lease: float
) -> Ints:
    """Return n, (tenant,). Jobs first[u] … first[u + 1] - 1 of `size` are those of tenant u, the next one first."""
    budget, spent = held.copy(), used.copy()
    there = np.empty(len(quota), dtype=np.bool_)
    part, owed = np.empty(len(quota)), np.empty(len(quota))
    for u in range(len(quota)):
        there[u] = first[u] < first[u + 1] and quota[u] > 0
        part[u] = held[u] / max(quota[u], 1)
        owed[u] = used[u] / entitled[u] if entitled[u] > 0 else 1.0
    next_job, left, u = first.copy(), free, _least(part, there)
    while left > 0 and u >= 0:
        if part[u] >= FLOOR:
            u = _least(owed, there)
        while next_job[u] < first[u + 1]:
            z = size[next_job[u]]
            next_job[u] += 1
            if z <= left:
                left -= z
                budget[u] += z
                spent[u] += z * lease
                part[u] = budget[u] / quota[u]
                owed[u] = spent[u] / (entitled[u] + quota[u] * lease)
                break
        there[u] = next_job[u] < first[u + 1]
        u = _least(part, there)
    return budget
