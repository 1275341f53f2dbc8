"""Progressive filling: the user with the smallest dominant share takes its next task, until no task fits.

s[u] = max_r used[u,r] / (total[r] w[u]),  used (user, resource), total (resource,), w weight (user,).

Reference: A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011,
section 4.1, algorithm 1.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eunomia.model.arrays import Floats, Ints

_ROUNDING = 1e-9  # of a resource's total


def dominant_shares(used: Floats, total: Floats, weight: Floats) -> Floats:
    """Return s (user,) of used (user, resource); resources of which there is nothing, or no end, are left out."""
    there = (total > 0) & np.isfinite(total)
    return np.asarray((used[:, there] / total[there]).max(axis=1, initial=0.0) / weight)


def filling(
    tasks: Sequence[Ints],
    choices: Callable[[int], Floats],
    *,
    total: Floats,
    used: Floats,
    weight: Floats,
    strict: bool = False,
) -> Iterator[tuple[int, int]]:
    """Yield tasks in the order in which they are looked at, each with the choice that it takes, -1 = it does not fit.

    `tasks` are those of each user, in the user's own order; `choices` of a task (choice, resource) are what it may use,
    the best first. A task that does not fit is passed over, or, if strict, ends it all. `used` (user, resource) is what
    users hold already; ties go to the lower user.
    """
    used = used.astype(float)
    room, slack = total - used.sum(axis=0), _ROUNDING * np.where(np.isfinite(total), total, 0.0)
    waiting = [deque(mine.tolist()) for mine in tasks]
    shares = dominant_shares(used, total, weight)
    heap = [(float(shares[u]), u) for u in range(len(tasks)) if waiting[u]]
    heapq.heapify(heap)
    while heap and (room > slack).any():
        share, u = heapq.heappop(heap)
        task = waiting[u].popleft()
        wanted = choices(task)
        fits = np.flatnonzero((wanted <= room + slack).all(axis=1))
        yield task, int(fits[0]) if len(fits) else -1
        if len(fits):
            room, used[u] = room - wanted[fits[0]], used[u] + wanted[fits[0]]
            share = float(dominant_shares(used[u : u + 1], total, weight[u : u + 1])[0])
        elif strict:
            return
        if waiting[u]:
            heapq.heappush(heap, (share, u))
