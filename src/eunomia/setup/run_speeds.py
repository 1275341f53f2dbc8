"""The throughputs of a run, step by step: what the scenario states, how they show at a place, and what is believed."""

from __future__ import annotations

from dataclasses import replace

from eunomia.model.policy import Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import estimated_throughputs
from eunomia.setup.belief_noise import NoisySpeeds
from eunomia.setup.tuner_setup import is_searching, observes_losses
from eunomia.throughputs import Throughputs
from eunomia.throughputs.measuring_jobs import WithMeasuringJobs


def with_jobs_that_measure(scenario: Scenario, stated: Throughputs) -> Throughputs:
    """Return the stated throughputs, also of jobs that measure pairs where there are such jobs."""
    if scenario.belief.charge != "slices":
        return stated
    return replace(stated, source=WithMeasuringJobs(stated.source, stated.types))


def placed_speeds(
    scenario: Scenario, policy: Policy, topology: Topology, stated: Throughputs, truth: Throughputs
) -> tuple[Speeds, Speeds]:
    """Return the true and the stated throughputs, both by place where the simulation has places."""
    if not (is_searching(scenario) or observes_losses(policy) or world_models.is_on(scenario)):
        return truth, stated
    real = world_models.placed_throughputs(scenario, topology, truth)
    return real, real if truth is stated else world_models.placed_throughputs(scenario, topology, stated)


def believed_speeds(scenario: Scenario, stated: Speeds, job_types: tuple[str, ...], *, real_time: bool) -> Speeds:
    """Return the stated throughputs as they are believed; `job_types` are those that the source knows."""
    kind = scenario.belief.kind
    if kind == "noisy" or (kind == "measured" and not real_time):
        return NoisySpeeds(stated, scenario.belief.error, scenario.seed)
    return estimated_throughputs(scenario, stated, job_types) if kind == "estimated" else stated
