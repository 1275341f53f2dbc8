"""Throughput of a gang of a job type on each accelerator type: the interface of true and believed throughputs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from eunomia.model.arrays import Floats

USED, ESTIMATED = "throughputs_used", "throughputs_estimated"  # counts in results: above 0; of them not measured
LEVELS = 4  # the smallest unit that holds a whole gang: slot, machine, rack, none


class Speeds(Protocol):
    """A source of throughputs, true (a backend's) or believed (the scheduler's)."""

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        ...

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang on each type, shape (type,); 0 = cannot run there."""
        ...

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,)."""
        ...


@runtime_checkable
class PlacementThroughputs(Speeds, Protocol):
    """Throughputs that depend on whether a gang is on one machine."""

    def spread_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang spread over machines, shape (type,); 0 = cannot run spread."""
        ...


def spread_throughput(speeds: Speeds, job_type: str, scale_factor: int) -> Floats:
    """Return steps/s of a gang spread over machines, (type,); as on one machine where no difference is known."""
    if isinstance(speeds, PlacementThroughputs):
        return speeds.spread_throughput(job_type, scale_factor)
    return speeds.solo_throughput(job_type, scale_factor)


@runtime_checkable
class LevelThroughputs(Speeds, Protocol):
    """Throughputs that depend on the level that holds a gang."""

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the step time at each level over that at the best one, (LEVELS,); never falling."""
        ...


def by_level(speeds: Speeds, job_type: str, scale_factor: int) -> Floats:
    """Return the slowdown at each level, (LEVELS,); 1 where it is not known."""
    if isinstance(speeds, LevelThroughputs):
        return speeds.by_level(job_type, scale_factor)
    return np.ones(LEVELS)
