"""A trace as one self-contained HTML file, made like the report."""

from __future__ import annotations

from eunomia.report.chart import Chart
from eunomia.report.escape import escaped
from eunomia.report.numbers import chart_numbers
from eunomia.report.page import charts_section, document, section, sentences, wide
from eunomia.report.trace_tables import TextTable, facts, trace_tables
from eunomia.traces.statistics import Description


def trace_page(title: str, description: Description, charts: tuple[Chart, ...]) -> str:
    """Return the HTML: facts and tables, notes, and a frame for each chart.

    The statistics are in the page as JSON beside the points of the charts.
    """
    cells = "".join(
        f"<tr><th scope=row>{escaped(name)}</th><td>{escaped(value)}</td></tr>" for name, value in facts(description)
    )
    tables = f'<table class="words"><tbody>{cells}</tbody></table>'
    tables += "".join(wide(table.heads[0] or "distributions", _html(table)) for table in trace_tables(description))
    notes = sentences("Notes", description.notes)
    main = f"{section('Numbers', tables, css='numbers', title='In numbers')}\n{notes}\n{charts_section(charts)}"
    block = {"version": 1, **description.as_dict(), "charts": [chart_numbers(chart) for chart in charts]}
    return document(title, None, main, block)


def _html(table: TextTable) -> str:
    heads = "".join(f"<th scope=col>{escaped(head)}</th>" for head in table.heads)
    rows = "".join(
        f"<tr><th scope=row>{escaped(row[0])}</th>{''.join(f'<td>{escaped(cell)}</td>' for cell in row[1:])}</tr>"
        for row in table.rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
