"""The frame of every report: no URL is in it, only its own style and script run, and its numbers are in it as JSON."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.resources import files

import numpy as np

from eunomia.inputs.html import Templates, plain
from eunomia.report.chart import Chart, Series
from eunomia.verdict.number_format import plural, shown
from eunomia.verdict.run_figures import ReportContent, RunFigures
from eunomia.verdict.seed_groups import best_first


def keep_units(text: str) -> str:
    """Return a sentence with no line break between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:s|min|h|d|%)(?!\w))", "\u00a0", text)


def anchor(name: str) -> str:
    """Return the id of the section with this name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


TEMPLATES = Templates("eunomia.report", keep_units=keep_units, anchor=anchor, plural=plural, shown=shown)


def framed(template: str, title: str, subtitle: str | None, numbers: object, **values: object) -> str:
    """Return a whole page, to which the template gives the block `main`; `numbers` are for charts.js, as JSON."""
    frame = {"title": title, "subtitle": subtitle, "numbers": numbers, "sections": []}
    return TEMPLATES.render(template, **frame, **_constants(), **values)


@cache
def _constants() -> dict[str, str]:
    """Return style, script, and the security policy that allows these two, by their hashes, and pictures made here."""
    style, script = (files("eunomia.report").joinpath(name).read_text("utf-8") for name in ("report.css", "charts.js"))
    own = f"style-src {_digest(style)}; script-src {_digest(script)}"
    policy = f"default-src 'none'; {own}; img-src blob:; base-uri 'none'; form-action 'none'"
    return {"style": style, "script": script, "policy": policy}


def _digest(text: str) -> str:
    """Return the CSP source expression of an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
