"""The pass of a queue whose first gang that does not fit gets a reservation, which others go around: EASY backfilling.

It chooses as `placement.selection.choose` does on a cluster of one type where no job may be stopped, and looks at the
gangs that run and those that start, not at all that wait.

Reference: D. A. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.job_line import next_beside, remove_row, run_time
from eunomia.core.kernel_arrays import (
    DONE,
    END,
    LAST_PASS,
    LEASE_SIZE,
    RATE,
    RATE_SINCE,
    SCALE_FACTOR,
    TOTAL,
    UNTIL,
    KernelArrays,
)
from eunomia.core.placement_pass import GANG_JOB, ROOM, list_start
from eunomia.core.rank_line import HOLDING, RankLine
from eunomia.kernels import kernel
from eunomia.model.arrays import Ints


@kernel(allocates=False, forceinline=True)
def _note_ends(t: KernelArrays, rank: RankLine, at: float) -> None:
    """Note in the state when seats will come free, as `answer_rows.run_times`."""
    floats = t.belief_floats
    for row in rank.next_level[: rank.span[HOLDING]]:
        run = max(at - floats[RATE_SINCE, row], 0.0) * floats[RATE, row]
        left = max(floats[TOTAL, row] - floats[DONE, row] - run, 0.0)
        left = left / floats[RATE, row] if floats[RATE, row] > 0 else np.inf
        t.floats[END, row] = min(max(floats[RATE_SINCE, row], at) + left, t.floats[UNTIL, row])


@kernel(allocates=False, forceinline=True)
def _next_ends(
    t: KernelArrays, rank: RankLine, at: float, after: float, gangs: int, scratch: Ints
) -> tuple[float, int]:
    """Return when the next gang ends, of those that run or are listed to start, and what all that end then give."""
    soonest, gives = np.inf, 0
    for row in rank.next_level[: rank.span[HOLDING]]:
        end = t.floats[END, row]
        if after < end <= soonest:
            gives = t.ints[LEASE_SIZE, row] + (gives if end == soonest else 0)
            soonest = end
    for row in scratch[GANG_JOB, :gangs]:
        end = at + run_time(t, row)
        if after < end <= soonest:
            gives = t.ints[SCALE_FACTOR, row] + (gives if end == soonest else 0)
            soonest = end
    return soonest, gives


@kernel(allocates=False, forceinline=True)
def _reservation(
    t: KernelArrays, rank: RankLine, at: float, row: int, free: int, gangs: int, scratch: Ints
) -> tuple[float, int]:
    """Return when a gang is believed to have room, inf = never, and how many accelerators are free beyond it then."""
    shadow, size = -np.inf, t.ints[SCALE_FACTOR, row]
    _note_ends(t, rank, at)
    while free < size and shadow < np.inf:
        shadow, gives = _next_ends(t, rank, at, shadow, gangs, scratch)
        free += gives
    return shadow, free - size


@kernel(allocates=False, forceinline=True)
def choose_beside_reservation(t: KernelArrays, rank: RankLine, at: float, stamp: int, scratch: Ints) -> int:
    """List the gangs that start, which leave the line of those that wait; return how many."""
    free, room, shadow, extra, gangs = t.floor.total[0], scratch[ROOM, :1], np.inf, 0, 0
    room[0] = int(rank.capacity[0])
    row = next_beside(t, rank.waiting, rank.key, -1, room, at, shadow, extra)
    while row >= 0:
        size = t.ints[SCALE_FACTOR, row]
        if size <= free:
            if at + run_time(t, row) > shadow:
                extra -= size
            free -= size
            t.ints[LAST_PASS, row] = stamp
            remove_row(t, rank.waiting, rank.key, row)
            list_start(t, scratch, gangs, row, 0)
            gangs += 1
        else:  # a gang that does not fit is found before there is a reservation only
            shadow, extra = _reservation(t, rank, at, row, free, gangs, scratch)
        room[0] = int(rank.capacity[0]) if shadow == np.inf else free
        row = next_beside(t, rank.waiting, rank.key, row, room, at, shadow, extra)
    return gangs
