"""One compiled pass over all jobs: find reassignable seats, choose gangs, stop, renew and start jobs.

A pass allocates nothing; it uses preallocated scratch arrays (see `scratch_arrays`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.core.kernel_arrays import (
    ALIVE,
    END,
    EPOCH,
    HELD,
    KIND,
    LAST_PASS,
    LEASE_EXTENDED,
    LEASE_SIZE,
    ON_TYPE,
    PARTNER,
    REASSIGNABLE,
    SCALE_FACTOR,
    SHAPE,
    STAGE,
    UNTIL,
    WAITING,
    KernelArrays,
    kernel_arrays,
)
from eunomia.core.transitions import allocate, allocate_alone, allocate_counted, release, release_counted
from eunomia.kernels import kernel
from eunomia.model.answers import ONE_MACHINE
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.placement.free_index import count_begun, seat_alike, seat_anywhere
from eunomia.placement.selection import RESERVE, Candidates, PlacementResult, choose_into, choose_spare_into

NO_SEATS, ENDED, EXTENDED, ALL_SEATS = range(4)  # reassignable seats: none; of ended leases; extended ones too; all
# The output of `follow`: these counts, then the columns that `PassResult` in core.apply_answer names.
STOPS, RENEWALS, STARTS, SEATS, MISPLACED, ODD, HEAD = range(7)
NOTHING = HEAD + 1  # length of the output of a pass that changed nothing
# What the policy's promises imply: nothing can change; the last answer holds; one job starts; it has to be asked.
UNTOUCHED, KEPT, STARTED, ASK = range(4)
_WAITS = int(Stage.WAITING)
_WORDS = 10  # per job in the output at most
# Columns of the scratch array: jobs with reassignable seats; of each gang its candidate (-1 = none), jobs, type, size,
# shape, and whether it keeps its seats; jobs stopped (with epochs) and renewed; gangs started and their first seats;
# in a pass by rank, by type, what a gang needs to be looked at.
(
    FREE, OPENED, GANG_ROW, GANG_JOB, GANG_MATE, GANG_TYPE, GANG_SIZE, GANG_SHAPE, GANG_KEPT, STOPPED, STOPPED_EPOCH,
    _RENEWED, _ANEW, LEAD, FIRST_SEAT, _MISPLACED, ROOM, _COLUMNS,
) = range(18)  # fmt: skip


def scratch_arrays(jobs: int, types: int, devices: int) -> tuple[Ints, Ints, Ints]:
    """Return scratch (column, row) for a pass over so many active jobs, for its seats, and for its output."""
    rows = max(jobs, types) + 1
    output = HEAD + _WORDS * rows + devices
    return np.empty((_COLUMNS, rows), np.int64), np.empty((2, devices + 2), np.int64), np.empty(output, np.int64)


@kernel(allocates=False, forceinline=True)
def list_reassignable(t: KernelArrays, at: float, opening: int, opened: Ints, free: Ints) -> int:
    """List the jobs with reassignable seats, in row order, and set `free` (type,) to match; return their number."""
    count = 0
    for k in range(len(free)):
        free[k] = t.floor.total[k]
    for row in t.active[: t.counts[ALIVE]]:  # few branches: running jobs are unpredictable
        k = t.ints[ON_TYPE, row]
        ended = (opening >= ENDED) & (t.floats[UNTIL, row] <= at)  # those given at this very instant are not open again
        ended |= (opening == ALL_SEATS) | ((opening == EXTENDED) & t.flags[LEASE_EXTENDED, row])
        ended &= (k >= 0) & ~t.flags[HELD, row]
        t.flags[REASSIGNABLE, row] = ended
        opened[count] = row
        count += ended
        free[max(k, 0)] += t.ints[LEASE_SIZE, row] * ended
    return count


@kernel(allocates=False, forceinline=True)
def _list_running(active: Ints, on_type: Ints, busy: Ints) -> int:
    """List the jobs that hold seats, in row order; return their number."""
    count = 0
    for row in active:
        if on_type[row] >= 0:
            busy[count] = row
            count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _stop(t: KernelArrays, row: int, at: float, stops: Ints, epochs: Ints, count: int) -> int:
    """Stop a job and its partner unless stopped already; return the number stopped so far."""
    mate = t.ints[PARTNER, row]
    for job in (row, mate):
        if job >= 0 and t.ints[ON_TYPE, job] >= 0:
            stops[count], epochs[count] = job, t.ints[EPOCH, job]
            count += 1
            if len(t.holder) == 0:
                release_counted(t, job, at)
            else:
                release(t, job, at)
    return count


@kernel(allocates=False, forceinline=True)
def _renew(ends: Floats, flags: Bools, opened: Ints, gangs: int, scratch: Ints, until: float) -> int:
    """Renew the leases of jobs that keep their seats; list them in row order and return their number."""
    count = 0
    if until < np.inf:
        for g in range(gangs):
            if scratch[GANG_KEPT, g]:
                flags[REASSIGNABLE, scratch[GANG_JOB, g]] = False
                if scratch[GANG_MATE, g] >= 0:
                    flags[REASSIGNABLE, scratch[GANG_MATE, g]] = False
        for row in opened:
            if not flags[REASSIGNABLE, row]:
                ends[row], flags[LEASE_EXTENDED, row] = until, False
                scratch[_RENEWED, count] = row
                count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _largest_first(gangs: int, scratch: Ints, place: Ints) -> int:
    """List the gangs to place, the largest first so that they are close, else in order; return their number.

    `place` is scratch space for a number by size.
    """
    size, kept, anew = scratch[GANG_SIZE], scratch[GANG_KEPT], scratch[_ANEW]
    widest = count = 0
    for g in range(gangs):
        widest = max(widest, size[g])
        count += not kept[g]
    for smaller in range(widest + 2):
        place[smaller] = 0  # (widest - size,) where the next gang of that size goes
    for g in range(gangs):
        if not kept[g]:
            place[widest - size[g] + 1] += 1
    for smaller in range(widest + 1):
        place[smaller + 1] += place[smaller]
    for g in range(gangs):
        if not kept[g]:
            anew[place[widest - size[g]]] = g
            place[widest - size[g]] += 1
    return count


@kernel(allocates=False, forceinline=True)
def _write_result(ints: Ints, counts: tuple[int, ...], scratch: Ints, seats: Ints, output: Ints) -> int:
    """Pack the result into one array, which is cheaper to return than nine; return its length."""
    stopped, renewed, started, missed, odd = counts
    taken = scratch[FIRST_SEAT, started]
    output[STOPS], output[RENEWALS], output[STARTS] = stopped, renewed, started
    output[SEATS], output[MISPLACED], output[ODD] = taken, missed, odd
    place = HEAD
    for part in (
        scratch[STOPPED, :stopped], scratch[STOPPED_EPOCH, :stopped], scratch[_RENEWED, :renewed],
        scratch[LEAD, :started], scratch[FIRST_SEAT, : started + 1], seats[:taken], scratch[_MISPLACED, :missed],
    ):  # fmt: skip
        for word in part:
            output[place] = word
            place += 1
    for row in scratch[LEAD, :started]:
        mate = ints[PARTNER, row]
        output[place], output[place + started] = ints[EPOCH, row], ints[SHAPE, row]
        output[place + 2 * started] = mate
        output[place + 3 * started] = ints[EPOCH, mate] if mate >= 0 else 0
        place += 1
    return place + 3 * started


@kernel(allocates=False, forceinline=True)
def _gangs(
    t: KernelArrays,
    at: float,
    stamp: int,
    misfit: int,
    fill: bool,
    line: Ints,
    rows: Candidates,
    opened: Ints,
    free: Ints,
    scratch: Ints,
) -> int:
    """List the gangs to run, those of the line first; return their number."""
    ints = t.ints
    seated = PlacementResult(
        ints[ON_TYPE], ints[SHAPE], ints[PARTNER], t.flags[REASSIGNABLE], ints[LEASE_SIZE], t.floats[END]
    )
    active = t.active[: t.counts[ALIVE]]
    busy = scratch[STOPPED, : _list_running(active, ints[ON_TYPE], scratch[STOPPED])] if misfit == RESERVE else opened
    chosen: int = choose_into(
        rows, line, seated, free, busy, ints[LAST_PASS], stamp, misfit, at, scratch[GANG_ROW], scratch[GANG_KEPT]
    )
    for g in range(chosen):
        row = scratch[GANG_ROW, g]
        scratch[GANG_JOB, g], scratch[GANG_MATE, g] = rows.job[row], rows.partner[row]
        scratch[GANG_TYPE, g], scratch[GANG_SIZE, g] = rows.type[row], rows.size[row]
        scratch[GANG_SHAPE, g] = rows.shape[row]
    if not fill:
        return chosen
    gangs: int = chosen + choose_spare_into(
        active, ints[SCALE_FACTOR], t.belief_ints[KIND], t.prefer, t.throughput, seated, free,
        ints[LAST_PASS], stamp, scratch[GANG_JOB, chosen:], scratch[GANG_TYPE, chosen:], scratch[GANG_KEPT, chosen:],
    )  # fmt: skip
    for g in range(chosen, gangs):
        scratch[GANG_ROW, g] = scratch[GANG_MATE, g] = -1
        scratch[GANG_SIZE, g], scratch[GANG_SHAPE, g] = ints[SCALE_FACTOR, scratch[GANG_JOB, g]], 0
    return gangs


@kernel(allocates=False, forceinline=True)
def _place_all(
    t: KernelArrays, gangs: int, within: Ints, scratch: Ints, seats: Ints, at: float, until: float
) -> tuple[int, int, int]:
    """Place gangs that have no seats yet; return how many start, are misplaced, and are pairs or other shapes."""
    ints, first, begun, listed = t.ints, scratch[FIRST_SEAT], scratch[FREE], scratch[OPENED]
    types, started, missed, odd, before = len(t.floor.total), 0, 0, 0, -1
    begun[:types], first[0] = -1, 0
    for g in scratch[_ANEW, : _largest_first(gangs, scratch, seats[1])]:
        lead, mate, form = scratch[GANG_JOB, g], scratch[GANG_MATE, g], scratch[GANG_SHAPE, g]
        row, k = scratch[GANG_ROW, g], scratch[GANG_TYPE, g]
        mine = seats[0, first[started] : first[started] + scratch[GANG_SIZE, g]]
        if len(mine) != before:
            before = len(mine)
            for other in range(types):
                count_begun(t.floor, other, begun, listed)
        close = row >= 0 and within[row] == ONE_MACHINE
        if seat_alike(t.floor, k, len(mine), close, mine, begun, listed):
            allocate(t, lead, mate, k, form, mine, at, until)
            scratch[LEAD, started], first[started + 1] = lead, first[started] + len(mine)
            odd += mate >= 0 or form != 0
            started += 1
            continue
        scratch[_MISPLACED, missed] = row
        missed += 1
        ints[LAST_PASS, lead] = 0
        if mate >= 0:
            ints[LAST_PASS, mate] = 0
    for other in range(types):
        count_begun(t.floor, other, begun, listed)
    return started, missed, odd


@kernel(allocates=False, forceinline=True)
def _count_all(t: KernelArrays, gangs: int, scratch: Ints, at: float) -> int:
    """Start gangs that have no seats yet where seats are only counted; return how many start."""
    started = 0
    for g in range(gangs):
        if not scratch[GANG_KEPT, g]:
            allocate_counted(t, scratch[GANG_JOB, g], scratch[GANG_TYPE, g], at)
            scratch[LEAD, started] = scratch[GANG_JOB, g]
            started += 1
    return started


@kernel(allocates=False, forceinline=True)
def list_start(t: KernelArrays, scratch: Ints, gang: int, row: int, type: int) -> None:
    """List a job to start."""
    scratch[GANG_ROW, gang] = scratch[GANG_MATE, gang] = -1
    scratch[GANG_JOB, gang], scratch[GANG_TYPE, gang] = row, type
    scratch[GANG_SIZE, gang], scratch[GANG_SHAPE, gang] = t.ints[SCALE_FACTOR, row], 0
    scratch[GANG_KEPT, gang] = False


@kernel(allocates=False, forceinline=True)
def carry_out(
    t: KernelArrays,
    at: float,
    until: float,
    stamp: int,
    gangs: int,
    opened: Ints,
    within: Ints,
    scratch: Ints,
    seats: Ints,
) -> tuple[int, int, int, int, int]:
    """Stop, renew and start jobs so that the listed gangs run.

    Return how many jobs stop, are renewed and start, and how many gangs are misplaced, and are pairs or other shapes.
    """
    ints, stopped, last_pass = t.ints, 0, t.ints[LAST_PASS]
    for row in opened:
        if last_pass[row] != stamp and ints[ON_TYPE, row] >= 0:
            stopped = _stop(t, row, at, scratch[STOPPED], scratch[STOPPED_EPOCH], stopped)
    renewed = _renew(t.floats[UNTIL], t.flags, opened, gangs, scratch, until)
    for column in (GANG_JOB, GANG_MATE):
        for g in range(gangs):
            mover = scratch[column, g]
            if not scratch[GANG_KEPT, g] and mover >= 0 and ints[ON_TYPE, mover] >= 0:
                stopped = _stop(t, mover, at, scratch[STOPPED], scratch[STOPPED_EPOCH], stopped)
    if len(t.holder) == 0:
        return stopped, renewed, _count_all(t, gangs, scratch, at), 0, 0
    started, missed, odd = _place_all(t, gangs, within, scratch, seats, at, until)
    return stopped, renewed, started, missed, odd


@kernel(allocates=False)
def follow(
    at: float,
    until: float,
    stamp: int,
    misfit: int,
    opening: int,
    fill: bool,
    line: Ints,
    job: Ints,
    type: Ints,
    size: Ints,
    partner: Ints,
    shape: Ints,
    within: Ints,
    run_time: Floats,
    scratch: Ints,
    seats: Ints,
    output: Ints,
    *arrays: Any,
) -> int:
    """Place gangs in the order of `line` (rows of the candidates); stop jobs on reassignable seats not chosen.

    With `fill` remaining seats go to any active job that can use them. `output` holds what changed, and the
    candidates that were chosen but found no seats near enough to each other; returns the length of that.
    """
    t = kernel_arrays(*arrays)
    ints, free = t.ints, scratch[FREE, : len(t.floor.total)]
    opened = scratch[OPENED, : list_reassignable(t, at, opening, scratch[OPENED], free)]
    rows = Candidates(job, type, size, partner, shape, run_time)
    gangs = _gangs(t, at, stamp, misfit, fill, line, rows, opened, free, scratch)
    changed = carry_out(t, at, until, stamp, gangs, opened, within, scratch, seats)
    length: int = _write_result(ints, changed, scratch, seats[0], output)
    return length


@kernel(allocates=False, forceinline=True)
def implied_start(t: KernelArrays, alone: bool, recall: bool, freed: Ints, gone: int) -> tuple[int, int, int]:
    """Return what the policy's promises imply for the waiting jobs (`UNTOUCHED` …), and the job to start and its type.

    `alone`: an answer is implied only if a single job waits. `freed` (type,) accelerators count as free, too. Among
    the active rows are `gone` that have ended.
    """
    free, fits, found, on, seen, room = t.floor.total, 0, -1, -1, 0, 0
    for k in range(len(free)):
        room += free[k] + freed[k]
    if t.counts[WAITING] == 0 or (room == 0 and not recall):
        return UNTOUCHED, -1, -1
    if alone and t.counts[WAITING] > 1:
        return ASK, -1, -1
    for place in range(t.counts[ALIVE] + gone - 1, -1, -1):
        row = t.active[place]
        if seen == t.counts[WAITING] or fits > 1:
            break
        if t.ints[ON_TYPE, row] >= 0 or t.ints[STAGE, row] != _WAITS:
            continue
        seen += 1
        for k in t.prefer[t.belief_ints[KIND, row]]:
            if t.throughput[row, k] > 0 and t.ints[SCALE_FACTOR, row] <= free[k] + freed[k]:
                fits, found, on = fits + 1, row, k
                break
    if fits > 1 or (fits == 0 and recall):
        return ASK, -1, -1
    return (STARTED if fits == 1 else KEPT), found, on


@kernel(allocates=False, forceinline=True)
def start_implied(t: KernelArrays, row: int, type: int, at: float, until: float, seats: Ints) -> None:
    """Start a waiting job on free accelerators of a type, and write them to `seats`."""
    seat_anywhere(t.floor, type, len(seats), seats)
    allocate_alone(t, row, type, 0, seats, at, until)


@kernel(allocates=False, reads_all=False)
def follow_implied(at: float, until: float, alone: bool, recall: bool, output: Ints, *arrays: Any) -> int:
    """Start the job that the policy's promises imply, if they do; see `implied_start`.

    Return what they imply, and write down the row and epoch of a started job, how many seats it has, and which.
    """
    t = kernel_arrays(*arrays)
    freed = output[: len(t.floor.total)]
    freed[:] = 0
    implied, row, type = implied_start(t, alone, recall, freed, 0)
    if implied == STARTED:
        size = t.ints[SCALE_FACTOR, row]
        start_implied(t, row, type, at, until, output[3 : 3 + size])
        output[0], output[1], output[2] = row, t.ints[EPOCH, row], size
    return implied
