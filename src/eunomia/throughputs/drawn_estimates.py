"""Draws what is true from what is estimated: one factor for each job type on each accelerator type.

    true rate = rate · (p90 / rate)^(z / q)   for z ≥ 0,   rate · (p10 / rate)^(−z / q) else

z a normal draw of the seed, job type and accelerator type; q the 90 % point of the normal distribution. So one draw in
ten is below p10 and one above p90. Gangs of all sizes of a job type on a type share their z: what makes an estimate
wrong at one size makes it wrong at the next.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats
from eunomia.model.rounding import drawn
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80

STREAM = 2  # of the seed: others are those of workloads and beliefs


class Estimates(Protocol):
    """A source of throughputs that says which are estimates, and how sure they are."""

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats: ...

    def estimated(self, job_type: str, scale_factor: int) -> Bools: ...

    def interval(self, job_type: str, scale_factor: int) -> Floats: ...


def drawn_factor(source: Estimates, types: tuple[str, ...], job_type: str, scale_factor: int, seed: int) -> Floats:
    """Return the drawn rate over the stated one on each type, (type,); 1 where the rate is no estimate."""
    rates, ends = source.solo_throughput(job_type, scale_factor), source.interval(job_type, scale_factor)
    factor = np.ones(len(types))
    for j in np.flatnonzero(source.estimated(job_type, scale_factor) & (rates > 0)).tolist():
        key = zlib.crc32(f"{types[j]}\0{job_type}".encode())  # hash() differs between processes
        z = drawn(float(np.random.default_rng((seed, STREAM, key)).normal()))
        end = float(ends[1 if z >= 0 else 0, j])
        factor[j] = elementary.power(end / float(rates[j]), abs(z) / GAUSSIAN_80)
    return factor
