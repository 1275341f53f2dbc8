"""Draws what is left of each job from what the scheduler believes of it."""

from __future__ import annotations

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import elementary
from eunomia.model.arrays import Floats

OVERRUN_STEEPNESS = 4.0  # of the distribution of a declared total that a job has exceeded
LONGEST_S = 30 * 86_400.0  # of what is drawn: no forecast looks further ahead
LEAST_S = 1e-3


def draw_totals(scheduler: Scheduler, at: float, futures: int, seed: int) -> Floats:
    """Return the total steps of every job in each future, (future, row).

    A declared total is taken as it is. An estimated one, and a declared one that the job has exceeded, is drawn from
    the log-logistic distribution of the belief, given the steps done so far: P(total > x) = 1 / (1 + (x / α)^β).
    The draws of one job are spread evenly over its distribution (one in each of as many equal parts as there are
    futures, in an order drawn by `seed`), so few futures say more.
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
    rng = np.random.default_rng(seed)
    draws = rng.random((len(rows), 2, futures))  # a further job changes no draw of those before it
    place = np.argsort(draws[:, 0], axis=1, kind="stable").T
    level = (place + draws[:, 1].T) / futures  # P(total > x | total > done)
    alpha, beta = total[rows], steepness[rows]
    past = 1.0 + elementary.power(done[rows] / alpha, beta)
    drawn = alpha * elementary.power(np.maximum(past / np.maximum(level, 1e-9) - 1.0, 1e-300), 1.0 / beta)
    speed = belief.throughput[rows].max(axis=1)
    least, most = done[rows] + LEAST_S * speed, done[rows] + LONGEST_S * speed
    found[:, rows] = np.clip(drawn, least, most)
    return found
