"""A trace as one HTML file that opens anywhere, made like the report: no address in it, only its own script."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eunomia.report.chart import Chart
from eunomia.report.escape import escaped, json_block
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import BLOCK, frame, part, policy

NO_SCRIPT = "The charts are drawn by the page's own script, which is switched off here."


def trace_page(title: str, numbers: dict[str, Any], rows: Iterable[tuple[str, str]], charts: tuple[Chart, ...]) -> str:
    """Return the HTML: a table of `rows`, the notes in `numbers`, and a frame for each chart.

    `numbers` is JSON that stands in the page, whole, beside the points of the charts.
    """
    style, script = part("report.css"), part("charts.js")
    block = {"version": 1, **numbers, "charts": [chart_numbers(chart) for chart in charts]}
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escaped(title)}</h1></header>\n<main>\n{_table(rows)}\n{_notes(numbers.get('notes', ()))}\n"
        f"{_frames(charts)}\n</main>\n"
        f'<script type="application/json" id="{BLOCK}">{json_block(block)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th scope=row>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in rows)
    table = f'<table class="words"><tbody>{body}</tbody></table>'
    return f'<section aria-label="Numbers"><h2>In numbers</h2>{table}</section>'


def _notes(notes: Iterable[str]) -> str:
    said = "".join(f"<li>{escaped(note)}</li>" for note in notes)
    return f'<section aria-label="Notes" class="notes"><h2>Notes</h2><ul>{said}</ul></section>' if said else ""


def _frames(charts: tuple[Chart, ...]) -> str:
    drawn = "\n".join(frame(chart, ()) for chart in charts)
    return (
        f'<section aria-label="Charts"><h2>Charts</h2>\n<noscript><p>{NO_SCRIPT}</p></noscript>\n'
        '<p class="hint">Point, touch, or focus a chart and use the arrow keys to read values; press a name to hide '
        f'or show it.</p>\n<div class="charts">{drawn}</div></section>\n<svg id="svg" hidden></svg>'
    )
