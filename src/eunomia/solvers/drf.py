"""Progressive filling: the user with the smallest dominant share takes its next task, until no task fits.

s[u] = max_r used[u,r] / (total[r] w[u]),  used (user, resource), total (resource,), w weight (user,).

Reference: A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011,
section 4.1, algorithm 1.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.tolerance import RELATIVE


class Tasks(NamedTuple):
    """What users ask for; a user's tasks stand together, the next one first."""

    first: Ints  # (user + 1,) tasks first[u] … first[u + 1] - 1 are those of user u
    wanted: Floats  # (task, choice, resource) what each may use, the best first
    choices: Ints  # (task,) how many choices there are


def dominant_shares(used: Floats, total: Floats, weight: Floats) -> Floats:
    """Return s (user,) of used (user, resource); resources of which there is nothing, or no end, are left out."""
    there = (total > 0) & np.isfinite(total)
    return np.asarray((used[:, there] / total[there]).max(axis=1, initial=0.0) / weight)


def filling(tasks: Tasks, *, total: Floats, used: Floats, weight: Floats, strict: bool = False) -> tuple[Ints, Ints]:
    """Return tasks in the order in which they are looked at, and the choice that each takes, -1 = it does not fit.

    A task that does not fit is passed over, or, if strict, ends it all. `used` (user, resource) is what users hold
    already; ties go to the lower user.
    """
    used = used.astype(float)
    slack = RELATIVE * np.where(np.isfinite(total), total, 0.0)
    shares = dominant_shares(used, total, weight)
    return _fill(*tasks, total, total - used.sum(axis=0), slack, used, shares, weight, strict)


@kernel()
def _fill(
    first: Ints,
    wanted: Floats,
    choices: Ints,
    total: Floats,
    room: Floats,
    slack: Floats,
    used: Floats,
    shares: Floats,
    weight: Floats,
    strict: bool,
) -> tuple[Ints, Ints]:
    """Do as `filling` says; `room` (resource,), `used` and `shares` are used up."""
    looked, taken = np.empty(len(wanted), dtype=np.int64), np.empty(len(wanted), dtype=np.int64)
    place = first.copy()
    heap = [(shares[u], u) for u in range(len(weight)) if first[u] < first[u + 1]]
    heapq.heapify(heap)
    count = 0
    while len(heap) > 0 and (room > slack).any():
        share, u = heapq.heappop(heap)
        task = place[u]
        place[u] += 1
        looked[count], taken[count] = task, -1
        for choice in range(choices[task]):
            if (wanted[task, choice] <= room + slack).all():
                taken[count] = choice
                break
        if taken[count] >= 0:
            room -= wanted[task, taken[count]]
            used[u] += wanted[task, taken[count]]
            share = 0.0
            for r in range(len(total)):
                if 0 < total[r] < np.inf:
                    share = max(share, used[u, r] / total[r])
            share /= weight[u]
        count += 1
        if strict and taken[count - 1] < 0:
            break
        if place[u] < first[u + 1]:
            heapq.heappush(heap, (share, u))
    return looked[:count], taken[:count]
