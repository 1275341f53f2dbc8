"""A file → an `InputTable`, whichever way the file is written; each row keeps its line in the file.

Most CSV has no quotes, blank lines or ragged rows: Arrow reads it in a fraction of the time. Whatever is not so plain
is left to the slow way, which says what is wrong and in which line.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eunomia.inputs.columns import Cells
from eunomia.inputs.file_contents import contents, decoded
from eunomia.inputs.parquet import read_parquet
from eunomia.inputs.problems import SHOWN
from eunomia.inputs.table import InputTable

if TYPE_CHECKING:
    import pyarrow as pa

BOM = b"\xef\xbb\xbf"
NOT_PLAIN = (b'"', b"\r", b"\n\n", b"\0")
MOST_CELL = 131_072  # characters; the slow way refuses more
Row = list[str]


def read_plain(raw: bytes, file_name: str) -> InputTable | None:
    """Return the table in text as plain as that, or None. Names of columns are each there once."""
    text = raw.removeprefix(BOM)
    header, _, body = text.partition(b"\n")
    if not body or not header or body.startswith(b"\n") or any(mark in text for mark in NOT_PLAIN):
        return None
    import pyarrow as pa  # 36 MiB, which processes that read no table do without

    try:
        names = header.decode().split(",")
        table = _fast_table(body, len(names))
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    columns: dict[str, Cells] = dict(zip(names, (column.combine_chunks() for column in table.columns), strict=True))
    if len(columns) < len(names) or any(_long(cells) for cells in columns.values()):
        return None
    line = np.arange(2, table.num_rows + 2)
    return InputTable(file=file_name, header_line=1, line=line, columns=columns)


def _fast_table(body: bytes, width: int) -> pa.Table:
    """Return the cells as text, in columns named by their number. Raises ArrowException for ragged rows or no UTF-8."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    names = [str(k) for k in range(width)]
    return pa_csv.read_csv(
        pa.BufferReader(body),
        read_options=pa_csv.ReadOptions(column_names=names, use_threads=False),
        parse_options=pa_csv.ParseOptions(quote_char=False, newlines_in_values=False, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, quoted_strings_can_be_null=False
        ),
    )


def _long(cells: pa.StringArray) -> bool:
    import pyarrow.compute as pc

    return bool((pc.max(pc.binary_length(cells)).as_py() or 0) > MOST_CELL)


def read_table(path: Path, name: str = "") -> InputTable:
    """Return the table of a Parquet file (name ends in .parquet), else of comma-separated text, gzip or not.

    Messages name the file `name`, or its path. Raises InvalidInput for a file that cannot be read; the table notes
    what is wrong in it.
    """
    read = read_parquet if path.suffix == ".parquet" else read_csv
    return read(contents(path, name), name or str(path))


def read_csv(raw: bytes, file_name: str) -> InputTable:
    """Return the table in comma-separated text (RFC 4180, UTF-8) whose first line names its columns."""
    plain = read_plain(raw, file_name)
    return read_any(raw, file_name) if plain is None else plain


def read_any(raw: bytes, file_name: str) -> InputTable:
    """Return the table in comma-separated text, however it is quoted and whatever is wrong with it."""
    rows, lines, fault = _records(decoded(file_name, raw), csv.excel)
    header, header_line = (rows.pop(0), lines.pop(0)) if rows else ([], 1)
    table = _table(file_name, header, header_line, rows, lines)
    for name in sorted({name for name in header if header.count(name) > 1}):
        table.note(header_line, name, None, "two columns have this name", "rename or remove one")
    return _with_fault(table, fault)


def read_tabbed(path: Path, names: Sequence[str]) -> InputTable:
    """Return the table of a tab-separated file without header and without quoting, columns named by `names`."""
    rows, lines, fault = _records(decoded(str(path), contents(path)), _Tabbed)
    return _with_fault(_table(str(path), names, 1, rows, lines), fault)


class _Tabbed(csv.excel_tab):
    quoting = csv.QUOTE_NONE


def _records(text: str, dialect: type[csv.Dialect]) -> tuple[list[Row], list[int], tuple[int, str] | None]:
    """Return the records that are not blank, the line at which each starts, and (line, reason) where reading ended."""
    rows: list[Row] = []
    lines: list[int] = []
    reader = csv.reader(StringIO(text, newline=""), dialect, strict=True)
    start = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        return rows, lines, (start, str(error))
    return rows, lines, None


def _table(file_name: str, names: Sequence[str], header_line: int, rows: list[Row], lines: list[int]) -> InputTable:
    """Return the table of the rows that are as wide as the header; each other row is noted."""
    width = len(names)
    fits = [len(row) == width for row in rows]
    whole = list(compress(rows, fits))
    columns: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    columns.update(zip(names, zip(*whole, strict=True), strict=False))
    table = InputTable(
        file=file_name, header_line=header_line, line=np.array(lines, dtype=np.int64)[fits], columns=columns
    )
    ragged = [m for m, fit in enumerate(fits) if not fit]
    for m in ragged[:SHOWN]:
        table.note(
            lines[m],
            None,
            None,
            f"this row has {len(rows[m])} cells where {width} columns are expected",
            "give every row one cell per column; quote text that holds a separator",
        )
    table.count += max(0, len(ragged) - SHOWN)
    return table


def _with_fault(table: InputTable, fault: tuple[int, str] | None) -> InputTable:
    if fault is not None:
        table.note(
            fault[0],
            None,
            None,
            f"from here on the text cannot be split into cells ({fault[1]})",
            "close every quote, double a quote inside quotes, and keep a cell under 131,072 characters",
        )
    return table
