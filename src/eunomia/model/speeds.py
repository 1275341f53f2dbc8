"""How fast a gang of a job type goes on each accelerator type: what truth and belief both answer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from eunomia.model.arrays import Floats

LEVELS = 4  # the smallest unit that holds a whole gang: slot, machine, rack, none


class Speeds(Protocol):
    """A source of throughputs. A world and a belief each hold one of their own."""

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        ...

    def alone(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang on each type, shape (type,); 0 = cannot run there."""
        ...

    def beside(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first gang while it shares its accelerators with the second, shape (type,)."""
        ...


@runtime_checkable
class PlacementThroughputs(Speeds, Protocol):
    """Speeds that also know what it costs a gang not to sit on one machine."""

    def apart(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of the whole gang spread over machines, shape (type,); 0 = cannot run so."""
        ...


def apart(speeds: Speeds, job_type: str, scale_factor: int) -> Floats:
    """Return steps/s of a gang that is spread over machines; as on one machine where nothing else is known."""
    if isinstance(speeds, PlacementThroughputs):
        return speeds.apart(job_type, scale_factor)
    return speeds.alone(job_type, scale_factor)


@runtime_checkable
class LevelThroughputs(Speeds, Protocol):
    """Speeds that also know what each level costs."""

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return by what the step time is multiplied as against the best place, (LEVELS,); never falling."""
        ...


def by_level(speeds: Speeds, job_type: str, scale_factor: int) -> Floats:
    """Return the slowdown at each level, (LEVELS,); 1 where nothing is known."""
    if isinstance(speeds, LevelThroughputs):
        return speeds.by_level(job_type, scale_factor)
    return np.ones(LEVELS)
