"""Faults drawn by seed: failing jobs, cancellations, machines that are lost and return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eunomia.backends.simulated.early_stop import draw_parts_until_convergence
from eunomia.backends.simulated.job_outcomes import JobOutcomes, OutcomeModel
from eunomia.backends.simulated.outages import Rate
from eunomia.backends.simulated.report_latency import ReportLatency
from eunomia.model.arrays import Floats
from eunomia.model.events import Event, JobCancelled, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.rounding import drawn

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultModel:
    """Rates of faults; all 0 by default. Every kind draws from a random stream of its own."""

    job_failures_per_hour: float = 0.0  # of a running gang
    node_failures_per_hour: float = 0.0  # of each node in service
    node_repair_s: float = 3600.0
    cancel_fraction: float = 0.0  # of jobs whose user cancels them
    cancel_after_s: float = 3600.0  # mean time from submission to the cancellation
    rack_failures_per_hour: float = 0.0  # of each rack as a whole
    rack_repair_s: float = 3600.0
    repairs_fixed: bool = True  # repairs take repair_s; else it is their mean
    blacklist_s: float = 0.0  # for which machines are out of service after a failure of theirs; 0 = none are
    outcomes: OutcomeModel | None = None  # outcomes of jobs, independent of the schedule
    early_stop: bool = False  # of jobs that pass, once more steps would hardly lower their loss
    report_latency: ReportLatency = field(default_factory=ReportLatency)

    @property
    def node(self) -> Rate:
        """How machines are lost."""
        return Rate(per_hour=self.node_failures_per_hour, repair_s=self.node_repair_s, fixed=self.repairs_fixed)

    @property
    def rack(self) -> Rate:
        """How racks are lost."""
        return Rate(per_hour=self.rack_failures_per_hour, repair_s=self.rack_repair_s, fixed=self.repairs_fixed)

    def sample_outcomes(self, jobs: Sequence[Job], seconds: Floats, rng: np.random.Generator) -> JobOutcomes:
        """Draw the outcome of each job; seconds (job,) are what each runs at least if it passes."""
        if self.outcomes is None:
            found = JobOutcomes(np.full(len(jobs), -1), np.ones(len(jobs)), 0, np.arange(len(jobs)), np.ones(len(jobs)))
        else:
            found = self.outcomes.sample(jobs, seconds, rng)
        if not self.early_stop:
            return found
        passes = (found.reason < 0) & (found.share == 1)
        return replace(found, enough=np.where(passes, draw_parts_until_convergence(len(jobs), rng), 1.0))

    def cancellations(self, jobs: Sequence[Job], rng: np.random.Generator) -> list[tuple[float, Event]]:
        """Draw which jobs are cancelled, and when."""
        chosen = np.flatnonzero(rng.random(len(jobs)) < self.cancel_fraction)
        waits = drawn(rng.exponential(self.cancel_after_s, len(chosen)))
        cancelled = [jobs[i] for i in chosen.tolist()]
        return [
            (job.submitted + wait, JobCancelled(job.job_id))
            for job, wait in zip(cancelled, waits.tolist(), strict=True)
        ]

    def times_to_failure(self, gangs: int, rng: np.random.Generator) -> Floats:
        """Draw after how many seconds on its seats each gang fails, (gang,); inf = never."""
        if self.job_failures_per_hour == 0:
            return np.full(gangs, np.inf)
        return drawn(rng.exponential(HOUR_S / self.job_failures_per_hour, gangs))

    def next_outage(self, at: float, node: int, rng: np.random.Generator) -> tuple[float, Event] | None:
        """Draw when a node that is in service since `at` is lost."""
        if self.node_failures_per_hour == 0:
            return None
        return at + float(drawn(rng.exponential(HOUR_S / self.node_failures_per_hour))), NodeLost(node)

    def repair(self, at: float, node: int) -> tuple[float, Event]:
        """Return when a node that was lost at `at` is back."""
        return at + self.node_repair_s, NodeJoined(node)
