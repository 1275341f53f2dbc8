"""Whether jobs have a chance between one loss of their machines and the next; without one no run would ever end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.physics_rules import HOUR_S

MOST_LOSSES = 6.0  # on average until something is saved: one try in 400 gets there


def demand_progress(
    scenario: Scenario, jobs: Sequence[Job], speeds: Speeds, topology: Topology, overheads: Overheads
) -> None:
    """Raise InvalidInput when a job would hardly ever get from its start to its first checkpoint, or to its end."""
    node, rack = scenario.world.node_failures_per_hour, scenario.physics.rack_failures_per_hour
    if not jobs or node + rack == 0:
        return
    every_s = scenario.world.checkpoint_every_s
    largest, capacity = int(topology.size.max()), topology.capacity()
    longest: dict[tuple[str, int], Job] = {}  # of each kind
    for job in jobs:
        kind = (job.job_type, job.scale_factor)
        longest[kind] = max(longest.get(kind, job), job, key=lambda one: one.total_steps)
    for (job_type, size), job in longest.items():
        rate = float(np.where(capacity >= size, speeds.alone(job_type, size), 0.0).max())
        unsaved_s = min(every_s, job.total_steps / rate) if rate > 0 else every_s
        needed_s = max(overheads.start_s, overheads.of(first=False, size=size, saved=False)) + unsaved_s
        per_hour = node * -(-size // largest) + rack
        if per_hour * needed_s / HOUR_S > MOST_LOSSES:
            raise _refusal(scenario, job, HOUR_S / per_hour, needed_s)


def _refusal(scenario: Scenario, job: Job, lost_every_s: float, needed_s: float) -> InvalidInput:
    path = ("world", "node_failures_per_hour") if scenario.world.node_failures_per_hour else (
        "physics", "rack_failures_per_hour"
    )  # fmt: skip
    file, row = scenario.where(path)
    rule = (
        f"job {job.job_id} would be lost every {lost_every_s:,.0f} s on average, and needs {needed_s:,.0f} s to start "
        "and to save what it did: it would hardly ever end"
    )
    fix = "give a lower rate, a shorter checkpoint_every_s, or cheaper [overheads]"
    return InvalidInput([Problem(file=file, row=row, column=".".join(path), rule=rule, fix=fix)])
