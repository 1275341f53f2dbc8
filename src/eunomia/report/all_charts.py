"""All charts of a report, in the order in which they hang."""

from __future__ import annotations

from dataclasses import replace

from eunomia.report.chart import Chart
from eunomia.report.classes import classes
from eunomia.report.content import ReportContent
from eunomia.report.distributions import distributions
from eunomia.report.fairness import fairness
from eunomia.report.losses import losses
from eunomia.report.over_time import over_time
from eunomia.report.seed_groups import labels, loads, seed_groups
from eunomia.report.summary_charts import totals


def charts(content: ReportContent) -> tuple[Chart, ...]:
    """Return what there is to show. With several loads, a chart of one load says which in its name."""
    styles = {label: place for place, label in enumerate(labels(content))}
    every, at = seed_groups(content), loads(content)
    overall = totals(every, at, styles)
    shown = [chart for chart in overall if chart.kind == "line"]
    for load in at:
        group = [setting for setting in every if setting.load == load]
        found = [*distributions(group, styles), *classes(group, styles), *fairness(group), *over_time(group, styles)]
        found += losses(group, styles)
        shown += found if len(at) == 1 else [replace(c, name=f"{c.name}_load_{load:g}", load=load) for c in found]
    return (*shown, *(chart for chart in overall if chart.kind == "bars"))
