"""The numbers of the report as JSON: unrounded summaries, and the points of every chart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np

from eunomia.inputs.html import plain
from eunomia.report.chart import Chart, Series
from eunomia.verdict.run_figures import ReportContent, RunFigures
from eunomia.verdict.seed_groups import best_first


def numbers(content: ReportContent, charts: Iterable[Chart]) -> dict[str, object]:
    """Return the content of the block `eunomia-data`. Unknown and non-finite values are None."""
    return {
        "version": 1,
        "title": content.title,
        "subtitle": content.subtitle,
        "notes": list(content.notes),
        "runs": [run_numbers(run) for run in content.runs],
        "best": [plain(label) for label in best_first(content)],
        "charts": [chart_numbers(chart) for chart in charts],
    }


def run_numbers(run: RunFigures) -> dict[str, object]:
    """Return the key and the unrounded summary of a run."""
    summary = {name: known(value) for name, value in run.summary.items()}
    return {"label": run.label, "policy": run.policy, "load": run.load, "seed": run.seed, "summary": summary}


def chart_numbers(chart: Chart) -> dict[str, object]:
    """Return a chart for charts.js."""
    return {
        "name": chart.name,
        "title": chart.title,
        "kind": chart.kind,
        "load": chart.load,
        "x": asdict(chart.x),
        "y": asdict(chart.y),
        "categories": [plain(name) for name in chart.categories],
        "mark": list(chart.mark) if chart.mark else None,
        "palette": chart.palette,
        "panels": [
            {"title": plain(panel.title), "series": [series_numbers(series) for series in panel.series]}
            for panel in chart.panels
        ],
    }


def series_numbers(series: Series) -> dict[str, object]:
    """Return the points of a series; ranges and details only where it has them."""
    points: dict[str, object] = {
        "name": plain(series.name),
        "style": series.style,
        "x": rounded(series.x),
        "y": rounded(series.y),
    }
    if series.low.size:
        points |= {"low": rounded(series.low), "high": rounded(series.high)}
    if series.tones:
        points["tones"] = list(series.tones)
    if any(series.details):
        points["details"] = list(series.details)
    return points


def rounded(values: Iterable[float]) -> list[float | None]:
    """Return each value with six significant digits: more than a screen shows, in half the bytes."""
    return [known(float(f"{value:.6g}")) for value in values]


def known(value: float | int | None) -> float | int | None:
    """Return a plain number, or None for an unknown or non-finite one."""
    if value is None or not math.isfinite(value):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else float(value)
