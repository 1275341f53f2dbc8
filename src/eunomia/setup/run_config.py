"""A scenario taken apart and put together: everything that a run is made of, for whatever world."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from eunomia import __version__
from eunomia.core.belief import Belief
from eunomia.core.mechanism import MechanismConfig
from eunomia.core.scheduler import Scheduler
from eunomia.failures.retrying import Adaptive
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.metrics import Metrics
from eunomia.metrics.waits import WaitCauses
from eunomia.model.arrays import Floats
from eunomia.model.curves import curve_of
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.records.replay import header
from eunomia.scenario import Scenario
from eunomia.scenario.machine_list import read_machine_list
from eunomia.setup import world_models
from eunomia.setup.belief_noise import NoisySpeeds
from eunomia.setup.lease_feasibility import demand_time_to_work
from eunomia.setup.mechanism import mechanism_of
from eunomia.setup.outage_feasibility import demand_progress
from eunomia.setup.policy_lookup import find_policy
from eunomia.setup.tenants import tenants_of
from eunomia.setup.tuner_setup import is_searching, observes_losses, tuners_of
from eunomia.setup.workload import Workload, workload_of
from eunomia.throughputs import BUILT_IN, catalogue, load
from eunomia.throughputs.interference import Neighbours
from eunomia.tuners.tuner import Tuner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What a run is made of. `truth` is the world's, `believed` the scheduler's."""

    scenario: Scenario
    nodes: tuple[Node, ...]
    topology: Topology
    truth: Speeds
    believed: Speeds
    jobs: tuple[Job, ...]
    policy: Policy
    mechanism: MechanismConfig
    overheads: Overheads
    notes: tuple[str, ...]
    tenants: dict[str, Tenant]  # who owns jobs, and whoever the scenario names
    tuners: dict[str, Tuner]  # by app; they remember, so a setup is for one run
    neighbours: Neighbours | None = None  # what gangs on one machine cost each other

    def scheduler(self) -> Scheduler:
        """Return a fresh core."""
        belief = Belief(self.believed, self.overheads)
        common: dict[str, Any] = {
            "seed": self.scenario.seed,
            "checked": self.scenario.check,
            "price": self.price(),
            "tenants": self.tenants,
        }
        said = self.scenario.world
        again = Adaptive(by_tenant=said.retry_by == "tenant") if said.retry == "adaptive" else None
        return Scheduler(self.topology, self.policy.info, self.mechanism, belief, comes_again=again, **common)

    def price(self) -> Floats:
        """Return US$ per accelerator-hour, (type,); 0 where none is known."""
        return np.array([self.prices()[name] or 0.0 for name in self.topology.types])

    def prices(self) -> dict[str, float | None]:
        """Return US$ per accelerator-hour by type: as the scenario says, else from the catalogue."""
        own = self.scenario.cluster.prices
        return {name: own.get(name, catalogue.price_usd_per_hour(name)) for name in self.topology.types}

    def metrics(self) -> Metrics:
        """Return an observer for this run."""
        waits = WaitCauses() if self.policy.info.tells_waits else None
        return Metrics(self.topology, self.truth, self.prices(), waits, self.tenants)

    def record_header(self) -> dict[str, Any]:
        """Return what a record of this run begins with: what a fresh core needs, and what the run was made from."""
        jobs, nodes = list(self.jobs), list(self.nodes)
        core = header(jobs, nodes, self.policy.info, self.mechanism, self.overheads, self.believed, self.scenario.seed)
        made_from = {"version": __version__, "scenario": self.scenario.as_dict(), "inputs": _sha256(self.scenario)}
        return core | made_from | _retrying(self.scenario)


def _retrying(scenario: Scenario) -> dict[str, str]:
    """Return what a record says of failures that are not tried again."""
    said = scenario.world
    by = {"retry_by": said.retry_by} if said.retry_by != "job" else {}
    return {} if said.retry == "always" else {"retry": said.retry, **by}


def _sha256(scenario: Scenario) -> dict[str, str]:
    """Return the SHA-256 of every file that the scenario reads, by its name there; of a folder, each file in it."""
    machines = (scenario.cluster.nodes_file or "").partition("?")[0]
    named = {scenario.workload.trace or "", scenario.throughputs.source, machines} - {"", *BUILT_IN}
    named |= world_models.files_of(scenario)
    found = {name: scenario.resolve(name) for name in sorted(named)}
    inside = {f"{n}/{file.name}": file for n, path in found.items() if path.is_dir() for file in sorted(path.iterdir())}
    files = {name: path for name, path in (found | inside).items() if path.is_file()}
    return {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def set_up(scenario: Scenario, work: Workload | None = None) -> RunConfig:
    """Wire a scenario; with `work` it gets these jobs, whatever its workload.

    Raises InvalidInput with everything that is wrong in it or in the files it names.
    """
    policy = find_policy(scenario.policy.name, scenario.policy.parameters, scenario.base, scenario.where)
    nodes = tuple(
        Node(
            type=group.type,
            accelerators=group.accelerators,
            rack=group.rack,
            cpus=group.cpus,
            memory_gib=group.memory_gib,
        )
        for group in scenario.cluster.nodes
        for _ in range(group.count)
    )
    topology = Topology.of(nodes, scenario.physics.accelerators_per_slot)
    truth = load(scenario.throughputs.source, topology.types, base=scenario.base)
    work = work or workload_of(scenario, topology, truth)
    watched = is_searching(scenario) or observes_losses(policy)
    real = world_models.situated(scenario, topology, truth) if watched or world_models.is_on(scenario) else truth
    believed: Speeds = real if scenario.physics.believed else truth
    if scenario.belief.kind == "noisy":
        believed = NoisySpeeds(believed, scenario.belief.error, scenario.seed)
    costs, mechanism = scenario.overheads, mechanism_of(scenario, policy, len(work.jobs))
    setup = RunConfig(
        scenario=scenario,
        nodes=nodes,
        topology=topology,
        truth=real,
        believed=believed,
        jobs=_with_losses(scenario, policy, world_models.tried_again(scenario, work.jobs)),
        policy=policy,
        mechanism=mechanism,
        overheads=Overheads(
            start_s=costs.start_s,
            checkpoint_s=costs.checkpoint_s,
            restore_s=costs.restore_s,
            restore_by_size=tuple(sorted((int(size), s) for size, s in costs.restore_by_size.items())),
        ),
        tuners=tuners_of(scenario, work.jobs),
        tenants=tenants_of(scenario, work.jobs, float(topology.capacity().sum())),
        notes=(
            *_cluster_notes(scenario),
            *work.notes,
            *world_models.notes(scenario),
            *_idle(scenario, policy, work.jobs),
            *_exceeded(policy, mechanism, topology, work.jobs),
            *mechanism.notes(topology.types),
        ),
        neighbours=world_models.neighbours_of(scenario),
    )
    _demand_prices(setup)
    demand_progress(scenario, setup.jobs, truth, topology, setup.overheads)
    demand_time_to_work(scenario, policy, mechanism, setup.jobs, real, topology, setup.overheads)
    return setup


def _with_losses(scenario: Scenario, policy: Policy, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return the jobs with the learning curves that the seed draws, where the policy looks at them."""
    if "loss_curve" not in policy.info.needs:
        return jobs
    return tuple(replace(job, loss=curve_of(scenario.seed, job.job_id)) for job in jobs)


def _cluster_notes(scenario: Scenario) -> tuple[str, ...]:
    """Return the notes of the reader of a list of machines."""
    spelling = scenario.cluster.nodes_file
    notes = () if spelling is None else read_machine_list(spelling, scenario.base).notes
    return tuple(f"Machines: {note}." for note in notes)


def _idle(scenario: Scenario, policy: Policy, jobs: tuple[Job, ...]) -> tuple[str, ...]:
    """Return what was asked for but finds nothing to act on in this run."""
    found, world = [], scenario.world
    if "shapes" in policy.info.needs and not any(job.other_shapes for job in jobs):
        found.append(
            f'{policy.info.name} may choose sizes of gangs, all jobs have one; workload.elastic = "halves" adds some.'
        )
    reasons = world.backend == "local" or scenario.physics.fates != "off"
    if world.retry == "adaptive" and not reasons:
        found.append('world.retry = "adaptive" changes nothing: failures have reasons where physics.fates is on.')
    if world.retry_by == "tenant" and (world.retry == "always" or not any(job.tenant for job in jobs)):
        rule = 'without world.retry = "adaptive"' if world.retry == "always" else "as no job names a tenant"
        found.append(f'world.retry_by = "tenant" changes nothing {rule}.')
    if scenario.apps.tuner != "off" and not any(job.app for job in jobs):
        found.append(f'apps.tuner = "{scenario.apps.tuner}" changes nothing: no job of the workload belongs to an app.')
    below = [name for name, said in scenario.tenants.items() if "/" in name and said.quota is not None]
    if below and not policy.info.reads_nested_quotas:
        found.append(f"{policy.info.name} looks at quotas of tenants at the top only; not at that of {below[0]}.")
    return tuple(found)


def _exceeded(policy: Policy, mechanism: MechanismConfig, topology: Topology, jobs: tuple[Job, ...]) -> tuple[str, ...]:
    """Return a note where gangs may hold more CPUs or memory at once than there are, though their shares do not."""
    if policy.info.door != "shares" or "demand" not in policy.info.needs or mechanism.divides_time:
        return ()
    room = topology.room(np.ones(topology.nodes, dtype=bool))
    together = np.array([(job.cpus, job.memory_gib) for job in jobs]).sum(axis=0) if jobs else np.zeros(2)
    if not (together > room).any():
        return ()
    return (
        f"{policy.info.name} keeps shares of time within the CPUs and memory that there are, but leases seat gangs by "
        'accelerators: at times they hold more. mechanism.name = "ideal" carries the shares out exactly, and drf holds '
        "the totals at every instant.",
    )


def _demand_prices(setup: RunConfig) -> None:
    """Raise InvalidInput for a policy that goes by money on types whose price nobody knows."""
    if "price" not in setup.policy.info.needs:
        return
    file, row = setup.scenario.where(("cluster",))
    rule = f"{setup.policy.info.name} needs the price of every type, and this one has none in the catalogue"
    problems = [
        Problem(
            file=file, row=row, column="cluster.prices", value=name, rule=rule, fix=f"give prices = {{ {name} = … }}"
        )
        for name, price in setup.prices().items()
        if not price
    ]
    if problems:
        raise InvalidInput(problems)
