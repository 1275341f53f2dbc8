"""The report on a sweep as one self-contained HTML file, made like the report on a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.escape import escaped
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import charts_section, document, sentences, verdict_section
from eunomia.report.sweep.charts import charts
from eunomia.report.sweep.content import Group, SweepContent
from eunomia.report.sweep.findings import findings
from eunomia.report.sweep.tables import averages, differences


def write_sweep_report(content: SweepContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: SweepContent) -> str:
    """Return the HTML. Without JavaScript the text and the tables are still shown."""
    drawn = charts(content)
    failures = sentences("Failed", [f"{run}: {error}" for run, error in content.failures])
    tables = "\n".join(_tables(content, group) for group in content.groups)
    details = (
        '<section aria-label="Details"><h2>Details</h2>\n'
        f"<details><summary>The sweep</summary><pre>{escaped(content.sweep_toml)}</pre></details></section>"
    )
    parts = (
        verdict_section(findings(content)),
        failures,
        tables,
        charts_section(drawn),
        sentences("Notes", content.notes),
        details,
    )
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
        "groups": [asdict(group) for group in content.groups],
        "charts": [chart_numbers(chart) for chart in drawn],
    }
    return document(content.title, content.subtitle, "\n".join(parts), block)


def _tables(content: SweepContent, group: Group) -> str:
    """Return the averages and the differences of one group."""
    where = f" with {group.name}" if group.name else ""
    percent = f"{100 * content.confidence:g} %"
    parts = [
        _box(f"Averages{where}", averages(content, group), f"Average over the seeds ± half of the {percent} interval.")
    ]
    table = differences(content, group)
    if table:
        hint = (
            f"This run less {content.baseline} under the same seeds, on average; below it the change in per cent of "
            f"a typical seed (geometric mean) with its {percent} interval. Noise: the interval includes 0. Alike: "
            "less than 1 %, and the interval excludes 0 or lies within 1 %."
        )
        parts.append(_box(f"Differences to {content.baseline}{where}", table, hint))
    return "\n".join(parts)


def _box(heading: str, table: str, hint: str) -> str:
    """Return a table that scrolls by itself on a narrow page."""
    name = escaped(heading)
    return (
        f'<section aria-label="{name}"><h2>{name}</h2>\n<div class="wide" tabindex="0" role="region" '
        f'aria-label="{name}">{table}</div>\n<p class="hint">{escaped(hint)}</p></section>'
    )
