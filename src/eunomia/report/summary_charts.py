"""Charts of one number per run: cost, preemptions, and the average completion time against load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.model.arrays import Floats
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.seed_groups import SeedGroup


def totals(every: Sequence[SeedGroup], loads: tuple[float, ...], styles: dict[str, int]) -> list[Chart]:
    """Return the charts over all loads that have data."""
    charts = [cost(every, loads, styles), preemptions(every, loads, styles)]
    if len(loads) > 1:
        charts.insert(0, against_load(every, loads, styles))
    return [chart for chart in charts if chart.panels[0].series]


def against_load(every: Sequence[SeedGroup], loads: tuple[float, ...], styles: dict[str, int]) -> Chart:
    """Return average completion times against load."""
    return Chart(
        name="jct_against_load",
        title="Average completion time against load",
        how_to_read="Load 1 is the trace as recorded, 2 the same jobs arriving twice as fast; a curve that turns up "
        "at a low load is a policy that runs out of capacity early. Bands are 95 % intervals over the seeds.",
        kind="line",
        x=Axis(label="load", unit="plain"),
        y=Axis(label="average completion time", unit="s"),
        panels=by_load(every, loads, styles, ("jct_mean_s", "s"), np.array(loads)),
    )


def cost(every: Sequence[SeedGroup], loads: tuple[float, ...], styles: dict[str, int]) -> Chart:
    """Return what the accelerators cost."""
    return Chart(
        name="cost",
        title="Cost",
        how_to_read="The list price of the accelerator-hours that jobs held; "
        "between policies that finish the same jobs, lower means faster or cheaper accelerators for the same work.",
        kind="bars",
        x=Axis(label="load", unit="plain"),
        y=Axis(label="US$", unit="usd", low=0.0),
        categories=tuple(f"{load:g}" for load in loads),
        panels=by_load(every, loads, styles, ("cost_usd", "usd"), np.arange(float(len(loads)))),
    )


def preemptions(every: Sequence[SeedGroup], loads: tuple[float, ...], styles: dict[str, int]) -> Chart:
    """Return how often jobs were stopped before their end."""
    return Chart(
        name="preemptions",
        title="Preemptions",
        how_to_read="How often running jobs were stopped before their end, migrations included: "
        "each costs a checkpoint and a restart, so fewer is better at equal completion times.",
        kind="bars",
        x=Axis(label="load", unit="plain"),
        y=Axis(label="preemptions", unit="count", low=0.0),
        categories=tuple(f"{load:g}" for load in loads),
        panels=by_load(every, loads, styles, ("preemptions", "count"), np.arange(float(len(loads)))),
    )


def by_load(
    every: Sequence[SeedGroup], loads: tuple[float, ...], styles: dict[str, int], column: tuple[str, Unit], x: Floats
) -> tuple[Panel, ...]:
    """Return, for each label, the average of a summary field at each load, and its 95 % interval over the seeds."""
    (name, unit), series = column, []
    for label, style in styles.items():
        at_load = {setting.load: setting.values(name) for setting in every if setting.label == label}
        values = [at_load.get(load, np.empty(0)) for load in loads]
        if not any(part.size for part in values):
            continue
        found = [estimate(part) for part in values]
        y = np.array([np.nan if one is None else one.mean for one in found])
        ends = [
            (np.nan, np.nan) if one is None else (max(one.mean - (one.half or 0.0), 0.0), one.mean + (one.half or 0.0))
            for one in found
        ]
        low, high = np.array(ends).T
        spread = {"low": low, "high": high} if any(part.size > 1 for part in values) else {}
        details = tuple(over_seeds(part, unit) for part in values)
        series.append(Series(name=label, style=style, x=x, y=y, details=details, **spread))
    return (Panel(series=tuple(series)),)


def over_seeds(values: Floats, unit: Unit) -> str:
    """Return the least and the most of several seeds; "" for one."""
    if values.size < 2:
        return ""
    return f"{shown(values.min(), unit)} to {shown(values.max(), unit)} over {values.size} seeds"
