"""Speeds of jobs on types on which they were never measured, as a Gaussian process over jobs and accelerator types.

    log(rate / expected)[j, t] has the covariance
    c + m [same class] + w [same job] + g [same family] + δ(t, t') + [same type] (a + b [same class] + h [same family])
    + [same job] (e [same type] + u δ(t, t')) + v z(j) z(j') (1 + [same type] + Δs(t) Δs(t')),   δ = s Δs(t) Δs(t')

s(t) the logarithms of a type's peak and bandwidth, Δs their distances from the mean; z(j) a job's traits, how much
memory traffic it has for each FLOP and how much work a step: types differ in how well they serve either. `expected`
is the analytic model where it knows job and type; of a job that it does not know the first measurement sets the level,
so that only ratios between types are learnt, and u > 0: whether arithmetic or memory limits it is not known either.
Measured rates have a t-distributed error (K. Lange, R. Little and J. Taylor, "Robust Statistical Modeling Using the t
Distribution", JASA 84(408), 1989), by iterated weights. The constants are orders of magnitude: runs of one job on equal
machines differ by 6 %, kernels reach their peaks within a factor of 1.4. How far a family's ratio between two types is
from others' (√h: 5 to 20 %) differs most between sets of jobs: `fit_calibration` takes it from the measurements.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80, CellPosterior, half_width, half_width_of_few

COMMON, CLASS = 4.0, 1.0
SPEC = 0.3
TYPE, TYPE_CLASS = 0.1, 0.001
FAMILY_SPREAD, FAMILY_SPREADS = 0.005, (0.0025, 0.01, 0.04)  # h where nothing says more; and to choose from
FAMILY_SPEED, JOB_SPEED = 0.005, 0.003  # of jobs whose expected rates are known
UNKNOWN_SPEED = 4.0  # of others
JOB_TYPE = 0.002  # e
UNKNOWN_SPEC = 0.02  # u, of jobs whose expected rates are not known
TRAIT = 0.02  # v
WORK_UNIT = 0.4342944819032518  # work counts in decades
NOISE = 0.003  # variance of the logarithm of a measured rate
CHECKED = 24  # jobs at most that are left out to see how wide an interval beside relatives has to be
FREEDOM, PASSES = 2.0, 4  # degrees of freedom of its error; rounds of weights


@dataclass(frozen=True, slots=True, eq=False)
class TransferFacts:
    """What is known of jobs and types. `expected` is the logarithm of a rate, (job, type), up to a common constant."""

    family: Ints  # (job,) jobs of one model have one number
    job_class: Ints  # (job,) such as training or inference
    has_expected: Floats  # (job,) 1 where the analytic model knows the job, else 0
    specs: Floats  # (type, spec) logarithms of peak and bandwidth
    type_group: Ints  # (type,) types that count as one, such as variants of one chip
    expected: Floats
    traits: Floats  # (job, trait) as `traits_of` gives them; 0 of jobs that the analytic model does not know


def traits_of(flops: Floats, traffic: Floats) -> Floats:
    """Return the traits of jobs with so many FLOP and bytes of memory traffic in a step, (job, trait).

    They are logarithms less their means; 0 where one of both is 0, for not known.
    """
    found, known = np.zeros((len(flops), 2)), (flops > 0) & (traffic > 0)
    if known.any():
        work = elementary.log(flops[known])
        raw = np.stack((elementary.log(traffic[known]) - work, work * WORK_UNIT), axis=1)
        found[known] = raw - raw.mean(axis=0)
    return found


def _covariance(facts: TransferFacts, family_spread: float) -> Floats:
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
    traits = np.add.reduce(facts.traits[:, None, :] * facts.traits[None, :, :], axis=-1)[job[:, None], job]
    free = np.where(facts.has_expected > 0, JOB_SPEED, UNKNOWN_SPEED)[job]
    return np.asarray(
        COMMON
        + CLASS * same_class
        + FAMILY_SPEED * same_family
        + SPEC * likeness[type[:, None], type]
        + TRAIT * traits * (1.0 + same_type + likeness[type[:, None], type])
        + same_job * (free[:, None] + JOB_TYPE * same_type + limited[:, None] * likeness[type[:, None], type])
        + same_type * (TYPE + TYPE_CLASS * same_class + family_spread * same_family)
    )


@dataclass(frozen=True, slots=True)
class TransferCalibration:
    """What is chosen on measured rates: h, and half of the 80 % interval in standard deviations."""

    family_spread: float = FAMILY_SPREAD
    half_width: float = GAUSSIAN_80  # on types on which some job was measured, of another family only
    related_half_width: float = GAUSSIAN_80  # on types on which a job of the same family was
    unmeasured_half_width: float = GAUSSIAN_80  # on types without any


class TypeTransfer:
    """Beliefs about the logarithms of rates of all jobs on all types."""

    def __init__(self, facts: TransferFacts, calibration: TransferCalibration | None = None):
        self._calibration = calibration or TransferCalibration()
        self._facts, self._prior = facts, _covariance(facts, self._calibration.family_spread)
        self._posterior = CellPosterior(self._prior, facts.expected.ravel())
        self._measured: Bools = np.zeros(  # (family, group of types) whether a job of it was measured there
            (int(facts.family.max()) + 1, int(facts.type_group.max()) + 1), dtype=np.bool_
        )
        self._levels: set[int] = set()  # jobs whose level is known: the first measurement of an unknown job sets it

    def copy(self) -> TypeTransfer:
        """Return beliefs that learn on their own from here."""
        twin = copy.copy(self)
        twin._posterior = self._posterior.copy()
        twin._levels, twin._measured = set(self._levels), self._measured.copy()
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
        self._measured[self._facts.family[job], self._facts.type_group[type]] = True
        return self._posterior.observe(cell, value, noise)

    @property
    def mean_log(self) -> Floats:
        """The expected logarithms of all rates, (job, type)."""
        return self._posterior.mean.reshape(self._facts.expected.shape)

    @property
    def deviation(self) -> Floats:
        """Standard deviations of the logarithms of measured rates, (job, type)."""
        return np.asarray(np.sqrt(self._posterior.variance + NOISE).reshape(self._facts.expected.shape))

    def estimate(self) -> tuple[Floats, Floats, Floats]:
        """Return medians and both ends of the 80 % intervals of all rates, (job, type) each."""
        mean = self.mean_log
        fitted, group = self._calibration, self._facts.type_group
        related, known = self._measured[self._facts.family][:, group], np.asarray(self._measured.any(axis=0))
        some = np.where(known[group], fitted.half_width, fitted.unmeasured_half_width)
        wide = np.where(related, fitted.related_half_width, some) * self.deviation
        low, median, high = (elementary.exp(each) for each in (mean - wide, mean, mean + wide))
        return median, low, high


def fit_calibration(facts: TransferFacts, jobs: Ints, types: Ints, rates: Floats) -> TransferCalibration:
    """Return the family spread that predicts measured rates best, and how wide its intervals have to be.

    Each family in turn is known by one measurement of a job. The error is that of the logarithm of the rate on another
    type; each measurement counts once. Then each job that has relatives is known by one measurement, and each type by
    its facts alone.
    """
    family, group = facts.family[jobs], facts.type_group[types]
    beside = (jobs[:, None] == jobs) & (group[:, None] != group)  # (source, target)
    if not beside.any() or len(np.unique(family)) < 3:
        return TransferCalibration()
    values, sources = elementary.log(rates), beside.sum(axis=0)
    best, least = TransferCalibration(), np.inf
    for spread in FAMILY_SPREADS:
        off, scores = np.zeros(len(jobs)), list[float]()
        for each in np.unique(family[beside.any(axis=1)]):
            beliefs, known = TypeTransfer(facts, TransferCalibration(spread)), family != each
            beliefs.learn(jobs[known], types[known], rates[known])
            for source in np.flatnonzero(~known & beside.any(axis=1)).tolist():
                guess = beliefs.copy()
                guess.observe(int(jobs[source]), int(types[source]), float(rates[source]))
                targets = np.flatnonzero(beside[source])
                cells = jobs[targets], types[targets]
                errors = np.abs(guess.mean_log[cells] - values[targets])
                off[targets] += errors
                scores += (errors / guess.deviation[cells]).tolist()
        error = float((off[sources > 0] / sources[sources > 0]).mean())
        if error < least * (1.0 - 1e-9):
            best, least = TransferCalibration(spread, half_width(scores)), error
    return replace(
        best,
        related_half_width=half_width_of_few(_scores_of_relatives(facts, jobs, types, rates, best)),
        unmeasured_half_width=half_width(_scores_of_types(facts, jobs, types, rates, best)),
    )


def _scores_of_relatives(
    facts: TransferFacts, jobs: Ints, types: Ints, rates: Floats, fitted: TransferCalibration
) -> list[float]:
    """Return |error| in standard deviations where a job has one measurement, and its family others on the type.

    At most `CHECKED` jobs are left out, each in turn.
    """
    scores, values = list[float](), elementary.log(rates)
    family, group = facts.family[jobs], facts.type_group[types]
    every = np.unique(jobs)
    for job in every[:: -(-len(every) // CHECKED)].tolist():
        known, own = jobs != job, np.flatnonzero(jobs == job)
        related = own[np.isin(group[own], group[known & (family == facts.family[job])])]
        if len(own) < 2 or not len(related):
            continue
        beliefs = TypeTransfer(facts, fitted)
        beliefs.learn(jobs[known], types[known], rates[known])
        for source in own.tolist():
            targets = related[group[related] != group[source]]
            guess = beliefs.copy()
            guess.observe(job, int(types[source]), float(rates[source]))
            cells = jobs[targets], types[targets]
            scores += (np.abs(guess.mean_log[cells] - values[targets]) / guess.deviation[cells]).tolist()
    return scores


def _scores_of_types(
    facts: TransferFacts, jobs: Ints, types: Ints, rates: Floats, fitted: TransferCalibration
) -> list[float]:
    """Return |error| in standard deviations on types of which the facts alone are known."""
    scores, values, group = list[float](), elementary.log(rates), facts.type_group[types]
    for each in np.unique(group):
        beliefs, known = TypeTransfer(facts, fitted), group != each
        beliefs.learn(jobs[known], types[known], rates[known])
        rows = np.flatnonzero(~known & np.isin(jobs, jobs[known]))
        cells = jobs[rows], types[rows]
        scores += (np.abs(beliefs.mean_log[cells] - values[rows]) / beliefs.deviation[cells]).tolist()
    return scores
