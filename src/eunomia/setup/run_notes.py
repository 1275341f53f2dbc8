"""What a user should know of a run before it begins: options without effect, and what is believed or measured how."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.core.mechanism import MechanismConfig
from eunomia.model.finish_time import SHARE
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.taxonomy import NONE
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.scenario.machine_list import read_machine_list
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import PROFILER, profiling_s
from eunomia.setup.mechanism import notes_on_endless_shares
from eunomia.setup.policy_settings import notes_on_tenants
from eunomia.setup.workload import Workload


def run_notes(
    scenario: Scenario,
    policy: Policy,
    mechanism: MechanismConfig,
    topology: Topology,
    work: Workload,
    jobs: Sequence[Job],
    believed: Speeds,
    *,
    real_time: bool,
) -> tuple[str, ...]:
    """Return the notes of a run, in the order in which they are printed; `jobs` are those of `work` as they run."""
    return (
        *_cluster_notes(scenario),
        *work.notes,
        *world_models.notes(scenario),
        *_notes_on_unused_options(scenario, policy, work.jobs, real_time=real_time),
        *world_models.note_on_places(scenario, policy, believed, jobs, real_time=real_time),
        *_notes_on_belief(scenario, policy, real_time=real_time),
        *_note_on_training(policy),
        *_note_on_ideal(scenario, policy),
        *_note_on_host_capacity(policy, mechanism, topology, work.jobs),
        *mechanism.notes(topology.types),
        *notes_on_endless_shares(policy, mechanism),
    )


def _cluster_notes(scenario: Scenario) -> tuple[str, ...]:
    """Return the notes of the reader of the machine list."""
    spelling = scenario.cluster.nodes_file
    notes = () if spelling is None else read_machine_list(spelling, scenario.base).notes
    return tuple(f"Machines: {note}." for note in notes)


def _notes_on_unused_options(
    scenario: Scenario, policy: Policy, jobs: Sequence[Job], *, real_time: bool
) -> tuple[str, ...]:
    """Return notes on options of the scenario that have no effect in this run, or with these jobs, if there are any."""
    notes, world = [], scenario.world
    reasons = real_time or scenario.physics.fates != "off"
    if world.retry == "adaptive" and not reasons:
        notes.append('world.retry = "adaptive" changes nothing: failures have reasons where physics.fates is on.')
    if world.retry_by == "tenant" and world.retry == "always":
        notes.append('world.retry_by = "tenant" changes nothing without world.retry = "adaptive".')
    nested = [name for name, tenant in scenario.tenants.items() if "/" in name and tenant.quota is not None]
    if nested and not policy.info.reads_nested_quotas:
        notes.append(f"{policy.info.name} looks at quotas of tenants at the top only; not at that of {nested[0]}.")
    notes += notes_on_tenants(scenario, policy.info, set(job_values(jobs, "tenant")))
    return (*_notes_on_absent_columns(scenario, policy, jobs), *notes) if jobs else tuple(notes)


def _notes_on_absent_columns(scenario: Scenario, policy: Policy, jobs: Sequence[Job]) -> list[str]:
    """Return notes on what no job has: other shapes, an app, a tenant, or a difference in what the policy goes by."""
    notes, taxonomy = [], policy.info.taxonomy
    is_elastic = "shapes" in policy.info.needs and (taxonomy is None or taxonomy.elastic)
    if is_elastic and not any(job_values(jobs, "other_shapes")):
        notes.append(
            f'{policy.info.name} may choose sizes of gangs, all jobs have one; workload.elastic = "halves" adds some.'
        )
    if scenario.world.retry_by == "tenant" and scenario.world.retry != "always" and not any(job_values(jobs, "tenant")):
        notes.append('world.retry_by = "tenant" changes nothing as no job names a tenant.')
    if scenario.apps.tuner != "off" and not any(job_values(jobs, "app")):
        notes.append(f'apps.tuner = "{scenario.apps.tuner}" changes nothing: no job of the workload belongs to an app.')
    return notes + _notes_on_equal_jobs(policy, jobs)


def _notes_on_equal_jobs(policy: Policy, jobs: Sequence[Job]) -> list[str]:
    """Return a note if the policy goes by deadlines, weights or tenants and no two jobs differ in them."""
    needs, taxonomy = policy.info.needs, policy.info.taxonomy
    axes = {} if taxonomy is None else taxonomy.axes(needs)
    rules = []
    if "deadline" in axes.get("objective", ()) and bool((job_array(jobs, "deadline") == math.inf).all()):
        rules.append("deadlines, and no job has one")
    only_weights = policy.info.answer_type == "order" and "weight" in needs and axes.get("objective") == NONE
    if only_weights and len(np.unique(job_array(jobs, "weight"))) < 2:
        rules.append("weights, and all jobs have the same")
    if (
        policy.info.answer_type == "order"
        and "tenant" in axes.get("fairness", ())
        and len(set(job_values(jobs, "tenant"))) < 2
    ):
        rules.append("tenants, and no two jobs differ in theirs")
    return [
        f"{policy.info.name} goes by {rule}: here it cannot differ from a policy that ignores them." for rule in rules
    ]


def _notes_on_belief(scenario: Scenario, policy: Policy, *, real_time: bool) -> tuple[str, ...]:
    """Return notes on what is estimated in this run, and whether the policy reads it."""
    notes, belief = [], scenario.belief
    if belief.kind == "estimated":
        types = len({group.type for group in scenario.cluster.nodes})
        cost = profiling_s(scenario, types)
        who = "each job" if belief.charge == "job" else "the first job of each such type"
        charged = f"measuring these costs {who} {cost:,.0f} s" if cost else "measuring these is not charged"
        further = f"{belief.profiled:.0%} of each other job type's pairs with them; {charged}"
        if belief.charge == "slices":
            further = (
                f"what is measured during the run, within {belief.budget:.2%} of the accelerators' time: jobs of the "
                f"tenant {PROFILER!r} hold one for {belief.profile_s:,.0f} s each, and do not count among the jobs"
            )
        notes.append(
            f"Throughputs of pairs are estimated from those of {belief.references} reference job types and {further}."
        )
    if belief.kind == "measured":
        error = f"with errors of σ = {belief.error:g}, " if belief.error and not real_time else ""
        notes.append(
            f"Throughputs are believed as stated, {error}until gangs that run alone have made progress for "
            f"{belief.measure_s:,.15g} s on a type; then as measured."
        )
        as_stated = scenario.physics.believed and scenario.physics.neighbours == "off"
        if as_stated and not (real_time or belief.error or scenario.throughputs.draw):
            notes.append(
                "The true throughputs are those that are stated, so there is nothing to learn: set belief.error, or "
                "throughputs.draw = true."
            )
    if belief.duration != "declared":
        reads = "reads" if policy.info.needs & {"remaining", "total"} else "does not read"
        source = "estimated from jobs that ended before" if belief.duration == "history" else "the same guess for all"
        notes.append(f"Run times of jobs are {source}; {policy.info.name} {reads} them.")
    return tuple(notes)


def _note_on_training(policy: Policy) -> tuple[str, ...]:
    """Return a note on what a learned policy has learnt from."""
    info = policy.info
    return (f"{info.name} has learnt: {info.learnt_from}.",) if info.learnt_from else ()


def _note_on_ideal(scenario: Scenario, policy: Policy) -> tuple[str, ...]:
    """Say where runs of other policies would be measured by another reading of T_id."""
    ideal, asked = policy.info.ideal, scenario.measure.ideal
    if ideal is None or asked == ideal or (asked == "policy" and ideal == SHARE):
        return ()
    if asked != "policy":
        return (f"rho_themis is by ideal={asked}; {policy.info.name} goes by ideal={ideal}",)
    return (
        f"rho_themis of {policy.info.name} is by ideal={ideal}, as it goes by that; set "
        f'measure.ideal = "{ideal}" to compare it with policies that go by another',
    )


def _note_on_host_capacity(
    policy: Policy, mechanism: MechanismConfig, topology: Topology, jobs: Sequence[Job]
) -> tuple[str, ...]:
    """Return a note where running gangs may exceed the CPUs or memory that their shares of time respect."""
    if policy.info.answer_type != "shares" or "demand" not in policy.info.needs or mechanism.divides_time:
        return ()
    capacity = topology.room(np.ones(topology.nodes, dtype=bool))
    demand = np.stack([job_array(jobs, name, float) for name in ("cpus", "memory_gib")], axis=1).sum(axis=0)
    if not (demand > capacity).any():
        return ()
    return (
        f"{policy.info.name} keeps shares of time within the CPUs and memory that there are, but leases seat gangs by "
        'accelerators: at times they hold more. mechanism.name = "ideal" carries the shares out exactly, and drf holds '
        "the totals at every instant.",
    )
