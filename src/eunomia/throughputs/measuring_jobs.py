"""Jobs that measure: they hold one accelerator of a type for some seconds, and train nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.throughputs.throughput_table import ThroughputSource


def measuring_on(type: str) -> str:
    """Return the job type of a job that measures on an accelerator type; its steps are seconds."""
    return f"measuring on {type}"


@dataclass(frozen=True, slots=True)
class WithMeasuringJobs:
    """A source of throughputs with those of jobs that measure: 1 step/s on their type, 0 elsewhere or with others."""

    source: ThroughputSource
    types: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    @property
    def path(self) -> Path | None:
        """The file of the source."""
        return self.source.path

    @property
    def job_types(self) -> tuple[str, ...]:
        """The job types of the source, and those that measure."""
        known = self.source.job_types
        return (*known, *map(measuring_on, self.types)) if known else ()

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        if self._measures(job_type):
            return np.array([float(measuring_on(type) == job_type) for type in self.types])
        return self.source.solo_throughput(job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first beside the second, (type,)."""
        if self._measures(job_type) or self._measures(partner):
            return np.zeros(len(self.types))
        return self.source.packed_throughput(job_type, partner, scale_factor)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of a gang that is not on one machine, (type,)."""
        return self.source.spread_throughput(job_type, scale_factor, partner)

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return (type,): True where a rate is an estimate; those of jobs that measure are none."""
        if self._measures(job_type):
            return np.zeros(len(self.types), dtype=bool)
        return self.source.estimated(job_type, scale_factor)

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the ends of the 80 % interval on each type, (2, type)."""
        if self._measures(job_type):
            return np.stack((self.solo_throughput(job_type, scale_factor),) * 2)
        return self.source.interval(job_type, scale_factor)

    def _measures(self, job_type: str) -> bool:
        return any(job_type == measuring_on(type) for type in self.types)
