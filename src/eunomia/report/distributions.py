"""Charts of how a quantity is distributed over the jobs."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.curves import cdf
from eunomia.report.seed_groups import SeedGroup

SHARE_OF_JOBS = Axis(label="share of finished jobs", unit="share", low=0.0, high=1.0)


def distributions(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the charts of one load; those that nothing is known for are left out."""
    charts = [jct(group, styles), queueing(group, styles), slowdown(group, styles), rho(group, styles)]
    return [chart for chart in charts if chart.panels[0].series]


def curves(group: Sequence[SeedGroup], styles: dict[str, int], column: str, floor: float) -> tuple[Panel, ...]:
    """Return one panel with a curve per setting that knows the column."""
    points = [(setting.label, *cdf(setting.pooled(column), floor)) for setting in group]
    return (Panel(series=tuple(Series(name=n, style=styles[n], x=x, y=y) for n, x, y in points if x.size)),)


def jct(group: Sequence[SeedGroup], styles: dict[str, int]) -> Chart:
    """Return the distribution of job completion times."""
    return Chart(
        name="jct_cdf",
        title="Job completion time",
        how_to_read="Each curve gives the share of jobs that were done within a time of being submitted: "
        "higher and further left is better, and the top right corner is the tail.",
        kind="cdf",
        x=Axis(label="time from submission to finish", unit="s", scale="log"),
        y=SHARE_OF_JOBS,
        panels=curves(group, styles, "jct_s", 1e-3),
    )


def queueing(group: Sequence[SeedGroup], styles: dict[str, int]) -> Chart:
    """Return the distribution of waits before the first start."""
    return Chart(
        name="queueing_cdf",
        title="Queueing delay",
        how_to_read="The share of jobs that had first started within a time of being submitted; "
        "a curve begins on the left at the share that waited a second or less.",
        kind="cdf",
        x=Axis(label="time from submission to first start", unit="s", scale="log", low=1.0),
        y=SHARE_OF_JOBS,
        panels=curves(group, styles, "queueing_s", 1.0),
    )


def slowdown(group: Sequence[SeedGroup], styles: dict[str, int]) -> Chart:
    """Return the distribution of JCT over the time alone."""
    return Chart(
        name="slowdown_cdf",
        title="Slowdown",
        how_to_read="How many times longer jobs took than alone on the cluster: 1 is as good as alone, "
        "and a curve far to the right has jobs that paid for others.",
        kind="cdf",
        x=Axis(label="completion time ÷ time alone", unit="ratio", scale="log"),
        y=SHARE_OF_JOBS,
        panels=curves(group, styles, "slowdown", 1e-3),
    )


def rho(group: Sequence[SeedGroup], styles: dict[str, int]) -> Chart:
    """Return the distribution of Themis' finish-time fairness."""
    return Chart(
        name="rho_themis_cdf",
        title="Finish-time fairness ρ",
        how_to_read="ρ is the completion time over what a fair part of the cluster would have given: jobs left of "
        "the line at 1 did better for sharing, those right of it did worse.",
        kind="cdf",
        x=Axis(label="ρ (Themis)", unit="ratio", scale="log"),
        y=SHARE_OF_JOBS,
        panels=curves(group, styles, "rho_themis", 1e-3),
        mark=(1.0, "fair part"),
    )
