"""Answers in place of a policy that promises by what it ranks jobs: the same order, pass and next ask, compiled.

`Promises.rank` says what the rank is; `eunomia.testing` checks that the policy keeps to it.
The order is that of `core.rank_line`. The pass walks it from its head until no accelerator is left.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.kernel_arrays import KIND, LAST_PASS, ON_TYPE, PARTNER, SCALE_FACTOR, SHAPE, KernelArrays
from eunomia.core.placement_pass import (
    FREE,
    GANG_JOB,
    GANG_KEPT,
    GANG_MATE,
    GANG_ROW,
    GANG_SHAPE,
    GANG_SIZE,
    GANG_TYPE,
    LEAD,
    STOPPED,
    carry_out,
)
from eunomia.core.rank_line import HEAD, HOLDING, TAIL, RankLine, is_whole, note_pass, service_of, update_line
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
def _choose(t: KernelArrays, rank: RankLine, stamp: int, free: Ints, scratch: Ints) -> tuple[int, int]:
    """Choose the gangs that run, best first, each on its fastest type that has room; list those that start.

    Return their number, and the place up to which the line was walked. A line of waiting jobs loses those that run.
    """
    ints, line, span, whole = t.ints, rank.line, rank.span, is_whole(rank)
    size_of, on_type, last_pass, kind_of = ints[SCALE_FACTOR], ints[ON_TYPE], ints[LAST_PASS], t.belief_ints[KIND]
    gangs, left, widest, types = 0, 0, 0, len(free)
    for k in range(len(free)):
        left += free[k]
        widest = max(widest, free[k])
    place, passed = span[HEAD], span[HEAD]
    while place < span[TAIL] and left > 0:
        row = line[place]
        place += 1
        size, found, can_run = size_of[row], -1, False
        # On which type: most jobs of a deep queue are wider than all that is left, so their types are not looked at.
        if size <= widest or rank.queues:
            if not rank.recall and on_type[row] >= 0:
                continue
            for choice in range(types):
                k = t.prefer[kind_of[row], choice] if types > 1 else 0
                if t.throughput[row, k] > 0:
                    can_run |= size <= rank.capacity[k]
                    if size <= free[k]:
                        found = k
                        break
        # It does not fit: others pass it, or the queue stops.
        if found < 0:
            if not whole:
                line[passed] = row
                passed += 1
            if rank.queues and can_run:
                break
            continue
        # It runs: it keeps its seats, or is listed to start.
        free[found] -= size
        left -= size
        if size > free[found]:
            widest = 0
            for k in range(types):
                widest = max(widest, free[k])
        last_pass[row] = stamp
        if on_type[row] == found and ints[SHAPE, row] == 0 and ints[PARTNER, row] == -1:
            continue  # it keeps its seats
        scratch[GANG_ROW, gangs] = scratch[GANG_MATE, gangs] = -1
        scratch[GANG_JOB, gangs], scratch[GANG_TYPE, gangs] = row, found
        scratch[GANG_SIZE, gangs], scratch[GANG_SHAPE, gangs], scratch[GANG_KEPT, gangs] = size, 0, False
        gangs += 1
    # Those that were passed over move up to the rest of the line, which may be long.
    if not whole and gangs > 0:
        begin, end = span[HEAD], place
        while passed > begin:
            passed, end = passed - 1, end - 1
            line[end] = line[passed]
        span[HEAD] = end
    return gangs, place


@kernel(allocates=False, forceinline=True)
def _first_fall(t: KernelArrays, rank: RankLine, at: float, walked: int, stamp: int) -> float:
    """Return when a chosen job first falls behind one that waits, as `model.rank.first_fall`; inf = never.

    Behind the place up to which the line was `walked` no job was chosen.
    """
    line, soonest = rank.line, np.inf
    rival = line[walked] if walked < rank.span[TAIL] else -1
    for place in range(walked - 1, rank.span[HEAD] - 1, -1):
        row = line[place]
        if t.ints[LAST_PASS, row] != stamp:
            rival = row
        elif rival >= 0:
            size = t.ints[SCALE_FACTOR, row]
            left = falls_behind_in(row, rival, service_of(t, row, at), size, rank.key[rival], rank.quantum)
            soonest = min(soonest, left)
    return max(at + soonest, np.nextafter(at, np.inf)) if soonest < np.inf else np.inf


@kernel(allocates=False, forceinline=True)
def follow_rank(
    t: KernelArrays, rank: RankLine, at: float, stamp: int, rows: int, scratch: Ints, seats: Ints
) -> tuple[int, int, float]:
    """Decide as a policy that ranks so, of `rows` jobs so far; return stops, starts, and when to ask again.

    `scratch` has what stopped and started, as after `placement_pass.follow`.
    """
    free, again_at = scratch[FREE, : len(t.floor.total)], np.inf
    update_line(t, rank, at, rows, scratch[GANG_JOB], scratch[GANG_MATE])
    _count_free(t, rank, free)
    gangs, walked = _choose(t, rank, stamp, free, scratch)
    if rank.by == BY_SERVICE_LEVEL:
        again_at = _first_fall(t, rank, at, walked, stamp)
    opened = rank.holding[: rank.span[HOLDING] if rank.recall else 0]
    nowhere = scratch[GANG_ROW, :0]
    stopped, _, started, _, _ = carry_out(t, at, np.inf, stamp, gangs, opened, nowhere, scratch, seats)
    note_pass(rank, scratch[STOPPED, :stopped], scratch[LEAD, :started])
    return stopped, started, again_at
