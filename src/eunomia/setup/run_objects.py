"""The objects of one run, and what is made from them: scheduler, backend, metrics and the header of its record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

import numpy as np

from eunomia import __version__
from eunomia.backends.inputs import BackendClass, BackendInputs, VirtualBackend
from eunomia.backends.registry import BACKENDS, DEFAULT
from eunomia.core.belief import Belief
from eunomia.core.mechanism import MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.failures.retrying import Adaptive
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.lost_time import lost_time_of
from eunomia.metrics.registry import load_all
from eunomia.metrics.summary import Metric
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Floats
from eunomia.model.finish_time import SHARE, IdealTime
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.records.learnt_rates import PairEstimateSummary
from eunomia.records.replay import header, recorded_tenants
from eunomia.scenario import Scenario
from eunomia.scenario.schema_models import Section
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import EstimatedSpeeds
from eunomia.setup.stated_throughputs import NOTHING_USED, SpeedOrigins
from eunomia.setup.workload import PastSchedule
from eunomia.throughputs import BUILT_IN, catalogue
from eunomia.throughputs.estimators.learnt_throughputs import LearntThroughputs
from eunomia.throughputs.interference import Neighbours
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
        return all_jobs(self.jobs, self.measuring)

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
        made_from = {"version": __version__, "scenario": self.scenario.as_dict(), "inputs": input_hashes(self.scenario)}
        date = {} if self.began is None else {"began": self.began.isoformat(sep=" ")}
        pairs = {name: astuple(each) for name, each in self.pair_estimates().items()}
        estimates = {"pair_estimates": pairs} if pairs else {}
        return core | made_from | _retrying(self.scenario) | recorded_tenants(self.tenants) | date | estimates

    def pair_estimates(self) -> dict[str, PairEstimateSummary]:
        """Return what is believed of job types beside others, where that was estimated before the run."""
        return self.believed.summaries() if isinstance(self.believed, EstimatedSpeeds) else {}


def all_jobs(jobs: Sequence[Job], measuring: Mapping[tuple[int, int, int], Job]) -> Sequence[Job]:
    return (*jobs, *measuring.values()) if measuring else jobs  # which may be a table


def _retrying(scenario: Scenario) -> dict[str, str]:
    """Return the header fields of the retry rule; none where every failure is retried."""
    world = scenario.world
    by = {"retry_by": world.retry_by} if world.retry_by != "job" else {}
    return {} if world.retry == "always" else {"retry": world.retry, **by}


def input_hashes(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of every file that the scenario reads, by its name there; for a folder, of each file in it."""
    machines = (scenario.cluster.nodes_file or "").partition("?")[0]
    named = {scenario.workload.trace or "", scenario.throughputs.source, machines} - {"", *BUILT_IN}
    named |= world_models.files_of(scenario)
    paths = {name: scenario.resolve(name) for name in sorted(named)}
    inside = {f"{n}/{file.name}": file for n, path in paths.items() if path.is_dir() for file in sorted(path.iterdir())}
    files = {name: path for name, path in (paths | inside).items() if path.is_file()}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def backend_inputs(setup: RunConfig, **real_time: Any) -> BackendInputs:
    """Return what the backend of a run is made from; `real_time` are the fields for real time."""
    section = setup.scenario.world
    return BackendInputs(
        jobs=setup.all_jobs(),
        topology=setup.topology,
        speeds=setup.truth,
        overheads=setup.overheads,
        faults=world_models.fault_model_of(setup.scenario),
        neighbours=setup.neighbours,
        divides_time=setup.mechanism.divides_time,
        checkpoint_every_s=section.checkpoint_every_s,
        replay_status=section.replay_status,
        seed=setup.scenario.seed,
        report_after_s=setup.scenario.belief.measure_s if setup.scenario.belief.kind == "measured" else 0.0,
        folder=setup.scenario.base,
        options=world_options(setup.scenario),
        **real_time,
    )


def world_options(scenario: Scenario) -> dict[str, Any]:
    """Return the table of the scenario's backend, [world.NAME], and whether it adopts."""
    table = getattr(scenario.world, scenario.world.backend, None)
    found = table.model_dump() if isinstance(table, Section) else {}
    return {**found, "adopt_submissions": scenario.world.adopt_submissions}


def virtual_backend(setup: RunConfig) -> VirtualBackend:
    """Return the backend of a run in virtual time: the scenario's, or else a simulation."""
    cls = BACKENDS.load(DEFAULT) if setup.backend.real_time else setup.backend
    inputs = backend_inputs(setup)
    cls.check(inputs)
    return cast(VirtualBackend, cls.build(inputs))


def with_lost_time(metrics: Metrics, held: HeldTime | None) -> Figures:
    """Return the figures of a completed run, with its accelerator-seconds lost by cause."""
    figures = metrics.figures()
    return replace(figures, summary={**figures.summary, **lost_time_of(metrics, held)})
