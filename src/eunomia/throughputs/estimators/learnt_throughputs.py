"""Throughputs learnt from the progress of gangs: a prior, what was measured, and what that says of the rest.

    z[w, n] = log(rate / prior) / σ[w, n]
    corr(z[w, n], z[w', n']) = c + (1 − c) (0.6 [w = w'] + 0.4 [w = w', n = n'])

w an accelerator type and n a size of gangs of one job type, σ how far the prior may be off, c the part of it that the
job type has in common everywhere: 0.5, or 0.9 where nothing is known of it and steps may be of any size. So a job type
that is faster than its prior on one type is believed to be faster on others and in other sizes, less so the further
they are; job types say nothing of each other. A measured rate is believed as it is: the first takes the place of the
prior, later ones are averaged with weight 0.5 (the moving average of Gavel's public code, D. Narayanan et al., OSDI
2020). The correlations are orders of magnitude. They are not fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats
from eunomia.model.rounding import SEEN_BITS, rounded
from eunomia.model.speeds import Speeds
from eunomia.model.tolerance import RELATIVE
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80, CellPosterior

LATER = 0.5  # weight of a measurement that is not the first
COMMON, COMMON_OF_UNKNOWN = 0.5, 0.9  # c
SAME_TYPE = 0.6
MOST_FAILED = 3  # starts on a type that is tried, none of them measured: it is not tried any more
NOISE = 0.003  # variance of the logarithm of a measured rate, as in `type_transfer`
_NOISY = elementary.exp(GAUSSIAN_80 * float(np.sqrt(NOISE)))  # an end of the 80 % interval over a measured rate
# job type, size → σ of the logarithm of each prior rate, (type,), and the part of its variance that they have in common
Doubt = Callable[[str, int], tuple[Floats, float]]


@dataclass(frozen=True, slots=True, eq=False)
class LearntRates:
    """What is known of gangs of one job type and size, (type,) each; rates in steps/s, 0 = cannot run."""

    median: Floats
    low: Floats  # ends of the 80 % intervals
    high: Floats
    measured_s: Floats  # seconds of progress that were measured, 0 = none

    @property
    def open(self) -> Bools:
        """Where the gang can run, was never measured, and is less sure than if it had been."""
        unsure = self.high > self.median * _NOISY * (1.0 + RELATIVE)
        return np.asarray((self.median > 0) & (self.measured_s == 0) & unsure)


class LearntThroughputs:
    """Rates of all job types; those that were asked about or measured are kept."""

    def __init__(self, prior: Speeds, doubt: Doubt):
        self.prior, self._doubt = prior, doubt
        self._job_types: dict[str, _JobType] = {}

    @property
    def types(self) -> tuple[str, ...]:
        """Accelerator types, in the cluster's order."""
        return self.prior.types

    def measure(self, job_type: str, size: int, type: int, rate: float, seconds: float) -> None:
        """Learn that a gang did `rate` steps/s for so many seconds on a type, given by its row."""
        self._of(job_type, size).measure(size, type, rate, seconds, LATER)

    def restore(self, job_type: str, size: int, rates: Floats, measured_s: Floats) -> None:
        """Take over what was learnt before: rates, (type,), of which those with seconds were measured."""
        for type in np.flatnonzero(measured_s > 0).tolist():
            self._of(job_type, size).restore(size, type, float(rates[type]), float(measured_s[type]))

    def rates(self, job_type: str, size: int) -> LearntRates:
        """Return what is known of gangs of a job type and size."""
        return self._of(job_type, size).rates(size)

    def rates_if_asked(self, job_type: str, size: int) -> LearntRates:
        """Return what `rates` would, and keep nothing: for gangs of jobs that may never be accepted."""
        found = self._job_types.get(job_type)
        if found is not None and size in found.sizes:
            return found.rates(size)
        apart = LearntThroughputs(self.prior, self._doubt)
        if found is not None:
            apart._job_types[job_type] = deepcopy(found)
        return apart.rates(job_type, size)

    def sizes(self, job_type: str) -> tuple[int, ...]:
        """Return the sizes of a job type that were asked about or measured."""
        found = self._job_types.get(job_type)
        return () if found is None else tuple(found.sizes)

    def known(self) -> Iterator[tuple[str, int]]:
        """Yield all kinds that were asked about or measured, by job type and size."""
        for job_type in sorted(self._job_types):
            for size in sorted(self._job_types[job_type].sizes):
                yield job_type, size

    def _of(self, job_type: str, size: int) -> _JobType:
        found = self._job_types.get(job_type)
        if found is None:
            found = self._job_types[job_type] = _JobType()
        if size not in found.sizes:
            found.add(size, self.prior.solo_throughput(job_type, size), *self._doubt(job_type, size))
        return found


class _JobType:
    """The cells of one job type, (size, type)."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # size → row
        self._prior: list[Floats] = []
        self._doubt: list[Floats] = []
        self._common = COMMON
        self._measured: dict[tuple[int, int], tuple[float, float]] = {}  # (row, type) → rate and seconds
        self._ends: dict[int, tuple[Floats, Floats, Floats]] = {}  # by row, since the last change

    def add(self, size: int, prior: Floats, doubt: Floats, common: float) -> None:
        self._common = common
        self.sizes[size] = len(self.sizes)
        self._prior.append(np.array(prior, dtype=float))
        self._doubt.append(np.array(doubt, dtype=float))

    def measure(self, size: int, type: int, rate: float, seconds: float, weight: float) -> None:
        cell = self.sizes[size], type
        if not (rate > 0 and self._prior[cell[0]][type] > 0):
            return
        before, held_s = self._measured.get(cell, (rate, 0.0))
        if held_s == 0 or abs(rate - before) > RELATIVE * before:
            self._ends.clear()
            before += weight * (rate - before)
        self._measured[cell] = before, held_s + seconds

    def restore(self, size: int, type: int, rate: float, seconds: float) -> None:
        self._measured[self.sizes[size], type] = rate, seconds
        self._ends.clear()

    def rates(self, size: int) -> LearntRates:
        row = self.sizes[size]
        if row not in self._ends:
            self._learn()
        low, median, high = self._ends[row]
        seconds = np.zeros(len(median))
        for (own, type), (_, held_s) in self._measured.items():
            if own == row:
                seconds[type] = held_s
        return LearntRates(median, low, high, seconds)

    def _learn(self) -> None:
        """Find the medians and ends of the intervals of all sizes."""
        prior, doubt = np.array(self._prior), np.array(self._doubt)
        posterior = self._posterior(prior, doubt)
        middle = posterior.mean.reshape(prior.shape) * doubt
        wide = GAUSSIAN_80 * np.sqrt(posterior.variance.reshape(prior.shape)) * doubt
        ends = np.stack([prior * elementary.exp(each) for each in (middle - wide, middle, middle + wide)])
        for cell, (rate, _) in self._measured.items():
            ends[(slice(None), *cell)] = rate / _NOISY, rate, rate * _NOISY
        ends = rounded(ends, bits=SEEN_BITS)
        self._ends = {row: (ends[0, row], ends[1, row], ends[2, row]) for row in range(len(prior))}

    def _posterior(self, prior: Floats, doubt: Floats) -> CellPosterior:
        row, type = (each.ravel() for each in np.indices(prior.shape))
        same = type[:, None] == type
        cell = same & (row[:, None] == row)
        own = SAME_TYPE * same + (1.0 - SAME_TYPE) * cell
        found = CellPosterior(self._common + (1.0 - self._common) * own, np.zeros(len(type)))
        for (m, j), (rate, _) in sorted(self._measured.items()):
            sigma = float(doubt[m, j])
            z = float(elementary.log(rate / float(prior[m, j]))) / sigma
            found.observe(m * prior.shape[1] + j, z, NOISE / (sigma * sigma))
        return found
