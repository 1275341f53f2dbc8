"""What goes wrong, by seed: failing jobs, users who change their minds, machines that go and come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.events import Event, JobCancelled, NodeJoined, NodeLost
from eunomia.model.job import Job

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mishaps:
    """Rates of what goes wrong; all 0 by default. Every kind draws from a stream of its own."""

    job_failures_per_hour: float = 0.0  # of a running gang
    node_failures_per_hour: float = 0.0  # of each node in service
    node_repair_s: float = 3600.0
    cancel_fraction: float = 0.0  # of jobs whose user cancels them
    cancel_after_s: float = 3600.0  # mean time from submission to the cancellation

    def cancellations(self, jobs: Sequence[Job], rng: np.random.Generator) -> list[tuple[float, Event]]:
        """Return who is cancelled and when."""
        chosen = np.flatnonzero(rng.random(len(jobs)) < self.cancel_fraction)
        waits = rng.exponential(self.cancel_after_s, len(chosen))
        return [
            (jobs[i].submitted + wait, JobCancelled(jobs[i].job_id))
            for i, wait in zip(chosen.tolist(), waits.tolist(), strict=True)
        ]

    def time_to_failure(self, rng: np.random.Generator) -> float:
        """Return after how many seconds on its seats a gang fails; inf = never."""
        if self.job_failures_per_hour == 0:
            return math.inf
        return float(rng.exponential(HOUR_S / self.job_failures_per_hour))

    def next_outage(self, at: float, node: int, rng: np.random.Generator) -> tuple[float, Event] | None:
        """Return when a node that is in service since `at` is lost."""
        if self.node_failures_per_hour == 0:
            return None
        return at + float(rng.exponential(HOUR_S / self.node_failures_per_hour)), NodeLost(node)

    def repair(self, at: float, node: int) -> tuple[float, Event]:
        """Return when a node that was lost at `at` is back."""
        return at + self.node_repair_s, NodeJoined(node)
