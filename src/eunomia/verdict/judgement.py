"""Whether two policies differ: paired over seeds, or on one run each by resampling blocks of days or weeks of its jobs.

The jobs of one long trace are a sample too: its weeks. Whole blocks are drawn with replacement, the same for both
policies, since jobs of one week wait for each other (H. R. Künsch, "The jackknife and the bootstrap for general
stationary observations", Annals of Statistics 17, 1989). Intervals are percentiles of the ratios.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from eunomia.metrics.statistics import NEGLIGIBLE, paired
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import whole_dot
from eunomia.verdict.number_format import DAY
from eunomia.verdict.run_figures import RunFigures
from eunomia.verdict.seed_groups import SeedGroup

CONFIDENCE = 0.95
BLOCKS = ((7 * DAY, "week"), (DAY, "day"))
LEAST_BLOCKS = 8  # fewer are too few to resample
RESAMPLES = 400
PART = 1_024  # sorted values that are counted as one part
COLUMN_BY_MEASURE = {  # of jobs → what is averaged, or the quantile
    "jct_mean_s": ("jct_s", None),
    "jct_p50_s": ("jct_s", 0.5),
    "jct_p95_s": ("jct_s", 0.95),
    "jct_p99_s": ("jct_s", 0.99),
    "queueing_mean_s": ("queueing_s", None),
    "rho_themis_mean": ("rho_themis", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDifference:
    """The difference of one setting to another in one number; this ÷ other − 1, or this − other without a ratio."""

    change: float
    low: float | None  # of the 95 % interval; None where there is none
    high: float | None
    basis: str  # "10 seeds", "12 resampled weeks" or "these jobs"
    relative: bool = True
    agrees: bool = True  # the averages over the seeds differ in the same direction as the ratios under each seed

    @property
    def includes_0(self) -> bool:
        """Whether there is an interval, and it includes 0."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high

    @property
    def is_tie(self) -> bool:
        """Whether the difference is below 1 %, its interval includes 0, or its sign depends on the average taken."""
        small = abs(self.change) <= (NEGLIGIBLE if self.relative else 0.0)
        return small or self.includes_0 or not self.agrees

    @property
    def judged(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None


def judge(this: SeedGroup, other: SeedGroup, name: str) -> JudgedDifference | None:
    """Return how `this` differs from `other`; None where one has no value."""
    a, b = this.mean(name), other.mean(name)
    if a is None or b is None:
        return None
    one, two = this.by_seed(name), other.by_seed(name)
    seeds = 1 if this.is_one_run and other.is_one_run else len(one.keys() & two.keys())
    found = paired(one, two, CONFIDENCE) if seeds > 1 else None
    if found is not None:
        judged, relative = found.log_ratio or found.change, found.log_ratio is not None
        ends = (elementary.expm1(end) if relative and end is not None else end for end in (judged.low, judged.high))
        low, high = ends
        change = elementary.expm1(judged.mean) if relative else judged.mean
        basis, agrees = f"{seeds} seeds", found.agrees
        return JudgedDifference(change=change, low=low, high=high, basis=basis, relative=relative, agrees=agrees)
    relative = a > 0 and b > 0
    change = a / b - 1 if relative else a - b
    ends_by_block = _resampled(this.runs[0], other.runs[0], name) if relative else None
    if ends_by_block is None:
        return JudgedDifference(change=change, low=None, high=None, basis="these jobs", relative=relative)
    low, high, basis = ends_by_block
    return JudgedDifference(change=change, low=low, high=high, basis=basis)


def tied(a: SeedGroup, b: SeedGroup, name: str) -> bool:
    """Return whether two settings differ by less than 1 %, or not significantly."""
    found = judge(a, b, name)
    return found is not None and (found.is_tie or a.mean(name) == b.mean(name))


def _resampled(this: RunFigures, other: RunFigures, name: str) -> tuple[float, float, str] | None:
    """Return the interval of this ÷ other − 1, and what was resampled; None where it cannot be."""
    if name not in COLUMN_BY_MEASURE:
        return None
    split = _blocks_of(this), _blocks_of(other)
    if None in split or not _same_blocks(*split):
        return None
    first = split[0]
    assert first is not None
    found = interval_of_ratio(_statistic(this, name), _statistic(other, name))
    return None if found is None else (*found, first.basis)


def why_no_interval(this: SeedGroup, other: SeedGroup, name: str) -> str:
    """Return why the difference of two settings with one run each has no interval."""
    if name not in COLUMN_BY_MEASURE:
        return "it is no average of single jobs, which could be resampled"
    if any(_blocks_of(group.runs[0]) is None for group in (this, other)):
        return "the trace is too short to resample its weeks"
    return "the two did not finish the same jobs in each part of the trace"


def interval_of_ratio(this: Floats, other: Floats, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return the interval of this ÷ other − 1 over the same resamples, (resample,) each; None where it has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = this / other - 1
    if not np.isfinite(ratio).all():
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratio, [tail, 1 - tail]).tolist()
    return low, high


def resamples(run: RunFigures) -> tuple[str, dict[str, Floats]]:
    """Return what was resampled, "" for a short trace, and each measure in each resample, (resample,)."""
    split = _blocks_of(run)
    if split is None:
        return "", {}
    found = {name: _statistic(run, name) for name in COLUMN_BY_MEASURE}
    return split.basis, {name: values for name, values in found.items() if np.isfinite(values).all()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimeBlocks:
    """Blocks of jobs by their submission."""

    of: Ints  # (job,) block of each job
    count: int
    unit: str  # week or day

    @property
    def basis(self) -> str:
        """What is resampled: `12 resampled weeks`."""
        return f"{self.count} resampled {self.unit}s"


def blocks(submitted_s: Floats | None) -> TimeBlocks | None:
    """Return the longest blocks of which there are enough; None for a short trace."""
    if submitted_s is None or not np.size(submitted_s):
        return None
    since = np.asarray(submitted_s) - np.min(submitted_s)
    for length, unit in BLOCKS:
        of = (since // length).astype(np.int64)
        count = int(of.max()) + 1
        if count >= LEAST_BLOCKS:
            return TimeBlocks(of=of, count=count, unit=unit)
    return None


@lru_cache(maxsize=512)
def _blocks_of(run: RunFigures) -> TimeBlocks | None:
    return blocks(run.submitted_s)


def _same_blocks(one: TimeBlocks | None, two: TimeBlocks | None) -> bool:
    return one is not None and two is not None and (one.count, one.unit) == (two.count, two.unit)


@lru_cache(maxsize=512)
def _statistic(run: RunFigures, name: str) -> Floats:
    """Return the measure of each resample, (resample,); nan where a resample has no job."""
    split = _blocks_of(run)
    assert split is not None
    column, quantile = COLUMN_BY_MEASURE[name]
    times = _draws(split.count)
    if quantile is not None:
        return quantiles_of_resamples(*_sorted(run, column), times, quantile)
    values, of = _known(run, column)
    total = np.bincount(of, values, split.count)
    jobs = np.bincount(of, minlength=split.count)
    sums, counts = (times * total).sum(axis=1), (times * jobs).sum(axis=1)
    return np.asarray(np.divide(sums, counts, out=np.full(RESAMPLES, np.nan), where=counts > 0))


def _known(run: RunFigures, column: str) -> tuple[Floats, Ints]:
    """Return the known values of a column of jobs and their blocks, (job,) each."""
    split = _blocks_of(run)
    assert split is not None
    values: Floats = np.asarray(getattr(run, column), dtype=np.float64)
    known = np.isfinite(values)
    return values[known], split.of[known]


@lru_cache(maxsize=8)  # several quantiles are of one column
def _sorted(run: RunFigures, column: str) -> tuple[Floats, Ints]:
    values, of = _known(run, column)
    order = np.argsort(values, kind="stable")
    return values[order], of[order]


def quantiles_of_resamples(values: Floats, of: Ints, times: Ints, quantile: float) -> Floats:
    """Return a quantile of sorted values in each resample, (resample,), where a value counts as often as its block.

    values, of (job,), their blocks; times (resample, block). nan where a resample has no job. Values are counted by
    parts of `PART` first, so that a resample looks at the values of one part only.
    """
    parts = -(-len(values) // PART)
    place = np.arange(len(values)) // PART * times.shape[1] + of
    counts = np.bincount(place, minlength=parts * times.shape[1]).reshape(parts, times.shape[1])
    until = whole_dot(times, np.cumsum(counts, axis=0).T)
    found = np.full(len(times), np.nan)
    for number, (row, ends) in enumerate(zip(times, until, strict=True)):
        if not parts or ends[-1] == 0:
            continue
        least = quantile * ends[-1]
        part = int(np.searchsorted(ends, least))
        inside = row[of[part * PART : (part + 1) * PART]]
        before = ends[part - 1] if part else 0
        found[number] = values[part * PART + np.searchsorted(before + np.cumsum(inside), least)]
    return found


@lru_cache(maxsize=32)
def _draws(count: int) -> Ints:
    """Return how often each block is in each resample, (resample, block)."""
    drawn = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    return np.stack([np.bincount(row, minlength=count) for row in drawn])


def comparisons(settings: Sequence[SeedGroup], names: Sequence[str]) -> int:
    """Return how many differences with an interval there are between the best of each measure and the others."""
    count = 0
    for name in names:
        able = [setting for setting in settings if setting.values(name).size]
        for load in sorted({setting.load for setting in able}):
            first, *others = [setting for setting in able if setting.load == load]
            found = (judge(first, other, name) for other in others)
            count += sum(each is not None and each.judged for each in found)
    return count
