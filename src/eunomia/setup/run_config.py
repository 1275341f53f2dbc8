"""Builds the objects of a run from a scenario, for every backend."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.curves import curve_of
from eunomia.model.job import Job
from eunomia.model.job_table import job_values
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Named, Policy
from eunomia.model.topology import Node, Topology
from eunomia.scenario import Scenario
from eunomia.scenario.load import AUTO
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import check_backend, measuring_jobs, profiling_s, with_measuring
from eunomia.setup.feasibility import check_lease_length, check_outages
from eunomia.setup.mechanism import mechanism_of
from eunomia.setup.plugins import METRICS, find_backend
from eunomia.setup.policy_lookup import check_names, find_policy
from eunomia.setup.run_notes import run_notes
from eunomia.setup.run_objects import RunConfig, all_jobs
from eunomia.setup.run_speeds import believed_speeds, learnt_throughputs, placed_speeds, with_jobs_that_measure
from eunomia.setup.stated_throughputs import resolved, stated_throughputs, true_throughputs
from eunomia.setup.tenants import tenants_of
from eunomia.setup.tuner_setup import tuners_of
from eunomia.setup.workload import Workload, read_trace, workload_of


def set_up(scenario: Scenario, work: Workload | None = None, policy: Policy | None = None) -> RunConfig:
    """Build the objects of a run; `work` replaces the jobs of the scenario's workload, `policy` its policy.

    Raises InvalidInput with everything that is wrong in the scenario or in the files that it names.
    """
    if scenario.throughputs.source == AUTO:
        scenario = resolved(scenario, read_trace(scenario) if work is None else None)
    named = scenario.policy
    policy = policy or find_policy(named.name, named.parameters, scenario.base, scenario.where)
    nodes = _nodes(scenario)
    topology = Topology.of(nodes, scenario.physics.accelerators_per_slot)
    backend = find_backend(scenario)
    real_time = backend.real_time
    check_backend(scenario, real_time=real_time)

    stated = stated_throughputs(scenario, topology)
    scenario = world_models.with_placement(scenario, stated, real_time=real_time)
    job_types = tuple(name for name in stated.job_types if not stated.not_known(name))
    stated = with_jobs_that_measure(scenario, stated)
    truth = true_throughputs(scenario, stated)
    work = work or workload_of(scenario, topology, truth)
    real, assumed = placed_speeds(scenario, policy, topology, stated, truth)
    placed = assumed if scenario.physics.believed else stated
    believed = believed_speeds(scenario, placed, job_types, real_time=real_time)

    jobs, measuring = with_measuring(scenario, work.jobs, believed), measuring_jobs(scenario, believed)
    known: dict[Named, Collection[str]] = {"accelerator type": topology.types, "app": _apps_of(policy, work.jobs)}
    check_names(named.name, policy, known, scenario.where)
    mechanism = mechanism_of(scenario, policy, work.jobs, real_time=real_time)
    setup = RunConfig(
        scenario=scenario,
        nodes=nodes,
        topology=topology,
        truth=real,
        believed=believed,
        jobs=_with_loss_curves(scenario, policy, world_models.with_retries(scenario, jobs)),
        policy=policy,
        mechanism=mechanism,
        overheads=_overheads(scenario, len(topology.types)),
        tuners=tuners_of(scenario, work.jobs, topology.devices),
        tenants=tenants_of(scenario, all_jobs(work.jobs, measuring), float(topology.capacity().sum())),
        notes=run_notes(scenario, policy, mechanism, topology, work, jobs, believed, real_time=real_time),
        backend=backend,
        metrics_of_users={name: METRICS.find(name, scenario.base, scenario.where) for name in scenario.measure.metrics},
        neighbours=world_models.neighbours_of(scenario, truth),
        began=work.began,
        past=work.past,
        origins=work.origins,
        measuring=measuring,
        learnt=learnt_throughputs(scenario, stated, believed, real_time=real_time),
        stated_job_types=stated.job_types if scenario.belief.kind == "measured" else (),
    )
    _check_prices(setup)
    check_outages(scenario, setup.jobs, truth, topology, setup.overheads)
    if not real_time:
        check_lease_length(scenario, policy, mechanism, setup.jobs, real, topology, setup.overheads)
    return setup


def _nodes(scenario: Scenario) -> tuple[Node, ...]:
    """Return the machines of the scenario, one by one."""
    return tuple(
        Node(type=g.type, accelerators=g.accelerators, rack=g.rack, cpus=g.cpus, memory_gib=g.memory_gib)
        for g in scenario.cluster.nodes
        for _ in range(g.count)
    )


def _overheads(scenario: Scenario, types: int) -> Overheads:
    """Return what starts and preemptions cost a job; `types` are those of the cluster."""
    costs = scenario.overheads
    return Overheads(
        start_s=costs.start_s + (profiling_s(scenario, types) if scenario.belief.charge == "job" else 0.0),
        checkpoint_s=costs.checkpoint_s,
        restore_s=costs.restore_s,
        restore_by_size=tuple(sorted((int(size), s) for size, s in costs.restore_by_size.items())),
        saves="periodic" if costs.saves == "nothing" and scenario.world.checkpoint_every_s else costs.saves,
    )


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
