"""The charts of a sweep: averages along an axis, with confidence bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eunomia.report.chart import NO_VALUES, Axis, Chart, Panel, Series
from eunomia.report.number_format import Unit, shown
from eunomia.report.sweep.content import Group, Interval, SweepContent

DRAWN: tuple[tuple[str, str, Unit], ...] = (
    ("jct_mean_s", "Average completion time", "s"),
    ("jct_p99_s", "99th percentile of completion time", "s"),
    ("queueing_mean_s", "Average wait before the first start", "s"),
    ("makespan_s", "Makespan", "s"),
    ("utilization", "Utilisation", "share"),
    ("rho_themis_max", "Worst finish-time fairness ρ", "ratio"),
    ("cost_usd", "Cost", "usd"),
    ("preemptions", "Preemptions", "count"),
)


def charts(content: SweepContent) -> tuple[Chart, ...]:
    """Return a chart for each quantity that has data: curves where there are several places, else bars."""
    return tuple(_charts(content))


def _charts(content: SweepContent) -> Iterator[Chart]:
    several = len(content.places) > 1
    kind = f"against {content.along}" if several else ""
    for name, what, unit in DRAWN:
        panels = tuple(Panel(title=group.name, series=_series(content, group, name, unit)) for group in content.groups)
        if any(panel.series for panel in panels):
            yield Chart(
                name=f"sweep_{name}",
                title=f"{what} {kind}".strip(),
                how_to_read="Averages over the seeds; a band holds the true average with "
                f"{100 * content.confidence:g} % confidence, and there is none for one seed. Bands may overlap though "
                "the paired difference is real: see the table of differences.",
                kind="line" if several else "bars",
                x=Axis(label=content.along, unit="plain"),
                y=Axis(label=what.lower(), unit=unit, low=0.0),
                panels=tuple(panel for panel in panels if panel.series),
                categories=() if several else ("",),
            )


def _series(content: SweepContent, group: Group, name: str, unit: Unit) -> tuple[Series, ...]:
    """Return one line, or one bar, for each name in `content.compared`."""
    x = np.array(content.places) if len(content.places) > 1 else np.zeros(1)
    series = []
    for style, compared in enumerate(content.compared):
        by_place = {s.place: s.averages[name] for s in group.settings if s.name == compared and name in s.averages}
        if not by_place:
            continue
        along = [by_place.get(place) for place in content.places]
        banded = any(average is not None and average.low is not None for average in along)
        series.append(
            Series(
                name=compared,
                style=style,
                x=x,
                y=np.array([np.nan if average is None else average.mean for average in along]),
                low=np.array([_band(average)[0] for average in along]) if banded else NO_VALUES,
                high=np.array([_band(average)[1] for average in along]) if banded else NO_VALUES,
                details=tuple("" if average is None else _details(average, unit) for average in along),
            )
        )
    return tuple(series)


def _band(average: Interval | None) -> tuple[float, float]:
    """Return the ends of the band, at least 0; with one seed it has no width."""
    if average is None:
        return np.nan, np.nan
    if average.low is None or average.high is None:
        return average.mean, average.mean
    return max(average.low, 0.0), average.high


def _details(average: Interval, unit: Unit) -> str:
    if average.low is None or average.high is None:
        return "one seed"
    return f"{shown(average.low, unit)} to {shown(average.high, unit)}, {average.seeds} seeds"
