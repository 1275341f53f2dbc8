"""Small published tables: CSV with one of several known headers, gzip or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eunomia.inputs.bounds import MOST
from eunomia.inputs.field_rules import Rule
from eunomia.inputs.open_table import read_table
from eunomia.inputs.table import InputTable

COUNT = Rule(what="a whole number of at least 1", least=1, most=MOST, whole=True, fix="correct the value")
ABOVE_0 = Rule(what="a finite number above 0", above=0.0, fix="correct the value")
RATE = Rule(what="a finite number of steps/s, at least 0", least=0.0, fix="give the measured rate, or 0 for cannot run")
AT_LEAST_0 = Rule(what="a finite number of at least 0", least=0.0, fix="correct the value")


def layout_of(header: Iterable[str], layouts: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first layout all of whose columns are there."""
    found = set(header)
    return next((name for name, columns in layouts.items() if found.issuperset(columns)), None)


def read_layout(path: Path, name: str, layouts: Mapping[str, Sequence[str]]) -> tuple[str, InputTable]:
    """Return the layout of a table and the table. Raises InvalidInput when it has none of them; bad rows are noted."""
    table = read_table(path, name).stripped()
    layout = layout_of(table.columns, layouts)
    if layout is None:
        known = "; or ".join(", ".join(columns) for columns in layouts.values())
        header = ",".join(table.columns)
        table.note(table.header_line, None, header, "the header is of no known table", f"give the columns {known}")
        table.raise_if_any()
    elif not len(table) and not table.count:
        table.note(None, None, None, "the table has no rows", "give at least one measurement")
    return layout or "", table
