"""Outcome model (pass, fail, killed) fitted to the Philly trace.

How many jobs of each size fail, for which reason, or are killed, and how long they run until then, is drawn first
(`eunomia.failures.run_times`), and the jobs to which it happens after that: from the longest run time on, each happens
to one of the jobs of its size class that are long enough for it, drawn with equal chances; where none is left, to the
longest. A trial fails at the last step of its job at the latest, and a job that is too short for the time at which it
would be killed ends at a uniformly drawn part of its steps.

A failing job fails in every trial for its one reason, until its retries are used up. Table 7 counts 17,581 pairs of a
job and a reason, hardly more than the 16,568 jobs that failed for good, so trials of jobs that pass in the end are left
to `job_failures_per_hour`.

Jobs that fail or are killed are long ones. Give lengths of all jobs that were submitted, not of those that passed: the
distribution `philly-submitted` has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eunomia.failures.philly_reasons import KILLED, REASONS, UNSUCCESSFUL
from eunomia.failures.run_times import (
    failing_by_class,
    killed_by_class,
    pick_reasons,
    run_time_to_failure,
    run_time_until_killed,
    run_times_to_failure,
    size_class,
)
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.job import Job

_MOST_TRIALS = 4  # for which a job is long enough


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeModel:
    """The shares of jobs that fail and that are killed, independent of the schedule: sampled once for all jobs."""

    failing: float = UNSUCCESSFUL
    killed: float = KILLED

    def sample(self, jobs: Sequence[Job], seconds: Floats, rng: np.random.Generator) -> JobOutcomes:
        """Draw the outcome of each job; seconds (job,) are what each runs at least if it passes."""
        scale_factor = np.array([job.scale_factor for job in jobs], dtype=np.int64)
        size = size_class(scale_factor)
        fate, reason, killing, ran, share = rng.random((5, len(jobs)))
        failing = failing_by_class(scale_factor, self.failing)
        fails = fate < failing[size]
        kills = ~fails & (killing < killed_by_class(scale_factor, failing, self.killed)[size])
        drawn = JobOutcomes(
            np.where(fails, pick_reasons(scale_factor, reason), -1),
            np.ones(len(jobs)),
            int(rng.integers(2**63)),
            np.arange(len(jobs)),
            np.ones(len(jobs)),
        )
        needed = np.where(kills, run_time_until_killed(scale_factor, ran), 0.0)
        trials = 1 + np.array([min(job.retries, _MOST_TRIALS - 1) for job in jobs], dtype=np.int64)
        for trial in range(trials.max(initial=0)):
            rows = np.flatnonzero(fails & (trials > trial))
            needed[rows] += run_times_to_failure(drawn.reason[rows], [drawn.draw(row, trial) for row in rows.tolist()])
        host = _hosts(fails | kills, needed, size, seconds, rng.random(len(jobs)))
        killed = host[kills]
        share[killed] = np.where(needed[kills] < seconds[killed], needed[kills] / seconds[killed], share[killed])
        never = np.ones(len(jobs), dtype=bool)
        never[killed] = False
        return replace(drawn.moved(np.where(fails, host, -1)), share=np.where(never, 1.0, share))


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
        return min(run_time_to_failure(REASONS[self.reason[row]], self.draw(row, trial)), left_s)

    def draw(self, row: int, trial: int) -> float:
        """Return the quantile in [0, 1) of the time to failure of a job's trial."""
        return float(np.random.default_rng((self.seed, int(self.stream[row]), trial)).random())

    def moved(self, host: Ints) -> JobOutcomes:
        """Return the outcomes with the failure of each job moved to another one, (job,); -1 = it has none."""
        rows = np.flatnonzero(host >= 0)
        reason, stream = np.full(len(host), -1), self.stream.copy()
        reason[host[rows]], stream[host[rows]] = self.reason[rows], self.stream[rows]
        return replace(self, reason=reason, stream=stream)


def _hosts(happens: Bools, needed: Floats, size: Ints, seconds: Floats, draws: Floats) -> Ints:
    """Return the job of the same class to which each failure or kill happens, (job,), -1 where there is none."""
    host = np.full(len(size), -1)
    for each in np.unique(size[happens]).tolist():
        mine = np.flatnonzero(size == each)
        waiting = mine[np.argsort(-seconds[mine], kind="stable")].tolist()  # the longest job first
        able: list[int] = []
        taken = 0
        for row in mine[np.argsort(-needed[mine], kind="stable")].tolist():
            if not happens[row]:
                continue
            while taken < len(waiting) and (seconds[waiting[taken]] >= needed[row] or not able):
                able.append(waiting[taken])
                taken += 1
            pick = int(draws[row] * len(able))
            able[pick], able[-1] = able[-1], able[pick]
            host[row] = able.pop()
    return host
