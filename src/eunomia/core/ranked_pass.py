"""Answers in place of a policy that promises by what it ranks jobs: the same order, pass and next ask, compiled.

`Promises.rank` says what the rank is; `eunomia.testing` checks that the policy keeps to it.
The order is that of `core.rank_line`. The pass goes along running jobs and those waiting ones that have room, until no
accelerator is left. On a cluster of one type it looks at changes only: waiting jobs with room, and running ones that
lose their seats, the last ones; all others keep theirs.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.job_line import (
    LOOKED,
    end_of,
    first_row_short_of,
    has_room,
    is_before,
    next_row,
    next_with_room,
    place_after,
    place_of,
    remove_row,
    row_at,
    size_from,
)
from eunomia.core.kernel_arrays import KIND, LAST_PASS, ON_TYPE, PARTNER, SCALE_FACTOR, SHAPE, WAITING, KernelArrays
from eunomia.core.placement_pass import (
    ASK,
    FREE,
    GANG_ROW,
    KEPT,
    LEAD,
    OPENED,
    ROOM,
    STARTED,
    STOPPED,
    UNTOUCHED,
    carry_out,
    list_start,
)
from eunomia.core.rank_line import (
    HOLDING,
    ODD,
    RankLine,
    falls,
    let_go,
    lower_key,
    lower_keys,
    note_pass,
    raise_levels,
    service_of,
)
from eunomia.core.reserved_pass import choose_beside_reservation
from eunomia.core.row_heap import next_place
from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia.model.policy import PolicyInfo
from eunomia.model.rank import BY_SERVICE_LEVEL, UNKNOWN, falls_behind_in
from eunomia.placement.selection import RESERVE, SKIP, STOP


def rank_of(info: PolicyInfo) -> int:
    """Return the constant of what a policy promises to rank by; `UNKNOWN` where its answer says more than an order."""
    rank = info.promises.rank
    return UNKNOWN if rank is None or not info.promises.covers_all_jobs or info.explains_waits else rank.by


@kernel(allocates=False, forceinline=True)
def _type_for(t: KernelArrays, row: int, room: Ints) -> int:
    """Return the fastest type that has room for a job, (type,); -1 = none."""
    for choice in range(len(room)):
        k: int = t.prefer[t.belief_ints[KIND, row], choice] if len(room) > 1 else 0
        if t.throughput[row, k] > 0 and t.ints[SCALE_FACTOR, row] <= room[k]:
            return k
    return -1


@kernel(allocates=False, forceinline=True)
def _choose(t: KernelArrays, rank: RankLine, at: float, stamp: int, scratch: Ints) -> tuple[int, int]:
    """Choose the gangs that run, best first, each on its fastest type that has room; list those that start.

    Return how many are listed, and how many jobs with seats are not chosen, which are listed as OPENED. Chosen jobs
    leave the line of those that wait. `scratch[ROOM]` (type,) is what a gang needs to be looked at: where the first
    gang that does not fit stops the queue, that it fits the cluster; else that it fits.
    """
    ints, line, waiting = t.ints, rank.holding, rank.waiting
    free = scratch[FREE, : len(t.floor.total)]  # and those that may be taken back
    room = scratch[ROOM, : len(free)] if rank.misfit == STOP else free
    gangs, left, place, end, out = 0, 0, 0, 0, 0
    if rank.recall:
        lower_keys(t, rank, at)
        end = end_of(line)
    for k in range(len(free)):
        free[k] = int(rank.capacity[k]) if rank.recall else t.floor.total[k]
        left += free[k]
        scratch[ROOM, k] = int(rank.capacity[k])
    next_waiting = next_with_room(t, waiting, rank.key, -1, room)
    while left > 0 and (place < end or next_waiting >= 0):
        # Who is next: a job with seats, or one that waits; and where it runs.
        row, is_seated = next_waiting, place < end
        if is_seated and (next_waiting < 0 or is_before(rank.key, row_at(line, place), next_waiting)):
            row = row_at(line, place)
        else:
            is_seated = False
        found = _type_for(t, row, free)
        if found < 0 and rank.misfit == STOP and (not is_seated or has_room(t, row, room)):
            break
        if is_seated:
            place = place_after(line, place)
            scratch[OPENED, out] = row
            out += found < 0
        elif found < 0:  # others have taken its room
            next_waiting = next_with_room(t, waiting, rank.key, row, room)
        if found < 0:
            continue
        # It runs: it keeps its seats, or is listed to start.
        free[found] -= ints[SCALE_FACTOR, row]
        left -= ints[SCALE_FACTOR, row]
        ints[LAST_PASS, row] = stamp
        if not is_seated:
            remove_row(t, waiting, rank.key, row)
            next_waiting = next_with_room(t, waiting, rank.key, row, room) if left > 0 else -1
        if ints[ON_TYPE, row] != found or ints[SHAPE, row] != 0 or ints[PARTNER, row] != -1:
            list_start(t, scratch, gangs, row, found)
            gangs += 1
    while place < end:
        scratch[OPENED, out] = row_at(line, place)
        place, out = place_after(line, place), out + 1
    return gangs, out


@kernel(allocates=False, forceinline=True)
def _is_left(t: KernelArrays, rank: RankLine, at: float, row: int, spare: int, edge: int) -> tuple[bool, int]:
    """Return whether a waiting gang has room: in `spare` accelerators, and those of running jobs behind it.

    `edge` is the first running job whose key is up to date, of which as many are made as have to be known; -1 = none.
    Return it, too.
    """
    line, key, size = rank.holding, rank.key, t.ints[SCALE_FACTOR, row]
    behind, known = place_of(line, key, row), end_of(line)
    if falls(rank) and edge >= 0:
        known = place_of(line, key, edge)
    elif not falls(rank):
        known = behind
    spare += size_from(t, line, max(behind, known))
    while spare < size and behind < known:
        known = lower_key(t, rank, at, known)
        lowered = row_at(line, known)
        if lowered != edge and lowered >= 0:
            edge = lowered
            spare += t.ints[SCALE_FACTOR, row_at(line, known)] * is_before(key, row, edge)
        behind = place_of(line, key, row)
    return spare >= size, edge


@kernel(allocates=False, forceinline=True)
def _choose_changes(t: KernelArrays, rank: RankLine, at: float, stamp: int, scratch: Ints) -> tuple[int, int]:
    """Do as `_choose` on a cluster of one type where any job may be stopped and gangs that do not fit are passed over.

    A waiting gang has room if it fits in what is spare, the free accelerators less those of gangs chosen before, and in
    those of running jobs behind it. Where too much is given, the first running job loses its seats behind which less
    runs than is missing. Jobs that lose them leave the line of those with seats.
    """
    line, key, waiting = rank.holding, rank.key, rank.waiting
    spare, room, edge, gangs, out = t.floor.total[0], scratch[ROOM, :1], -1, 0, 0
    room[0] = int(rank.capacity[0])
    row = next_with_room(t, waiting, key, -1, room)
    while row >= 0 or spare < 0:
        last = first_row_short_of(t, line, -spare)
        if spare < 0 and (row < 0 or is_before(key, last, row)):
            scratch[OPENED, out] = last
            spare += t.ints[SCALE_FACTOR, last]
            if last == edge:
                edge = next_row(line, key, last)
            let_go(t, rank, last)
            out += 1
            continue
        fits, edge = _is_left(t, rank, at, row, spare, edge)
        if fits:
            spare -= t.ints[SCALE_FACTOR, row]
            t.ints[LAST_PASS, row] = stamp
            remove_row(t, waiting, key, row)
            list_start(t, scratch, gangs, row, 0)
            gangs += 1
        room[0] = spare + size_from(t, line, place_of(line, key, row))  # at most, as keys may have fallen
        row = next_with_room(t, waiting, key, row, room) if room[0] > 0 else -1
    return gangs, out


@kernel(allocates=False, forceinline=True)
def _sort(rows: Ints) -> None:
    """Sort rows in place, the lowest first (D. L. Shell's method)."""
    step = len(rows) // 2
    while step > 0:
        for first in range(step, len(rows)):
            row, place = rows[first], first
            while place >= step and rows[place - step] > row:
                rows[place] = rows[place - step]
                place -= step
            rows[place] = row
        step = 1 if step == 2 else step * 5 // 11


@kernel(allocates=False, forceinline=True)
def follow_rank(t: KernelArrays, rank: RankLine, at: float, stamp: int, scratch: Ints, seats: Ints) -> tuple[int, int]:
    """Decide as a policy that ranks so; return stops and starts.

    `scratch` has what stopped and started, as after `placement_pass.follow`.
    """
    raise_levels(t, rank, at, scratch[OPENED])
    if rank.misfit == RESERVE:
        gangs, out = choose_beside_reservation(t, rank, at, stamp, scratch), 0
    elif rank.recall and rank.misfit == SKIP and len(rank.capacity) == 1 and not rank.span[ODD]:
        gangs, out = _choose_changes(t, rank, at, stamp, scratch)
    else:
        gangs, out = _choose(t, rank, at, stamp, scratch)
    leaves, nowhere = scratch[OPENED, :out], scratch[GANG_ROW, :0]
    _sort(leaves)
    stopped, _, started, _, _ = carry_out(t, at, np.inf, stamp, gangs, leaves, nowhere, scratch, seats)
    note_pass(t, rank, scratch[STOPPED, :stopped], scratch[LEAD, :started])
    return stopped, started


@kernel(allocates=False, forceinline=True)
def _falls_in(t: KernelArrays, rank: RankLine, at: float, row: int, behind: int) -> float:
    """Return in how many seconds a running job falls behind another; -1 = none, inf = never."""
    if behind < 0:
        return np.inf
    service, size = service_of(t, row, at), t.ints[SCALE_FACTOR, row]
    return float(falls_behind_in(row, behind, service, size, rank.key[behind], rank.quantum))


@kernel(allocates=False, forceinline=True)
def fall_at(t: KernelArrays, rank: RankLine, at: float, stamp: int, started: Ints) -> float:
    """Return when a chosen job first falls behind one that was not, as `model.rank.first_fall`; inf = never.

    All that stopped wait in their line again. Where no job may be stopped, those that ran are not chosen.
    """
    line, key, soonest, other = rank.holding, rank.key, np.inf, 0
    if rank.by != BY_SERVICE_LEVEL:
        return np.inf
    if not rank.recall:
        for row in started:
            behind, rival = next_row(rank.waiting, key, row), next_row(line, key, row)
            while rival >= 0 and t.ints[LAST_PASS, rival] == stamp:
                rival = next_row(line, key, rival)
            if behind < 0 or (rival >= 0 and is_before(key, rival, behind)):
                behind = rival
            soonest = min(soonest, _falls_in(t, rank, at, row, behind))
    # Else it is one whose level changes before any known to fall behind.
    first = next_row(rank.waiting, key, -1)
    while rank.recall and other < rank.span[HOLDING]:
        row = rank.next_level[other]
        is_near = rank.steady[row] <= at + soonest
        line.tally[LOOKED] += 1
        if is_near:
            behind = first if first < 0 or is_before(key, row, first) else next_row(rank.waiting, key, row)
            soonest = min(soonest, _falls_in(t, rank, at, row, behind))
        other = next_place(other, is_near, rank.span[HOLDING])
    return max(at + soonest, np.nextafter(at, np.inf)) if soonest < np.inf else np.inf


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
