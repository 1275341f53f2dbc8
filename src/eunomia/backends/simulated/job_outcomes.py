"""Outcome model (pass, fail, killed) fitted to the Philly trace.

    P(fails) = 17.2 %,  P(killed) = 13.5 %                             Table 6, for every size alike
    P(reason | size) ∝ jobs(reason) · trials(reason, size) / trials(reason)                  Table 7
    run time to failure ~ lognormal(ln p50, ln(p90 / p50) / 1.2816), cut off at what the trial has left to run

A failing job fails in every trial for its one reason, at a time drawn anew, until its retries are used up. A killed
job ends at a uniformly drawn share of its steps: the paper does not say when users kill. Table 7 counts
17,581 pairs of a job and a reason, hardly more than the 16,568 jobs that failed for good, so trials of jobs that pass
in the end are left to `job_failures_per_hour`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from eunomia.failures.table7 import KILLED, REASONS, UNSUCCESSFUL, Reason
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.rounding import drawn

MINUTE_S = 60.0
P90 = 1.2816  # quantile of the standard normal distribution
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeModel:
    """The shares of jobs that fail and that are killed, independent of the schedule: sampled once for all jobs."""

    failing: float = UNSUCCESSFUL
    killed: float = KILLED

    def sample(self, jobs: Sequence[Job], rng: np.random.Generator) -> JobOutcomes:
        """Draw the outcome of each job; every job takes the same number of draws, whatever its outcome."""
        fate, reason, share = rng.random((3, len(jobs)))
        fails = fate < self.failing
        picked = pick_reasons(np.array([job.scale_factor for job in jobs], dtype=np.int64), reason)
        kills = (fate >= self.failing) & (fate < self.failing + self.killed)
        seed = int(rng.integers(2**63))
        return JobOutcomes(np.where(fails, picked, -1), np.where(kills, share, 1.0), seed)


@dataclass(frozen=True, slots=True)
class JobOutcomes:
    """The outcome of each job, in the order in which they were given."""

    reason: Ints  # (job,) row of REASONS; -1 = does not fail
    share: Floats  # (job,) of its steps, after which its user kills it; 1 = never
    seed: int  # of the times to failure

    def name(self, row: int) -> str:
        """Return the reason for which a job fails."""
        return REASONS[self.reason[row]].name

    def time_to_failure(self, row: int, trial: int, left_s: float) -> float:
        """Return after how many seconds of running a job's trial fails, at most `left_s`; inf = never."""
        if self.reason[row] < 0:
            return math.inf
        draw = float(np.random.default_rng((self.seed, row, trial)).random())
        return run_time_to_failure(REASONS[self.reason[row]], draw, left_s)


def failing_by_class(scale_factor: Ints, failing: float) -> Floats:
    """Return the failing share of the gangs of each size class, (class,), so that reasons get the table's mix of sizes.

    Table 7 has more wide gangs than were submitted, so wide gangs fail more often; `failing` is the part of all.
    """
    trials = np.array([reason.trials_by_size for reason in REASONS], dtype=np.float64)  # (reason, class)
    jobs = (trials * np.array([[reason.jobs / reason.trials] for reason in REASONS])).sum(axis=0)
    there = np.bincount(size_class(scale_factor), minlength=len(jobs)) / max(len(scale_factor), 1)
    part = np.divide(failing * jobs / jobs.sum(), there, out=np.zeros(len(jobs)), where=there > 0)
    return np.asarray(np.minimum(part, 1.0))


def size_class(scale_factor: Ints) -> Ints:
    """Return the column of the table for each gang: 0 = one accelerator, 1 = 2 to 4, 2 = more."""
    return np.asarray(np.searchsorted([1, 4], scale_factor), dtype=np.int64)


def pick_reasons(scale_factor: Ints, draws: Floats) -> Ints:
    """Return the row of REASONS that each draw in [0, 1) means for a gang of that size."""
    trials = np.array([reason.trials_by_size for reason in REASONS], dtype=np.float64)  # (reason, class)
    per_trial = np.array([reason.jobs / reason.trials for reason in REASONS])
    upto = np.cumsum(trials * per_trial[:, None], axis=0)
    upto /= upto[-1]
    column = size_class(scale_factor)
    picked = np.zeros(len(draws), dtype=np.int64)
    for each in range(upto.shape[1]):
        mine = column == each
        picked[mine] = np.searchsorted(upto[:, each], draws[mine], side="right")
    return picked


def run_time_to_failure(reason: Reason, draw: float, left_s: float = math.inf) -> float:
    """Return seconds from the lognormal of a reason below `left_s`, at the quantile `draw` of what lies there."""
    middle, sigma = elementary.log(reason.p50_min * MINUTE_S), elementary.log(reason.p90_min / reason.p50_min) / P90
    if sigma == 0:
        return min(reason.p50_min * MINUTE_S, left_s)
    below = 1.0 if math.isinf(left_s) else _NORMAL.cdf((elementary.log(max(left_s, 1e-9)) - middle) / sigma)
    quantile = min(max(draw * below, 1e-300), 1 - 1e-16)
    return min(float(drawn(elementary.exp(middle + sigma * _NORMAL.inv_cdf(quantile)))), left_s)
