"""Selects jobs to run by an order: one pass over the candidates, gang by gang, counting accelerators by type.

Gangs may spread over nodes, so a gang fits exactly when its type has enough accelerators left; its devices
are chosen by the free index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.sorting import sorted_places

SKIP, STOP, RESERVE = 0, 1, 2
MISFIT = {"skip": SKIP, "stop": STOP, "reserve": RESERVE}


class Candidates(NamedTuple):
    """What could run, in any order. A line names rows of it, best first; those of one job stand together there."""

    job: Ints  # (row,) rows of the job table
    type: Ints  # (row,)
    size: Ints  # (row,) accelerators
    partner: Ints  # (row,) -1 = none
    shape: Ints  # (row,)
    run_time: Floats  # (row,) seconds that it is believed to need; only read for RESERVE, else it may be empty


class PlacementResult(NamedTuple):
    """Present allocations, over the whole job table."""

    on_type: Ints  # (job,) -1 = waiting
    shape: Ints  # (job,)
    partner: Ints  # (job,)
    reassignable: Bools  # (job,) its seats may be reassigned
    lease_size: Ints  # (job,) accelerators; 0 for the second of a pair
    end: Floats  # (job,) when its seats are believed to come free; only read for RESERVE


@kernel(allocates=True)
def _reservation(
    k: int,
    size: int,
    at: float,
    free: Ints,
    busy: Ints,
    seated: PlacementResult,
    rows: Candidates,
    chosen: Ints,
    picked: int,
) -> tuple[float, int]:
    """Return when `size` accelerators of type k are believed free, and how many are free beyond them then."""
    ends = np.empty(len(busy) + picked)
    gives = np.empty(len(busy) + picked, dtype=np.int64)
    n = 0
    for job in busy:
        if seated.on_type[job] == k and not seated.reassignable[job]:
            ends[n], gives[n] = seated.end[job], seated.lease_size[job]
            n += 1
    for i in range(picked):
        row = chosen[i]
        if rows.type[row] == k:
            ends[n], gives[n] = at + rows.run_time[row], rows.size[row]
            n += 1
    order = sorted_places(ends[:n])
    left, shadow = free[k], np.inf
    for i in order:
        if left >= size and ends[i] > shadow:
            break
        left += gives[i]
        if left >= size and shadow == np.inf:
            shadow = ends[i]
    return shadow, max(left - size, 0)


@kernel(allocates=False, forceinline=True)
def _may_run(job: int, seated: PlacementResult, marks: Ints, stamp: int) -> bool:
    """Return whether a job may be given seats: not yet chosen, and without seats or with reassignable ones."""
    may: bool = (marks[job] != stamp) & ((seated.on_type[job] < 0) | seated.reassignable[job])
    return may


@kernel(allocates=False, forceinline=True)
def _choose_skipping(
    rows: Candidates, line: Ints, seated: PlacementResult, free: Ints, marks: Ints, stamp: int, chosen: Ints, kept: Ints
) -> int:
    """Fill `chosen` and `kept` with rows that fit; return their number. Few branches: fits are unpredictable."""
    picked, left = 0, 0
    for k in range(len(free)):
        left += free[k]
    for place in range(len(line)):
        if left == 0:
            break
        row = line[place]
        job, mate, k, size = rows.job[row], rows.partner[row], rows.type[row], rows.size[row]
        fits = (size <= free[k]) & _may_run(job, seated, marks, stamp)
        if mate >= 0:
            fits &= _may_run(mate, seated, marks, stamp)
        if not fits:
            continue
        free[k] -= size
        left -= size
        marks[job] = stamp
        if mate >= 0:
            marks[mate] = stamp
        chosen[picked] = row
        kept[picked] = (
            (seated.on_type[job] == k) & (seated.shape[job] == rows.shape[row]) & (seated.partner[job] == mate)
        )
        picked += 1
    return picked


@kernel(allocates=False)
def choose_into(
    rows: Candidates,
    line: Ints,
    seated: PlacementResult,
    free: Ints,
    busy: Ints,
    marks: Ints,
    stamp: int,
    misfit: int,
    at: float,
    chosen: Ints,
    kept: Ints,
) -> int:
    """Do as `choose`, into arrays that have room for as many gangs as can run; return how many were chosen."""
    picked: int = 0
    if misfit == SKIP:
        picked = _choose_skipping(rows, line, seated, free, marks, stamp, chosen, kept)
        return picked
    held_type, shadow, extra = -1, np.inf, 0  # the one reservation
    for place in range(len(line)):
        row = line[place]
        job, mate, k, size = rows.job[row], rows.partner[row], rows.type[row], rows.size[row]
        if not _may_run(job, seated, marks, stamp) or (mate >= 0 and not _may_run(mate, seated, marks, stamp)):
            continue
        # it fits, and beside a reservation of its type it ends before that, or leaves enough for it
        fits = size <= free[k]
        if fits and held_type == k and not (at + rows.run_time[row] <= shadow < np.inf):
            fits = size <= extra
            if fits:
                extra -= size
        if fits:
            free[k] -= size
            marks[job] = stamp
            if mate >= 0:
                marks[mate] = stamp
            chosen[picked] = row
            kept[picked] = (
                seated.on_type[job] == k and seated.shape[job] == rows.shape[row] and seated.partner[job] == mate
            )
            picked += 1
            continue
        # it does not fit: a gang with several candidates is one that does not fit when the last does not
        if place + 1 < len(line) and rows.job[line[place + 1]] == job:
            continue  # it has another wish
        # then the order stops here, or the first such gang gets a reservation
        if misfit == STOP:
            break
        if held_type < 0:  # RESERVE: for the first gang that does not fit, on the type where it can start first
            first = place
            while first > 0 and rows.job[line[first - 1]] == job:
                first -= 1
            held_type = k
            for other in range(first, place + 1):
                wish = line[other]
                when, spare = _reservation(
                    rows.type[wish], rows.size[wish], at, free, busy, seated, rows, chosen, picked
                )
                if other == first or when < shadow:
                    held_type, shadow, extra = rows.type[wish], when, spare
            if shadow == np.inf:  # too few are in service, even when all jobs end: reserve nothing
                held_type = -1
    return picked


@kernel()
def choose(
    rows: Candidates,
    line: Ints,
    seated: PlacementResult,
    free: Ints,
    busy: Ints,
    marks: Ints,
    stamp: int,
    misfit: int,
    at: float,
) -> tuple[Ints, Bools]:
    """Walk the candidates in `line`; return the rows that run, and which of them keep the seats they have.

    `free` (type,) counts free seats and those that are open; it is used up. `busy` (k,) are the jobs that hold
    seats, only read for RESERVE. `marks` (job,) is scratch space: jobs that are settled get the value `stamp`.
    """
    chosen, kept = np.empty(len(line), dtype=np.int64), np.zeros(len(line), dtype=np.int64)
    picked = choose_into(rows, line, seated, free, busy, marks, stamp, misfit, at, chosen, kept)
    return chosen[:picked], kept[:picked] > 0


@kernel(allocates=False, forceinline=True)
def choose_spare_into(
    jobs: Ints,
    size: Ints,
    kind: Ints,
    prefer: Ints,
    throughput: Floats,
    seated: PlacementResult,
    free: Ints,
    marks: Ints,
    stamp: int,
    chosen: Ints,
    on_type: Ints,
    kept: Ints,
) -> int:
    """Give what is still free to `jobs`, the first first, each alone and as asked, on its fastest type that has room.

    `size` and `kind` (job,) and `throughput` (job, type) are those of the whole table, `prefer` (kind, type) names
    types, the fastest first; `free` and `marks` as above. List the jobs that run, their types, and whether they keep
    their seats; return their number.
    """
    picked, left = 0, 0
    for k in range(len(free)):
        left += free[k]
    for job in jobs:
        if left == 0:
            break
        if marks[job] == stamp or (seated.on_type[job] >= 0 and not seated.reassignable[job]):
            continue
        for k in prefer[kind[job]]:
            if throughput[job, k] > 0 and size[job] <= free[k]:
                free[k] -= size[job]
                left -= size[job]
                marks[job] = stamp
                chosen[picked], on_type[picked] = job, k
                kept[picked] = seated.on_type[job] == k and seated.shape[job] == 0 and seated.partner[job] == -1
                picked += 1
                break
    return picked


@kernel()
def replanned(job: Ints, type: Ints, size: Ints, jobs: int, free: Ints) -> Ints:
    """Return the type on which each of `jobs` would run if all accelerators were given anew, -1 = it would wait.

    job, type, size (row,) are candidates, best first; those that do not fit are skipped. `free` (type,) counts all
    accelerators and is used up.
    """
    types = np.full(jobs, -1)
    for row in range(len(job)):
        if types[job[row]] < 0 and size[row] <= free[type[row]]:
            free[type[row]] -= size[row]
            types[job[row]] = type[row]
    return types
