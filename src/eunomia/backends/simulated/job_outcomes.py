"""Outcome model (pass, fail, killed) fitted to the Philly trace.

    P(fails) = 17.2 %,  P(killed) = 13.5 %                                                   Table 6
    P(reason, size) ∝ jobs(reason) · trials(reason, size) / trials(reason)                   Table 7
    run time to failure ~ min(lognormal(ln p50, ln(p90 / p50) / 1.2816), p95)                Table 7

The table is of what failed, so failures are drawn first, and the jobs to which they happen after them: for each class
of size as many as it has in the table, each with its reason and the run times of its trials. From the longest on, each
happens to one of the jobs of that class that are long enough for all its trials, drawn with equal chances; where none
is left, to the longest. A trial fails at the last step of its job at the latest. Of times beyond the 95th percentile
the table tells nothing; few jobs are as long as the lognormal's tail.

A failing job fails in every trial for its one reason, until its retries are used up. A killed job ends at a uniformly
drawn share of its steps: the paper does not say when users kill. Table 7 counts 17,581 pairs of a job and a reason,
hardly more than the 16,568 jobs that failed for good, so trials of jobs that pass in the end are left to
`job_failures_per_hour`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
_SUBMITTED_BY_SIZE = (0.8861, 0.0649, 0.0490)  # parts of Philly's jobs, by the classes of Table 7
_MOST_TRIALS = 4  # for which a job is long enough


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeModel:
    """The shares of jobs that fail and that are killed, independent of the schedule: sampled once for all jobs."""

    failing: float = UNSUCCESSFUL
    killed: float = KILLED

    def sample(self, jobs: Sequence[Job], seconds: Floats, rng: np.random.Generator) -> JobOutcomes:
        """Draw the outcome of each job; seconds (job,) are what each runs at least if it passes."""
        scale_factor = np.array([job.scale_factor for job in jobs], dtype=np.int64)
        fate, reason, share = rng.random((3, len(jobs)))
        seed = int(rng.integers(2**63))
        fails = fate < failing_by_class(scale_factor, self.failing)[size_class(scale_factor)]
        picked = np.where(fails, pick_reasons(scale_factor, reason), -1)
        found = JobOutcomes(picked, np.ones(len(jobs)), seed, np.arange(len(jobs)), np.ones(len(jobs)))
        trials = 1 + np.minimum([job.retries for job in jobs], _MOST_TRIALS - 1)
        found = found.moved(_hosts(found, size_class(scale_factor), seconds, trials, rng))
        kills = (found.reason < 0) & (rng.random(len(jobs)) * (1 - self.failing) < self.killed)
        return replace(found, share=np.where(kills, share, 1.0))


@dataclass(frozen=True, slots=True)
class JobOutcomes:
    """The outcome of each job, in the order in which they were given."""

    reason: Ints  # (job,) row of REASONS; -1 = does not fail
    share: Floats  # (job,) of its steps, after which its user kills it; 1 = never
    seed: int  # of the times to failure
    stream: Ints  # (job,) number of the stream of its times
    enough: Floats  # (job,) of its steps, after which it passes

    def name(self, row: int) -> str:
        """Return the reason for which a job fails."""
        return REASONS[self.reason[row]].name

    def time_to_failure(self, row: int, trial: int, left_s: float) -> float:
        """Return after how many seconds of running a job's trial fails, at most `left_s`; inf = never."""
        if self.reason[row] < 0:
            return math.inf
        draw = float(np.random.default_rng((self.seed, int(self.stream[row]), trial)).random())
        return min(run_time_to_failure(REASONS[self.reason[row]], draw), left_s)

    def moved(self, host: Ints) -> JobOutcomes:
        """Return the outcomes with the failure of each job moved to another one, (job,); -1 = it has none."""
        rows = np.flatnonzero(host >= 0)
        reason, stream = np.full(len(host), -1), self.stream.copy()
        reason[host[rows]], stream[host[rows]] = self.reason[rows], self.stream[rows]
        return replace(self, reason=reason, stream=stream)


def _hosts(found: JobOutcomes, size: Ints, seconds: Floats, trials: Ints, rng: np.random.Generator) -> Ints:
    """Return the job of the same class to which each failure happens, (job,), -1 where there is none."""
    host = np.full(len(size), -1)
    failing = np.flatnonzero(found.reason >= 0).tolist()
    needed = np.zeros(len(size))
    for row in failing:
        needed[row] = sum(found.time_to_failure(row, trial, math.inf) for trial in range(trials[row]))
    draws = rng.random(len(size))
    for each in np.unique(size[failing]).tolist() if failing else ():
        mine = np.flatnonzero(size == each)
        waiting = mine[np.argsort(-seconds[mine], kind="stable")].tolist()  # the longest job first
        failures = [row for row in mine[np.argsort(-needed[mine], kind="stable")].tolist() if found.reason[row] >= 0]
        able: list[int] = []
        taken = 0
        for row in failures:
            while taken < len(waiting) and (seconds[waiting[taken]] >= needed[row] or not able):
                able.append(waiting[taken])
                taken += 1
            pick = int(draws[row] * len(able))
            able[pick], able[-1] = able[-1], able[pick]
            host[row] = able.pop()
    return host


def failing_by_class(scale_factor: Ints, failing: float) -> Floats:
    """Return the failing share of the gangs of each size class, (class,), so that `failing` is the part of all.

    Table 7 has more wide gangs than were submitted, so wide gangs fail more often, by ratios that are the same here.
    """
    trials = np.array([reason.trials_by_size for reason in REASONS], dtype=np.float64)  # (reason, class)
    jobs = (trials * np.array([[reason.jobs / reason.trials] for reason in REASONS])).sum(axis=0)
    ratio = jobs / jobs.sum() / np.array(_SUBMITTED_BY_SIZE)
    there = np.bincount(size_class(scale_factor), minlength=len(jobs)) / max(len(scale_factor), 1)
    return np.asarray(np.minimum(failing * ratio / max(float((there * ratio).sum()), 1e-12), 1.0))


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


def run_time_to_failure(reason: Reason, draw: float) -> float:
    """Return the seconds at the quantile `draw` of the lognormal of a reason, at most the 95th percentile."""
    middle, sigma = elementary.log(reason.p50_min * MINUTE_S), elementary.log(reason.p90_min / reason.p50_min) / P90
    quantile = min(max(draw, 1e-300), 1 - 1e-16)
    seconds = float(drawn(elementary.exp(middle + sigma * _NORMAL.inv_cdf(quantile))))
    return min(seconds, reason.p95_min * MINUTE_S)
