"""The charts of a sweep: averages along an axis, with confidence bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eunomia.report.chart import NO_VALUES, Axis, Chart, Panel, Series, styles_of
from eunomia.report.differences import forest, forest_series
from eunomia.report.table import BEST, MANY
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.sweep_content import Group, Interval, SweepContent

DRAWN: tuple[tuple[str, str, Unit], ...] = (
    ("jct_mean_s", "Average completion time", "s"),
    ("jct_p99_s", "99th percentile of completion time", "s"),
    ("queueing_mean_s", "Average wait to the first start", "s"),
    ("makespan_s", "Makespan", "s"),
    ("utilization", "Utilisation", "share"),
    ("rho_themis_max", "Worst finish-time fairness ρ", "ratio"),
    ("cost_usd", "Cost", "usd"),
    ("preemptions", "Preemptions", "count"),
)


def charts(content: SweepContent) -> tuple[Chart, ...]:
    """Return the differences, then a chart for each quantity: curves where there are several places, else bars."""
    return (*_differences(content), *_charts(content))


def _differences(content: SweepContent) -> Iterator[Chart]:
    """Yield for each group of settings the differences to the baseline, one panel for each quantity."""
    names = [name for name in content.compared if name != content.baseline]
    for number, group in enumerate(content.groups):
        panels = [
            Panel(title=what, series=series)
            for quantity, what, _ in DRAWN
            if (series := tuple(_forest_series(content, group, names, quantity)))
        ]
        if panels:
            yield forest(
                f"differences_{number}" if len(content.groups) > 1 else "differences",
                f"Differences to {content.baseline}{f' with {group.name}' if group.name else ''}",
                content.baseline,
                f"Whiskers are {100 * content.confidence:g} % intervals of the change in a typical seed.",
                names,
                panels,
            )


def _forest_series(content: SweepContent, group: Group, names: list[str], quantity: str) -> Iterator[Series]:
    """Yield one series for each place that has ratios."""
    for place in content.places:
        found = {s.name: s.versus[quantity] for s in group.settings if s.place == place and quantity in s.versus}
        known = [(at, found[name]) for at, name in enumerate(names) if name in found and found[name].relative]
        if known:
            title = f"{content.along} {place:g}" if len(content.places) > 1 else ""
            ends = [versus.relative for _, versus in known if versus.relative is not None]
            tones = tuple(versus.verdict for _, versus in known)
            yield forest_series(title, [at for at, _ in known], [(e.mean, e.low, e.high) for e in ends], tones)


def _charts(content: SweepContent) -> Iterator[Chart]:
    several = len(content.places) > 1
    kind = f"against {content.along}" if several else ""
    for name, what, unit in DRAWN:
        panels = tuple(Panel(title=group.name, series=_series(content, group, name, unit)) for group in content.groups)
        if any(panel.series for panel in panels):
            yield Chart(
                name=f"sweep_{name}",
                title=f"{what} {kind}".strip(),
                how_to_read="",
                kind="line" if several else "bars",
                x=Axis(label=content.along, unit="plain"),
                y=Axis(label=what.lower(), unit=unit, low=None if several else 0.0),
                panels=tuple(panel for panel in panels if panel.series),
                categories=() if several else ("",),
            )


def _series(content: SweepContent, group: Group, name: str, unit: Unit) -> tuple[Series, ...]:
    """Return one line, or one bar, for each name in `content.compared`."""
    x = np.array(content.places) if len(content.places) > 1 else np.zeros(1)
    series = []
    best = content.best_first()
    styles = styles_of(content.compared, first=best[:BEST] if len(best) > MANY else ())
    for compared, style in styles.items():
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
