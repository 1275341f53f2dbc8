"""Refuses scenarios in which some job can never complete: failures too frequent, or leases too short for a restart.

Short leases: a gang whose lease has ended keeps running at no cost if it is granted its seats again before it leaves
them. A policy that grants seats must read which leases have ended for that; one that does not is asked only after the
gangs have left, so each later lease begins with the cost of a start, and no work is done where that takes all of it.

Leases that end together are extended automatically while no job waits. So such a scenario is refused only if at some
common end these jobs certainly need more accelerators than there are, even had each run alone since its submission.
Other stalls are detected during the run (`backends.simulated.stall_detection`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.core.mechanism import MechanismConfig
from eunomia.inputs.problems import InvalidInput
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.section_rules import HOUR_S

MAX_EXPECTED_LOSSES = 6.0  # before the first save; one attempt in 400 then succeeds


def check_outages(
    scenario: Scenario, jobs: Sequence[Job], speeds: Speeds, topology: Topology, overheads: Overheads
) -> None:
    """Raise InvalidInput when failures would hardly ever let a job reach its first checkpoint or its completion."""
    node, rack = scenario.world.node_failures_per_hour, scenario.physics.rack_failures_per_hour
    if not jobs or node + rack == 0:
        return
    every_s = scenario.world.checkpoint_every_s
    largest, capacity = int(topology.size.max()), topology.capacity()
    longest: dict[tuple[str, int], Job] = {}  # (job type, scale factor) → job with the most steps
    for job in jobs:
        key = (job.job_type, job.scale_factor)
        longest[key] = max(longest.get(key, job), job, key=lambda one: one.total_steps)
    for (job_type, size), job in longest.items():
        rate = float(np.where(capacity >= size, speeds.solo_throughput(job_type, size), 0.0).max())
        unsaved_s = min(every_s, job.total_steps / rate) if rate > 0 else every_s
        needed_s = max(overheads.start_s, overheads.of(first=False, size=size, saved=False)) + unsaved_s
        per_hour = node * -(-size // largest) + rack
        if per_hour * needed_s / HOUR_S > MAX_EXPECTED_LOSSES:
            raise _outage_error(scenario, job, HOUR_S / per_hour, needed_s)


def _outage_error(scenario: Scenario, job: Job, lost_every_s: float, needed_s: float) -> InvalidInput:
    node = scenario.world.node_failures_per_hour
    path = ("world", "node_failures_per_hour") if node else ("physics", "rack_failures_per_hour")
    rule = (
        f"job {job.job_id} would be lost every {lost_every_s:,.0f} s on average, and needs {needed_s:,.0f} s to start "
        "and to save what it did: it would hardly ever end"
    )
    fix = "give a lower rate, a shorter checkpoint_every_s, or cheaper [overheads]"
    return scenario.refused(path, rule, fix)


def check_lease_length(
    scenario: Scenario,
    policy: Policy,
    mechanism: MechanismConfig,
    jobs: Sequence[Job],
    speeds: Speeds,
    topology: Topology,
    overheads: Overheads,
) -> None:
    """Raise InvalidInput when restarts would take up every lease of a job but its first."""
    if math.isinf(mechanism.lease_s) or policy.info.may_renew_in_time:
        return
    if _may_end_early(scenario):
        return
    least = [(job, _work_s(job, speeds, topology)) for job in jobs if _restart_s(job, overheads) >= mechanism.lease_s]
    first_s = max(mechanism.lease_s - overheads.start_s, 0.0)  # of work in the first lease
    stuck = [(job, seconds) for job, seconds in least if first_s < seconds < math.inf]
    per_seat = 2 if "packed_throughput" in policy.info.needs and _may_share(stuck, speeds) else 1
    capacity = float(topology.capacity().sum()) * per_seat
    if stuck and (not mechanism.aligned or _peak_demand(stuck, mechanism.lease_s) > capacity):
        job = stuck[0][0]
        rule = (
            f"job {job.job_id} needs {_restart_s(job, overheads):,.10g} s for its checkpoint and to go on from it, and "
            f"{policy.info.name} lets every gang leave its seats when its lease ends: it would never end"
        )
        fix = (
            "give longer leases (inf: until the job ends) or cheaper [overheads], or choose a policy that renews leases"
        )
        length = f"{mechanism.lease_s:.10g}"
        raise scenario.refused(("mechanism", "length_s"), rule, fix, length)


def _may_end_early(scenario: Scenario) -> bool:
    """Whether jobs may end before their last step: cancelled, killed, replayed, or stopped by a tuner."""
    world = scenario.world
    killed = world.cancel_fraction > 0 or world.replay_status or scenario.physics.fates != "off"
    return killed or scenario.apps.tuner != "off"


def _restart_s(job: Job, overheads: Overheads) -> float:
    """Return the lowest cost of a restart over the shapes of a job."""
    return min(overheads.of(first=False, size=size) for size in job.shapes)


def _work_s(job: Job, speeds: Speeds, topology: Topology) -> float:
    """Return the shortest running time of a job over shapes and types; inf if no shape fits."""
    capacity = topology.capacity()
    rates = [np.where(capacity >= size, speeds.solo_throughput(job.job_type, size), 0.0).max() for size in job.shapes]
    return job.total_steps / float(max(rates)) if max(rates) > 0 else math.inf


def _may_share(jobs: Sequence[tuple[Job, float]], speeds: Speeds) -> bool:
    """Whether any two of these jobs can run on the same accelerators."""
    kinds = {(job.job_type, size) for job, _ in jobs for size in job.shapes}
    pairs = ((one, other, size) for one, size in kinds for other, its_size in kinds if its_size == size)
    return any(speeds.packed_throughput(*pair).any() for pair in pairs)


def _peak_demand(jobs: Sequence[tuple[Job, float]], length: float) -> float:
    """Return the most accelerators that jobs, given with their running times in s, demand at one common lease end."""
    size = np.array([min(job.shapes) for job, _ in jobs], dtype=float)
    submitted = np.array([job.submitted for job, _ in jobs])
    first = np.ceil(submitted / length)
    last = np.ceil((submitted + np.array([seconds for _, seconds in jobs])) / length)
    order = np.argsort(np.concatenate((last, first)), kind="stable")  # at equal times jobs end before others begin
    return float(np.cumsum(np.concatenate((-size, size))[order]).max())
