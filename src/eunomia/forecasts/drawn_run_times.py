"""Draws what is left of each job from what is believed of it, and the jobs that tenants will submit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage

OVERRUN_STEEPNESS = 4.0  # of the distribution of a declared total that a job has exceeded
LONGEST_S = 30 * 86_400.0  # of what is drawn: no forecast looks further ahead
LEAST_S = 1e-3
ALIKE = 0.6  # how often a job turns out as long or short, for what was believed of it, as others of its tenant and size
DAY_S = 86_400.0
SPAN_S = 7 * DAY_S  # for so long arrivals are drawn


def draw_totals(scheduler: Scheduler, at: float, futures: int, seed: int) -> Floats:
    """Return the total steps of every job in each future, (future, row).

    A declared total is taken as it is. An estimated one, and a declared one that the job has exceeded, is drawn from
    the log-logistic distribution of the belief, given the steps done so far: P(total > x) = 1 / (1 + (x / α)^β).
    """
    belief, n = scheduler.belief, len(scheduler.state.jobs)
    total = belief.total[:n]
    done = belief.done[:n] + np.maximum(at - belief.since[:n], 0.0) * belief.rate[:n]
    found = np.broadcast_to(np.maximum(total, done), (futures, n)).copy()
    steepness = np.where(belief.steepness[:n] > 0, belief.steepness[:n], OVERRUN_STEEPNESS)
    rows = np.sort(np.concatenate((scheduler.state.active, scheduler.state.paused())))
    rows = rows[(belief.steepness[rows] > 0) | (done[rows] >= total[rows])]
    if len(rows) == 0:
        return found
    jobs = scheduler.state.jobs
    level = _levels(jobs.owner[rows], jobs.scale_factor[rows], futures, seed)  # P(total > x | total > done)
    alpha, beta = total[rows], steepness[rows]
    past = 1.0 + elementary.power(done[rows] / alpha, beta)
    drawn = alpha * elementary.power(np.maximum(past / np.maximum(level, 1e-9) - 1.0, 1e-300), 1.0 / beta)
    speed = belief.throughput[rows].max(axis=1)
    least, most = done[rows] + LEAST_S * speed, done[rows] + LONGEST_S * speed
    found[:, rows] = np.clip(drawn, least, most)
    return found


def _levels(owner: Ints, size: Ints, futures: int, seed: int) -> Floats:
    """Return levels between 0 and 1, (future, job), evenly distributed for each job.

    Those of one job are spread over its distribution (one in each of as many equal parts as there are futures, in an
    order drawn by `seed`), so few futures say more. Jobs of one tenant and size are alike: in a future each has
    their common level with probability `ALIKE`. A further job changes no level of those before it.
    """
    number = owner * (1 + size.max()) + size  # of one dimension: `np.unique` of pairs takes ten times as long
    _, first, kind = np.unique(number, return_index=True, return_inverse=True)
    seeds = zip(owner[first].tolist(), size[first].tolist(), strict=True)
    common = _spread(np.array([np.random.default_rng((seed, 1, *each)).random((2, futures)) for each in seeds]))[kind]
    draws = np.random.default_rng((seed, 2)).random((len(owner), 3, futures))
    return np.asarray(np.where(draws[:, 2] < ALIKE, common, _spread(draws[:, :2])).T)


def _spread(draws: Floats) -> Floats:
    """Return one level in each equal part, (row, future), in a drawn order, from draws (row, 2, future)."""
    return np.asarray((np.argsort(draws[:, 0], axis=1, kind="stable") + draws[:, 1]) / draws.shape[2])


def draw_arrivals(scheduler: Scheduler, at: float, seed: Sequence[int], ended: Sequence[Job] = ()) -> tuple[Job, ...]:
    """Return jobs that come after `at`: for each tenant, a stretch of its own past, moved by whole days.

    Without a whole day of history the stretch is what there is, from its beginning. Jobs that have finished keep the
    steps that they did; the others have those that are believed of them. `ended` are jobs whose rows the scheduler has
    dropped, with these steps: who comes when does not depend on which of them still have one.
    """
    state, belief = scheduler.state, scheduler.belief
    every = [*((job, -1) for job in ended), *((job, row) for row, job in enumerate(state.submitted))]
    if ended:
        every.sort(key=lambda one: one[0].sequence)
    past: defaultdict[str, list[int]] = defaultdict(list)
    for number, (job, _) in enumerate(every):
        past[job.tenant].append(number)
    rng, found = np.random.default_rng(seed), list[Job]()
    for tenant in sorted(past):
        first = every[past[tenant][0]][0].submitted
        days = int((at - first) // DAY_S)
        shift = DAY_S * int(rng.integers(1, days + 1)) if days else max(at - first, 1.0)
        for number in past[tenant]:
            job, row = every[number]
            when = job.submitted + shift
            if not at < when <= at + min(shift, SPAN_S):
                continue
            steps = job.total_steps
            if row >= 0:
                has_finished = state.jobs.stage[row] == Stage.FINISHED
                steps = float(belief.done[row] if has_finished else belief.total[row])
            found.append(replace(job, job_id=f"later-{number}", submitted=when, total_steps=max(steps, 1e-6)))
    found.sort(key=lambda job: (job.submitted, job.job_id))
    last = max((job.sequence for job, _ in every), default=0)
    return tuple(replace(job, sequence=last + 1 + number) for number, job in enumerate(found))
