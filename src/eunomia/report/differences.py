"""Forest plots: how runs differ from one of them, a dot and a whisker for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.report.chart import NO_VALUES, Axis, Chart, Panel, Series
from eunomia.verdict.judgement import judge
from eunomia.verdict.ranking import MEASURES, policies_of
from eunomia.verdict.seed_groups import SeedGroup, comparable

Ends = tuple[float, float | None, float | None]  # the change, and its interval

HOW_TO_READ = (
    "Left of 0 is less than {baseline}, which is better in all of these but utilisation. A filled dot is a certain "
    "difference (green better, red worse); an open grey one may be chance, or is below 1 %. "
)


def paired_differences(settings: Sequence[SeedGroup], loads: Sequence[float]) -> Iterator[Chart]:
    """Yield the differences to the first policy, if at least one has an interval; not of the schedule as it was."""
    settings = policies_of(settings)
    if not settings:
        return
    first = settings[0].label
    names = list(dict.fromkeys(setting.label for setting in settings if setting.label != first))
    panels = []
    for measure, what, _ in MEASURES:
        series = tuple(_series_of_load(settings, load, first, names, measure, len(loads) > 1) for load in loads)
        known = tuple(each for each in series if each is not None and each.low.size)
        if known:
            panels.append(Panel(title=what, series=known))
    if panels:
        hint = "Whiskers are 95 % intervals, over seeds or over resampled weeks or days of the trace."
        yield forest("differences", f"Differences to {first}", first, hint, names, panels)


def _series_of_load(
    settings: Sequence[SeedGroup], load: float, first: str, names: Sequence[str], measure: str, several: bool
) -> Series | None:
    able = {setting.label: setting for setting in comparable([s for s in settings if s.load == load])}
    if first not in able:
        return None
    at, ends, tones = [], [], []
    for number, name in enumerate(names):
        found = judge(able[name], able[first], measure) if name in able else None
        if found is not None and found.relative and found.judged:
            at.append(number)
            ends.append((found.change, found.low, found.high))
            tones.append("noise" if found.is_tie else "better" if found.change < 0 else "worse")
    return forest_series(f"load {load:g}" if several else "", at, ends, tuple(tones)) if at else None


def forest_series(name: str, at: Sequence[int], ends: Sequence[Ends], tones: tuple[str, ...]) -> Series:
    """Return one series of a forest; `at` counts its names."""
    low, high = ([np.nan if end[k] is None else float(end[k] or 0.0) for end in ends] for k in (1, 2))
    known = any(end[1] is not None for end in ends)
    return Series(
        name=name,
        style=0,
        x=np.array(at, dtype=np.float64),
        y=np.array([end[0] for end in ends]),
        low=np.array(low) if known else NO_VALUES,
        high=np.array(high) if known else NO_VALUES,
        tones=tones,
    )


def forest(
    name: str, title: str, baseline: str, hint: str, categories: Sequence[str], panels: Sequence[Panel]
) -> Chart:
    """Return the chart of differences to `baseline`."""
    return Chart(
        name=name,
        title=title,
        how_to_read=HOW_TO_READ.format(baseline=baseline) + hint,
        kind="forest",
        x=Axis(label=f"change against {baseline}", unit="share"),
        y=Axis(label="run", unit="plain"),
        categories=tuple(categories),
        panels=tuple(panels),
    )
