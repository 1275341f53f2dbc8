"""Draws what is left of each job from what the scheduler believes of it."""

from __future__ import annotations

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints

OVERRUN_STEEPNESS = 4.0  # of the distribution of a declared total that a job has exceeded
LONGEST_S = 30 * 86_400.0  # of what is drawn: no forecast looks further ahead
LEAST_S = 1e-3
ALIKE = 0.6  # how often a job turns out as long or short, for what was believed of it, as others of its tenant and size


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
