"""Throughputs without a measured table: one speed for all, or the built-in catalogue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.speeds import consolidated_throughput, slowed_alike
from eunomia.throughputs import analytic
from eunomia.throughputs.catalogue import Accelerator
from eunomia.throughputs.job_type_facts import job_types


@dataclass(frozen=True, slots=True)
class Uniform:
    """Every gang of every job type runs at 1 step/s, whatever its size. Pairs have no throughput, so none may share."""

    types: int
    name: str = "uniform"
    job_types: tuple[str, ...] = ()
    path: None = None

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return 1 step/s on each type."""
        return np.ones(self.types)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return 0 on each type."""
        return np.zeros(self.types)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return the rate on one machine on each type."""
        return consolidated_throughput(self, job_type, scale_factor, partner)

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return False on each type: the speed is a definition."""
        return np.zeros(self.types, dtype=bool)

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the rate as both ends on each type, (2, type)."""
        return np.stack((self.solo_throughput(job_type, scale_factor),) * 2)


@dataclass(frozen=True, slots=True)
class Linear(Uniform):
    """Every gang runs at 1 step/s for each of its accelerators: perfect scaling, for elastic jobs."""

    name: str = "linear"

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return 1 step/s for each accelerator, on each type."""
        return np.full(self.types, float(scale_factor))


@dataclass(frozen=True, slots=True)
class Catalogued:
    """Built-in accelerator types and job types through the analytic model."""

    accelerators: tuple[Accelerator, ...]
    name: str = "the catalogue"
    path: None = None

    @property
    def job_types(self) -> tuple[str, ...]:
        """The built-in job types."""
        return tuple(job_types())

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return the model's rate on each type."""
        job = job_types()[job_type]
        return np.array([analytic.step_rate(job, each, scale_factor) for each in self.accelerators])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return the model's rate of the first beside the second on each type."""
        job, other = job_types()[job_type], job_types()[partner]
        return np.array([analytic.shared_rate(job, other, each, scale_factor) for each in self.accelerators])

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return the model's rate on each type with the gang on two machines; beside a partner it is slowed alike."""
        job = job_types()[job_type]
        spread = np.array([analytic.step_rate(job, each, scale_factor, 2) for each in self.accelerators])
        if partner is None:
            return spread
        packed = self.packed_throughput(job_type, partner, scale_factor)
        return slowed_alike(packed, self.solo_throughput(job_type, scale_factor), spread)

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return True on each type: nothing here was measured."""
        return np.ones(len(self.accelerators), dtype=bool)

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the ends of the 80 % interval on each type, (2, type)."""
        rates = self.solo_throughput(job_type, scale_factor)
        return np.stack((rates / analytic.INTERVAL_FACTOR, rates * analytic.INTERVAL_FACTOR))
