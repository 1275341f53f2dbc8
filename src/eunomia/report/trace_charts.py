"""Charts of a trace: durations, steps, gang sizes, submission times and outcomes of its jobs; and the page of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.report.chart import Axis, Chart, Panel, Series, cdf
from eunomia.report.frame import chart_numbers, framed
from eunomia.report.trace_tables import facts, largest, trace_tables
from eunomia.traces.statistics import ClassStatistics, Description, classes
from eunomia.traces.table import Trace
from eunomia.verdict.number_format import DAY

SHARE_OF_JOBS = Axis(label="share of jobs", unit="share", low=0.0, high=1.0)
SHARE = Axis(label="share", unit="share", low=0.0)
SUBMISSIONS = Axis(label="jobs submitted", unit="count", low=0.0)
DURATION = Axis(label="duration", unit="s", scale="log")
STEPS = Axis(label="steps", unit="count", scale="log")


def trace_charts(trace: Trace, description: Description) -> tuple[Chart, ...]:
    """Return the charts that the trace has data for."""
    charts = [
        _distribution("durations", "How long jobs run", trace.duration_s, trace, DURATION),
        _distribution("steps", "How much jobs train", trace.total_steps, trace, STEPS),
        _sizes(description),
        _days(description),
        _hours(description),
        _outcomes(description),
    ]
    return tuple(chart for chart in charts if chart is not None)


def _distribution(name: str, title: str, values: Floats, trace: Trace, x: Axis) -> Chart | None:
    """Return the distribution of `values` (job,), of all jobs and by class of size; None where none is known."""
    rows = {"all": np.ones(len(trace), dtype=np.bool_), **{f"{n} wide": m for n, m in classes(trace).items()}}
    points = [(label, *cdf(values[inside], 1e-3)) for label, inside in rows.items()]
    series = tuple(Series(name=n, style=k, x=x_, y=y) for k, (n, x_, y) in enumerate(points) if x_.size)
    if not series:
        return None
    return Chart(
        name=name,
        title=title,
        how_to_read="Each curve gives the share of jobs that need at most this much: all jobs, then by the number of "
        "accelerators they ask for.",
        kind="cdf",
        x=x,
        y=SHARE_OF_JOBS,
        panels=(Panel(series=series),),
    )


def _sizes(description: Description) -> Chart:
    return _shares(
        "sizes",
        "How wide jobs are",
        "Few wide jobs may hold most of the time: the second bar weighs each job by accelerators × duration.",
        largest(description.sizes),
        "accelerators",
    )


def _outcomes(description: Description) -> Chart | None:
    if len(description.statuses) < 2:
        return None
    how_to_read = "The share of jobs with each outcome, and of the accelerator-time that they held."
    return _shares("outcomes", "How jobs end", how_to_read, description.statuses, "outcome")


def _shares(name: str, title: str, how_to_read: str, parts: Sequence[ClassStatistics], label: str) -> Chart:
    """Return bars of the share of jobs, and of accelerator-time where it is known."""
    at = np.arange(len(parts), dtype=np.float64)
    series = [Series(name="of jobs", style=0, x=at, y=np.array([part.job_share for part in parts]))]
    if all(part.time_share is not None for part in parts):
        time = np.array([part.time_share or 0.0 for part in parts])
        series.append(Series(name="of accelerator-time", style=1, x=at, y=time))
    return Chart(
        name=name,
        title=title,
        how_to_read=how_to_read,
        kind="bars",
        x=Axis(label=label, unit="plain"),
        y=SHARE,
        panels=(Panel(series=tuple(series)),),
        categories=tuple(part.name for part in parts),
    )


def _hours(description: Description) -> Chart:
    known = description.began is not None
    counts = np.array([*description.by_hour, description.by_hour[-1]], dtype=np.float64)
    series = Series(name="jobs", style=0, x=np.arange(len(counts), dtype=np.float64), y=counts)
    return Chart(
        name="hours",
        title="Submissions by hour of the day" if known else "Submissions by hour since the start, modulo 24",
        how_to_read="Jobs submitted in each hour of the day, in the trace's own time."
        if known
        else "The trace has no date: hours are counted from its time 0, modulo 24.",
        kind="steps",
        x=Axis(label="hour", unit="plain", low=0.0, high=24.0),
        y=SUBMISSIONS,
        panels=(Panel(series=(series,)),),
    )


def _days(description: Description) -> Chart | None:
    if not description.by_day:
        return None
    counts = np.array([*description.by_day, description.by_day[-1]], dtype=np.float64)
    at = description.first_s + DAY * np.arange(len(counts), dtype=np.float64)
    return Chart(
        name="days",
        title="Submissions by day",
        how_to_read="Jobs submitted in every 24 hours from the first submission.",
        kind="steps",
        x=Axis(label="time in the trace", unit="s"),
        y=SUBMISSIONS,
        panels=(Panel(series=(Series(name="jobs", style=0, x=at, y=counts),)),),
    )


def trace_page(title: str, description: Description, charts: tuple[Chart, ...]) -> str:
    """Return the HTML: facts and tables, notes, and a frame for each chart.

    The statistics are in the page as JSON beside the points of the charts.
    """
    block = {"version": 1, **description.as_dict(), "charts": [chart_numbers(chart) for chart in charts]}
    tables = trace_tables(description)
    values = {"facts": facts(description), "tables": tables, "notes": description.notes, "charts": charts}
    return framed("trace.html", title, None, block, **values)
