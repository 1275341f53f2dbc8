"""A measured table, extrapolated to gangs of sizes that were not measured.

    T(n) = T(a) · R(n) / R(a)

a the measured scale factor nearest to n (by ratio; the lower of two), R the analytic model's rate of that job type on
that accelerator type, or n^0.75 where the catalogue lacks one of them. A measured 0 stays 0. The interval of T(n) is
that of T(a), widened by what the constants of `gang_growth` say of the step from a to n.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats
from eunomia.model.speeds import consolidated_throughput, slowed_alike
from eunomia.throughputs import analytic, catalogue
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80
from eunomia.throughputs.estimators.gang_growth import deviation_of_step
from eunomia.throughputs.job_type_facts import job_types

SCALING_EXPONENT = 0.75  # fitted: Gavel's consolidated tables, root mean square of the log error least at 0.7 to 0.8
Rates = dict[tuple[str, str, int], float]  # (type, job type, scale factor) → steps/s
Pairs = dict[tuple[str, str, str, int], float]  # (type, job type, partner, scale factor) → steps/s of the first
Intervals = dict[tuple[str, str, int], tuple[float, float]]  # as Rates → ends of the 80 % interval, steps/s


@dataclass(frozen=True, slots=True)
class Measurements:
    """The rates in a file: of gangs alone, and of one gang beside another. A rate of 0 says "cannot run"."""

    name: str
    alone: Rates
    pairs: Pairs
    intervals: Intervals = field(default_factory=dict)
    estimated: frozenset[tuple[str, str, int]] = frozenset()  # keys of `alone` that are estimates; they have intervals
    path: Path | None = None  # of the file, for the commands that messages name

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types of the file, in its order."""
        return tuple(dict.fromkeys(type_name for type_name, *_ in self.alone))


@dataclass(frozen=True, slots=True)
class MeasuredThroughputs:
    """Measurements on a cluster's accelerator types. A job type without a rate on a type is not known there: nan."""

    types: tuple[str, ...]
    measurements: Measurements
    job_types: tuple[str, ...] = field(init=False)
    _sizes: Mapping[tuple[str, ...], list[int]] = field(init=False, repr=False)  # by (type, job type[, partner])

    def __post_init__(self) -> None:
        alone, pairs = self.measurements.alone, self.measurements.pairs
        object.__setattr__(self, "job_types", tuple(dict.fromkeys(job for _, job, _ in alone)))
        object.__setattr__(self, "_sizes", _sizes_by_subject(chain(alone, pairs)))

    @property
    def name(self) -> str:
        """The file, for messages."""
        return self.measurements.name

    @property
    def path(self) -> Path | None:
        """The file, for the commands that messages name."""
        return self.measurements.path

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return the measured or extrapolated rate on each type; nan = not known."""
        return np.array([self._rate_alone(each, job_type, scale_factor) for each in self.types])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return the rate beside the partner on each type; a size not measured has the slowdown of the nearest one."""
        return np.array([self._rate_beside(each, job_type, partner, scale_factor) for each in self.types])

    def spread_throughput(self, job_type: str, scale_factor: int, partner: str | None = None) -> Floats:
        """Return the rate spread over machines, from the types "<type>_unconsolidated" where they were measured.

        A pair that was not measured so is slowed as the first of it is alone.
        """
        names = [f"{each}_unconsolidated" for each in self.types]
        together = consolidated_throughput(self, job_type, scale_factor, partner)
        if partner is None:
            apart = [self._rate_alone(each, job_type, scale_factor) for each in names]
            measured = [(each, job_type) in self._sizes for each in names]
            return np.minimum(np.where(measured, apart, together), together)
        alone, spread = self.solo_throughput(job_type, scale_factor), self.spread_throughput(job_type, scale_factor)
        apart = [self._rate_beside(each, job_type, partner, scale_factor) for each in names]
        measured = [(each, job_type, partner) in self._sizes for each in names]
        return np.minimum(np.where(measured, apart, slowed_alike(together, alone, spread)), together)

    def estimated(self, job_type: str, scale_factor: int) -> Bools:
        """Return (type,): True where the rate was not measured: the table says so, or the size is another one."""
        found = [self._anchor(each, job_type, scale_factor) for each in self.types]
        return np.array(
            [
                a is not None and (a != scale_factor or (each, job_type, a) in self.measurements.estimated)
                for each, a in zip(self.types, found, strict=True)
            ]
        )

    def interval(self, job_type: str, scale_factor: int) -> Floats:
        """Return the ends of the 80 % interval on each type, (2, type)."""
        return np.array([self._ends(each, job_type, scale_factor) for each in self.types]).T

    def paired(self, job_type: str, partner: str) -> Bools:
        """Return (type,): True where the two were measured together, whether they fit or not."""
        return np.array([(each, job_type, partner) in self._sizes for each in self.types])

    def _anchor(self, type_name: str, job_type: str, n: int) -> int | None:
        """Return the size in the table that is nearest to n; None where there is none."""
        sizes = self._sizes.get((type_name, job_type))
        return nearest_size(sizes, n) if sizes else None

    def _rate_alone(self, type_name: str, job_type: str, n: int) -> float:
        a = self._anchor(type_name, job_type, n)
        if a is None:
            return float("nan")
        rate = self.measurements.alone[type_name, job_type, a]
        return rate if a == n else rate * relative_rate(type_name, job_type, n) / relative_rate(type_name, job_type, a)

    def _ends(self, type_name: str, job_type: str, n: int) -> tuple[float, float]:
        rate, a = self._rate_alone(type_name, job_type, n), self._anchor(type_name, job_type, n)
        if a is None or not rate > 0:
            return rate, rate
        measured = self.measurements.alone[type_name, job_type, a]
        low, high = self.measurements.intervals.get((type_name, job_type, a), (measured, measured))
        step = GAUSSIAN_80 * deviation_of_step(a, n)
        below, above = (
            elementary.exp(float(np.sqrt(elementary.log(end / measured) ** 2 + step * step))) for end in (low, high)
        )
        return rate / below, rate * above

    def _rate_beside(self, type_name: str, job_type: str, partner: str, n: int) -> float:
        sizes = self._sizes.get((type_name, job_type, partner))
        if not sizes:
            return 0.0
        a = nearest_size(sizes, n)
        rate = self.measurements.pairs[type_name, job_type, partner, a]
        if a == n or rate == 0:
            return rate
        measured_alone = self._rate_alone(type_name, job_type, a)
        return rate / measured_alone * self._rate_alone(type_name, job_type, n) if measured_alone > 0 else 0.0


def nearest_size(sizes: Iterable[int], n: int) -> int:
    """Return the size nearest to n by ratio, the lower of two that are equally near."""
    return min(sizes, key=lambda size: (abs(elementary.log(size / n)), size))


def relative_rate(type_name: str, job_type: str, n: int) -> float:
    """Return the model's rate of n accelerators, in units that cancel between two scale factors."""
    accelerator, job = catalogue.find(type_name), job_types().get(job_type)
    if accelerator is None or job is None:
        return elementary.power(n, SCALING_EXPONENT)
    return analytic.unlimited_rate(job, accelerator, n)


def _sizes_by_subject(keys: Iterable[tuple[str | int, ...]]) -> dict[tuple[str, ...], list[int]]:
    sizes: dict[tuple[str, ...], list[int]] = {}
    for *subject, size in keys:
        sizes.setdefault(tuple(map(str, subject)), []).append(int(size))
    return sizes
