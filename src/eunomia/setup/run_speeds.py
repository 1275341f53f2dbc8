"""The throughputs of a run, step by step: what the scenario states, how they show at a place, and what is believed.

Noisy beliefs are the true ones times a seeded error that is constant per job type, partner and size.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.policy import Policy
from eunomia.model.rounding import drawn
from eunomia.model.speeds import Speeds, by_level, spread_throughput
from eunomia.model.topology import Topology
from eunomia.scenario import Scenario
from eunomia.setup import world_models
from eunomia.setup.belief_estimate import estimated_throughputs
from eunomia.setup.tuner_setup import is_searching, observes_losses
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80
from eunomia.throughputs.estimators.learnt_throughputs import COMMON, COMMON_OF_UNKNOWN, NOISE, Doubt, LearntThroughputs
from eunomia.throughputs.measuring_jobs import WithMeasuringJobs
from eunomia.throughputs.throughput_table import Throughputs
from eunomia.throughputs.unknown_job_types import WithUnknownJobTypes

ANY_SPEED = 10.0  # where every speed is 1 by definition: the end of the 80 % interval over it


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


class NoisySpeeds:
    """Lognormal errors with the given σ of the logarithm; a throughput of 0 stays 0."""

    def __init__(self, truth: Speeds, error: float, seed: int):
        self._truth, self._error, self._seed = truth, error, seed
        self.types = truth.types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return believed steps/s on each type, (type,)."""
        return self._truth.solo_throughput(job_type, scale_factor) * self._factor(job_type, "", scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return believed steps/s of the first beside the second, (type,)."""
        return self._truth.packed_throughput(job_type, partner, scale_factor) * self._factor(
            job_type, partner, scale_factor
        )

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return believed steps/s of a gang spread over machines, (type,), with the error of the consolidated gang."""
        rates = spread_throughput(self._truth, job_type, scale_factor, partner)
        return rates * self._factor(job_type, partner or "", scale_factor)

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the true slowdown at each level, (level,): the error is the same at all levels."""
        return by_level(self._truth, job_type, scale_factor)

    def _factor(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        key = zlib.crc32(f"{job_type}\0{partner}".encode())  # hash() differs between processes
        rng = np.random.default_rng((self._seed, key, scale_factor))
        return elementary.exp(drawn(rng.normal(0.0, self._error, len(self.types))))


def learnt_throughputs(
    scenario: Scenario, stated: Throughputs, believed: Speeds, *, real_time: bool
) -> LearntThroughputs | None:
    """Return what is learnt from during a run: `believed` at first, as sure as the intervals of `stated` and the error.

    None where the scenario does not ask for that.

    σ² of the logarithm of a rate is the sum of that of its 80 % interval, of `error`², and of that of a measurement.
    Intervals count where the truth may be anywhere in them: on real accelerators, and where it is drawn from them. What
    a job type without a row, or a source of equal speeds, says of the size of a step counts for little.
    """
    if scenario.belief.kind != "measured":
        return None
    counts = real_time or scenario.throughputs.draw
    return LearntThroughputs(believed, _doubt(stated, scenario.belief.error, counts=counts))


def _doubt(stated: Throughputs, error: float, *, counts: bool) -> Doubt:
    source = stated.source

    def doubt(job_type: str, size: int) -> tuple[Floats, float]:
        low, high = stated.interval(job_type, size)
        wide = np.divide(high, low, out=np.ones(len(low)), where=counts & (low > 0))
        deviation = elementary.log(np.maximum(wide, 1.0)) / (2.0 * GAUSSIAN_80)
        unknown = isinstance(source, WithUnknownJobTypes) and source.is_unknown(job_type)
        if counts and not source.job_types:
            deviation, unknown = np.full(len(low), elementary.log(ANY_SPEED) / GAUSSIAN_80), True
        sigma = np.sqrt(deviation * deviation + error * error + NOISE)
        return sigma, COMMON_OF_UNKNOWN if unknown else COMMON

    return doubt
