"""Who bids in an auction of the authors' code, and for what.

Of the jobs that hold fewer accelerators than their width the worst-off bid: those with the largest estimates of ρ. The
estimate of a job that waits is its last one times the minutes that it has waited, plus 1; infinite before the first.

A bid is for a number of accelerators within a unit: for each size those with the best S of all that the job would then
hold, and its worth is ln(n * S) of that. All choices of accelerators within one unit are worth the same, so bids fit
together exactly if in each unit the bids within it need no more than is free there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.elementary import log_one
from eunomia_reproduction.themis_simulator.world import (
    PRESENT,
    Cluster,
    Jobs,
    Run,
    done_now,
    estimate,
    holds_next,
    level_of,
)

SPLITTER = 2.0**23 + 1.0  # rounds to 30 bits
LEAST_WORTH = 1e-5  # of a bid with which a job would be no faster than on one accelerator
LEVELS = 4
WORST_FIRST, DRAWN, LOWEST_FIRST = range(3)  # which of two jobs with equal bids wins


class Bidding(NamedTuple):
    """The bids of one auction, those of a bidder side by side."""

    job: Ints  # (row,)
    size: Ints  # (row,) accelerators
    unit: Ints  # (row,) within which they are
    worth: Floats  # (row,)
    free: Ints  # (unit,) free accelerators


@kernel()
def worst_off(jobs: Jobs, run: Run, part: float, order: int) -> Ints:
    """Return the jobs that may bid: the worst-off ⌊part of those that want more⌋, at least one; none if none wants.

    Among jobs that are level at the cut a draw decides, with the same seed each time. `order` says in which order they
    are returned, and so which of two jobs with equal bids wins: WORST_FIRST, DRAWN or LOWEST_FIRST.
    """
    wanting, value = np.empty(len(jobs.arrival), dtype=np.int64), np.empty(len(jobs.arrival))
    held, count = np.empty(run.won.shape[1] * 2, dtype=np.int64), 0
    for job in range(len(jobs.arrival)):
        if run.stage[job] != PRESENT or run.excluded[job] or holds_next(jobs, run, job, held) >= jobs.width[job]:
            continue
        wanting[count], value[count] = job, _rounded(unfairness(jobs, run, job))
        count += 1
    if count == 0:
        return wanting[:0]
    wanting, value = wanting[:count], value[:count]
    chosen = max(int(part * count + 1e-9), 1)
    level = -np.partition(-value, chosen - 1)[chosen - 1]
    above = np.flatnonzero(value > level)
    if order == WORST_FIRST:
        above = above[np.argsort(-value[above], kind="mergesort")]
    ties = wanting[value == level]
    shuffle(ties, chosen - len(above), np.zeros(1, dtype=np.int64))
    bidders = np.concatenate((wanting[above], ties[: chosen - len(above)]))
    if order == DRAWN:
        shuffle(bidders, chosen, run.draws)
    return np.sort(bidders) if order == LOWEST_FIRST else bidders


@kernel()
def shuffle(values: Ints, count: int, state: Ints) -> None:
    """Draw the first `count` values from all, by a linear congruential generator with `state` (1,)."""
    for k in range(min(count, len(values) - 1)):
        state[0] = (state[0] * 1103515245 + 12345) % 2147483648
        other = k + (state[0] >> 8) % (len(values) - k)
        values[k], values[other] = values[other], values[k]


@kernel()
def unfairness(jobs: Jobs, run: Run, job: int) -> float:
    """Return the estimate of ρ by which bidders are chosen."""
    if run.speed[job] > 0:
        return estimate(jobs, run, job, run.left[job] - done_now(jobs, run, job), run.speed[job])
    return float(run.ratio[job] * (run.clock[0] - run.lost_at[job] + 1.0))


@kernel()
def _rounded(value: float) -> float:
    wide = value * SPLITTER
    return wide - (wide - value) if value < 1e300 else np.inf


@kernel()
def bids_of(cluster: Cluster, jobs: Jobs, run: Run, bidders: Ints, tie: float) -> Bidding:
    """Return the bids of these jobs; of those that hold nothing and are alike, only as many as could all win.

    `tie` is added to the worth of each bid: above 0 more winners are preferred where sums are equal, below 0 fewer.
    """
    free = np.zeros(int(cluster.units.sum()), dtype=np.int64)
    for one in range(len(run.holder)):
        if run.holder[one] < 0:
            for level in range(LEVELS):
                free[cluster.unit[one, level]] += 1
    kinds = int(jobs.kind.max()) + 1
    room = int(jobs.width.max() * cluster.units.max()) * min(len(bidders), kinds * free[-1] + len(run.holder))
    owner, size_of = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    unit_of, worth, rows = np.empty(room, dtype=np.int64), np.empty(room), 0
    alike = np.zeros(kinds, dtype=np.int64)
    held = np.empty(run.won.shape[1] * 2, dtype=np.int64)
    for job in bidders:
        count = holds_next(jobs, run, job, held)
        if count == 0:
            alike[jobs.kind[job]] += 1
            if alike[jobs.kind[job]] > free[-1]:
                continue
        for size in range(1, min(jobs.width[job] - count, free[-1]) + 1):
            level = _best_level(cluster, jobs.factor[job], free, held, count, size)
            speed = (count + size) * jobs.factor[job, level]
            if speed < 1.0 or (count > 0 and not _is_faster(cluster, jobs, run, job, held, count, speed)):
                continue
            begin = cluster.units[:level].sum()
            for unit in range(begin, begin + cluster.units[level]):
                if free[unit] >= size and (count == 0 or cluster.unit[held[0], level] == unit):
                    owner[rows], size_of[rows], unit_of[rows] = job, size, unit
                    worth[rows] = (log_one(speed) if speed > 1.0 else LEAST_WORTH) + tie
                    rows += 1
    return Bidding(owner[:rows], size_of[:rows], unit_of[:rows], worth[:rows], free)


@kernel()
def _best_level(cluster: Cluster, factor: Floats, free: Ints, held: Ints, count: int, size: int) -> int:
    """Return the highest level on which a job has the best S that it can have with `size` accelerators more."""
    best = level_of(cluster, held, count)
    while not _has_room(cluster, free, held, count, size, best):
        best += 1
    while best < LEVELS - 1 and factor[best + 1] == factor[best]:
        best += 1
    return best


@kernel()
def _has_room(cluster: Cluster, free: Ints, held: Ints, count: int, size: int, level: int) -> bool:
    if count > 0:
        return bool(free[cluster.unit[held[0], level]] >= size)
    begin = cluster.units[:level].sum()
    return bool(free[begin : begin + cluster.units[level]].max() >= size)


@kernel()
def _is_faster(cluster: Cluster, jobs: Jobs, run: Run, job: int, held: Ints, count: int, speed: float) -> bool:
    """Say whether the time left at this speed is below the job's age and time left with what it holds."""
    left = run.left[job] - (done_now(jobs, run, job) if run.speed[job] > 0 else 0)
    work, now = left * jobs.minutes[job], count * jobs.factor[job, level_of(cluster, held, count)]
    return bool(work / speed < run.clock[0] - jobs.arrival[job] + work / now)
