"""Whether leases leave time to work; where a gang only ever goes on from its checkpoint, no run would ever end.

A gang whose lease has ended goes on at no cost where it is given its seats anew before it leaves them. A policy that
grants seats must see which leases have ended for that. One that does not look is asked again when they have left
theirs: each lease then begins with what a start costs, and where that is all of the lease, nothing is ever done.

Where leases end together they go on by themselves while nobody waits. So there it must be certain that somebody does:
that at some common end there are more such jobs than there is room for, even had each run alone since it came. Who
else gets nowhere is found while it runs (`backends/simulated/stall_detection.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.core.mechanism import MechanismConfig
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario


def demand_time_to_work(
    scenario: Scenario,
    policy: Policy,
    mechanism: MechanismConfig,
    jobs: Sequence[Job],
    speeds: Speeds,
    topology: Topology,
    overheads: Overheads,
) -> None:
    """Raise InvalidInput when jobs would spend every lease but their first on starting again."""
    if math.isinf(mechanism.lease_s) or policy.info.may_renew_in_time:
        return
    if scenario.world.backend != "simulated" or _may_end_otherwise(scenario):
        return
    least = [(job, _least_s(job, speeds, topology)) for job in jobs if _restart_s(job, overheads) >= mechanism.lease_s]
    first_s = max(mechanism.lease_s - overheads.start_s, 0.0)  # of work in its first lease
    stuck = [(job, seconds) for job, seconds in least if first_s < seconds < math.inf]
    room = float(topology.capacity().sum()) * (2 if "paired" in policy.info.needs and _may_share(stuck, speeds) else 1)
    if stuck and (not mechanism.aligned or _most_at_an_end(stuck, mechanism.lease_s) > room):
        raise _refusal(scenario, policy, stuck[0][0], overheads, mechanism.lease_s)


def _may_end_otherwise(scenario: Scenario) -> bool:
    """Say whether jobs may end before they have done all their steps: by users, searches or fates."""
    world = scenario.world
    killed = world.cancel_fraction > 0 or world.replay_status or scenario.physics.fates != "off"
    return killed or scenario.apps.tuner != "off"


def _restart_s(job: Job, overheads: Overheads) -> float:
    """Return the least that any but its first start costs a job, in whatever shape."""
    return min(overheads.of(first=False, size=size) for size in job.shapes)


def _least_s(job: Job, speeds: Speeds, topology: Topology) -> float:
    """Return the seconds of work that a job needs at the least, in whatever shape on whatever type; inf = none fits."""
    capacity = topology.capacity()
    rates = [np.where(capacity >= size, speeds.alone(job.job_type, size), 0.0).max() for size in job.shapes]
    return job.total_steps / float(max(rates)) if max(rates) > 0 else math.inf


def _may_share(stuck: Sequence[tuple[Job, float]], speeds: Speeds) -> bool:
    """Say whether any two of these jobs can run on the same accelerators."""
    kinds = {(job.job_type, size) for job, _ in stuck for size in job.shapes}
    pairs = ((one, other, size) for one, size in kinds for other, its_size in kinds if its_size == size)
    return any(speeds.beside(*pair).any() for pair in pairs)


def _most_at_an_end(stuck: Sequence[tuple[Job, float]], length: float) -> float:
    """Return the most accelerators that these jobs, with the seconds they need, want at once at a common end."""
    size = np.array([min(job.shapes) for job, _ in stuck], dtype=float)
    came = np.array([job.submitted for job, _ in stuck])
    first, gone = np.ceil(came / length), np.ceil((came + np.array([seconds for _, seconds in stuck])) / length)
    order = np.argsort(np.concatenate((gone, first)), kind="stable")  # who goes does so before others come
    return float(np.cumsum(np.concatenate((-size, size))[order]).max())


def _refusal(scenario: Scenario, policy: Policy, job: Job, overheads: Overheads, length: float) -> InvalidInput:
    file, row = scenario.where(("mechanism", "length_s"))
    rule = (
        f"job {job.job_id} needs {_restart_s(job, overheads):,.10g} s for its checkpoint and to go on from it, and "
        f"{policy.info.name} lets every gang leave its seats when its lease ends: it would never end"
    )
    fix = "give longer leases (inf: until the job ends) or cheaper [overheads], or choose a policy that renews leases"
    return InvalidInput(
        [Problem(file=file, row=row, column="mechanism.length_s", value=f"{length:.10g}", rule=rule, fix=fix)]
    )
