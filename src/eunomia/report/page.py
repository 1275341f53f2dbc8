"""The report of a comparison as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.all_charts import charts
from eunomia.report.frame import framed, numbers
from eunomia.report.table import every_number, run_table
from eunomia.report.tenants_section import tenants_section
from eunomia.verdict.findings import findings
from eunomia.verdict.run_figures import MOST, ReportContent, by_urgency
from eunomia.verdict.seed_groups import loads


def write_report(content: ReportContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: ReportContent) -> str:
    """Return the HTML. Without JavaScript the text and the tables are still shown."""
    drawn = charts(content)
    return framed(
        "report.html",
        content.title,
        content.subtitle,
        numbers(content, drawn),
        found=findings(content),
        runs=run_table(content),
        outcomes=by_urgency(content.outcomes),
        most_outcomes=MOST,
        tenants=tenants_section(content),
        charts=drawn,
        loads=loads(content),
        notes=content.notes,
        every_number=every_number(content),
        scenario_toml=content.scenario_toml,
    )
