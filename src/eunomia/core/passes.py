"""One pass over everybody: which seats may change hands, who gets them, who stops, goes on or starts. All compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from eunomia.core.moves import rise, sit
from eunomia.core.tables import (
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
    Tables,
    tables,
)
from eunomia.model.answers import ONE_MACHINE
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.placing.choose import RESERVE, Candidates, Seated, choose, choose_spare
from eunomia.placing.index import seat_gang

NOBODY, ENDED, RESTED, EVERYBODY = range(
    4
)  # whose seats are open: nobody's, of leases that ended, those that rested too
# What `follow` returns is one array: these counts, then the columns that `Told` in core.seating names.
STOPS, RENEWALS, STARTS, SEATS, MISPLACED, ODD, HEAD = range(7)


@njit(cache=True, forceinline=True)
def _open(t: Tables, at: float, opening: int) -> Ints:
    """Mark and return the jobs whose seats may be given anew now, in row order."""
    alive = t.counts[ALIVE]
    opened = np.empty(alive, dtype=np.int64)
    count = 0
    for row in t.active[:alive]:
        if t.ints[ON_TYPE, row] < 0:
            continue
        ended = opening >= ENDED and t.floats[UNTIL, row] <= at  # those given at this very instant are not open again
        ended |= opening == EVERYBODY or (opening == RESTED and t.flags[RESTING, row])
        t.flags[OPEN, row] = ended
        if ended:
            opened[count] = row
            count += 1
    return opened[:count]


@njit(cache=True, forceinline=True)
def _busy(t: Tables) -> Ints:
    """Return the jobs that hold seats, in row order."""
    active = t.active[: t.counts[ALIVE]]
    busy: Ints = active[t.ints[ON_TYPE][active] >= 0]
    return busy


@njit(cache=True, forceinline=True)
def _stop(t: Tables, row: int, at: float, stops: Ints, epochs: Ints, count: int) -> int:
    """Stop a job and whoever shares with it, unless they have stopped already; return how many stopped so far."""
    mate = t.ints[PARTNER, row]
    for job in (row, mate):
        if job >= 0 and t.ints[ON_TYPE, job] >= 0:
            stops[count], epochs[count] = job, t.ints[EPOCH, job]
            count += 1
            rise(t, job, at)
    return count


@njit(cache=True, forceinline=True)
def _renew(t: Tables, opened: Ints, job: Ints, partner: Ints, kept: Bools, until: float) -> Ints:
    """Let those who keep their seats have them until then; return them in row order."""
    renewed = np.empty(len(opened), dtype=np.int64)
    count = 0
    if until < np.inf:
        for g in range(len(job)):
            if kept[g]:
                t.flags[OPEN, job[g]] = False
                if partner[g] >= 0:
                    t.flags[OPEN, partner[g]] = False
        for row in opened:
            if not t.flags[OPEN, row]:
                t.floats[UNTIL, row], t.flags[RESTING, row] = until, False
                renewed[count] = row
                count += 1
    return renewed[:count]


@njit(cache=True, forceinline=True)
def _largest_first(size: Ints, kept: Bools) -> Ints:
    """Return the gangs that sit down anew, the largest first so that they sit close, else as they stand."""
    anew = np.flatnonzero(~kept)
    if len(anew) < 2:
        return anew
    widest = size.max()
    place = np.zeros(widest + 2, dtype=np.int64)  # (widest - size,) where the next gang of that size goes
    for g in anew:
        place[widest - size[g] + 1] += 1
    for smaller in range(widest + 1):
        place[smaller + 1] += place[smaller]
    order = np.empty(len(anew), dtype=np.int64)
    for g in anew:
        order[place[widest - size[g]]] = g
        place[widest - size[g]] += 1
    return order


@njit(cache=True, forceinline=True)
def _told(
    t: Tables, stops: Ints, epochs: Ints, renewed: Ints, lead: Ints, first: Ints, seats: Ints, misplaced: Ints, odd: int
) -> Ints:
    """Return what was done as one array, which is cheaper to hand out than nine."""
    told = np.empty(
        HEAD + 2 * len(stops) + len(renewed) + 6 * len(lead) + 1 + len(seats) + len(misplaced), dtype=np.int64
    )
    told[STOPS], told[RENEWALS], told[STARTS] = len(stops), len(renewed), len(lead)
    told[SEATS], told[MISPLACED], told[ODD] = len(seats), len(misplaced), odd
    place = HEAD
    for part in (stops, epochs, renewed, lead, first, seats, misplaced):
        told[place : place + len(part)] = part
        place += len(part)
    for row in lead:
        mate = t.ints[PARTNER, row]
        told[place], told[place + len(lead)] = t.ints[EPOCH, row], t.ints[SHAPE, row]
        told[place + 2 * len(lead)] = mate
        told[place + 3 * len(lead)] = t.ints[EPOCH, mate] if mate >= 0 else 0
        place += 1
    return told


@njit(cache=True)
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
    *arrays: Any,
) -> Ints:
    """Seat gangs as they stand in `line` (rows of the candidates); who sits on an open seat and is not chosen stops.

    With `fill` what is then still free goes to any active job that can use it. The result holds what changed, and the
    candidates that were chosen but found no seats near enough to each other.
    """
    t = tables(*arrays)
    ints = t.ints
    seated = Seated(ints[ON_TYPE], ints[SHAPE], ints[PARTNER], t.flags[OPEN], ints[HELD], t.floats[END])
    opened, free = _open(t, at, opening), t.floor.total.copy()
    for row in opened:
        free[ints[ON_TYPE, row]] += ints[HELD, row]
    busy = _busy(t) if misfit == RESERVE else opened
    rows = Candidates(job, type, size, partner, shape, run_time)
    chosen, kept = choose(rows, line, seated, free, busy, ints[TAKEN], stamp, misfit, at)
    active = t.active[: t.counts[ALIVE] if fill else 0]
    more, on, more_kept = choose_spare(
        active, ints[SCALE_FACTOR], t.belief_ints[KIND], t.prefer, t.throughput, seated, free, ints[TAKEN], stamp
    )
    # ---- gangs, those of the line first
    n, spare = len(chosen), len(more)
    gang, mate, kept = np.concatenate((job[chosen], more)), np.full(n + spare, -1), np.concatenate((kept, more_kept))
    mate[:n] = partner[chosen]
    wide = np.concatenate((size[chosen], ints[SCALE_FACTOR][more]))
    # ---- who stops
    stops, epochs = np.empty(t.counts[ALIVE], dtype=np.int64), np.empty(t.counts[ALIVE], dtype=np.int64)
    stopped = 0
    for row in opened:
        if ints[TAKEN, row] != stamp and ints[ON_TYPE, row] >= 0:
            stopped = _stop(t, row, at, stops, epochs, stopped)
    renewed = _renew(t, opened, gang, mate, kept, until)
    for movers in (gang, mate):
        for g in range(n + spare):
            if not kept[g] and movers[g] >= 0 and ints[ON_TYPE, movers[g]] >= 0:
                stopped = _stop(t, movers[g], at, stops, epochs, stopped)
    # ---- who starts
    anew = _largest_first(wide, kept)
    lead, misplaced = np.empty(len(anew), dtype=np.int64), np.empty(len(anew), dtype=np.int64)
    first, seats = np.zeros(len(anew) + 1, dtype=np.int64), np.empty(wide[anew].sum(), dtype=np.int64)
    started, missed, odd = 0, 0, 0
    for g in anew:
        k, form, near = (type[chosen[g]], shape[chosen[g]], within[chosen[g]]) if g < n else (on[g - n], 0, -1)
        low, high = first[started], first[started] + wide[g]
        if not seat_gang(t.floor, k, wide[g], near == ONE_MACHINE, seats[low:high]):
            misplaced[missed] = chosen[g]
            missed += 1
            ints[TAKEN, gang[g]] = 0
            if mate[g] >= 0:
                ints[TAKEN, mate[g]] = 0
            continue
        sit(t, gang[g], mate[g], k, form, seats[low:high], at, until)
        lead[started], first[started + 1] = gang[g], high
        odd += mate[g] >= 0 or form != 0
        started += 1
    return _told(
        t, stops[:stopped], epochs[:stopped], renewed, lead[:started], first[: started + 1],
        seats[: first[started]], misplaced[:missed], odd,
    )  # fmt: skip


@njit(cache=True)
def seat_only(at: float, until: float, *arrays: Any) -> Ints:
    """Seat the one waiting job that fits, on its fastest type that has room; do nothing if several fit, or none does.

    Return how many fit (2 = several), then its row and epoch and its seats.
    """
    t = tables(*arrays)
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
    if fits != 1:
        return np.array([fits])
    size = ints[SCALE_FACTOR, found]
    told = np.empty(3 + size, dtype=np.int64)
    seat_gang(t.floor, on, size, False, told[3:])
    sit(t, found, -1, on, 0, told[3:], at, until)
    told[0], told[1], told[2] = 1, found, ints[EPOCH, found]
    return told
