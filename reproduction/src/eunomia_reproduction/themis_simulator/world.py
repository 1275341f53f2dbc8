"""The accelerators, the jobs, and the state of a run, as arrays for compiled loops. Times are minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints

NOT_ARRIVED, PRESENT, ENDED = 0, 1, 2
SAME = 1e-12  # relative distance of two times that are one moment
COUNT_SLACK = 1e-6  # of an iteration, when iterations are counted in a time


class Cluster(NamedTuple):
    """Where each accelerator is: units are slots, machines, racks and the cluster, numbered in this order."""

    unit: Ints  # (accelerator, 4) the slot, machine, rack and cluster that it is in
    units: Ints  # (4,) how many of each level
    above: Ints  # (unit, 4) the unit of each level that a unit is in, itself included; -1 below its own level


class Jobs(NamedTuple):
    """What is known of the jobs before a run, in order of arrival."""

    arrival: Floats  # (job,) ascending
    iterations: Ints  # (job,) until it ends: fewer than its own where its group stops it early
    minutes: Floats  # (job,) of one iteration on one accelerator
    width: Ints  # (job,) most accelerators that it can use
    factor: Floats  # (job, 4) S within a slot, a machine, a rack, and beyond; not rising
    kind: Ints  # (job,) equal for jobs of one width and one S
    loss: Floats  # (job, 4) a, b, c, d of its loss 1 / (a i^2 + b i + c) + d after i iterations


class Run(NamedTuple):
    """The state of a run. A job's present iterations began at `began` and all have its `current` accelerators."""

    clock: Floats  # (1,) the present moment
    holder: Ints  # (accelerator,) job; -1 = free
    lease_end: Floats  # (accelerator,)
    current: Ints  # (job, width) accelerators of the present iteration
    current_count: Ints  # (job,)
    won: Ints  # (job, width) accelerators that join at the next iteration
    won_count: Ints  # (job,)
    began: Floats  # (job,)
    left: Ints  # (job,) iterations left at `began`
    speed: Floats  # (job,) n * S of the current accelerators; 0 = it waits
    change_after: Ints  # (job,) iterations from `began` until it ends or holds other accelerators
    change_at: Floats  # (job,) inf = it waits
    ratio: Floats  # (job,) its estimate of ρ at the end of its last iterations; inf before the first
    lost_at: Floats  # (job,) when it last lost all its accelerators or got the first
    stage: Ints  # (job,) NOT_ARRIVED, PRESENT or ENDED
    used: Floats  # (job,) accelerator-minutes up to `began`
    ended: Floats  # (job,) nan = not yet
    excluded: Bools  # (job,) no bid fits it in the auctions of this moment
    draws: Ints  # (1,) state of the generator by which jobs with equal bids are drawn
    leases: Ints  # (1,) how many were given


def cluster_of(racks: Sequence[Sequence[Sequence[int]]]) -> Cluster:
    """Return the cluster of these racks: for each machine the sizes of its slots, in accelerators."""
    place, slots, machines = list[list[int]](), 0, 0
    for rack, of_rack in enumerate(racks):
        for of_machine in of_rack:
            for size in of_machine:
                place += [[slots, machines, rack, 0]] * size
                slots += 1
            machines += 1
    count = np.array([slots, machines, len(racks), 1], dtype=np.int64)
    unit = np.array(place, dtype=np.int64) + np.cumsum(count) - count
    above = np.full((count.sum(), len(count)), -1, dtype=np.int64)
    for level in range(len(count)):
        above[unit[:, level], level:] = unit[:, level:]
    return Cluster(unit, count, above)


def new_run(cluster: Cluster, jobs: Jobs, seed: int = 0) -> Run:
    """Return the state before the first job arrives; `seed` is of draws among equal bids."""
    count, wide, size = len(jobs.arrival), int(jobs.width.max()), len(cluster.unit)
    whole, real = np.zeros((8, count), dtype=np.int64), np.zeros((8, count))
    return Run(
        clock=np.zeros(1),
        holder=np.full(size, -1, dtype=np.int64),
        lease_end=np.zeros(size),
        current=np.zeros((count, wide), dtype=np.int64),
        current_count=whole[0],
        won=np.zeros((count, wide), dtype=np.int64),
        won_count=whole[1],
        began=real[0],
        left=jobs.iterations.copy(),
        speed=real[1],
        change_after=whole[2],
        change_at=np.full(count, np.inf),
        ratio=np.full(count, np.inf),
        lost_at=jobs.arrival - 1.0,
        stage=whole[3],
        used=real[2],
        ended=np.full(count, np.nan),
        excluded=np.zeros(count, dtype=np.bool_),
        draws=np.array([seed], dtype=np.int64),
        leases=np.zeros(1, dtype=np.int64),
    )


@kernel()
def speed_of(cluster: Cluster, factor: Floats, held: Ints, count: int) -> float:
    """Return n * S of the first `count` accelerators of `held` for a job with these factors (4,)."""
    if count == 0:
        return 0.0
    return float(count * factor[level_of(cluster, held, count)])


@kernel()
def level_of(cluster: Cluster, held: Ints, count: int) -> int:
    """Return the lowest level that has one unit with the first `count` accelerators of `held`."""
    level = 0
    for k in range(1, count):
        while cluster.unit[held[k], level] != cluster.unit[held[0], level]:
            level += 1
    return level


@kernel()
def done_now(jobs: Jobs, run: Run, job: int) -> int:
    """Return the iterations done since `began` by a job that runs."""
    per_iteration = jobs.minutes[job] / run.speed[job]
    return int((run.clock[0] - run.began[job]) / per_iteration + COUNT_SLACK)


@kernel()
def holds_next(jobs: Jobs, run: Run, job: int, held: Ints) -> int:
    """Write the accelerators that a job will hold after its present iteration into `held`; return how many."""
    count = int(run.won_count[job])
    for k in range(count):
        held[k] = run.won[job, k]
    if run.speed[job] > 0:
        end = run.began[job] + (done_now(jobs, run, job) + 1) * (jobs.minutes[job] / run.speed[job])
        for k in range(run.current_count[job]):
            if run.lease_end[run.current[job, k]] > end:
                held[count] = run.current[job, k]
                count += 1
    return count


@kernel()
def estimate(jobs: Jobs, run: Run, job: int, left: int, speed: float) -> float:
    """Return (age + time left) / (time alone at full width) of a job with so many iterations left at this speed."""
    ideal = jobs.minutes[job] * jobs.iterations[job] / jobs.width[job]
    return float((run.clock[0] - jobs.arrival[job] + left * jobs.minutes[job] / speed) / ideal)


@kernel()
def lease_to(run: Run, job: int, one: int, lease: float) -> None:
    """Lease a free accelerator to a job, from its next iteration on."""
    run.holder[one], run.lease_end[one] = job, run.clock[0] + lease
    run.won[job, run.won_count[job]] = one
    run.won_count[job] += 1
    run.leases[0] += 1
