"""One pass over everybody: which seats may change hands, who gets them, who stops, goes on or starts. All compiled.

A pass makes no array: it writes on `paper`, a table of numbers that the books keep at hand (see `sheets`).
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
    ON_TYPE,
    OPEN,
    PARTNER,
    RESTING,
    SCALE_FACTOR,
    SHAPE,
    TAKEN,
    UNTIL,
    WAITING,
    KernelArrays,
    kernel_arrays,
)
from eunomia.core.transitions import allocate, release
from eunomia.kernels import kernel
from eunomia.model.answers import ONE_MACHINE
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.placement.free_index import count_begun, seat_alike, seat_gang
from eunomia.placement.selection import RESERVE, Candidates, PlacementResult, choose_into, choose_spare_into

NOBODY, ENDED, RESTED, EVERYBODY = range(
    4
)  # whose seats are open: nobody's, of leases that ended, those that rested too
# What `follow` writes down are these counts, then the columns that `PassResult` in core.apply_answer names.
STOPS, RENEWALS, STARTS, SEATS, MISPLACED, ODD, HEAD = range(7)
_WORDS = 10  # of what is written down about one job at the most
# Columns of the paper: jobs whose seats are open; of each gang its candidate (-1 = none), jobs, type, size and shape,
# and whether it keeps its seats; jobs that stop, with epochs, and go on; gangs that start, and where their seats begin.
(
    _FREE, _OPENED, _ROW, _JOB, _MATE, _TYPE, _SIZE, _SHAPE, _KEPT, _STOPS, _EPOCHS, _RENEWED, _ANEW, _LEAD, _FIRST,
    _MISPLACED, _COLUMNS,
) = range(17)  # fmt: skip


def scratch_arrays(jobs: int, types: int, devices: int) -> tuple[Ints, Ints, Ints]:
    """Return paper for a pass over so many active jobs, for the seats that it gives, and for what it tells."""
    rows = max(jobs, types) + 1
    told = HEAD + _WORDS * rows + devices
    return np.empty((_COLUMNS, rows), np.int64), np.empty((2, devices + 2), np.int64), np.empty(told, np.int64)


@kernel(allocates=False, forceinline=True)
def _open(t: KernelArrays, at: float, opening: int, opened: Ints, free: Ints) -> int:
    """Write down the jobs whose seats may be given anew now, in row order, and what is free then; return how many."""
    count = 0
    for k in range(len(free)):
        free[k] = t.floor.total[k]
    for row in t.active[: t.counts[ALIVE]]:  # few branches: who sits cannot be foreseen
        k = t.ints[ON_TYPE, row]
        ended = (opening >= ENDED) & (t.floats[UNTIL, row] <= at)  # those given at this very instant are not open again
        ended |= (opening == EVERYBODY) | ((opening == RESTED) & t.flags[RESTING, row])
        ended &= k >= 0
        t.flags[OPEN, row] = ended
        opened[count] = row
        count += ended
        free[max(k, 0)] += t.ints[HELD, row] * ended
    return count


@kernel(allocates=False, forceinline=True)
def _busy(active: Ints, on_type: Ints, busy: Ints) -> int:
    """Write down the jobs that hold seats, in row order; return how many."""
    count = 0
    for row in active:
        if on_type[row] >= 0:
            busy[count] = row
            count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _stop(t: KernelArrays, row: int, at: float, stops: Ints, epochs: Ints, count: int) -> int:
    """Stop a job and whoever shares with it, unless they have stopped already; return how many stopped so far."""
    mate = t.ints[PARTNER, row]
    for job in (row, mate):
        if job >= 0 and t.ints[ON_TYPE, job] >= 0:
            stops[count], epochs[count] = job, t.ints[EPOCH, job]
            count += 1
            release(t, job, at)
    return count


@kernel(allocates=False, forceinline=True)
def _renew(ends: Floats, flags: Bools, opened: Ints, gangs: int, paper: Ints, until: float) -> int:
    """Let those who keep their seats have them until then; write them down in row order and return how many."""
    count = 0
    if until < np.inf:
        for g in range(gangs):
            if paper[_KEPT, g]:
                flags[OPEN, paper[_JOB, g]] = False
                if paper[_MATE, g] >= 0:
                    flags[OPEN, paper[_MATE, g]] = False
        for row in opened:
            if not flags[OPEN, row]:
                ends[row], flags[RESTING, row] = until, False
                paper[_RENEWED, count] = row
                count += 1
    return count


@kernel(allocates=False, forceinline=True)
def _largest_first(gangs: int, paper: Ints, place: Ints) -> int:
    """Write down who sits down anew, the largest first so that they sit close, else as they stand; return how many.

    `place` is scratch space for a number by size.
    """
    size, kept, anew = paper[_SIZE], paper[_KEPT], paper[_ANEW]
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
def _told(ints: Ints, counts: tuple[int, ...], paper: Ints, seats: Ints, told: Ints) -> int:
    """Write down what was done, which is cheaper to hand out as one array than as nine; return how much it is."""
    stopped, renewed, started, missed, odd = counts
    taken = paper[_FIRST, started]
    told[STOPS], told[RENEWALS], told[STARTS] = stopped, renewed, started
    told[SEATS], told[MISPLACED], told[ODD] = taken, missed, odd
    place = HEAD
    for part in (
        paper[_STOPS, :stopped], paper[_EPOCHS, :stopped], paper[_RENEWED, :renewed], paper[_LEAD, :started],
        paper[_FIRST, : started + 1], seats[:taken], paper[_MISPLACED, :missed],
    ):  # fmt: skip
        for word in part:
            told[place] = word
            place += 1
    for row in paper[_LEAD, :started]:
        mate = ints[PARTNER, row]
        told[place], told[place + started] = ints[EPOCH, row], ints[SHAPE, row]
        told[place + 2 * started] = mate
        told[place + 3 * started] = ints[EPOCH, mate] if mate >= 0 else 0
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
    paper: Ints,
) -> int:
    """Write down who is to sit, gang by gang, those of the line first; return how many gangs they are."""
    ints = t.ints
    seated = PlacementResult(ints[ON_TYPE], ints[SHAPE], ints[PARTNER], t.flags[OPEN], ints[HELD], t.floats[END])
    active = t.active[: t.counts[ALIVE]]
    busy = paper[_STOPS, : _busy(active, ints[ON_TYPE], paper[_STOPS])] if misfit == RESERVE else opened
    chosen: int = choose_into(rows, line, seated, free, busy, ints[TAKEN], stamp, misfit, at, paper[_ROW], paper[_KEPT])
    for g in range(chosen):
        row = paper[_ROW, g]
        paper[_JOB, g], paper[_MATE, g], paper[_TYPE, g] = rows.job[row], rows.partner[row], rows.type[row]
        paper[_SIZE, g], paper[_SHAPE, g] = rows.size[row], rows.shape[row]
    if not fill:
        return chosen
    gangs: int = chosen + choose_spare_into(
        active, ints[SCALE_FACTOR], t.belief_ints[KIND], t.prefer, t.throughput, seated, free,
        ints[TAKEN], stamp, paper[_JOB, chosen:], paper[_TYPE, chosen:], paper[_KEPT, chosen:],
    )  # fmt: skip
    for g in range(chosen, gangs):
        paper[_ROW, g] = paper[_MATE, g] = -1
        paper[_SIZE, g], paper[_SHAPE, g] = ints[SCALE_FACTOR, paper[_JOB, g]], 0
    return gangs


@kernel(allocates=False, forceinline=True)
def _seat_all(
    t: KernelArrays, gangs: int, within: Ints, paper: Ints, seats: Ints, at: float, until: float
) -> tuple[int, int, int]:
    """Seat those who do not keep their seats; return how many sit, found no place, and are pairs or in other shapes."""
    ints, first, begun, listed = t.ints, paper[_FIRST], paper[_FREE], paper[_OPENED]
    types, started, missed, odd, before = len(t.floor.total), 0, 0, 0, -1
    begun[:types], first[0] = -1, 0
    for g in paper[_ANEW, : _largest_first(gangs, paper, seats[1])]:
        lead, mate, form, row, k = paper[_JOB, g], paper[_MATE, g], paper[_SHAPE, g], paper[_ROW, g], paper[_TYPE, g]
        mine = seats[0, first[started] : first[started] + paper[_SIZE, g]]
        if len(mine) != before:
            before = len(mine)
            for other in range(types):
                count_begun(t.floor, other, begun, listed)
        close = row >= 0 and within[row] == ONE_MACHINE
        if seat_alike(t.floor, k, len(mine), close, mine, begun, listed):
            allocate(t, lead, mate, k, form, mine, at, until)
            paper[_LEAD, started], first[started + 1] = lead, first[started] + len(mine)
            odd += mate >= 0 or form != 0
            started += 1
            continue
        paper[_MISPLACED, missed] = row
        missed += 1
        ints[TAKEN, lead] = 0
        if mate >= 0:
            ints[TAKEN, mate] = 0
    for other in range(types):
        count_begun(t.floor, other, begun, listed)
    return started, missed, odd


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
    paper: Ints,
    seats: Ints,
    told: Ints,
    *arrays: Any,
) -> int:
    """Seat gangs as they stand in `line` (rows of the candidates); who sits on an open seat and is not chosen stops.

    With `fill` what is then still free goes to any active job that can use it. `told` holds what changed, and the
    candidates that were chosen but found no seats near enough to each other; returned is how long that is.
    """
    t = kernel_arrays(*arrays)
    ints, free = t.ints, paper[_FREE, : len(t.floor.total)]
    opened = paper[_OPENED, : _open(t, at, opening, paper[_OPENED], free)]
    rows = Candidates(job, type, size, partner, shape, run_time)
    gangs = _gangs(t, at, stamp, misfit, fill, line, rows, opened, free, paper)
    stopped = 0
    for row in opened:
        if ints[TAKEN, row] != stamp and ints[ON_TYPE, row] >= 0:
            stopped = _stop(t, row, at, paper[_STOPS], paper[_EPOCHS], stopped)
    renewed = _renew(t.floats[UNTIL], t.flags, opened, gangs, paper, until)
    for column in (_JOB, _MATE):
        for g in range(gangs):
            mover = paper[column, g]
            if not paper[_KEPT, g] and mover >= 0 and ints[ON_TYPE, mover] >= 0:
                stopped = _stop(t, mover, at, paper[_STOPS], paper[_EPOCHS], stopped)
    started, missed, odd = _seat_all(t, gangs, within, paper, seats, at, until)
    length: int = _told(ints, (stopped, renewed, started, missed, odd), paper, seats[0], told)
    return length


@kernel(allocates=False)
def place_one(at: float, until: float, told: Ints, *arrays: Any) -> int:
    """Seat the one waiting job that fits, on its fastest type that has room; do nothing if several fit, or none does.

    Return how many fit (2 = several), and write down its row and epoch, how many seats it has, and which.
    """
    t = kernel_arrays(*arrays)
    ints, free = t.ints, t.floor.total
    fits, found, on, seen = 0, -1, -1, 0
    for place in range(t.counts[ALIVE] - 1, -1, -1):
        row = t.active[place]
        if seen == t.counts[WAITING] or fits > 1:
            break
        if ints[ON_TYPE, row] >= 0:
            continue
        seen += 1
        for k in t.prefer[t.belief_ints[KIND, row]]:
            if t.throughput[row, k] > 0 and ints[SCALE_FACTOR, row] <= free[k]:
                fits, found, on = fits + 1, row, k
                break
    if fits == 1:
        size = ints[SCALE_FACTOR, found]
        seats = told[3 : 3 + size]
        seat_gang(t.floor, on, size, False, seats)
        allocate(t, found, -1, on, 0, seats, at, until)
        told[0], told[1], told[2] = found, ints[EPOCH, found], size
    return fits
