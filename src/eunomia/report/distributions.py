"""Charts of how a quantity is distributed over the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.curves import cdf
from eunomia.report.seed_groups import SeedGroup

SHARE_OF_JOBS = Axis(label="share of finished jobs", unit="share", low=0.0, high=1.0)
CHARTS = (  # column of jobs.csv, least value that is drawn, chart without its curves
    (
        "jct_s",
        1e-3,
        Chart(
            name="jct_cdf",
            title="Job completion time",
            how_to_read="Each curve gives the share of jobs that finished within a time of their submission: "
            "higher and further left is better; the tail is at the top right.",
            kind="cdf",
            x=Axis(label="time from submission to finish", unit="s", scale="log"),
            y=SHARE_OF_JOBS,
            panels=(),
        ),
    ),
    (
        "queueing_s",
        1.0,
        Chart(
            name="queueing_cdf",
            title="Queueing delay",
            how_to_read="The share of jobs that first started within a time of their submission; "
            "the left end of a curve is the share that waited a second or less.",
            kind="cdf",
            x=Axis(label="time from submission to first start", unit="s", scale="log", low=1.0),
            y=SHARE_OF_JOBS,
            panels=(),
        ),
    ),
    (
        "slowdown",
        1e-3,
        Chart(
            name="slowdown_cdf",
            title="Slowdown",
            how_to_read="How many times longer jobs took than alone on the cluster: 1 is as fast as alone, "
            "and a curve far to the right has jobs that others delayed.",
            kind="cdf",
            x=Axis(label="completion time ÷ time alone", unit="ratio", scale="log"),
            y=SHARE_OF_JOBS,
            panels=(),
        ),
    ),
    (
        "rho_themis",
        1e-3,
        Chart(
            name="rho_themis_cdf",
            title="Finish-time fairness ρ",
            how_to_read="ρ is the completion time over the completion time on a fair part of the cluster: jobs left "
            "of the line at 1 gained from sharing, jobs right of it lost.",
            kind="cdf",
            x=Axis(label="ρ (Themis)", unit="ratio", scale="log"),
            y=SHARE_OF_JOBS,
            panels=(),
            mark=(1.0, "fair part"),
        ),
    ),
)


def distributions(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the charts of one load that have data: a curve for each setting that has the column."""
    charts = []
    for column, floor, chart in CHARTS:
        points = [(setting.label, *cdf(setting.pooled(column), floor)) for setting in group]
        series = tuple(Series(name=n, style=styles[n], x=x, y=y) for n, x, y in points if x.size)
        charts += [replace(chart, panels=(Panel(series=series),))] if series else []
    return charts
