"""Noisy believed throughputs: the true ones times a seeded error that is constant per job type, partner and size."""

from __future__ import annotations

import zlib

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import drawn
from eunomia.model.speeds import Speeds, by_level, spread_throughput


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
