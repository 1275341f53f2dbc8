"""One of Gavel's runs again, in our world under its clock: from its file to what its simulator would print."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.backends.simulated import Simulation
from eunomia.mechanisms.gavel_rounds.mechanism import GavelMechanism
from eunomia.mechanisms.gavel_rounds.progress_accounting import DONE, DROPPED
from eunomia.model.products import dot
from eunomia.records.run import InlinePolicyRunner, Observer, PolicyRunner, run
from eunomia.runs.measurement_window import StopWhenMeasured, measured_jobs
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig
from eunomia_reproduction.gavel.artifact import POLICIES, AsPublished
from eunomia_reproduction.gavel.lease_renewals import LeaseRenewals
from eunomia_reproduction.gavel.reference import THROUGHPUTS, Reference, Run

MORE_JOBS = 2000  # drawn beyond the window, so that others keep coming while its last jobs run


@dataclass(frozen=True, slots=True, kw_only=True)
class GavelRun:
    """What one run showed, each number as Gavel's simulator counts it."""

    jct: Mapping[str, float | None]  # of every job that ended; None = dropped
    average_jct: float | None  # over the window, dropped jobs left out; None = all were dropped
    makespan: float  # when the last round ended
    utilization: float | None  # busy time of an accelerator over all of it, on average; None = above 1
    cost_usd: float
    leases_renewed: float | None  # part of those that could be; None = none could
    rounds: int
    asks: int
    cpu_s: float
    policy_cpu_s: float


def scenario_of(one: Run, reference: Reference, more: Mapping[str, Any] | None = None) -> Scenario:
    """Return the scenario of a run; `more` are parameters of its policy that Gavel's name does not say."""
    nodes = [
        {"type": kind, "count": count // one.gpus_per_server[kind], "accelerators": one.gpus_per_server[kind]}
        for kind, count in sorted(one.cluster.items())
        if count and count // one.gpus_per_server[kind]
    ]
    there = {node["type"] for node in nodes}
    prices = {kind: price for kind, price in reference.prices.items() if kind in there}
    parameters = {} if one.alpha is None else {"alpha": one.alpha}
    return scenario_from_dict(
        {
            "seed": one.seed,
            "cluster": {"nodes": nodes, **({"prices": prices} if prices else {})},
            "workload": _workload(one, reference),
            "throughputs": {"source": str(reference.folder / THROUGHPUTS)},
            "policy": {"name": f"gavel:{one.family}", **parameters, **(more or {})},
            "mechanism": {"name": "gavel", "round_s": float(one.round_seconds), "global_queue": one.global_queue},
            **({"measure": {"first_job": one.window[0], "last_job": one.window[1] - 1}} if one.window else {}),
        },
        reference.folder,
        one.id,
    )


def _workload(one: Run, reference: Reference) -> dict[str, Any]:
    drawn = one.said.get("generated")
    if drawn is None:
        return {"trace": str(reference.folder / "traces" / one.trace), "format": "gavel"}
    return {
        "generator": "gavel",
        "jobs": 2 * one.window[1] + MORE_JOBS if one.window else len(one.jct),
        "rate_per_hour": float(drawn["rate_per_hour"]),
        "multi_accelerator": bool(drawn["multi_gpu"]),
        "priorities": bool(drawn["multi_priority"]),
    }


def set_up_run(one: Run, reference: Reference, more: Mapping[str, Any] | None = None) -> RunConfig:
    """Return the run with the policy that its name stands for in the published code. Raises InvalidInput."""
    if one.policy not in POLICIES:
        return set_up(scenario_of(one, reference, more))
    setup = set_up(scenario_of(one, reference))
    return replace(setup, policy=POLICIES[one.policy](more or {}, one.seed))


def play(
    setup: RunConfig, adviser: PolicyRunner | None = None, watch: Callable[[GavelMechanism], Observer] | None = None
) -> GavelRun:
    """Run it to the end of its window, asking its policy or another one; an observer may watch the rounds."""
    setup = replace(setup, policy=AsPublished(setup.policy))
    adviser = adviser or InlinePolicyRunner(setup.policy)
    scheduler = setup.scheduler()
    mechanism = cast(GavelMechanism, scheduler.mechanism)
    measured = measured_jobs(setup.scenario, setup.jobs)
    world: Backend = Simulation(setup.jobs, setup.topology, setup.truth, seed=setup.scenario.seed)
    renewals = LeaseRenewals(mechanism.clock)
    observers = (renewals,) if watch is None else (renewals, watch(mechanism))
    began = time.process_time()
    run(scheduler, world if measured is None else StopWhenMeasured(world, measured), adviser, observers)
    mechanism.clock.close()  # jobs that ended together with the last are booked too
    spent = time.process_time() - began
    names = {job.job_id for job in (setup.jobs if measured is None else measured)}
    jct = _jct(mechanism)
    inside = [value for name, value in jct.items() if value is not None and name in names]
    clock, price = mechanism.clock, setup.price()
    busy = clock.busy / clock.ended_at if clock.ended_at > 0 else clock.busy
    return GavelRun(
        jct=jct,
        average_jct=float(np.mean(inside)) if inside else None,
        makespan=clock.ended_at,
        utilization=None if busy.max(initial=0.0) > 1.0 else float(busy.mean()),
        cost_usd=float(dot(clock.charged, price)) / 3600,
        leases_renewed=renewals.part,
        rounds=clock.opened,
        asks=getattr(adviser, "asks", 0),
        cpu_s=spent,
        policy_cpu_s=getattr(adviser, "cpu_s", 0.0),
    )


def _jct(mechanism: GavelMechanism) -> dict[str, float | None]:
    """Return when each job ended, since its submission, by the round clock."""
    jobs, n = mechanism.clock.jobs, len(mechanism.clock.jobs)
    fate, times = jobs.outcome[:n], jobs.ended[:n] - mechanism.state.jobs.submitted[:n]
    ended = np.flatnonzero((fate == DONE) | (fate == DROPPED)).tolist()
    return {mechanism.state.submitted[row].job_id: None if fate[row] == DROPPED else float(times[row]) for row in ended}
