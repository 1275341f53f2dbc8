"""Charts of a trace: how long and how wide its jobs are, when they come, how they end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.curves import cdf
from eunomia.report.number_format import DAY
from eunomia.traces.statistics import ClassStatistics, Description, classes
from eunomia.traces.table import Trace

SHARE_OF_JOBS = Axis(label="share of jobs", unit="share", low=0.0, high=1.0)
SHARE = Axis(label="share", unit="share", low=0.0)
SUBMISSIONS = Axis(label="jobs submitted", unit="count", low=0.0)
MOST_BARS = 24  # of sizes: the commonest


def trace_charts(trace: Trace, found: Description) -> tuple[Chart, ...]:
    """Return what there is to show; a chart of what the trace does not know is left out."""
    charts = [_durations(trace), _steps(trace), _sizes(found), _days(found), _hours(found), _outcomes(found)]
    return tuple(chart for chart in charts if chart is not None)


def _durations(trace: Trace) -> Chart | None:
    """Return the distribution of durations, of all jobs and by class of size."""
    return _spread(
        "durations",
        "How long jobs run",
        trace.duration_s,
        trace,
        Axis(label="duration", unit="s", scale="log"),
    )


def _steps(trace: Trace) -> Chart | None:
    """Return the distribution of steps, of all jobs and by class of size."""
    return _spread(
        "steps", "How much jobs train", trace.total_steps, trace, Axis(label="steps", unit="count", scale="log")
    )


def _spread(name: str, title: str, values: Floats, trace: Trace, x: Axis) -> Chart | None:
    rows = {"all": np.ones(len(trace), dtype=np.bool_), **{f"{n} wide": m for n, m in classes(trace).items()}}
    points = [(label, *cdf(values[inside], 1e-3)) for label, inside in rows.items()]
    series = tuple(Series(name=n, style=k, x=x_, y=y) for k, (n, x_, y) in enumerate(points) if x_.size)
    if not series:
        return None
    return Chart(
        name=name,
        title=title,
        how_to_read="Each curve gives the share of jobs that need at most so much: all jobs, then by the number of "
        "accelerators they ask for.",
        kind="cdf",
        x=x,
        y=SHARE_OF_JOBS,
        panels=(Panel(series=series),),
    )


def _sizes(found: Description) -> Chart:
    commonest = sorted(found.sizes, key=lambda part: -part.jobs)[:MOST_BARS]
    return _shares(
        "sizes",
        "How wide jobs are",
        "Few wide jobs may hold most of the time: the second bar weighs each job by accelerators × duration.",
        sorted(commonest, key=lambda part: int(part.name)),
        "accelerators",
    )


def _outcomes(found: Description) -> Chart | None:
    if len(found.statuses) < 2:
        return None
    said = "How many jobs ended how, and how much of the time they held until then."
    return _shares("outcomes", "How jobs end", said, found.statuses, "outcome")


def _shares(name: str, title: str, said: str, parts: Sequence[ClassStatistics], label: str) -> Chart:
    """Return bars of the share of jobs, and of accelerator-time where it is known."""
    at = np.arange(len(parts), dtype=np.float64)
    series = [Series(name="of jobs", style=0, x=at, y=np.array([part.job_share for part in parts]))]
    if all(part.time_share is not None for part in parts):
        time = np.array([part.time_share or 0.0 for part in parts])
        series.append(Series(name="of accelerator-time", style=1, x=at, y=time))
    return Chart(
        name=name,
        title=title,
        how_to_read=said,
        kind="bars",
        x=Axis(label=label, unit="plain"),
        y=SHARE,
        panels=(Panel(series=tuple(series)),),
        categories=tuple(part.name for part in parts),
    )


def _hours(found: Description) -> Chart:
    known = found.began is not None
    return Chart(
        name="hours",
        title="When jobs come: hour of the day" if known else "When jobs come: hour since the start",
        how_to_read="Submissions by hour of the day, in the trace's own time."
        if known
        else "The trace does not say its date: hours are counted from its time 0, and every 24 fall together.",
        kind="bars",
        x=Axis(label="hour", unit="plain"),
        y=SUBMISSIONS,
        panels=(Panel(series=(_counts("jobs", found.by_hour),)),),
        categories=tuple(str(hour) for hour in range(24)),
    )


def _days(found: Description) -> Chart | None:
    if not found.by_day:
        return None
    counts = np.array([*found.by_day, found.by_day[-1]], dtype=np.float64)
    at = found.first_s + DAY * np.arange(len(counts), dtype=np.float64)
    return Chart(
        name="days",
        title="When jobs come: day by day",
        how_to_read="Submissions in every 24 hours from the first one.",
        kind="steps",
        x=Axis(label="time in the trace", unit="s"),
        y=SUBMISSIONS,
        panels=(Panel(series=(Series(name="jobs", style=0, x=at, y=counts),)),),
    )


def _counts(name: str, counts: Sequence[int]) -> Series:
    return Series(name=name, style=0, x=np.arange(len(counts), dtype=np.float64), y=np.array(counts, dtype=np.float64))
