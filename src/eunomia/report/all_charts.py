"""All charts of a report, in the order in which they are shown."""

from __future__ import annotations

from dataclasses import replace

from eunomia.report.chart import Chart, styles_of
from eunomia.report.differences import paired_differences
from eunomia.report.job_charts import classes, distributions
from eunomia.report.over_time import fairness, over_time
from eunomia.report.summary_charts import losses, totals
from eunomia.report.table import BEST, MANY
from eunomia.verdict.run_figures import ReportContent
from eunomia.verdict.seed_groups import best_first, labels, loads, seed_groups


def charts(content: ReportContent) -> tuple[Chart, ...]:
    """Return the charts that have data. With several loads, the name of a chart of one load ends with that load."""
    # Only the best of many runs are shown at first: those must not share a colour.
    best = best_first(content)
    styles = styles_of(labels(content), first=best[:BEST] if len(best) > MANY else ())
    settings, every_load = seed_groups(content), loads(content)
    overall = totals(settings, every_load, styles)
    result = [*paired_differences(settings, every_load), *(chart for chart in overall if chart.kind == "line")]
    for load in every_load:
        group = [setting for setting in settings if setting.load == load]
        own = [*distributions(group, styles), *classes(group, styles), *fairness(group), *over_time(group, styles)]
        own += losses(group, styles)
        several = len(every_load) > 1
        result += [replace(c, name=f"{c.name}_load_{load:g}", load=load) for c in own] if several else own
    return (*result, *(chart for chart in overall if chart.kind == "bars"))
