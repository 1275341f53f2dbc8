"""Throughput of a gang of a job type on each accelerator type: the interface of true and believed throughputs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from eunomia.model.arrays import Floats

USED, ESTIMATED = "throughputs_used", "throughputs_estimated"  # counts in results: above 0; of them not measured
LEVELS = 4  # the smallest unit that holds a whole gang: slot, machine, rack, none


class GangThroughputs(Protocol):
    """Throughputs of gangs in their best place, alone and in pairs."""

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang on each type, shape (type,); 0 = cannot run there."""
        ...

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,)."""
        ...


class Speeds(GangThroughputs, Protocol):
    """A source of throughputs, true (a backend's) or believed (the scheduler's)."""

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        ...


@runtime_checkable
class PlacementThroughputs(Speeds, Protocol):
    """Throughputs that depend on whether a gang is on one machine."""

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of the whole gang spread over machines, shape (type,); 0 = cannot run spread.

        With a partner those of the first gang while the second shares its accelerators.
        """
        ...


def consolidated_throughput(
    speeds: GangThroughputs, job_type: str, scale_factor: int, partner: str | None = None
) -> Floats:
    """Return steps/s of a gang in its best place, (type,): alone, or beside a partner."""
    if partner is None:
        return speeds.solo_throughput(job_type, scale_factor)
    return speeds.packed_throughput(job_type, partner, scale_factor)


def spread_throughput(speeds: Speeds, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
    """Return steps/s of a gang spread over machines, (type,), alone or beside a partner.

    As on one machine where no difference is known.
    """
    if isinstance(speeds, PlacementThroughputs):
        return speeds.spread_throughput(job_type, scale_factor, partner)
    return consolidated_throughput(speeds, job_type, scale_factor, partner)


def slowed_alike(packed: Floats, alone: Floats, spread: Floats) -> Floats:
    """Return rates in a pair, (type,), slowed by the spread as the gang alone is: packed · spread / alone."""
    return np.asarray(np.divide(packed * spread, alone, out=np.zeros(len(packed)), where=alone > 0))


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
