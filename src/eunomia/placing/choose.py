"""Who may run, by an order: one pass over the candidates, gang by gang, counting accelerators by type.

Gangs may spread over nodes, so a gang fits exactly when its type has enough accelerators left; where it then sits
is the floor's concern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from eunomia.model.arrays import Bools, Floats, Ints

SKIP, STOP, RESERVE = 0, 1, 2
MISFIT = {"skip": SKIP, "stop": STOP, "reserve": RESERVE}


class Candidates(NamedTuple):
    """Rows of an order, best first; several rows of one job stand together."""

    job: Ints  # (row,) rows of the job table
    type: Ints  # (row,)
    size: Ints  # (row,) accelerators
    partner: Ints  # (row,) -1 = none
    shape: Ints  # (row,)
    run_time: Floats  # (row,) seconds that it is believed to need; only read for RESERVE

    def take(self, rows: Ints) -> Candidates:
        """Return these rows only."""
        job, type, size, partner, shape, run_time = self
        return Candidates(job[rows], type[rows], size[rows], partner[rows], shape[rows], run_time[rows])


class Seated(NamedTuple):
    """Who sits now, over the whole job table."""

    on_type: Ints  # (job,) -1 = waiting
    shape: Ints  # (job,)
    partner: Ints  # (job,)
    open: Bools  # (job,) its seats may be given anew
    held: Ints  # (job,) accelerators; 0 for the second of a pair
    end: Floats  # (job,) when its seats are believed to come free; only read for RESERVE


@njit(cache=True)
def _reservation(
    k: int, size: int, at: float, free: Ints, busy: Ints, seated: Seated, rows: Candidates, chosen: Ints, picked: int
) -> tuple[float, int]:
    """Return when `size` accelerators of type k are believed free, and how many are free beyond them then."""
    ends = np.empty(len(busy) + picked)
    gives = np.empty(len(busy) + picked, dtype=np.int64)
    n = 0
    for job in busy:
        if seated.on_type[job] == k and not seated.open[job]:
            ends[n], gives[n] = seated.end[job], seated.held[job]
            n += 1
    for i in range(picked):
        row = chosen[i]
        if rows.type[row] == k:
            ends[n], gives[n] = at + rows.run_time[row], rows.size[row]
            n += 1
    order = np.argsort(ends[:n])
    left, shadow = free[k], np.inf
    for i in order:
        if left >= size and ends[i] > shadow:
            break
        left += gives[i]
        if left >= size and shadow == np.inf:
            shadow = ends[i]
    return shadow, max(left - size, 0)


@njit(cache=True)
def with_open(free: Ints, seated: Seated, opened: Ints) -> Ints:
    """Return free seats and those of the jobs `opened`, (type,)."""
    total = free.copy()
    for job in opened:
        total[seated.on_type[job]] += seated.held[job]
    return total


@njit(cache=True)
def choose(
    rows: Candidates, seated: Seated, free: Ints, busy: Ints, taken: Ints, stamp: int, misfit: int, at: float
) -> tuple[Ints, Bools]:
    """Walk the candidates; return the rows that run, and which of them keep the seats they have.

    `free` (type,) counts free seats and those that are open; it is used up. `busy` (k,) are the jobs that hold
    seats, only read for RESERVE. `taken` (job,) is scratch space: jobs that are settled get the value `stamp`.
    """
    chosen = np.empty(len(rows.job), dtype=np.int64)
    kept = np.zeros(len(rows.job), dtype=np.bool_)
    picked, left = 0, free.sum()
    held_type, shadow, extra = -1, np.inf, 0  # the one reservation
    for row in range(len(rows.job)):
        job, mate, k, size = rows.job[row], rows.partner[row], rows.type[row], rows.size[row]
        if taken[job] == stamp or (mate >= 0 and taken[mate] == stamp):
            continue
        if seated.on_type[job] >= 0 and not seated.open[job]:
            continue
        if mate >= 0 and seated.on_type[mate] >= 0 and not seated.open[mate]:
            continue
        fits = size <= free[k]
        if fits and held_type == k and not (at + rows.run_time[row] <= shadow < np.inf):
            fits = size <= extra
            if fits:
                extra -= size
        if fits:
            free[k] -= size
            left -= size
            taken[job] = stamp
            if mate >= 0:
                taken[mate] = stamp
            chosen[picked] = row
            kept[picked] = (
                seated.on_type[job] == k and seated.shape[job] == rows.shape[row] and seated.partner[job] == mate
            )
            picked += 1
            continue
        if misfit == SKIP:
            if left == 0:
                break
            continue
        if row + 1 < len(rows.job) and rows.job[row + 1] == job:
            continue  # it has another wish
        if misfit == STOP:
            break
        if held_type < 0:  # RESERVE: for the first gang that does not fit, on the type where it can start first
            first = row
            while first > 0 and rows.job[first - 1] == job:
                first -= 1
            held_type = k
            for wish in range(first, row + 1):
                when, spare = _reservation(
                    rows.type[wish], rows.size[wish], at, free, busy, seated, rows, chosen, picked
                )
                if wish == first or when < shadow:
                    held_type, shadow, extra = rows.type[wish], when, spare
            if shadow == np.inf:  # too few are in service, whoever ends: there is nothing to keep for it
                held_type = -1
    return chosen[:picked], kept[:picked]


@njit(cache=True)
def would_run(job: Ints, type: Ints, size: Ints, jobs: int, free: Ints) -> Bools:
    """Return who of `jobs` would run if all seats were given anew in that order, gangs that do not fit skipped.

    `free` (type,) counts all seats; it is used up.
    """
    runs = np.zeros(jobs, dtype=np.bool_)
    for row in range(len(job)):
        if not runs[job[row]] and size[row] <= free[type[row]]:
            free[type[row]] -= size[row]
            runs[job[row]] = True
    return runs
