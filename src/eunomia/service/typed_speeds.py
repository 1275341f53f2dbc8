"""Throughputs of jobs that may run on some accelerator types only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from eunomia.backends.processes.environment import NO_DEVICE
from eunomia.model.arrays import Floats
from eunomia.model.job_kind import JobKind
from eunomia.model.speeds import LEVELS, Speeds, by_level, consolidated_throughput, spread_throughput


class TypedSpeeds:
    """Throughputs of jobs that may run on some types only: they are asked for by the text of a `JobKind`.

    A job that names no job type runs at speed 1 on every type. One that names no accelerator type may run on all but
    `cpu`, which is for jobs that name it, unless there is no other. It runs where the memory that it needs on each
    accelerator fits, and beside another one where both are known to fit.
    """

    def __init__(self, speeds: Speeds, memory_gib: Mapping[str, float] | None = None) -> None:
        self._speeds = speeds
        self.types = speeds.types
        with_device = tuple(name for name in speeds.types if name != NO_DEVICE)
        self._any = with_device or speeds.types  # where a job may run that names no type
        self._memory = np.array([(memory_gib or {}).get(name, math.nan) for name in speeds.types])  # nan = not known

    def _allowed(self, kind: str) -> tuple[str, Floats]:
        name, types, memory = JobKind.of(kind)
        fits = ~(memory > self._memory)  # what is not known, nan, fits
        return name, np.array([float(each in (types or self._any)) for each in self.types]) * fits

    def _fit_together(self, kind: str, other: str) -> Floats:
        """Return 1 for each type whose memory holds both, or is not known; what is not known of a job does not fit."""
        total = JobKind.of(kind).memory_gib + JobKind.of(other).memory_gib
        return np.asarray(~((math.inf if math.isnan(total) else total) > self._memory), dtype=float)

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s of a gang on each type, (type,)."""
        return self._rates(consolidated_throughput, job_type, scale_factor)

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of a gang beside another one, (type,); 0 where a type is not known."""
        return self._rates(consolidated_throughput, job_type, scale_factor, partner)

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return steps/s of a gang spread over machines, (type,), alone or beside another one."""
        return self._rates(spread_throughput, job_type, scale_factor, partner)

    def _rates(
        self, rates_of: Callable[..., Floats], job_type: str, scale_factor: int, partner: str | None = None
    ) -> Floats:
        """Return steps/s where the jobs may run, (type,), by `rates_of` on one machine or on several."""
        mine, allowed = self._allowed(job_type)
        if partner is None:
            return allowed if not mine else np.asarray(rates_of(self._speeds, mine, scale_factor) * allowed)
        other, also = self._allowed(partner)
        if not mine or not other:
            return np.zeros(len(self.types))
        fits = self._fit_together(job_type, partner)
        return np.asarray(rates_of(self._speeds, mine, scale_factor, other) * allowed * also * fits)

    def by_level(self, job_type: str, scale_factor: int) -> Floats:
        """Return the slowdown at each level, (LEVELS,)."""
        name, _ = self._allowed(job_type)
        return by_level(self._speeds, name, scale_factor) if name else np.ones(LEVELS)
