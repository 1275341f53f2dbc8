"""The report on a sweep as one self-contained HTML file, made like the report on a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.escape import escaped, plain
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import charts_section, document, section, sentences, verdict_section, wide
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
    hint = (
        f"Averages over the seeds; a band holds the true average with {100 * content.confidence:g} % confidence, and "
        "there is none for one seed. Bands may overlap though the paired difference is real: see the differences."
    )
    failures = sentences("Failed", [f"{run}: {error}" for run, error in content.failures])
    tables = "\n".join(_tables(content, group) for group in content.groups)
    details = section(
        "Details", f"<details><summary>The sweep</summary><pre>{escaped(content.sweep_toml)}</pre></details>"
    )
    parts = (
        verdict_section(findings(content)),
        failures,
        charts_section(drawn, hint=hint),
        tables,
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
        "best": [plain(name) for name in content.best_first()],
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
        parts.append(_box(f"Differences to {content.baseline}{where}", table, hint, css="landscape"))
    return "\n".join(parts)


def _box(heading: str, table: str, hint: str, css: str = "") -> str:
    """Return a table that scrolls by itself on a narrow page."""
    return section(heading, f'{wide(heading, table)}\n<p class="hint">{escaped(hint)}</p>', css=css)
