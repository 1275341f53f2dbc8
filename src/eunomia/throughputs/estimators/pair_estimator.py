"""Throughput of pairs as a Gaussian process over job, accelerator type and partner, with calibrated intervals.

    N[i, w, k] = m + f(i, w, k),   f with the covariance
    T(w, w') · (s0 + s1 J(i, i') + s2 J(k, k') + s3 J(i, i') J(k, k') + s4 (J(i, i') J(k, k') + J(i, k') J(k, i')))
    J = a [same family] exp(−Δ² / 2ℓ²) + (1 − a) exp(−|δ|² / 2λ²),   T = ρ + (1 − ρ) [w = w']

Δ the difference of the logarithms of batch sizes, δ that of the logarithms of speeds alone, which say how well a job
uses each type. The term s4 lets both members of a pair learn from one run. The constants were chosen before any
comparison with a table, and are not fitted. Which pairs fit into memory follows from measured pairs that did not: with
a larger batch of the same families a pair does not fit either.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.throughputs.estimators.cell_posterior import CellPosterior, half_width
from eunomia.throughputs.estimators.pair_table import JobFeatures

BATCH_LENGTH = 1.5  # ℓ, doublings
SPEED_LENGTH = 0.5  # λ
FAMILY_PART = 0.6  # a
SAME_TYPE = 0.7  # ρ
AMPLITUDES = (0.02, 0.02, 0.02, 0.02, 0.02)  # s0 to s4
NOISE = 1e-3  # variance of one measured value of N


def similarity(features: JobFeatures) -> Floats:
    """Return J, (job, job)."""
    batch = features.log2_batch[:, None] - features.log2_batch
    speed = features.log_speedup[:, None, :] - features.log_speedup[None, :, :]
    far = np.add.reduce(np.square(speed), axis=-1)
    same = features.family[:, None] == features.family
    by_family = np.where(same, elementary.exp(-np.square(batch) / (2 * BATCH_LENGTH**2)), 0.0)
    return np.asarray(FAMILY_PART * by_family + (1 - FAMILY_PART) * elementary.exp(-far / (2 * SPEED_LENGTH**2)))


def pair_covariance(likeness: Floats, types: int) -> Floats:
    """Return the prior covariance of all cells, (cell, cell), cells in the order (job, type, partner)."""
    n = len(likeness)
    job, type, partner = (each.ravel() for each in np.indices((n, types, n)))
    own, other = likeness[job[:, None], job], likeness[partner[:, None], partner]
    both = own * other
    crossed = likeness[job[:, None], partner] * likeness[partner[:, None], job]
    s0, s1, s2, s3, s4 = AMPLITUDES
    total = s0 + s1 * own + s2 * other + s3 * both + s4 * (both + crossed)
    return np.asarray(total * np.where(type[:, None] == type, 1.0, SAME_TYPE))


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimate:
    """Normalised throughputs, (job, type, partner): median, both ends of the 80 % interval, and which pairs fit."""

    median: Floats
    low: Floats
    high: Floats
    fits: Bools
    measurements: int


class PairEstimator:
    """Beliefs about N of all pairs of some job types on some types."""

    def __init__(self, features: JobFeatures, mean: float = 0.6):
        """`mean` is what is expected of a pair before any measurement: Gavel's pairs keep 0.6 of the speed alone."""
        self.features = features
        self.jobs, self.types = features.log_speedup.shape
        self.mean = mean
        cells = self.jobs * self.types * self.jobs
        self._posterior = CellPosterior(pair_covariance(similarity(features), self.types), np.full(cells, mean))
        self._blocked: list[tuple[int, int, int]] = []  # (job, type, partner) that did not fit
        self._scores: list[float] = []  # |error| in standard deviations of predictions made before measuring

    def copy(self) -> PairEstimator:
        """Return an estimator that learns on its own from here."""
        twin = copy.copy(self)
        twin._posterior = self._posterior.copy()
        twin._blocked, twin._scores = list(self._blocked), list(self._scores)
        return twin

    def cell(self, job: int, type: int, partner: int) -> int:
        """Return the number of a cell."""
        return int((job * self.types + type) * self.jobs + partner)

    def observe(self, job: int, type: int, partner: int, kept: float, noise: float = NOISE) -> float:
        """Learn the N of one member of a measured pair; 0 = the pair does not fit. Return the surprise, in σ."""
        if kept == 0.0:
            self._blocked.append((job, type, partner))
            return 0.0
        return self._posterior.observe(self.cell(job, type, partner), kept, noise)

    def expect(self, job: int, type: int, partner: int) -> None:
        """Count one member of a pair as measured, at what is expected of it: so that what to measure next is known."""
        cell = self.cell(job, type, partner)
        self._posterior.observe(cell, float(self._posterior.mean[cell]), NOISE)

    def observe_references(self, jobs: Ints, kept: Floats, share: float, rng: np.random.Generator) -> None:
        """Learn all pairs of reference jobs, (reference, type, reference), one job after another.

        Each job of the second half is predicted from `share` of its pairs before the others are learnt: that says how
        wide an interval has to be.
        """
        order = rng.permutation(len(jobs))
        for place, new in enumerate(order.tolist()):
            known = order[:place].tolist()
            cells = [(new, w, k) for w in range(self.types) for k in (*known, new)]
            cells += [(k, w, new) for w in range(self.types) for k in known]
            asked = rng.random(len(cells)) < share
            ahead = [each for each, now in zip(cells, asked, strict=True) if now]
            later = [each for each, now in zip(cells, asked, strict=True) if not now]
            for i, w, k in ahead:
                self._learn(jobs, kept, i, w, k)
            if place >= len(jobs) / 2:
                self._score([(int(jobs[i]), w, int(jobs[k]), float(kept[i, w, k])) for i, w, k in later if i == new])
            for i, w, k in later:
                self._learn(jobs, kept, i, w, k)

    def _learn(self, jobs: Ints, kept: Floats, i: int, w: int, k: int) -> None:
        value = float(kept[i, w, k])
        if not np.isnan(value):
            self.observe(int(jobs[i]), w, int(jobs[k]), value)

    def _score(self, truths: list[tuple[int, int, int, float]]) -> None:
        """Compare predictions with the truth, without learning it."""
        mean, variance = self._posterior.mean, self._posterior.variance
        for job, type, partner, value in truths:
            if value > 0:
                cell = self.cell(job, type, partner)
                self._scores.append(abs(value - float(mean[cell])) / float(np.sqrt(variance[cell] + NOISE)))

    @property
    def half_width(self) -> float:
        """Half of the 80 % interval in standard deviations, by the predictions that could be checked so far."""
        return half_width(self._scores)

    def estimate(self) -> PairEstimate:
        """Return what is believed of all pairs."""
        shape = (self.jobs, self.types, self.jobs)
        mean = self._posterior.mean.reshape(shape)
        wide = self.half_width * np.sqrt(self._posterior.variance + NOISE).reshape(shape)
        low, median, high = (np.clip(each, 0.0, 1.0) for each in (mean - wide, mean, mean + wide))
        return PairEstimate(median, low, high, self._fits(), self._posterior.count)

    def _fits(self) -> Bools:
        """Return False for pairs that did not fit, and for those of the same families with no smaller batches."""
        fits = np.ones((self.jobs, self.types, self.jobs), dtype=np.bool_)
        family, batch = self.features.family, self.features.log2_batch
        larger = (family[:, None] == family) & (batch >= batch[:, None])  # (job, at least as large)
        for job, type, partner in self._blocked:
            fits[np.ix_(larger[job], [type], larger[partner])] = False
            fits[np.ix_(larger[partner], [type], larger[job])] = False
        return fits

    def most_telling(self, candidates: list[tuple[int, int, int]], *about: int) -> tuple[int, int, int]:
        """Return the pair whose measurement would teach most of the pairs of the jobs `about`; the first of equals."""
        cells = np.array([self.cell(*each) for each in candidates], dtype=np.int64)
        rows = np.concatenate([np.arange(self.types * self.jobs) + self.cell(job, 0, 0) for job in about])
        chosen = self._posterior.most_telling(cells, NOISE, rows)
        return candidates[int(np.flatnonzero(cells == chosen)[0])]

    def least_known(self, candidates: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
        """Return those that are known less well than one measurement would tell, the `most` least known ones of them.

        They come in the order given.
        """
        variance = np.round(self._posterior.variance[[self.cell(*each) for each in candidates]], 12)
        order = np.argsort(-variance, kind="stable")[:most]
        return [candidates[m] for m in np.sort(order).tolist() if variance[m] > NOISE]
