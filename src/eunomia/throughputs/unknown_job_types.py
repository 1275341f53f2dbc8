"""Throughputs of job types that a source does not have: those of its typical job type, with a wide interval.

On each accelerator type the median of the rates of the job types that can run there, at that size; the 80 % interval
ends at 10 % and 90 % of them, and is at least a factor of 2 wide on both sides. A run that measures rates begins so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.speeds import consolidated_throughput
from eunomia.throughputs.throughput_table import Throughputs, ThroughputSource

ENDS = (0.1, 0.5, 0.9)
LEAST_FACTOR = 2.0  # between the median and an end


def taking_any(speeds: Throughputs) -> Throughputs:
    """Return throughputs in which job types that the source lacks have those of a typical one."""
    if not speeds.job_types or speeds.takes_any:
        return speeds
    return replace(speeds, source=WithUnknownJobTypes(speeds.source), takes_any=True)


@dataclass(frozen=True, slots=True)
class WithUnknownJobTypes:
    """A source of throughputs in which every job type has some; what it says itself stays."""

    source: ThroughputSource
    _typical: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)

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
        """The job types of the source; it answers for any other, too."""
        return self.source.job_types

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,); nan where no job type has a rate on the type."""
        typical = self._ends(scale_factor)[1]
        if self.is_unknown(job_type):
            return np.array(typical)
        rates = self.source.solo_throughput(job_type, scale_factor)
        return np.where(np.isnan(rates), typical, rates)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first beside the second, (type,); 0, may not share, where either is unknown."""
        if self.is_unknown(job_type) or self.is_unknown(partner):
            return np.zeros(len(self._ends(scale_factor)[1]))
        return self.source.packed_throughput(job_type, partner, scale_factor)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of a gang that is not on one machine, (type,); as on one where it is unknown."""
        together = consolidated_throughput(self, job_type, scale_factor, partner)
        if self.is_unknown(job_type) or (partner is not None and self.is_unknown(partner)):
            return together
        rates = self.source.spread_throughput(job_type, scale_factor, partner)
        return np.where(np.isnan(rates), together, rates)

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return (type,): True where a rate is an estimate; a typical one is."""
        if self.is_unknown(job_type):
            return np.ones(len(self._ends(scale_factor)[1]), dtype=bool)
        return np.asarray(self.source.estimated(job_type, scale_factor) | self._missing(job_type, scale_factor))

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the ends of the 80 % interval on each type, (2, type)."""
        typical = self._ends(scale_factor)[[0, 2]]
        if self.is_unknown(job_type):
            return typical.copy()
        return np.where(self._missing(job_type, scale_factor), typical, self.source.interval(job_type, scale_factor))

    def is_unknown(self, job_type: str) -> bool:
        """Return whether the source has nothing of a job type."""
        known = self.source.job_types
        return bool(known) and job_type not in known

    def _missing(self, job_type: str, scale_factor: int) -> Bools:
        return np.isnan(self.source.solo_throughput(job_type, scale_factor))

    def _ends(self, scale_factor: int) -> Floats:
        """Return low, median and high rate of the known job types on each type, (3, type)."""
        found = self._typical.get(scale_factor)
        if found is None:
            rates = [self.source.solo_throughput(name, scale_factor) for name in self.source.job_types]
            found = self._typical[scale_factor] = np.array(
                [_ends_of(np.array(column)) for column in zip(*rates, strict=True)]
            ).T
        return found


def _ends_of(rates: Floats) -> Floats:
    """Return interval and median of the rates above 0, (3,), by the nearest rank; nan without any."""
    above = np.sort(rates[rates > 0])
    if not len(above):
        return np.full(len(ENDS), np.nan)
    low, median, high = (float(above[min(int(share * len(above)), len(above) - 1)]) for share in ENDS)
    return np.array([min(low, median / LEAST_FACTOR), median, max(high, median * LEAST_FACTOR)])
