"""The numbers of the report as JSON: summaries as they were measured, and the points of every chart."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from eunomia.report.chart import Axis, Chart, Panel, Series
from eunomia.report.content import ReportContent, RunFigures
from eunomia.report.escape import plain


def numbers(content: ReportContent, charts: Iterable[Chart]) -> dict[str, object]:
    """Return the content of the block `eunomia-data`. What is not known or not finite is null."""
    return {
        "version": 1,
        "title": content.title,
        "subtitle": content.subtitle,
        "notes": list(content.notes),
        "runs": [run_numbers(run) for run in content.runs],
        "charts": [chart_numbers(chart) for chart in charts],
    }


def run_numbers(run: RunFigures) -> dict[str, object]:
    """Return who ran and the summary, exactly."""
    summary = {name: known(value) for name, value in run.summary.items()}
    return {"label": run.label, "policy": run.policy, "load": run.load, "seed": run.seed, "summary": summary}


def chart_numbers(chart: Chart) -> dict[str, object]:
    """Return a chart for the page's own renderer."""
    return {
        "name": chart.name,
        "title": chart.title,
        "kind": chart.kind,
        "load": chart.load,
        "x": axis(chart.x),
        "y": axis(chart.y),
        "categories": [plain(name) for name in chart.categories],
        "mark": list(chart.mark) if chart.mark else None,
        "panels": [panel_numbers(panel) for panel in chart.panels],
    }


def axis(one: Axis) -> dict[str, object]:
    """Return an axis."""
    return {"label": one.label, "unit": one.unit, "scale": one.scale, "low": one.low, "high": one.high}


def panel_numbers(panel: Panel) -> dict[str, object]:
    """Return a panel with its series."""
    return {"title": plain(panel.title), "series": [series(one) for one in panel.series]}


def series(one: Series) -> dict[str, object]:
    """Return the points of a series; the span and the words only where there are any."""
    points: dict[str, object] = {"name": plain(one.name), "style": one.style, "x": rounded(one.x), "y": rounded(one.y)}
    if one.low.size:
        points |= {"low": rounded(one.low), "high": rounded(one.high)}
    if any(one.details):
        points["details"] = list(one.details)
    return points


def rounded(values: Iterable[float]) -> list[float | None]:
    """Return six significant digits of each value: more than a screen shows, in half the bytes."""
    return [known(float(f"{value:.6g}")) for value in values]


def known(value: float | int | None) -> float | int | None:
    """Return a plain number, or None for what is not known or not finite."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else float(value)
