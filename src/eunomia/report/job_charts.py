"""Charts of the jobs: how a quantity is distributed over them, and classes of them by gang size and by tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.report.chart import Axis, Chart, Panel, Series, cdf
from eunomia.verdict.number_format import duration, shown
from eunomia.verdict.seed_groups import SeedGroup

MOST_CLASSES = 8
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


def classes(group: Sequence[SeedGroup], styles: dict[str, int]) -> list[Chart]:
    """Return the charts of one load; by tenant only when there are several."""
    charts, tenants = [by_gang_size(group, styles)], largest_tenants(group)
    charts += [by_tenant(group, styles, tenants)] if len(tenants) > 1 else []
    return [chart for chart in charts if chart.categories and chart.panels[0].series]


def by_gang_size(group: Sequence[SeedGroup], styles: dict[str, int]) -> Chart:
    """Return average completion times by the accelerators a gang holds."""
    sizes = np.unique(np.concatenate([s.pooled("scale_factor") for s in group]).astype(np.int64))
    bounds = size_bounds(sizes)

    def member(setting: SeedGroup, index: int) -> Bools:
        size = setting.pooled("scale_factor")
        return np.asarray((size >= bounds[index][0]) & (size <= bounds[index][1]))

    return Chart(
        name="jct_by_gang_size",
        title="Completion time by gang size",
        how_to_read="Average completion time of jobs by the number of accelerators they hold at once; "
        "bars that grow to the right mean that wide jobs wait for free accelerators.",
        kind="bars",
        x=Axis(label="accelerators in the gang", unit="plain"),
        y=Axis(label="average completion time", unit="s", low=0.0),
        categories=tuple(str(a) if a == b else f"{a}–{b}" for a, b in bounds),
        panels=bars(group, styles, "jct_s", len(bounds), member),
    )


def size_bounds(sizes: Array) -> list[tuple[int, int]]:
    """Return classes of gang sizes (first, last): each size by itself, or powers of two when they are many."""
    if sizes.size <= MOST_CLASSES:
        return [(int(size), int(size)) for size in sizes]
    tops = np.unique(1 << np.ceil(elementary.log2(np.maximum(sizes, 1))).astype(np.int64))
    return [(1 if top == 1 else int(top) // 2 + 1, int(top)) for top in tops]


def largest_tenants(group: Sequence[SeedGroup]) -> tuple[str, ...]:
    """Return the tenants with the most finished jobs, most first."""
    count = Counter[str]()
    for setting in group:
        for run in setting.replications:
            count.update(run.tenant)
    return tuple(sorted(count, key=lambda tenant: (-count[tenant], tenant))[:MOST_CLASSES])


def by_tenant(group: Sequence[SeedGroup], styles: dict[str, int], tenants: tuple[str, ...]) -> Chart:
    """Return average slowdowns of the tenants."""
    row_of = {tenant: row for row, tenant in enumerate(tenants)}
    row_by_setting = {
        s: np.array([row_of.get(tenant, -1) for run in s.replications for tenant in run.tenant]) for s in group
    }
    return Chart(
        name="slowdown_by_tenant",
        title="Slowdown by tenant",
        how_to_read=f"Average slowdown of each tenant's jobs ({len(tenants)} largest tenants): "
        "bars of equal height mean that no tenant pays for another.",
        kind="bars",
        x=Axis(label="tenant", unit="plain"),
        y=Axis(label="average completion time ÷ time alone", unit="ratio", low=0.0),
        categories=tenants,
        panels=bars(group, styles, "slowdown", len(tenants), lambda s, k: np.asarray(row_by_setting[s] == k)),
    )


def bars(
    group: Sequence[SeedGroup],
    styles: dict[str, int],
    column: str,
    count: int,
    member: Callable[[SeedGroup, int], Bools],
) -> tuple[Panel, ...]:
    """Return bars of the average of `column` over the members of each class."""
    series = []
    for setting in group:
        values = setting.pooled(column)
        parts = [values[member(setting, index) & np.isfinite(values)] for index in range(count)]
        y = np.array([part.mean() if part.size else np.nan for part in parts])
        details = tuple(detail(part, column) for part in parts)
        if np.isfinite(y).any():
            name = setting.label
            series.append(Series(name=name, style=styles[name], x=np.arange(float(count)), y=y, details=details))
    return (Panel(series=tuple(series)),)


def detail(part: Floats, column: str) -> str:
    """Return how many jobs an average covers, and their 99th percentile."""
    if not part.size:
        return "no job"
    tail = float(np.quantile(part, 0.99))
    worst = duration(tail) if column.endswith("_s") else shown(tail, "ratio")
    return f"{part.size:,} job{'s' if part.size > 1 else ''}, 99th percentile {worst}"


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
