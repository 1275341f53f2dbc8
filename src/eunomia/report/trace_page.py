"""A trace as one self-contained HTML file, made like the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eunomia.report.chart import Chart
from eunomia.report.escape import escaped
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import charts_section, document, section


def trace_page(title: str, numbers: dict[str, Any], rows: Iterable[tuple[str, str]], charts: tuple[Chart, ...]) -> str:
    """Return the HTML: a table of `rows`, the notes in `numbers`, and a frame for each chart.

    `numbers` is JSON that the page holds unchanged beside the points of the charts.
    """
    cells = "".join(f"<tr><th scope=row>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in rows)
    table = f'<table class="words"><tbody>{cells}</tbody></table>'
    items = "".join(f"<li>{escaped(note)}</li>" for note in numbers.get("notes", ()))
    notes = section("Notes", f"<ul>{items}</ul>", css="notes") if items else ""
    main = f"{section('Numbers', table, title='In numbers')}\n{notes}\n{charts_section(charts)}"
    return document(title, None, main, {"version": 1, **numbers, "charts": [chart_numbers(c) for c in charts]})
