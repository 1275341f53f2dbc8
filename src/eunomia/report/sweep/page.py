"""The report on a sweep as one HTML file, made like that of a comparison: no address in it, its own script only."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.escape import escaped
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import document, gallery, told
from eunomia.report.sweep.charts import charts
from eunomia.report.sweep.content import Group, SweepContent
from eunomia.report.sweep.findings import findings
from eunomia.report.sweep.tables import averages, differences


def write_sweep_report(content: SweepContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: SweepContent) -> str:
    """Return the HTML. Without JavaScript the words and the tables still show."""
    found = charts(content)
    tables = "\n".join(_tables(content, group) for group in content.groups)
    main = f"{told('Verdict', findings(content))}\n{_failures(content)}\n{told('Notes', content.notes)}\n{tables}\n"
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
        "charts": [chart_numbers(chart) for chart in found],
    }
    whole = f"{main}{gallery(found)}\n{_appendix(content)}"
    return document(content.title, content.subtitle, whole, block)


def _tables(content: SweepContent, group: Group) -> str:
    """Return the averages and the differences of one group."""
    where = f" with {group.name}" if group.name else ""
    sure = f"{100 * content.confidence:g} %"
    parts = [
        _box(f"Averages{where}", averages(content, group), f"Average over the seeds ± half of the {sure} interval.")
    ]
    found = differences(content, group)
    if found:
        hint = (
            f"This run less {content.baseline} under the same seeds, on average; below it the change in per cent of "
            f"a typical seed (geometric mean) with its {sure} interval. Noise: the interval includes 0. Alike: "
            "surely less than 1 %."
        )
        parts.append(_box(f"Differences to {content.baseline}{where}", found, hint))
    return "\n".join(parts)


def _box(heading: str, table: str, hint: str) -> str:
    """Return a table in a box that scrolls by itself when the page is narrow."""
    name = escaped(heading)
    return (
        f'<section aria-label="{name}"><h2>{name}</h2>\n<div class="wide" tabindex="0" role="region" '
        f'aria-label="{name}">{table}</div>\n<p class="hint">{escaped(hint)}</p></section>'
    )


def _failures(content: SweepContent) -> str:
    return told("Failed", [f"{run}: {error}" for run, error in content.failures])


def _appendix(content: SweepContent) -> str:
    """Return what only some readers open: the sweep."""
    return (
        '<section aria-label="Details"><h2>Details</h2>\n'
        f"<details><summary>The sweep</summary><pre>{escaped(content.sweep_toml)}</pre></details></section>"
    )
