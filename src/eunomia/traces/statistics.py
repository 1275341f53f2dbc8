"""Statistics of a trace: number, sizes, durations, submissions and outcomes of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.traces.table import Trace

HOUR, DAY = 3600.0, 86400.0
LEVELS = {"p10": 10, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99}
CLASSES = {"1": (1, 1), "2-4": (2, 4), "5-8": (5, 8), "more than 8": (9, 10**9)}  # Philly's classes of size
NOT_SAID = "not said"
MOST_DAYS = 100_000
MOST_TIME = 1e300  # accelerator-seconds
MOST_TENANTS = 10  # listed by name; the rest are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Minimum, maximum, mean and quantiles of a column; quantiles are linear between neighbours."""

    least: float
    quantile: dict[str, float]  # p10 … p99
    most: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassStatistics:
    """One group of jobs: a size, a tenant, an outcome. Shares are of all jobs and of all known accelerator-time."""

    name: str
    jobs: int
    job_share: float
    time_share: float | None  # None where no duration is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The statistics of a trace, in seconds unless a name has another unit; None = unknown."""

    source: str
    jobs: int
    began: str | None  # date and time at 0 s
    first_s: float
    last_s: float
    accelerator_hours: float | None  # of the jobs whose duration is known
    mean_demand: float | None  # accelerators busy on average between first and last submission, without any queueing
    size: Quantiles
    duration_s: Quantiles | None
    duration_s_by_class: dict[str, Quantiles]
    total_steps: Quantiles | None
    gap_s: Quantiles | None  # between submissions
    gap_variation: float | None  # standard deviation of the gaps over their mean; 1 for a Poisson process
    sizes: tuple[ClassStatistics, ...]
    statuses: tuple[ClassStatistics, ...]
    tenants: int
    busiest_tenants: tuple[ClassStatistics, ...]
    job_types: int | None  # None: the trace names none
    with_deadline: int
    by_hour: tuple[int, ...]  # submissions by hour of the day, or of 24 hours from 0 s where `began` is None
    by_day: tuple[int, ...]  # submissions by 24 hours from the first one; () for more than 100,000 days
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def describe(trace: Trace) -> Description:
    """Return the statistics of a trace."""
    with np.errstate(over="ignore"):  # a sum that overflows counts as unknown
        time = trace.scale_factor * trace.duration_s  # accelerator-seconds; nan where unknown
        total = float(np.nansum(time)) if np.isfinite(time).any() else None
    total = None if total is None or total > MOST_TIME else total
    first, last = float(trace.submitted_s[0]), float(trace.submitted_s[-1])
    gaps = np.diff(trace.submitted_s)
    owners = Counter(trace.tenant)
    sizes, size_of = np.unique(trace.scale_factor, return_inverse=True)
    statuses = [status for status, _ in Counter(trace.status).most_common()]
    busiest = [name for name, _ in owners.most_common(MOST_TENANTS + 1) if name][:MOST_TENANTS]
    return Description(
        source=trace.source,
        jobs=len(trace),
        began=None if trace.began is None else trace.began.isoformat(sep=" "),
        first_s=first,
        last_s=last,
        accelerator_hours=None if total is None else total / HOUR,
        mean_demand=None if total is None or last == first else total / (last - first),
        size=_require(quantiles(trace.scale_factor.astype(np.float64))),
        duration_s=quantiles(trace.duration_s),
        duration_s_by_class=_by_class(trace),
        total_steps=quantiles(trace.total_steps),
        gap_s=quantiles(gaps),
        gap_variation=_variation(gaps),
        sizes=_group_by(size_of, sizes.tolist(), time, total),
        statuses=_group_by(_rows_of(trace.status, statuses), statuses, time, total),
        tenants=len(owners) - ("" in owners),
        busiest_tenants=_group_by(_rows_of(trace.tenant, busiest), busiest, time, total),
        job_types=None if trace.job_type is None else len(set(trace.job_type)),
        with_deadline=int(np.isfinite(trace.deadline_s).sum()),
        by_hour=_by_hour(trace),
        by_day=_by_day(trace),
        notes=trace.notes,
    )


def classes(trace: Trace) -> dict[str, Bools]:
    """Return the jobs of each class of sizes, (job,) each; empty classes are left out."""
    rows = {
        name: (trace.scale_factor >= least) & (trace.scale_factor <= most) for name, (least, most) in CLASSES.items()
    }
    return {name: inside for name, inside in rows.items() if inside.any()}


def quantiles(values: Floats) -> Quantiles | None:
    """Return the quantiles of the finite values, which are not negative; None if there are none."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    at = np.percentile(finite, list(LEVELS.values())).tolist()
    by_name = dict(zip(LEVELS, at, strict=True))
    most = float(finite.max())
    mean = most * float(np.mean(finite / most)) if most > 0 else 0.0  # the sum might overflow
    return Quantiles(least=float(finite.min()), quantile=by_name, most=most, mean=mean)


def _variation(gaps: Floats) -> float | None:
    if not gaps.size or not gaps.any():
        return None
    shares = gaps / gaps.max()
    return float(np.std(shares) / np.mean(shares))


def _require(sizes: Quantiles | None) -> Quantiles:
    assert sizes is not None  # every job has a size
    return sizes


def _by_class(trace: Trace) -> dict[str, Quantiles]:
    quantiles_by_class = {name: quantiles(trace.duration_s[inside]) for name, inside in classes(trace).items()}
    return {name: each for name, each in quantiles_by_class.items() if each is not None}


def _rows_of(words: Sequence[str], listed: Sequence[str]) -> Ints:
    """Return the place of each word in a list, (word,); −1 where it is not in it."""
    row_of = {word: row for row, word in enumerate(listed)}
    return np.fromiter((row_of.get(word, -1) for word in words), np.int64, len(words))


def _group_by(column: Ints, values: Sequence[Any], time: Floats, total: float | None) -> tuple[ClassStatistics, ...]:
    """Return the group of jobs of each of the values, in their order; `column` (job,) are rows of them."""
    groups = []
    for row, value in enumerate(values):
        inside = column == row
        jobs = int(np.count_nonzero(inside))
        share = None if not total else float(np.nansum(time[inside])) / total
        name = NOT_SAID if value == "" else str(value)
        groups.append(ClassStatistics(name=name, jobs=jobs, job_share=jobs / len(column), time_share=share))
    return tuple(groups)


def _by_day(trace: Trace) -> tuple[int, ...]:
    """Return submissions, (day,); () for a trace of more than MOST_DAYS days."""
    days = (trace.submitted_s - trace.submitted_s[0]) // DAY
    return () if days[-1] > MOST_DAYS else tuple(np.bincount(days.astype(np.int64)).tolist())


def _by_hour(trace: Trace) -> tuple[int, ...]:
    """Return submissions by hour of the day, (24,)."""
    began = 0.0 if trace.began is None else trace.began.hour * HOUR + trace.began.minute * 60 + trace.began.second
    hours = np.minimum((trace.submitted_s + began) % DAY // HOUR, 23).astype(np.int64)
    return tuple(np.bincount(hours, minlength=24).tolist())
