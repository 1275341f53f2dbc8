"""Charts of sums of a run: cost, preemptions, lost accelerator-hours, and the average completion time against load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.model.arrays import Floats
from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.verdict.number_format import HOUR, Unit, shown
from eunomia.verdict.seed_groups import SeedGroup

LABEL_BY_CAUSE = {
    "start": "starts",
    "restore": "restores",
    "placement": "placement",
    "neighbours": "neighbours",
    "sharing": "partners",
    "rolled_back": "undone",
    "failed_jobs": "failed",
    "cancelled_jobs": "killed",
    "standing": "standing",
    "unheard": "late reports",
    "fragmentation": "too narrow",
    "held_back": "held back",
    "out_of_service": "down",
}
NOT_LOST = "no_demand"  # no job waited
MOST = 8  # bars
LEAST = 5e-5  # of the cluster's whole time: smaller causes are not shown


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


def losses(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the chart of one load, with the largest causes; none where no run has the figures."""
    shares = {setting: share for setting in group if (share := lost_shares(setting)) is not None}
    most = {cause: max((share[cause] for share in shares.values()), default=0.0) for cause in LABEL_BY_CAUSE}
    largest = sorted(most, key=lambda cause: -most[cause])[:MOST]
    causes = [cause for cause in LABEL_BY_CAUSE if cause in largest and most[cause] >= LEAST]
    if not causes:
        return []
    series = tuple(bars(setting, share, causes, styles) for setting, share in shares.items())
    return [
        Chart(
            name="lost_accelerator_time",
            title="Lost accelerator-hours by cause",
            how_to_read=f"Accelerator-hours that were not useful work: the {MOST} largest causes, without idle time "
            "in which no job waited. Too narrow: every waiting job needed more accelerators than were free of the "
            "type. Held back: a waiting job would have fitted, but the policy or the round did not let it start. "
            "Failed, killed: work of jobs that ended so. Undone: work that a failure undid.",
            kind="bars",
            x=Axis(label="lost to", unit="plain"),
            y=Axis(label="accelerator-hours", unit="count", low=0.0),
            categories=tuple(LABEL_BY_CAUSE[cause] for cause in causes),
            panels=(Panel(series=series),),
        )
    ]


def lost_shares(setting: SeedGroup) -> dict[str, float] | None:
    """Return by cause the part of all accelerator time, averaged over the seeds; None where it is unknown."""
    causes = (*LABEL_BY_CAUSE, NOT_LOST)
    known = {c: lost for c in causes if (lost := setting.mean(f"lost_{c}_accelerator_s")) is not None}
    useful = setting.mean("useful_accelerator_s")
    total = sum(known.values()) + (useful or 0.0)
    if useful is None or len(known) < len(causes) or total <= 0:
        return None
    return {cause: lost / total for cause, lost in known.items()}


def bars(setting: SeedGroup, share: dict[str, float], causes: Sequence[str], styles: dict[str, int]) -> Series:
    """Return the bars of one setting; a negative loss (a pair that outruns one job) counts as 0."""
    hours = [max(0.0, float(setting.values(f"lost_{cause}_accelerator_s").mean())) / HOUR for cause in causes]
    return Series(
        name=setting.label,
        style=styles[setting.label],
        x=np.arange(float(len(causes))),
        y=np.array(hours),
        details=tuple(f"{shown(share[cause], 'share')} of the whole time" for cause in causes),
    )
