"""The rivals as the authors' code has them: each free accelerator goes to the highest bid, one after the other.

Beside that, as other schedulers do it: the job with the highest bid gets at once all that it can still use, in the
smallest unit that has as many free.

Bids are by what a job holds after its present iteration, with and without this accelerator. Of equal bids the job
wins that holds fewer, then the one that waits or runs longer, then the lower one.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia_reproduction.themis_simulator.bids import LEVELS
from eunomia_reproduction.themis_simulator.world import (
    PRESENT,
    Cluster,
    Jobs,
    Run,
    done_now,
    holds_next,
    lease_to,
    speed_of,
)

OPTIMUS, SLAQ, GANDIVA, TIRESIAS, SRTF, SRSF = range(6)
NEAR = 1e-9  # relative: bids that are equal
WHOLE = 10  # added to the number of a rival that serves whole jobs


@kernel()
def give_singly(cluster: Cluster, jobs: Jobs, run: Run, rival: int, lease: float) -> bool:
    """Lease every free accelerator that some job can use; say whether any was leased."""
    whole, rival, one = rival >= WHOLE, rival % WHOLE, 0
    held, given = np.empty(run.won.shape[1] * 2, dtype=np.int64), False
    wanting, count = np.empty(len(jobs.arrival), dtype=np.int64), np.empty(len(jobs.arrival), dtype=np.int64)
    bid, jobs_wanting = np.empty(len(jobs.arrival)), 0
    while one < len(run.holder):
        if run.holder[one] >= 0:
            one += 1
            continue
        if not given:
            for job in range(len(jobs.arrival)):
                if run.stage[job] == PRESENT:
                    count[job] = holds_next(jobs, run, job, held)
                    if count[job] < jobs.width[job]:
                        wanting[jobs_wanting] = job
                        bid[job] = _bid(cluster, jobs, run, job, one, rival, lease)
                        jobs_wanting += 1
        winner = -1
        for k in range(jobs_wanting):
            job = wanting[k]
            if count[job] >= jobs.width[job]:
                continue
            if count[job] > 0:  # what a job bids that holds nothing is the same for each accelerator
                bid[job] = _bid(cluster, jobs, run, job, one, rival, lease)
            if winner < 0 or _is_before(run, job, winner, bid, count):
                winner = job
        if winner < 0:
            break
        if whole:
            _lease_rest(cluster, jobs, run, winner, lease)
            count[winner] = jobs.width[winner]
        else:
            lease_to(run, winner, one, lease)
            count[winner] += 1
        given = True
    return given


@kernel()
def _lease_rest(cluster: Cluster, jobs: Jobs, run: Run, job: int, lease: float) -> None:
    """Lease to a job all that it can still use, or all that is free, as near to what it holds and together as it can.

    Of units of one level the one with the fewest free accelerators is taken, of these the lower one.
    """
    held = np.empty(run.won.shape[1] * 2, dtype=np.int64)
    count = holds_next(jobs, run, job, held)
    missing = min(jobs.width[job] - count, np.count_nonzero(run.holder < 0))
    for level in range(LEVELS):
        free = np.zeros(int(cluster.units.sum()), dtype=np.int64)
        for one in range(len(run.holder)):
            if run.holder[one] < 0:
                free[cluster.unit[one, level]] += 1
        best = -1
        for unit in range(len(free)):
            near = count == 0 or level == LEVELS - 1 or cluster.unit[held[0], level] == unit
            if near and free[unit] >= missing and (best < 0 or free[unit] < free[best]):
                best = unit
        if best < 0:
            continue
        for one in range(len(run.holder)):
            if missing > 0 and run.holder[one] < 0 and cluster.unit[one, level] == best:
                lease_to(run, job, one, lease)
                missing -= 1
        return


@kernel()
def _is_before(run: Run, job: int, other: int, bid: Floats, count: Ints) -> bool:
    """Say whether a job's bid is higher than that of another with a lower number, or level and its job before it."""
    one, best = bid[job], bid[other]
    near = NEAR * max(abs(one), abs(best)) if np.isfinite(one) and np.isfinite(best) else 0.0
    if one != best and not abs(one - best) <= near:
        return bool(one > best)
    if count[job] != count[other]:
        return bool(count[job] < count[other])
    return bool(run.lost_at[job] < run.lost_at[other])


@kernel()
def _bid(cluster: Cluster, jobs: Jobs, run: Run, job: int, one: int, rival: int, lease: float) -> float:
    """Return the bid of a job for one more accelerator."""
    held = np.empty(run.won.shape[1] * 2, dtype=np.int64)
    count = holds_next(jobs, run, job, held)
    done = done_now(jobs, run, job) if run.speed[job] > 0 else 0
    left = run.left[job] - done
    work = left * jobs.minutes[job]
    now = speed_of(cluster, jobs.factor[job], held, count)
    held[count] = one
    then = speed_of(cluster, jobs.factor[job], held, count + 1)
    if rival == OPTIMUS:
        age = run.clock[0] - jobs.arrival[job]
        return float((age + work / now) / (age + work / then)) if now > 0 else np.inf
    if rival == SLAQ:
        i = jobs.iterations[job] - left
        return loss(jobs, job, i) - loss(jobs, job, i + int(lease / then))
    if rival == GANDIVA:
        return then
    if rival == TIRESIAS:
        started = (
            (done + 1) * jobs.minutes[job] / run.speed[job] * run.current_count[job] if run.speed[job] > 0 else 0.0
        )
        return -float(run.used[job] + started)
    if rival == SRTF:
        return -float(work * then / (count + 1) / (count + 1))
    return -float((jobs.iterations[job] - left) * jobs.minutes[job])


@kernel()
def loss(jobs: Jobs, job: int, iteration: int) -> float:
    """Return the loss after so many iterations."""
    a, b, c, d = jobs.loss[job, 0], jobs.loss[job, 1], jobs.loss[job, 2], jobs.loss[job, 3]
    return float(1.0 / (a * iteration * iteration + b * iteration + c) + d)
