"""Builds the objects of a run from a scenario, for every backend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import numpy as np

from eunomia import __version__
from eunomia.backends.inputs import BackendClass
from eunomia.core.belief import Belief
from eunomia.core.mechanism import MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.failures.retrying import Adaptive
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.metrics import Metrics
from eunomia.metrics.registry import load_all
from eunomia.metrics.summary import Metric
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Floats
from eunomia.model.curves import curve_of
from eunomia.model.finish_time import SHARE, IdealTime
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.taxonomy import NONE
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.records.pair_estimates import PairEstimateSummary
from eunomia.records.replay import header, recorded_tenants
from eunomia.scenario import Scenario
from eunomia.scenario.load import AUTO
from eunomia.scenario.machine_list import read_machine_list
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import (
    PROFILER,
    EstimatedSpeeds,
    check_backend,
    estimated_throughputs,
    measuring_jobs,
    profiling_s,
    with_measuring,
)
from eunomia.setup.belief_measured import learnt_throughputs
from eunomia.setup.belief_noise import NoisySpeeds
from eunomia.setup.feasibility import check_lease_length, check_outages
from eunomia.setup.mechanism import mechanism_of, notes_on_endless_shares
from eunomia.setup.plugins import METRICS, find_backend
from eunomia.setup.policy_lookup import find_policy
from eunomia.setup.policy_names import check_names
from eunomia.setup.stated_throughputs import NOTHING_USED, SpeedOrigins, resolved, stated_throughputs, true_throughputs
from eunomia.setup.tenants import tenants_of
from eunomia.setup.tuner_setup import is_searching, observes_losses, tuners_of
from eunomia.setup.workload import PastSchedule, Workload, read_trace, workload_of
from eunomia.throughputs import BUILT_IN, catalogue
from eunomia.throughputs.estimators.learnt_throughputs import LearntThroughputs
from eunomia.throughputs.interference import Neighbours
from eunomia.throughputs.measuring_jobs import WithMeasuringJobs
from eunomia.tuners.tuner import Tuner

BURST = 10.0  # more than so many times the capacity is no load, but jobs that all arrive at once


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The objects of one run. The backend uses the throughputs `truth`, the scheduler `believed`."""

    scenario: Scenario
    nodes: tuple[Node, ...]
    topology: Topology
    truth: Speeds
    believed: Speeds
    jobs: Sequence[Job]
    policy: Policy
    mechanism: MechanismConfig
    overheads: Overheads
    notes: tuple[str, ...]
    tenants: dict[str, Tenant]  # owners of jobs and tenants that the scenario names
    tuners: dict[str, Tuner]  # by app; they have state, so a configuration is for one run
    backend: type[BackendClass]
    metrics_of_users: dict[str, Metric] = field(default_factory=dict)
    neighbours: Neighbours | None = None  # what gangs on one machine cost each other
    began: datetime | None = None  # local date and time at 0 s, if the trace has it
    past: PastSchedule | None = None  # the schedule as it was
    origins: SpeedOrigins = NOTHING_USED  # of the throughputs that the jobs use
    measuring: dict[tuple[int, int, int], Job] = field(default_factory=dict)  # by pair: see `measuring_jobs`
    learnt: LearntThroughputs | None = None  # what is learnt during the run; it has state, as tuners have
    stated_job_types: tuple[str, ...] = ()  # of the source of throughputs; () = any

    def scheduler(self) -> Scheduler:
        """Return a new scheduler."""
        belief = Belief(self.believed, self.overheads)
        common: dict[str, Any] = {
            "seed": self.scenario.seed,
            "checked": self.scenario.check,
            "price": self.price(),
            "tenants": self.tenants,
        }
        world = self.scenario.world
        retries = Adaptive(by_tenant=world.retry_by == "tenant") if world.retry == "adaptive" else None
        scheduler = Scheduler(self.topology, self.policy.info, self.mechanism, belief, comes_again=retries, **common)
        scheduler.expect(len(self.jobs))
        return scheduler

    def all_jobs(self) -> Sequence[Job]:
        """Return the jobs of the workload, and those that measure pairs."""
        return _all_jobs(self.jobs, self.measuring)

    def price(self) -> Floats:
        """Return US$ per accelerator-hour, (type,); 0 where unknown."""
        return np.array([self.prices()[name] or 0.0 for name in self.topology.types])

    def prices(self) -> dict[str, float | None]:
        """Return US$ per accelerator-hour by type, from the scenario or else the catalogue; None where unknown."""
        own = self.scenario.cluster.prices
        return {name: own.get(name, catalogue.price_usd_per_hour(name)) for name in self.topology.types}

    def offered_load(self) -> float | None:
        """Return the mean demand of the jobs ÷ capacity while they arrive; None where they arrive in one burst.

        A job asks for its gang for as long as it would run if its time were split over its types by capacity.
        """
        span = self.jobs[-1].submitted - self.jobs[0].submitted if self.jobs else 0.0
        if not (math.isfinite(span) and span > 0):
            return None
        capacity, rates = self.topology.capacity(), dict[tuple[str, int], float]()
        kinds = tuple(zip(job_values(self.jobs, "job_type"), job_values(self.jobs, "scale_factor"), strict=True))
        for key in set(kinds):
            speeds = self.truth.solo_throughput(*key)
            rates[key] = float((speeds * capacity).sum() / capacity[speeds > 0].sum())
        work = job_array(self.jobs, "scale_factor") * job_array(self.jobs, "total_steps")
        demand = np.cumsum(work / np.fromiter(map(rates.__getitem__, kinds), float, len(kinds))).item(-1)
        offered = demand / (span * float(capacity.sum()))
        return offered if offered <= BURST else None

    def metrics(self) -> Metrics:
        """Return an observer for this run."""
        waits = WaitCauses() if self.policy.info.explains_waits else None
        metrics = load_all() | self.metrics_of_users
        observer = Metrics(self.topology, self.truth, self.prices(), waits, self.tenants, metrics, self.ideal())
        observer.expect(len(self.jobs))
        return observer

    def ideal(self) -> IdealTime:
        """Return the reading of T_id that `rho_themis` has: the scenario's, or else the policy's."""
        asked = self.scenario.measure.ideal
        return (self.policy.info.ideal or SHARE) if asked == "policy" else asked

    def record_header(self) -> dict[str, Any]:
        """Return the header of a record: the scheduler's inputs, the scenario and the hashes of its files."""
        jobs, nodes = list(self.all_jobs()), list(self.nodes)
        core = header(jobs, nodes, self.policy.info, self.mechanism, self.overheads, self.believed, self.scenario.seed)
        made_from = {"version": __version__, "scenario": self.scenario.as_dict(), "inputs": _sha256(self.scenario)}
        date = {} if self.began is None else {"began": self.began.isoformat(sep=" ")}
        pairs = {name: astuple(each) for name, each in self.pair_estimates().items()}
        estimates = {"pair_estimates": pairs} if pairs else {}
        return core | made_from | _retrying(self.scenario) | recorded_tenants(self.tenants) | date | estimates

    def pair_estimates(self) -> dict[str, PairEstimateSummary]:
        """Return what is believed of job types beside others, where that was estimated before the run."""
        return self.believed.summaries() if isinstance(self.believed, EstimatedSpeeds) else {}


def _all_jobs(jobs: Sequence[Job], measuring: Mapping[tuple[int, int, int], Job]) -> Sequence[Job]:
    return (*jobs, *measuring.values()) if measuring else jobs  # which may be a table


def _retrying(scenario: Scenario) -> dict[str, str]:
    """Return the header fields of the retry rule; none where every failure is retried."""
    world = scenario.world
    by = {"retry_by": world.retry_by} if world.retry_by != "job" else {}
    return {} if world.retry == "always" else {"retry": world.retry, **by}


def _sha256(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of every file that the scenario reads, by its name there; for a folder, of each file in it."""
    machines = (scenario.cluster.nodes_file or "").partition("?")[0]
    named = {scenario.workload.trace or "", scenario.throughputs.source, machines} - {"", *BUILT_IN}
    named |= world_models.files_of(scenario)
    paths = {name: scenario.resolve(name) for name in sorted(named)}
    inside = {f"{n}/{file.name}": file for n, path in paths.items() if path.is_dir() for file in sorted(path.iterdir())}
    files = {name: path for name, path in (paths | inside).items() if path.is_file()}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def set_up(scenario: Scenario, work: Workload | None = None, policy: Policy | None = None) -> RunConfig:
    """Build the objects of a run; `work` replaces the jobs of the scenario's workload, `policy` its policy.

    Raises InvalidInput with everything that is wrong in the scenario or in the files that it names.
    """
    if scenario.throughputs.source == AUTO:
        scenario = resolved(scenario, read_trace(scenario) if work is None else None)
    named = scenario.policy
    policy = policy or find_policy(named.name, named.parameters, scenario.base, scenario.where)
    nodes = tuple(
        Node(type=g.type, accelerators=g.accelerators, rack=g.rack, cpus=g.cpus, memory_gib=g.memory_gib)
        for g in scenario.cluster.nodes
        for _ in range(g.count)
    )
    topology = Topology.of(nodes, scenario.physics.accelerators_per_slot)
    backend, costs = find_backend(scenario), scenario.overheads
    check_backend(scenario, real_time=backend.real_time)
    stated = stated_throughputs(scenario, topology)
    scenario = world_models.with_placement(scenario, stated, real_time=backend.real_time)
    job_types = tuple(name for name in stated.job_types if not stated.not_known(name))
    if scenario.belief.charge == "slices":
        stated = replace(stated, source=WithMeasuringJobs(stated.source, stated.types))
    truth = true_throughputs(scenario, stated)
    work = work or workload_of(scenario, topology, truth)
    detailed = is_searching(scenario) or observes_losses(policy) or world_models.is_on(scenario)
    real: Speeds = truth
    assumed: Speeds = stated
    if detailed:
        real = world_models.placed_throughputs(scenario, topology, truth)
        assumed = real if truth is stated else world_models.placed_throughputs(scenario, topology, stated)
    believed: Speeds = assumed if scenario.physics.believed else stated
    if scenario.belief.kind == "noisy" or (scenario.belief.kind == "measured" and not backend.real_time):
        believed = NoisySpeeds(believed, scenario.belief.error, scenario.seed)
    elif scenario.belief.kind == "estimated":
        believed = estimated_throughputs(scenario, believed, job_types)
    jobs, charges_each_job = with_measuring(scenario, work.jobs, believed), scenario.belief.charge == "job"
    measuring = measuring_jobs(scenario, believed)
    check_names(
        named.name, policy, {"accelerator type": topology.types, "app": _apps_of(policy, work.jobs)}, scenario.where
    )
    mechanism = mechanism_of(scenario, policy, work.jobs, real_time=backend.real_time)
    setup = RunConfig(
        scenario=scenario,
        nodes=nodes,
        topology=topology,
        truth=real,
        believed=believed,
        jobs=_with_loss_curves(scenario, policy, world_models.with_retries(scenario, jobs)),
        policy=policy,
        mechanism=mechanism,
        overheads=Overheads(
            start_s=costs.start_s + (profiling_s(scenario, len(topology.types)) if charges_each_job else 0.0),
            checkpoint_s=costs.checkpoint_s,
            restore_s=costs.restore_s,
            restore_by_size=tuple(sorted((int(size), s) for size, s in costs.restore_by_size.items())),
            saves="periodic" if costs.saves == "nothing" and scenario.world.checkpoint_every_s else costs.saves,
        ),
        tuners=tuners_of(scenario, work.jobs, topology.devices),
        tenants=tenants_of(scenario, _all_jobs(work.jobs, measuring), float(topology.capacity().sum())),
        notes=(
            *_cluster_notes(scenario),
            *work.notes,
            *world_models.notes(scenario),
            *_notes_on_unused_options(scenario, policy, work.jobs, real_time=backend.real_time),
            *world_models.note_on_places(scenario, policy, believed, jobs, real_time=backend.real_time),
            *_notes_on_belief(scenario, policy, real_time=backend.real_time),
            *_note_on_training(policy),
            *_note_on_ideal(scenario, policy),
            *_note_on_host_capacity(policy, mechanism, topology, work.jobs),
            *mechanism.notes(topology.types),
            *notes_on_endless_shares(policy, mechanism),
        ),
        backend=backend,
        metrics_of_users={name: METRICS.find(name, scenario.base, scenario.where) for name in scenario.measure.metrics},
        neighbours=world_models.neighbours_of(scenario, truth),
        began=work.began,
        past=work.past,
        origins=work.origins,
        measuring=measuring,
        learnt=learnt_throughputs(scenario, stated, believed, real_time=backend.real_time),
        stated_job_types=stated.job_types if scenario.belief.kind == "measured" else (),
    )
    _check_prices(setup)
    check_outages(scenario, setup.jobs, truth, topology, setup.overheads)
    if not backend.real_time:
        check_lease_length(scenario, policy, mechanism, setup.jobs, real, topology, setup.overheads)
    return setup


def _apps_of(policy: Policy, jobs: Sequence[Job]) -> frozenset[str]:
    """Return the apps of the jobs, if the policy takes the name of one; a job that names none is an app of its own."""
    if "app" not in policy.info.names.values():
        return frozenset()
    return frozenset(app or name for app, name in zip(job_values(jobs, "app"), job_values(jobs, "job_id"), strict=True))


def _with_loss_curves(scenario: Scenario, policy: Policy, jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs with learning curves drawn by the seed, if the policy reads them."""
    if "loss_curve" not in policy.info.needs:
        return jobs
    return tuple(replace(job, loss=curve_of(scenario.seed, job.job_id)) for job in jobs)


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


def _note_on_training(policy: Policy) -> tuple[str, ...]:
    """Return a note on what a learned policy has learnt from."""
    info = policy.info
    return (f"{info.name} has learnt: {info.learnt_from}.",) if info.learnt_from else ()


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


def _check_prices(setup: RunConfig) -> None:
    """Raise InvalidInput for a policy that needs prices, naming each type without one."""
    if "price" not in setup.policy.info.needs:
        return
    file, row = setup.scenario.where(("cluster",))
    rule = f"{setup.policy.info.name} needs the price of every type, and this one has none in the catalogue"
    fix = "give prices = {{ {} = … }}"
    problems = [
        Problem(file=file, row=row, column="cluster.prices", value=name, rule=rule, fix=fix.format(name))
        for name, price in setup.prices().items()
        if not price
    ]
    if problems:
        raise InvalidInput(problems)
