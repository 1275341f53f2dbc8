"""The report on a sweep as one self-contained HTML file, made like the report on a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.inputs.html import plain
from eunomia.report.frame import framed
from eunomia.report.numbers import chart_numbers
from eunomia.report.sweep.charts import charts
from eunomia.report.sweep.tables import averages, differences
from eunomia.verdict.sweep_content import SweepContent
from eunomia.verdict.sweep_findings import findings


def write_sweep_report(content: SweepContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: SweepContent) -> str:
    """Return the HTML. Without JavaScript the text and the tables are still shown."""
    drawn = charts(content)
    block = {
        "version": 1,
        "title": content.title,
        "subtitle": content.subtitle,
        "notes": list(content.notes),
        "failures": [{"run": run, "error": error} for run, error in content.failures],
        "compared": list(content.compared),
        "baseline": content.baseline,
        "along": content.along,
        "confidence": content.confidence,
        "best": [plain(name) for name in content.best_first()],
        "groups": [asdict(group) for group in content.groups],
        "charts": [chart_numbers(chart) for chart in drawn],
    }
    return framed(
        "sweep.html",
        content.title,
        content.subtitle,
        block,
        found=findings(content),
        failures=[f"{run}: {error}" for run, error in content.failures],
        charts=drawn,
        groups=[(group.name, averages(content, group), differences(content, group)) for group in content.groups],
        baseline=content.baseline,
        level=f"{100 * content.confidence:g} %",
        notes=content.notes,
        sweep_toml=content.sweep_toml,
    )
