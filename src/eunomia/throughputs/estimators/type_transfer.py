"""Speeds of jobs on types on which they were never measured, as a Gaussian process over jobs and accelerator types.

    log(rate / expected)[j, t] has the covariance
    c + m [same class] + w [same job] + g [same family] + δ(t, t') + [same type] (a + b [same class] + h [same family])
    + [same job] (e D(t, t') + u δ(t, t')),   δ = s Δs(t) Δs(t'),   D = exp(−|s(t) − s(t')|² / 2λ²)

s(t) the logarithms of a type's peak and bandwidth, Δs their distances from the mean. `expected` is the analytic model
where it knows job and type; of a job that it does not know the first measurement sets the level, so that only ratios
between types are learnt, and u > 0: whether arithmetic or memory limits it is not known either. Measured rates have a
t-distributed error (K. Lange, R. Little and J. Taylor, "Robust Statistical Modeling Using the t Distribution", JASA
84(408), 1989), by iterated weights. The constants are orders of magnitude: runs of one job on equal machines differ by
6 %, kernels reach their peaks within a factor of 1.4, a family's ratio between two types differs by 7 % from others'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.throughputs.estimators.cell_posterior import CellPosterior

COMMON, CLASS = 4.0, 1.0
SPEC = 0.3
TYPE, TYPE_CLASS, TYPE_FAMILY = 0.1, 0.001, 0.005
FAMILY_SPEED, JOB_SPEED = 0.005, 0.003  # of jobs whose expected rates are known
UNKNOWN_SPEED = 4.0  # of others
JOB_SPEC, SPEC_LENGTH = 0.002, 1.5
UNKNOWN_SPEC = 0.02  # u, of jobs whose expected rates are not known
NOISE = 0.003  # variance of the logarithm of a measured rate
FREEDOM, PASSES = 2.0, 4  # degrees of freedom of its error; rounds of weights
GAUSSIAN_80 = 1.2815515655446004


@dataclass(frozen=True, slots=True, eq=False)
class TransferFacts:
    """What is known of jobs and types. `expected` is the logarithm of a rate, (job, type), up to a common constant."""

    family: Ints  # (job,) jobs of one model have one number
    job_class: Ints  # (job,) such as training or inference
    has_expected: Floats  # (job,) 1 where the analytic model knows the job, else 0
    specs: Floats  # (type, spec) logarithms of peak and bandwidth
    type_group: Ints  # (type,) types that count as one, such as variants of one chip
    expected: Floats


def _covariance(facts: TransferFacts) -> Floats:
    """Return the prior covariance of all cells, (cell, cell), cells in the order (job, type)."""
    jobs, types = facts.expected.shape
    job, type = (each.ravel() for each in np.indices((jobs, types)))
    same_job = job[:, None] == job
    same_type = facts.type_group[type][:, None] == facts.type_group[type]
    same_family = facts.family[job][:, None] == facts.family[job]
    same_class = facts.job_class[job][:, None] == facts.job_class[job]
    off = facts.specs - facts.specs.mean(axis=0)
    likeness = np.add.reduce(off[:, None, :] * off[None, :, :], axis=-1)
    limited = np.where(facts.has_expected > 0, 0.0, UNKNOWN_SPEC)[job]
    far = np.add.reduce(np.square(off[:, None, :] - off[None, :, :]), axis=-1)
    near = elementary.exp(-far / (2 * SPEC_LENGTH**2))
    free = np.where(facts.has_expected > 0, JOB_SPEED, UNKNOWN_SPEED)[job]
    return np.asarray(
        COMMON
        + CLASS * same_class
        + FAMILY_SPEED * same_family
        + SPEC * likeness[type[:, None], type]
        + same_job
        * (free[:, None] + JOB_SPEC * near[type[:, None], type] + limited[:, None] * likeness[type[:, None], type])
        + same_type * (TYPE + TYPE_CLASS * same_class + TYPE_FAMILY * same_family)
    )


class TypeTransfer:
    """Beliefs about the logarithms of rates of all jobs on all types."""

    def __init__(self, facts: TransferFacts):
        self._facts, self._prior = facts, _covariance(facts)
        self._posterior = CellPosterior(self._prior, facts.expected.ravel())
        self._levels: set[int] = set()  # jobs whose level is known: the first measurement of an unknown job sets it

    def copy(self) -> TypeTransfer:
        """Return beliefs that learn on their own from here."""
        twin = object.__new__(TypeTransfer)
        twin._facts, twin._prior, twin._posterior = self._facts, self._prior, self._posterior.copy()
        twin._levels = set(self._levels)
        return twin

    def learn(self, jobs: Ints, types: Ints, rates: Floats) -> None:
        """Learn measured rates, row by row, instead of all that was learnt before; wild ones count little."""
        cells, values = jobs * self._facts.expected.shape[1] + types, elementary.log(rates)
        noise = np.full(len(cells), NOISE)
        for _ in range(PASSES):
            self._posterior = CellPosterior(self._prior, self._facts.expected.ravel())
            self._levels = set()
            for m in range(len(cells)):
                self.observe(int(jobs[m]), int(types[m]), float(rates[m]), float(noise[m]))
            miss = np.square(values - self._posterior.mean[cells]) + self._posterior.variance[cells]
            noise = NOISE * (FREEDOM + miss / NOISE) / (FREEDOM + 1.0)

    def observe(self, job: int, type: int, rate: float, noise: float = NOISE) -> float:
        """Learn a measured rate; return how surprising it was, in standard deviations."""
        types = self._facts.expected.shape[1]
        cell, value = job * types + type, float(elementary.log(rate))
        if not self._facts.has_expected[job] and job not in self._levels:
            self._posterior.mean[job * types : (job + 1) * types] += value - self._posterior.mean[cell]
        self._levels.add(job)
        return self._posterior.observe(cell, value, noise)

    def estimate(self) -> tuple[Floats, Floats, Floats]:
        """Return medians and both ends of the 80 % intervals of all rates, (job, type) each."""
        shape = self._facts.expected.shape
        mean = self._posterior.mean.reshape(shape)
        wide = GAUSSIAN_80 * np.sqrt(self._posterior.variance + NOISE).reshape(shape)
        low, median, high = (elementary.exp(each) for each in (mean - wide, mean, mean + wide))
        return median, low, high
