"""Iterations of all jobs: only those are visited after which a job ends or holds other accelerators."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia_reproduction.themis_simulator.world import (
    ENDED,
    NOT_ARRIVED,
    PRESENT,
    SAME,
    Cluster,
    Jobs,
    Run,
    done_now,
    estimate,
    speed_of,
)


@kernel()
def advance(cluster: Cluster, jobs: Jobs, run: Run) -> int:
    """Go to the next moment at which jobs arrive, end or change; return how many arrive or free accelerators.

    -1 = nothing happens any more.
    """
    arrival = np.inf
    for job in range(len(jobs.arrival)):
        if run.stage[job] == NOT_ARRIVED:
            arrival = jobs.arrival[job]
            break
    now = min(arrival, run.change_at.min())
    if now == np.inf:
        return -1
    run.clock[0] = now
    limit, events = now + SAME * now, 0
    for job in range(len(jobs.arrival)):
        if run.stage[job] == NOT_ARRIVED and jobs.arrival[job] <= limit:
            run.stage[job] = PRESENT
            events += 1
        elif run.change_at[job] <= limit:
            events += end_iteration(cluster, jobs, run, job)
    run.excluded[:] = False
    return events


@kernel()
def end_iteration(cluster: Cluster, jobs: Jobs, run: Run, job: int) -> int:
    """End the iteration after which a job ends or holds other accelerators; return 1 if any came free, else 0."""
    count, per_iteration = run.current_count[job], jobs.minutes[job] / run.speed[job]
    run.left[job] -= run.change_after[job]
    run.used[job] += run.change_after[job] * per_iteration * count
    run.ratio[job] = estimate(jobs, run, job, run.left[job], run.speed[job])
    if run.left[job] == 0:
        for k in range(count):
            run.holder[run.current[job, k]] = -1
        for k in range(run.won_count[job]):
            run.holder[run.won[job, k]] = -1
        run.current_count[job] = run.won_count[job] = 0
        run.speed[job], run.change_at[job] = 0.0, np.inf
        run.stage[job], run.ended[job] = ENDED, run.clock[0]
        return 1
    held = np.empty(count + run.won_count[job], dtype=np.int64)
    held[: run.won_count[job]] = run.won[job, : run.won_count[job]]
    held[run.won_count[job] :] = run.current[job, :count]
    kept = _kept(cluster, jobs, run, job, held)
    freed = kept < len(held)
    run.current[job, :kept], run.current_count[job] = held[:kept], kept
    run.won_count[job] = 0
    if kept == 0:
        run.speed[job], run.change_at[job], run.lost_at[job] = 0.0, np.inf, run.clock[0]
    else:
        start_iteration(cluster, jobs, run, job)
    return int(freed)


@kernel()
def _kept(cluster: Cluster, jobs: Jobs, run: Run, job: int, held: Ints) -> int:
    """Free what is leased for less than the next iteration; put the rest first in `held`, and return how many.

    The time of that iteration is what the authors' code takes for it: minutes * S / n, where it will be
    minutes / (n * S).
    """
    count, now = len(held), run.clock[0]
    kept = 0
    for k in range(count):
        if run.lease_end[held[k]] > now + SAME * now:
            held[kept] = held[k]
            kept += 1
        else:
            run.holder[held[k]] = -1
    while kept > 0:
        count, kept = kept, 0
        end = now + jobs.minutes[job] * speed_of(cluster, jobs.factor[job], held, count) / count / count
        for k in range(count):
            if end > run.lease_end[held[k]] * (1.0 + SAME):
                run.holder[held[k]] = -1
            else:
                held[kept] = held[k]
                kept += 1
        if kept == count:
            break
    return kept


@kernel()
def start_iteration(cluster: Cluster, jobs: Jobs, run: Run, job: int) -> None:
    """Start a job on its current accelerators, and find the end of the iteration after which they change."""
    count = run.current_count[job]
    speed = speed_of(cluster, jobs.factor[job], run.current[job], count)
    run.began[job], run.speed[job] = run.clock[0], speed
    first = np.inf
    for k in range(count):
        first = min(first, run.lease_end[run.current[job, k]])
    per_iteration, assumed = jobs.minutes[job] / speed, jobs.minutes[job] * speed / count / count
    fitting = (first * (1.0 + SAME) - assumed - run.clock[0]) / per_iteration
    _change_after(jobs, run, job, min(max(int(fitting) + 1, 1), run.left[job]))


@kernel()
def take_up(cluster: Cluster, jobs: Jobs, run: Run) -> None:
    """Start the jobs that wait and have won, and let those that run take up what they won at their next iteration."""
    for job in range(len(jobs.arrival)):
        count = run.won_count[job]
        if count == 0 or run.stage[job] != PRESENT:
            continue
        if run.speed[job] > 0:
            _change_after(jobs, run, job, min(run.change_after[job], done_now(jobs, run, job) + 1))
            continue
        run.current[job, :count], run.current_count[job] = run.won[job, :count], count
        run.won_count[job], run.lost_at[job] = 0, run.clock[0]
        start_iteration(cluster, jobs, run, job)


@kernel()
def _change_after(jobs: Jobs, run: Run, job: int, iterations: int) -> None:
    run.change_after[job] = iterations
    run.change_at[job] = run.began[job] + iterations * (jobs.minutes[job] / run.speed[job])
