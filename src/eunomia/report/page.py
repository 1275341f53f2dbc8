"""The report as one self-contained HTML file: no URL in it, and only its own style and script are allowed to run."""

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
from eunomia.report.findings import Findings, findings
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
    """Return the HTML. Without JavaScript the text and the tables are still shown."""
    drawn = charts(content)
    parts = (
        verdict_section(findings(content)),
        tables(content),
        job_table(content.outcomes),
        tenants_section(content),
        chart_frames(content, drawn),
        sentences("Notes", content.notes),
        appendix(content),
    )
    main = "\n".join(filter(None, parts))
    return document(content.title, content.subtitle, main, numbers(content, drawn))


def document(title: str, subtitle: str | None, main: str, block: object) -> str:
    """Return a whole page: `main` is HTML, `block` the numbers for charts.js, written as JSON."""
    style, script = asset("report.css"), asset("charts.js")
    header = f"<h1>{escaped(title)}</h1>" + ("" if subtitle is None else f"<p>{escaped(subtitle)}</p>")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>{header}</header>\n"
        f"{contents(main)}<main>\n{main}\n</main>\n"
        f'<script type="application/json" id="{BLOCK}">{json_block(block)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def contents(main: str) -> str:
    """Return links to the sections of a page, which have an id and a label."""
    found = re.findall(r'<section id="([^"]+)" aria-label="([^"]+)"', main)
    links = "".join(f'<a href="#{anchor}">{label}</a>' for anchor, label in found)
    return f'<nav class="contents" aria-label="Contents">{links}</nav>\n' if len(found) > 1 else ""


def section(name: str, body: str, *, css: str = "", title: str = "") -> str:
    """Return a section with a heading, to which the contents link; `body` is HTML."""
    anchor = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    kind = f' class="{css}"' if css else ""
    return (
        f'<section id="{anchor}" aria-label="{escaped(name)}"{kind}><h2>{escaped(title or name)}</h2>{body}</section>'
    )


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return files("eunomia.report").joinpath(name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return the content security policy: this style and this script, by their hashes, and pictures made here."""
    own = f"style-src {digest(style)}; script-src {digest(script)}"
    return f"default-src 'none'; {own}; img-src blob:; base-uri 'none'; form-action 'none'"


def digest(text: str) -> str:
    """Return the CSP source expression of an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def verdict_section(found: Findings) -> str:
    """Return the verdict: warnings, the answer in large, its certainty, a small table, and further sentences."""
    warnings = "".join(f'<p class="warning">{keep_units(escaped(line))}</p>' for line in found.warnings)
    certainty = f'<p class="certainty">{keep_units(escaped(found.certainty))}</p>' if found.certainty else ""
    more = "".join(f"<li>{keep_units(escaped(line))}</li>" for line in found.more)
    body = f'{warnings}<p class="answer">{keep_units(escaped(found.answer))}</p>{certainty}{verdict_table(found)}'
    return section("Verdict", f"{body}{f'<ul>{more}</ul>' if more else ''}", css="verdict")


def verdict_table(found: Findings) -> str:
    """Return the measures of the recommended policy beside the best of the others; "" without any."""
    if not found.rows:
        return ""
    name = found.chosen or "the first of them"
    heads = ("Measure (lower is better)", name, "best of the others", "difference")
    head = "".join(f'<th scope="col">{escaped(text)}</th>' for text in heads)
    rows = "".join(
        f'<tr><th scope="row">{escaped(row.measure)}</th><td>{escaped(row.chosen)}</td>'
        f'<td>{escaped(row.best_other)}</td><td class="{CLASS_BY_WORSE[row.worse]}">{escaped(row.difference)}</td></tr>'
        for row in found.rows
    )
    return wide("Recommended policy", f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")


CLASS_BY_WORSE = {True: "worse", False: "better", None: "alike"}


def wide(name: str, table: str) -> str:
    """Return a table that scrolls by itself on a narrow page."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{escaped(name)}">{table}</div>'


def sentences(heading: str, lines: Sequence[str]) -> str:
    """Return a section with a list of sentences; "" without any."""
    if not lines:
        return ""
    items = "".join(f"<li>{keep_units(escaped(line))}</li>" for line in lines)
    return section(heading, f"<ul>{items}</ul>", css=heading.lower())


def keep_units(markup: str) -> str:
    """Return the sentence with no line break between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:s|min|h|d|%)(?!\w))", "&nbsp;", markup)


def tables(content: ReportContent) -> str:
    """Return the table of the runs, which scrolls by itself on a narrow page."""
    return section(
        "Runs",
        f'<p class="hint">Press a heading to sort. <button type="button" id="save-runs" hidden>Save all numbers as CSV'
        f"</button></p>{wide('Table of the runs', run_table(content))}\n"
        '<p class="hint">★ best in its column among runs of one load, ≈ tied for the best. JCT: job completion time, '
        "of finished jobs. Utilisation: accelerators that were busy, until the last job ended; offered load: what the "
        "jobs ask for while they arrive. ρ: Themis' finish-time fairness, at most 1 is fair.</p>",
    )


def chart_frames(content: ReportContent, drawn: Sequence[Chart]) -> str:
    """Return the section of the charts, with a choice of the load where there are several."""
    every_load = loads(content)
    options = "".join(f'<option value="{number}">{load:g}</option>' for number, load in enumerate(every_load))
    choice = f'<p class="choice" hidden><label>Charts at load <select id="load">{options}</select></label></p>'
    return charts_section(drawn, every_load, choice if len(every_load) > 1 else "")


def charts_section(drawn: Sequence[Chart], every_load: tuple[float, ...] = (), choice: str = "", hint: str = "") -> str:
    """Return the section of the charts: an empty frame for each, which charts.js fills."""
    frames = "\n".join(frame(chart, every_load) for chart in drawn)
    group_hint = f'<p class="hint">{escaped(hint)}</p>' if hint else ""
    body = (
        f"{choice}{group_hint}"
        "<noscript><p>The charts are drawn by the page's own script, which is switched off here. "
        "The text and tables are complete without it.</p></noscript>\n"
        '<p class="hint">Point, touch, or focus a chart and use the arrow keys to read values; '
        "press a name to hide or show it in all charts. Axes of lines need not begin at 0.</p>\n"
        '<ul class="legend all" id="legend" aria-label="Runs shown in the charts" hidden></ul>'
        '<p class="choice" id="more-runs" hidden>Show </p>\n'
        f'<div class="charts">{frames}</div>'
    )
    return f'{section("Charts", body)}\n<svg id="svg" hidden></svg>'


def frame(chart: Chart, every_load: tuple[float, ...]) -> str:
    """Return the frame of one chart."""
    data_load = "" if chart.load is None else f' data-load="{every_load.index(chart.load)}"'
    title = chart.title if chart.load is None else f"{chart.title} at load {chart.load:g}"
    size = " full" if len(chart.panels) > 1 else ""
    caption = f"<figcaption>{escaped(chart.how_to_read)}</figcaption>" if chart.how_to_read else ""
    return (
        f'<figure class="chart{size}" data-chart="{escaped(chart.name)}"{data_load}><h3>{escaped(title)}</h3>'
        f'{caption}<div class="plot"></div></figure>'
    )


def appendix(content: ReportContent) -> str:
    """Return the folded details: every number, and the scenario."""
    return section(
        "Details",
        "<details><summary>Every number of every run</summary>"
        f"{wide('Every number', summary_table(content))}</details>\n"
        f"<details><summary>The scenario</summary><pre>{escaped(content.scenario_toml)}</pre></details>",
    )
