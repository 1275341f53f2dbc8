"""Charts of how a quantity is distributed over the jobs."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.report.chart import Axis, Chart, Panel, Series, cdf
from eunomia.verdict.seed_groups import SeedGroup

SHARE_OF_JOBS = Axis(label="share of finished jobs", unit="share", low=0.0, high=1.0)
COLUMNS = (  # column of jobs.csv, least value that is drawn, title, how to read the chart, x axis
    (
        "jct_s",
        1e-3,
        "Job completion time",
        "Each curve gives the share of jobs that finished within a time of their submission: "
        "higher and further left is better; the tail is at the top right.",
        Axis(label="time from submission to finish", unit="s", scale="log"),
    ),
    (
        "queueing_s",
        1.0,
        "Queueing delay",
        "The share of jobs that first started within a time of their submission; "
        "the left end of a curve is the share that waited a second or less.",
        Axis(label="time from submission to first start", unit="s", scale="log", low=1.0),
    ),
    (
        "slowdown",
        1e-3,
        "Slowdown",
        "How many times longer jobs took than alone on the cluster: 1 is as fast as alone, "
        "and a curve far to the right has jobs that others delayed.",
        Axis(label="completion time ÷ time alone", unit="ratio", scale="log"),
    ),
    (
        "rho_themis",
        1e-3,
        "Finish-time fairness ρ",
        "ρ is the completion time over the completion time on a fair part of the cluster: jobs left "
        "of the line at 1 gained from sharing, jobs right of it lost.",
        Axis(label="ρ (Themis)", unit="ratio", scale="log"),
    ),
)


def distributions(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the charts of one load that have data: a curve for each setting that has the column."""
    charts = []
    for column, floor, title, how_to_read, x_axis in COLUMNS:
        points = [(setting.label, *cdf(setting.pooled(column), floor)) for setting in group]
        series = tuple(Series(name=n, style=styles[n], x=x, y=y) for n, x, y in points if x.size)
        if series:
            chart = Chart(
                name=f"{column.removesuffix('_s')}_cdf",
                title=title,
                how_to_read=how_to_read,
                kind="cdf",
                x=x_axis,
                y=SHARE_OF_JOBS,
                panels=(Panel(series=series),),
                mark=(1.0, "fair part") if column == "rho_themis" else None,
            )
            charts.append(chart)
    return charts
