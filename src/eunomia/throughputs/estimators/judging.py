"""Judges estimators of pair throughputs on a measured table.

Reference jobs are drawn by seed; every other job is new: of its pairs with references each is profiled with probability
q. Errors are of N on hidden pairs that fit ("hidden"), and over all ordered pairs, references and those that do not fit
included. No constant of a method is fitted on the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import drawn
from eunomia.throughputs.estimators.matching import (
    Fingerprint,
    ReferenceSet,
    draw_profile,
    draw_references,
    matched_rates,
    take_fingerprint,
)
from eunomia.throughputs.estimators.pair_estimator import PairEstimator
from eunomia.throughputs.estimators.pair_table import JobFeatures, PairTable

METHODS = ("best", "match", "column_mean")
CHOICES = ("random", "telling")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How an estimator is judged: references r, profiled share q, noise σ of a measured N, and the method.

    `choose` says which pairs of a new job are measured: each with probability q, or that share of them (at least one),
    each time the pair that teaches most of the job by what is known so far.
    """

    references: int = 16
    profiled: float = 0.2
    choose: str = "random"
    method: str = "best"
    solver: str = "als"
    legacy_indexing: bool = False
    noise: float = 0.0
    seed: int = 0
    shuffle: bool = False  # new jobs take each other's measurements: no method may do well then


@dataclass(frozen=True, slots=True, eq=False)
class PairJudgement:
    """Truth and estimate of every cell, (job, type, partner), and which cells were hidden."""

    table: PairTable
    settings: JudgeSettings
    references: Ints
    truth: Floats  # nan = not measured
    median: Floats  # of all pairs, all new jobs profiled
    low: Floats  # nan where the method has no interval
    high: Floats
    hidden: Bools  # pairs of a new job with a reference that were not profiled and fit
    hidden_median: Floats  # each new job by itself beside the references; nan elsewhere
    measurements: int  # pairs run for profiling
    raw: Floats  # as `median`, but for pairs that are believed not to fit as if they did
    raw_low: Floats  # ends of the 80 % intervals of `raw`; `raw` where the method has no interval
    raw_high: Floats
    matched_family: float | None  # share of new jobs with a relative among the references, matched with one

    def errors(self) -> Floats:
        """Return |estimate − truth| of the hidden pairs, (hidden,)."""
        return np.asarray(np.abs(self.hidden_median - self.truth)[self.hidden])

    def summary(self) -> dict[str, float | int | None]:
        """Return the figures of `summary.json`."""
        known = ~np.isnan(self.truth)
        miss = np.abs(self.median - self.truth)[known]
        error, truth = self.errors(), self.truth[self.hidden]
        relative, of_all = error / truth, miss[self.truth[known] > 0] / self.truth[known][self.truth[known] > 0]
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        has_interval = bool(self.hidden.any()) and not np.isnan(self.low[self.hidden]).any()
        return {
            "rmse": _number(np.sqrt(np.square(miss).mean())),
            "mae": _number(miss.mean()),
            "median_relative_error": _quantile(of_all, 0.5),
            "p90_relative_error": _quantile(of_all, 0.9),
            "mae_hidden": _number(error.mean()) if len(error) else None,
            "median_relative_hidden": _quantile(relative, 0.5),
            "p90_relative_hidden": _quantile(relative, 0.9),
            "coverage80_hidden": _number(inside[self.hidden].mean()) if has_interval else None,
            "hidden": int(self.hidden.sum()),
            "matched_family_rate": None if self.matched_family is None else _number(self.matched_family),
            "measurements": self.measurements,
        }


def _number(value: object) -> float:
    return round(float(value), 6)  # type: ignore[arg-type]


def _quantile(values: Floats, share: float) -> float | None:
    return _number(np.quantile(values, share)) if len(values) else None


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One draw: references, and what is profiled of each new job."""

    table: PairTable
    refs: ReferenceSet
    new: Ints
    asked: dict[int, Bools]  # by new job, (type, reference)
    prints: dict[int, Fingerprint]
    shown: Floats  # what a measurement shows, (job, type, partner)


def judge(table: PairTable, settings: JudgeSettings) -> PairJudgement:
    """Draw references and profiles by the seed, estimate all pairs, and compare."""
    rng = np.random.default_rng(settings.seed)
    refs = draw_references(table, settings.references, rng)
    new = np.setdiff1d(np.arange(len(table.job_types)), refs.jobs)
    shown = table.kept
    if settings.noise > 0:
        noise = drawn(rng.normal(0.0, settings.noise, table.kept.shape))
        shown = np.where(table.kept > 0, np.clip(table.kept + noise, 1e-3, 1.0), table.kept)
    types, r = len(table.types), len(refs.jobs)
    if settings.choose == "telling":
        asked = choose_profiles(table, refs, new, settings.profiled)
    else:
        asked = {int(x): draw_profile(types, r, settings.profiled, rng) for x in new}
    seen = PairTable(table.name, table.types, table.job_types, table.alone, shown)
    refs = ReferenceSet(refs.jobs, np.nan_to_num(shown[np.ix_(refs.jobs, np.arange(types), refs.jobs)]))
    if settings.shuffle:
        shown = _shuffled(shown, refs, rng)
        seen = PairTable(table.name, table.types, table.job_types, table.alone, shown)
    prints = {x: take_fingerprint(seen, x, refs, asked[x], legacy=settings.legacy_indexing) for x in asked}
    case = _Case(table, refs, new, asked, prints, shown)
    hidden = np.zeros(table.kept.shape, dtype=np.bool_)
    for x, profile in asked.items():
        hidden[x][:, refs.jobs] = ~profile
    hidden &= table.kept > 0
    median, low, high, alone, raw, raw_low, raw_high, rate = _METHOD[settings.method](case, settings, rng)
    count = sum(int(each.sum()) for each in asked.values())
    return PairJudgement(
        table, settings, refs.jobs, table.kept, median, low, high, hidden, alone, count, raw, raw_low, raw_high,
        rate,
    )  # fmt: skip


def choose_profiles(table: PairTable, refs: ReferenceSet, new: Ints, share: float) -> dict[int, Bools]:
    """Return which pairs of each new job with references to measure, (type, reference), at least one each.

    Each is the one that teaches most of the job's pairs after those before it; no measured value decides.
    """
    base = PairEstimator(table.features)
    base.observe_references(refs.jobs, refs.kept, 1.0, np.random.default_rng(0))
    types, asked = len(table.types), dict[int, Bools]()
    for x in new.tolist():
        single, chosen = base.copy(), np.zeros((types, len(refs.jobs)), dtype=np.bool_)
        for _ in range(max(1, round(share * chosen.size))):
            left = [(x, int(w), int(refs.jobs[k])) for w, k in zip(*np.nonzero(~chosen), strict=True)]
            _, w, partner = single.most_telling(left, x)
            chosen[w, np.flatnonzero(refs.jobs == partner)] = True
            for i, j in ((x, partner), (partner, x)):
                single.expect(i, w, j)
        asked[x] = chosen
    return asked


def _shuffled(shown: Floats, refs: ReferenceSet, rng: np.random.Generator) -> Floats:
    """Return the table with its measured values dealt anew among all cells that fit."""
    dealt = shown.copy()
    fits = shown > 0
    dealt[fits] = rng.permutation(shown[fits])
    refs.kept[:] = np.nan_to_num(dealt[np.ix_(refs.jobs, np.arange(shown.shape[1]), refs.jobs)])
    return dealt


_Answer = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, float | None]  # …, each new job alone, raw, …


def beliefs_from_references(
    features: JobFeatures, refs: ReferenceSet, share: float, rng: np.random.Generator
) -> PairEstimator:
    """Return beliefs that know the pairs of reference jobs; of a new job, `share` of the pairs will be measured."""
    fitting = refs.kept[refs.kept > 0]
    beliefs = PairEstimator(features, float(fitting.mean()) if len(fitting) else 0.6)
    beliefs.observe_references(refs.jobs, refs.kept, share, rng)
    return beliefs


def _best(case: _Case, settings: JudgeSettings, rng: np.random.Generator) -> _Answer:
    base = beliefs_from_references(case.table.features, case.refs, settings.profiled, rng)
    all_jobs, shape = base.copy(), case.table.kept.shape
    alone, low, high = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    for x in case.new.tolist():
        single = base.copy()
        for w, k in zip(*np.nonzero(case.asked[x]), strict=True):
            partner = int(case.refs.jobs[k])
            for i, j in ((x, partner), (partner, x)):
                value = float(case.shown[i, w, j])
                if not np.isnan(value):
                    single.observe(i, int(w), j, value)
                    all_jobs.observe(i, int(w), j, value)
        found = single.estimate()
        alone[x], low[x], high[x] = found.median[x], found.low[x], found.high[x]
    joint = all_jobs.estimate()
    median = np.where(joint.fits, joint.median, 0.0)
    return median, low, high, alone, joint.median, joint.low, joint.high, None


def _match(case: _Case, settings: JudgeSettings, rng: np.random.Generator) -> _Answer:
    refs, kept, nothing = case.refs, case.table.kept, np.full(case.table.kept.shape, np.nan)
    matches = {int(job): m for m, job in enumerate(refs.jobs)}
    alone = nothing.copy()
    for x in case.new.tolist():
        matches[x], _ = refs.match(case.prints[x], settings.solver, rng)
        alone[np.ix_([x], np.arange(kept.shape[1]), refs.jobs)] = refs.kept[matches[x]]
    median = matched_rates(refs, [matches[i] for i in range(len(kept))])
    family = case.table.features.family
    related = [x for x in case.new.tolist() if (family[refs.jobs] == family[x]).any()]
    hits = [bool(family[refs.jobs[matches[x]]] == family[x]) for x in related]
    return median, nothing, nothing, alone, median, median, median, float(np.mean(hits)) if hits else None


def _column_mean(case: _Case, settings: JudgeSettings, rng: np.random.Generator) -> _Answer:
    """Every job as the average reference."""
    refs, kept, nothing = case.refs, case.table.kept, np.full(case.table.kept.shape, np.nan)
    fitting = np.where(refs.kept > 0, refs.kept, np.nan)
    whole = float(np.nanmean(fitting))
    column = np.where(np.isnan(fitting).all(axis=0), whole, np.nan_to_num(fitting).sum(axis=0))
    count = np.maximum((~np.isnan(fitting)).sum(axis=0), 1)
    column = np.where(np.isnan(fitting).all(axis=0), whole, column / count)
    alone = nothing.copy()
    alone[:, :, refs.jobs] = column
    median = np.full(kept.shape, whole)
    median[:, :, refs.jobs] = column
    return median, nothing, nothing, alone, median, median, median, None


_METHOD: dict[str, Callable[[_Case, JudgeSettings, np.random.Generator], _Answer]] = {
    "best": _best,
    "match": _match,
    "column_mean": _column_mean,
}
