"""One run of our core in a simulated world, from jobs to when each of them started and ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.throughputs import load


@dataclass(frozen=True, slots=True)
class Life:
    """Times of a job, in seconds since the run began; nan = it never happened, or is unknown."""

    start: float  # the first
    end: float
    stops: float = math.nan  # before the end


def lives(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    policy: str | Policy,
    mechanism: Leases,
    *,
    world: Backend | None = None,
    believed_steps: Mapping[str, float] | None = None,
) -> dict[str, Life]:
    """Run `jobs` to their ends under a policy, or one spelt as `fifo?backfill=skip`, at 1 step/s.

    `world` left out is a simulated one without faults and costs. `believed_steps` are what the scheduler thinks that
    jobs need, by id, where that is not what they truly need.
    """
    topology, asked = Topology.of(nodes), build(policy) if isinstance(policy, str) else policy
    speeds = load("uniform", topology.types)
    metrics = Metrics(topology, speeds, dict.fromkeys(topology.types))
    scheduler = Scheduler(topology, asked.info, mechanism, _Declared(speeds, believed_steps or {}))
    run(scheduler, world or Simulation(jobs, topology, speeds), InlinePolicyRunner(asked), [metrics])
    seen = metrics.figures().jobs
    columns = (seen[name].tolist() for name in ("job_id", "first_started_s", "finished_s", "preemptions"))
    return {str(name): Life(start, end, stops) for name, start, end, stops in zip(*columns, strict=True)}


class _Declared(Belief):
    """Believes what is declared of a job's work, which may be less than what it truly takes."""

    def __init__(self, speeds: Speeds, declared: Mapping[str, float]):
        super().__init__(speeds)
        self._declared = declared

    def learn(self, job: Job) -> int:
        row = super().learn(job)
        self.total[row] = self._declared.get(job.job_id, job.total_steps)
        return row


def mean(values: Sequence[float]) -> float:
    """Return the mean of some numbers."""
    return float(np.mean(values))
