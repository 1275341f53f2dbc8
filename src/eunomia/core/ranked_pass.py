"""Answers in place of a policy that promises by what it ranks jobs: the same order, pass and next ask, compiled.

`Promises.rank` says what the rank is; `eunomia.testing` checks that the policy keeps to it.
The order is that of `core.rank_line`. The pass goes along running jobs and those waiting ones that have room, until no
accelerator is left. On a cluster of one type it begins with the first waiting job that has room: running jobs before
that keep their seats.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.kernel_arrays import KIND, LAST_PASS, ON_TYPE, PARTNER, SCALE_FACTOR, SHAPE, WAITING, KernelArrays
from eunomia.core.placement_pass import (
    ASK,
    FREE,
    GANG_JOB,
    GANG_KEPT,
    GANG_MATE,
    GANG_ROW,
    GANG_SHAPE,
    GANG_SIZE,
    GANG_TYPE,
    KEPT,
    LEAD,
    OPENED,
    ROOM,
    STARTED,
    STOPPED,
    UNTOUCHED,
    carry_out,
)
from eunomia.core.rank_line import (
    HOLDING,
    ODD,
    RankLine,
    has_line,
    lower_keys,
    note_pass,
    place_of,
    raise_levels,
    service_of,
)
from eunomia.core.row_heap import next_place
from eunomia.core.waiting_line import has_room, is_before, next_row, next_with_room, remove_row
from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.rank import BY_SERVICE_LEVEL, UNKNOWN, falls_behind_in


def rank_of(info: PolicyInfo) -> int:
    """Return the constant of what a policy promises to rank by; `UNKNOWN` where its answer says more than an order."""
    rank = info.promises.rank
    return UNKNOWN if rank is None or not info.promises.covers_all_jobs or info.explains_waits else rank.by


@kernel(allocates=False, forceinline=True)
def _count_free(t: KernelArrays, rank: RankLine, free: Ints) -> None:
    """Count the accelerators of each type that the pass may give: free ones, and those that may be taken back."""
    for k in range(len(free)):
        free[k] = int(rank.capacity[k]) if rank.recall else t.floor.total[k]


@kernel(allocates=False, forceinline=True)
def _pass_over_kept(t: KernelArrays, rank: RankLine, at: float, free: Ints, scratch: Ints) -> tuple[int, int]:
    """Bring the line of running jobs up to date; return how many of the first keep their seats whoever waits.

    Return also how many may lose them, which are listed as OPENED in row order; `free` becomes what these and the free
    accelerators are. On a cluster of one type who is before all that wait keeps its seats and is not looked at.
    """
    line, holding, count = rank.line, rank.holding, rank.span[HOLDING] if rank.recall else 0
    raise_levels(t, rank, at, scratch[OPENED])
    _count_free(t, rank, free)
    if not rank.recall or rank.queues or len(free) > 1 or rank.span[ODD]:
        lower_keys(t, rank, at, 0)
        for place in range(count):
            scratch[OPENED, place] = holding[place]
        return 0, count
    first = next_with_room(t, rank.waiting, rank.key, -1, free)
    kept = place_of(rank, first) if first >= 0 else count
    lower_keys(t, rank, at, kept)
    kept = place_of(rank, first) if first >= 0 else count
    free[0], opened = t.floor.total[0], 0
    for place in range(kept, count):
        free[0] += t.ints[SCALE_FACTOR, line[place]]
    if (count - kept) * (count - kept) > count:  # few are sorted, of many those are left out that are kept
        for row in holding[:count]:
            scratch[OPENED, opened] = row
            opened += is_before(rank.key, first, row)
        return kept, opened
    for place in range(kept, count):
        free_place = opened
        while free_place > 0 and scratch[OPENED, free_place - 1] > line[place]:
            scratch[OPENED, free_place] = scratch[OPENED, free_place - 1]
            free_place -= 1
        scratch[OPENED, free_place] = line[place]
        opened += 1
    return kept, opened


@kernel(allocates=False, forceinline=True)
def _type_for(t: KernelArrays, row: int, room: Ints) -> int:
    """Return the fastest type that has room for a job, (type,); -1 = none."""
    for choice in range(len(room)):
        k: int = t.prefer[t.belief_ints[KIND, row], choice] if len(room) > 1 else 0
        if t.throughput[row, k] > 0 and t.ints[SCALE_FACTOR, row] <= room[k]:
            return k
    return -1


@kernel(allocates=False, forceinline=True)
def _choose(t: KernelArrays, rank: RankLine, stamp: int, kept: int, free: Ints, scratch: Ints) -> tuple[int, int, int]:
    """Choose the gangs that run, best first, each on its fastest type that has room; list those that start.

    The first `kept` jobs with seats keep them. Return how many are listed, how many jobs were looked at, which are
    listed as STOPPED, and up to which place those with seats were. Chosen jobs leave the line of those that wait.
    `scratch[ROOM]` (type,) is what a gang needs to be looked at: where the first gang that does not fit stops the
    queue, that it fits the cluster; else that it fits.
    """
    ints, line, waiting = t.ints, rank.line, rank.waiting
    room, seen = scratch[ROOM, : len(free)] if rank.queues else free, scratch[STOPPED]
    gangs, left, looked, place, held = 0, 0, 0, kept, rank.span[HOLDING] if has_line(rank) else 0
    for k in range(len(free)):
        left += free[k]
        scratch[ROOM, k] = int(rank.capacity[k])
    next_waiting = next_with_room(t, waiting, rank.key, -1, room)
    while left > 0 and (place < held or next_waiting >= 0):
        # Who is next: a job with seats, or one that waits; where it runs: only those that wait, or may be stopped, can.
        waits = next_waiting >= 0 and (place == held or is_before(rank.key, next_waiting, line[place]))
        row = next_waiting if waits else line[place]
        found = _type_for(t, row, free) if waits or rank.recall else -1
        place += not waits
        if found < 0 and rank.queues and (waits or (rank.recall and has_room(t, row, room))):
            break
        if waits and found < 0:  # others have taken its room
            next_waiting = next_with_room(t, waiting, rank.key, row, room)
            continue
        seen[looked] = row
        looked += 1
        if found < 0:
            continue
        # It runs: it keeps its seats, or is listed to start.
        free[found] -= ints[SCALE_FACTOR, row]
        left -= ints[SCALE_FACTOR, row]
        ints[LAST_PASS, row] = stamp
        if waits:
            remove_row(waiting, rank.key, row)
            next_waiting = next_with_room(t, waiting, rank.key, row, room) if left > 0 else -1
        if ints[ON_TYPE, row] == found and ints[SHAPE, row] == 0 and ints[PARTNER, row] == -1:
            continue  # it keeps its seats
        scratch[GANG_ROW, gangs] = scratch[GANG_MATE, gangs] = -1
        scratch[GANG_JOB, gangs], scratch[GANG_TYPE, gangs] = row, found
        scratch[GANG_SIZE, gangs], scratch[GANG_SHAPE, gangs] = ints[SCALE_FACTOR, row], 0
        scratch[GANG_KEPT, gangs] = False
        gangs += 1
    return gangs, looked, place


@kernel(allocates=False, forceinline=True)
def _falls_in(t: KernelArrays, rank: RankLine, at: float, row: int, first: int, rival: int) -> float:
    """Return in how many seconds a chosen job falls behind the next that was not chosen; inf = never.

    `first` is the first that waits, `rival` the next with seats that was not chosen; -1 = none.
    """
    key = rank.key
    behind = first if first < 0 or is_before(key, row, first) else next_row(rank.waiting, key, row)
    if behind < 0 or (rival >= 0 and is_before(key, rival, behind)):
        behind = rival
    if behind < 0:
        return np.inf
    service, size = service_of(t, row, at), t.ints[SCALE_FACTOR, row]
    return float(falls_behind_in(row, behind, service, size, key[behind], rank.quantum))


@kernel(allocates=False, forceinline=True)
def _first_fall(t: KernelArrays, rank: RankLine, at: float, stamp: int, kept: int, seen: Ints, place: int) -> float:
    """Return when a chosen job first falls behind one that waits, as `model.rank.first_fall`; inf = never.

    `seen` are the jobs at which the pass looked, in order, after the first `kept` with seats, which were chosen; of
    those with seats it was not at `place` and behind.
    """
    line, key, count, soonest = rank.line, rank.key, rank.span[HOLDING], np.inf
    rival = line[place] if place < count else -1
    first, other = next_row(rank.waiting, key, -1), 0
    for m in range(len(seen) - 1, -1, -1):
        if t.ints[LAST_PASS, seen[m]] != stamp:
            rival = seen[m]
        else:
            soonest = min(soonest, _falls_in(t, rank, at, seen[m], first, rival))
    # Of those that were kept, it is one whose level changes before any known to fall behind.
    while kept > 0 and other < count:
        row = rank.next_level[other]
        is_near = rank.steady[row] <= at + soonest
        if is_near and (kept == count or is_before(key, row, line[kept])):
            soonest = min(soonest, _falls_in(t, rank, at, row, first, rival))
        other = next_place(other, is_near, count)
    return max(at + soonest, np.nextafter(at, np.inf)) if soonest < np.inf else np.inf


@kernel(allocates=False, forceinline=True)
def follow_rank(
    t: KernelArrays, rank: RankLine, at: float, stamp: int, scratch: Ints, seats: Ints
) -> tuple[int, int, float]:
    """Decide as a policy that ranks so; return stops, starts, and when to ask again.

    `scratch` has what stopped and started, as after `placement_pass.follow`.
    """
    free, again_at = scratch[FREE, : len(t.floor.total)], np.inf
    kept, opened = _pass_over_kept(t, rank, at, free, scratch)
    gangs, looked, place = _choose(t, rank, stamp, kept, free, scratch)
    if rank.by == BY_SERVICE_LEVEL:
        again_at = _first_fall(t, rank, at, stamp, kept, scratch[STOPPED, :looked], place)
    movable, nowhere = scratch[OPENED, :opened], scratch[GANG_ROW, :0]
    stopped, _, started, _, _ = carry_out(t, at, np.inf, stamp, gangs, movable, nowhere, scratch, seats)
    note_pass(rank, scratch[STOPPED, :stopped], scratch[LEAD, :started])
    return stopped, started, again_at


@kernel(allocates=False, forceinline=True)
def implied_by_rank(t: KernelArrays, rank: RankLine, alone: bool, freed: Ints) -> tuple[int, int, int]:
    """Do as `placement_pass.implied_start` where lines are kept; `freed` becomes what has room with it, (type,)."""
    room, waiting = 0, rank.waiting
    for k in range(len(freed)):
        freed[k] += t.floor.total[k]
        room += freed[k]
    if t.counts[WAITING] == 0 or (room == 0 and not rank.recall):
        return UNTOUCHED, -1, -1
    if alone and t.counts[WAITING] > 1:
        return ASK, -1, -1
    row = next_with_room(t, waiting, rank.key, -1, freed)
    if row < 0:
        return (ASK if rank.recall else KEPT), -1, -1
    if not alone and next_with_room(t, waiting, rank.key, row, freed) >= 0:
        return ASK, -1, -1
    return STARTED, row, _type_for(t, row, freed)
