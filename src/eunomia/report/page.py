"""The report as one HTML file that opens anywhere: no address in it, and nothing but its own style and script runs."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from eunomia.inputs.atomic_write import write_whole
from eunomia.report.all_charts import charts
from eunomia.report.chart import Chart
from eunomia.report.content import ReportContent
from eunomia.report.escape import escaped, json_block
from eunomia.report.findings import findings
from eunomia.report.numbers import numbers
from eunomia.report.outcomes import job_table
from eunomia.report.seed_groups import loads
from eunomia.report.table import run_table, summary_table
from eunomia.report.tenants_section import tenants_section

BLOCK = "eunomia-data"


def write_report(content: ReportContent, path: Path) -> None:
    """Write the report to `path`, whole or not at all."""
    write_whole(path, page(content).encode())


def page(content: ReportContent) -> str:
    """Return the HTML. Without JavaScript the words and the tables still show."""
    found = charts(content)
    parts = (
        words(content),
        tables(content),
        job_table(content.outcomes),
        tenants_section(content),
        frames(content, found),
        appendix(content),
    )
    main = "\n".join(filter(None, parts))
    return document(content.title, content.subtitle, main, numbers(content, found))


def document(title: str, subtitle: str, main: str, block: object) -> str:
    """Return a whole page around what is shown, with the numbers behind it as JSON."""
    style, script = part("report.css"), part("charts.js")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escaped(title)}</h1><p>{escaped(subtitle)}</p></header>\n"
        f"<main>\n{main}\n</main>\n"
        f'<script type="application/json" id="{BLOCK}">{json_block(block)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def part(name: str) -> str:
    """Return a file that lies beside this one."""
    return files("eunomia.report").joinpath(name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return the content security policy: this style and this script, by their hashes, and nothing else."""
    own = f"style-src {digest(style)}; script-src {digest(script)}"
    return f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"


def digest(text: str) -> str:
    """Return the source expression that names an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def words(content: ReportContent) -> str:
    """Return the verdict and the notes."""
    return f"{told('Verdict', findings(content))}\n{told('Notes', content.notes)}"


def told(heading: str, sentences: Sequence[str]) -> str:
    """Return a section of sentences; nothing without any."""
    if not sentences:
        return ""
    items = "".join(f"<li>{held_together(escaped(sentence))}</li>" for sentence in sentences)
    return f'<section aria-label="{heading}" class="{heading.lower()}"><h2>{heading}</h2><ul>{items}</ul></section>'


def held_together(markup: str) -> str:
    """Return the sentence with no line break between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:s|min|h|d|%)(?!\w))", "&nbsp;", markup)


def tables(content: ReportContent) -> str:
    """Return the table of the runs in a box that scrolls by itself when the page is narrow."""
    return (
        '<section aria-label="Runs"><h2>Runs</h2>\n'
        f'<div class="wide" tabindex="0" role="region" aria-label="Table of the runs">{run_table(content)}</div>\n'
        '<p class="hint">★ best in its column among runs of one load. JCT: job completion time, of finished jobs. '
        "ρ: Themis' finish-time fairness, at most 1 is fair.</p></section>"
    )


def frames(content: ReportContent, found: tuple[Chart, ...]) -> str:
    """Return a frame for each chart; the script draws in it."""
    at = loads(content)
    options = "".join(f'<option value="{place}">{load:g}</option>' for place, load in enumerate(at))
    choice = f'<p class="choice" hidden><label>Charts at load <select id="load">{options}</select></label></p>'
    return gallery(found, at, choice if len(at) > 1 else "")


def gallery(found: Sequence[Chart], at: tuple[float, ...] = (), choice: str = "") -> str:
    """Return the section of the charts."""
    drawn = "\n".join(frame(chart, at) for chart in found)
    return (
        f'<section aria-label="Charts"><h2>Charts</h2>\n{choice}'
        "<noscript><p>The charts are drawn by the page's own script, which is switched off here. "
        "The words and tables are complete without it.</p></noscript>\n"
        '<p class="hint">Point, touch, or focus a chart and use the arrow keys to read values; '
        "press a name to hide or show it.</p>\n"
        f'<div class="charts">{drawn}</div></section>\n<svg id="svg" hidden></svg>'
    )


def frame(chart: Chart, at: tuple[float, ...]) -> str:
    """Return the frame of one chart."""
    place = "" if chart.load is None else f' data-load="{at.index(chart.load)}"'
    title = chart.title if chart.load is None else f"{chart.title} at load {chart.load:g}"
    size = " full" if len(chart.panels) > 1 else ""
    return (
        f'<figure class="chart{size}" data-chart="{escaped(chart.name)}"{place}><h3>{escaped(title)}</h3>'
        f'<figcaption>{escaped(chart.how_to_read)}</figcaption><div class="plot"></div></figure>'
    )


def appendix(content: ReportContent) -> str:
    """Return what only some readers open: every number, and the scenario."""
    return (
        '<section aria-label="Details"><h2>Details</h2>\n<details><summary>Every number of every run</summary>'
        '<div class="wide" tabindex="0" role="region" aria-label="Every number">'
        f"{summary_table(content)}</div></details>\n"
        f"<details><summary>The scenario</summary><pre>{escaped(content.scenario_toml)}</pre></details></section>"
    )
