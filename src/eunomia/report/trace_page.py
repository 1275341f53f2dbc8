"""A trace as one self-contained HTML file, made like the report."""

from __future__ import annotations

from eunomia.report.chart import Chart
from eunomia.report.frame import framed
from eunomia.report.numbers import chart_numbers
from eunomia.report.trace_tables import facts, trace_tables
from eunomia.traces.statistics import Description


def trace_page(title: str, description: Description, charts: tuple[Chart, ...]) -> str:
    """Return the HTML: facts and tables, notes, and a frame for each chart.

    The statistics are in the page as JSON beside the points of the charts.
    """
    block = {"version": 1, **description.as_dict(), "charts": [chart_numbers(chart) for chart in charts]}
    tables = trace_tables(description)
    values = {"facts": facts(description), "tables": tables, "notes": description.notes, "charts": charts}
    return framed("trace.html", title, None, block, **values)
