"""Small published tables: CSV with one of several known headers, gzip or not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eunomia.inputs.problems import Problems
from eunomia.throughputs.files import read_bytes, text_of


class Row(NamedTuple):
    """One row of a table."""

    line: int
    values: Mapping[str, str]


class Columns(NamedTuple):
    """A table whose layout is known."""

    layout: str
    header: tuple[str, ...]
    rows: list[Row]


def header_of(path: Path) -> tuple[str, ...]:
    """Return the column names of a CSV; () for what is none."""
    contents = read_bytes(path, Problems(path.name))
    first = b"" if contents is None else contents.split(b"\n", 1)[0]
    return tuple(name.strip() for name in first.decode("utf-8-sig", errors="replace").split(","))


def layout_of(header: Sequence[str], layouts: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first layout all of whose columns are there."""
    return next((name for name, columns in layouts.items() if set(columns) <= set(header)), None)


def read_columns(path: Path, layouts: Mapping[str, Sequence[str]], problems: Problems) -> Columns:
    """Return a table in one of the layouts. Raises InvalidInput when it is none of them; bad rows are noted."""
    contents = read_bytes(path, problems)
    text = None if contents is None else text_of(contents, problems)
    problems.raise_if_any()
    lines = csv.reader(io.StringIO(text or "", newline=""), strict=True)
    header: tuple[str, ...] = ()
    layout, rows = None, list[Row]()
    try:
        header = tuple(name.strip() for name in next(lines, []))
        layout = layout_of(header, layouts)
        if layout is None or len(set(header)) < len(header):
            known = "; or ".join(", ".join(columns) for columns in layouts.values())
            problems.add("the header is of no known table", f"give the columns {known}", row=1, value=",".join(header))
            problems.raise_if_any()
        for values in lines:
            if len(values) == len(header):
                rows.append(Row(lines.line_num, dict(zip(header, map(str.strip, values), strict=True))))
            elif values:
                rule = f"a row has as many values as the header, {len(header)}"
                problems.add(rule, "mend the row", row=lines.line_num, value=",".join(values)[:80])
    except csv.Error as error:
        problems.add(f"the row is not CSV ({error})", "mend its quotes", row=lines.line_num)
    if not rows and not problems.count:
        problems.add("the table has no rows", "give at least one measurement")
    if layout is None:
        problems.raise_if_any()
    assert layout is not None  # a header of no layout is a problem
    return Columns(layout, header, rows)


def number(row: Row, column: str, problems: Problems, *, zero: bool = False) -> float:
    """Return a finite number above 0, or 0 where that is allowed; nan, with the problem noted, if it is none."""
    text = row.values[column]
    try:
        found = math.nan if "_" in text else float(text)
    except ValueError:
        found = math.nan
    if math.isfinite(found) and (found > 0 or (zero and found == 0)):
        return found
    rule = "is a finite number of at least 0" if zero else "is a finite number above 0"
    problems.add(rule, "mend the value", row=row.line, column=column, value=text)
    return math.nan


def whole(row: Row, column: str, problems: Problems) -> int:
    """Return a whole number of at least 1; 0, with the problem noted, if it is none."""
    text = row.values[column]
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1_000_000:
        return int(text)
    problems.add("is a whole number of at least 1", "mend the value", row=row.line, column=column, value=text)
    return 0
