"""Answers in place of a policy that promises by what it ranks jobs: the same order, pass and next ask, compiled.

`PolicyInfo.ranks_by` and `service_quantum` say what the rank is; `eunomia.testing` checks that the policy keeps to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.core.kernel_arrays import (
    ALIVE,
    DONE,
    KIND,
    LAST_PASS,
    ON_TYPE,
    PARTNER,
    RATE,
    RATE_SINCE,
    REASSIGNABLE,
    SCALE_FACTOR,
    SERVED_SINCE,
    SERVICE,
    SHAPE,
    STAGE,
    TOTAL,
    WIDTH,
    KernelArrays,
)
from eunomia.core.placement_pass import (
    ALL_SEATS,
    FREE,
    GANG_JOB,
    GANG_KEPT,
    GANG_MATE,
    GANG_ROW,
    GANG_SHAPE,
    GANG_SIZE,
    GANG_TYPE,
    NO_SEATS,
    OPENED,
    carry_out,
    list_reassignable,
)
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.policy import PolicyInfo
from eunomia.model.rank import (
    BY_SCALE_FACTOR,
    BY_SERVICE_LEVEL,
    BY_SUBMISSION,
    NUMBER_OF,
    UNKNOWN,
    falls_behind_in,
    key_of,
)
from eunomia.model.rounding import rounded_as_seen

_RUNS = int(Stage.RUNNING)


class PassRank(NamedTuple):
    """How a policy ranks, and what of the last order is kept."""

    by: int  # a constant of above
    quantum: float  # accelerator-seconds of a level
    recall: bool  # seats may be taken back at any moment
    queues: bool  # the first gang that does not fit stops the queue; else it is passed over
    capacity: Floats  # (type,) accelerators in service
    line: Ints  # jobs in the last order; with room for all active ones
    key: Floats  # (place,) scratch space


def rank_of(info: PolicyInfo) -> int:
    """Return the constant of what a policy promises to rank by; `UNKNOWN` where its answer says more than an order."""
    if not info.covers_all_jobs or info.explains_waits:
        return UNKNOWN
    return BY_SERVICE_LEVEL if info.service_quantum > 0 else NUMBER_OF[info.ranks_by]


@kernel(allocates=False, forceinline=True)
def _service(t: KernelArrays, row: int, at: float) -> float:
    """Return the attained accelerator-seconds of a job as a view has them."""
    held = (at - t.ledger_floats[SERVED_SINCE, row]) * t.ledger_ints[WIDTH, row]
    return float(rounded_as_seen(t.ledger_floats[SERVICE, row] + held))


@kernel(allocates=False, forceinline=True)
def _remaining(t: KernelArrays, row: int, at: float) -> float:
    """Return the believed steps that a job still has to do as a view has them."""
    floats = t.belief_floats
    run = max(at - floats[RATE_SINCE, row], 0.0) * floats[RATE, row]
    return float(rounded_as_seen(max(floats[TOTAL, row] - floats[DONE, row] - run, 0.0)))


@kernel(allocates=False, forceinline=True)
def _key(t: KernelArrays, rank: PassRank, row: int, at: float) -> float:
    """Return the rank of a job; the lowest is first."""
    size, service, remaining, best = t.ints[SCALE_FACTOR, row], 0.0, 0.0, 0.0
    if rank.by == BY_SERVICE_LEVEL:
        service = _service(t, row, at)
    elif rank.by != BY_SCALE_FACTOR:
        remaining = _remaining(t, row, at)
        for k in range(len(rank.capacity)):
            if size <= rank.capacity[k]:
                best = max(best, t.throughput[row, k])
    return float(key_of(rank.by, rank.quantum, size, service, remaining, best))


@kernel(allocates=False, forceinline=True)
def _sort(t: KernelArrays, rank: PassRank, at: float, length: int) -> int:
    """Bring the line, the order of an earlier moment of so many jobs, up to date; return how many jobs it has now.

    Jobs that were submitted since are added, those that ended dropped, and keys are written.
    """
    alive, count, known, line, key = t.counts[ALIVE], 0, -1, rank.line, rank.key
    for place in range(length):
        row = line[place]
        if t.ints[STAGE, row] <= _RUNS:
            line[count], known = row, max(known, row)
            count += 1
    first = alive  # active rows ascend, so that those submitted since are the last
    while first > 0 and t.active[first - 1] > known:
        first -= 1
    if count + alive - first != alive:  # others came back meanwhile
        count = first = 0
    for place in range(first, alive):
        line[count] = t.active[place]
        count += 1
    for place in range(count):
        row = line[place]
        mine, free = _key(t, rank, row, at), place
        while free > 0 and (key[free - 1] > mine or (key[free - 1] == mine and line[free - 1] > row)):
            key[free], line[free] = key[free - 1], line[free - 1]
            free -= 1
        key[free], line[free] = mine, row
    return count


@kernel(allocates=False, forceinline=True)
def _choose(t: KernelArrays, rank: PassRank, order: Ints, stamp: int, free: Ints, scratch: Ints) -> int:
    """List the gangs that run, best first, each on its fastest type that has room; return their number."""
    ints, left, gangs = t.ints, 0, 0
    for k in range(len(free)):
        left += free[k]
    for row in order:
        if left == 0:
            break
        if ints[ON_TYPE, row] >= 0 and not t.flags[REASSIGNABLE, row]:
            continue
        found, can_run, size = -1, False, ints[SCALE_FACTOR, row]
        for k in t.prefer[t.belief_ints[KIND, row]]:
            if found < 0 and t.throughput[row, k] > 0 and size <= rank.capacity[k]:
                can_run = True
                if size <= free[k]:
                    found = k
        if found < 0:
            if rank.queues and can_run:
                break
            continue
        free[found] -= size
        left -= size
        ints[LAST_PASS, row] = stamp
        scratch[GANG_ROW, gangs] = scratch[GANG_MATE, gangs] = -1
        scratch[GANG_JOB, gangs], scratch[GANG_TYPE, gangs] = row, found
        scratch[GANG_SIZE, gangs], scratch[GANG_SHAPE, gangs] = size, 0
        scratch[GANG_KEPT, gangs] = ints[ON_TYPE, row] == found and ints[SHAPE, row] == 0 and ints[PARTNER, row] == -1
        gangs += 1
    return gangs


@kernel(allocates=False, forceinline=True)
def _first_fall(t: KernelArrays, at: float, line: Ints, key: Floats, stamp: int, quantum: float) -> float:
    """Return when a chosen job first falls behind one that waits, as `model.service_levels.first_fall`; inf = never."""
    soonest, rival = np.inf, -1
    for place in range(len(line) - 1, -1, -1):
        row = line[place]
        if t.ints[LAST_PASS, row] != stamp:
            rival = place
        elif rival >= 0:
            size = t.ints[SCALE_FACTOR, row]
            left = falls_behind_in(row, line[rival], _service(t, row, at), size, key[rival], quantum)
            soonest = min(soonest, left)
    return max(at + soonest, np.nextafter(at, np.inf)) if soonest < np.inf else np.inf


@kernel(allocates=False, forceinline=True)
def follow_rank(
    t: KernelArrays, rank: PassRank, at: float, stamp: int, length: int, scratch: Ints, seats: Ints
) -> tuple[int, int, int, float]:
    """Decide as a policy that ranks so; return the length of the line, stops, starts, and when to ask again.

    `length` is that of the line so far. `scratch` has what stopped and started, as after `placement_pass.follow`.
    """
    free = scratch[FREE, : len(t.floor.total)]
    opening = ALL_SEATS if rank.recall else NO_SEATS
    opened = scratch[OPENED, : list_reassignable(t, at, opening, scratch[OPENED], free)]
    order = t.active[: t.counts[ALIVE]]
    if rank.by != BY_SUBMISSION:
        length = _sort(t, rank, at, length)
        order = rank.line[:length]
    gangs = _choose(t, rank, order, stamp, free, scratch)
    again_at = np.inf
    if rank.by == BY_SERVICE_LEVEL:
        again_at = _first_fall(t, at, order, rank.key, stamp, rank.quantum)
    nowhere = scratch[GANG_ROW, :0]
    stopped, _, started, _, _ = carry_out(t, at, np.inf, stamp, gangs, opened, nowhere, scratch, seats)
    return length, stopped, started, again_at
