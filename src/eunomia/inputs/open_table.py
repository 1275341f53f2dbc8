"""A file → an `InputTable`, whichever way the file is written; each row keeps its line in the file.

Most CSV has no quotes, blank lines or ragged rows: Arrow reads it in a fraction of the time. Whatever is not so plain
is left to the slow way, which says what is wrong and in which line. The types of Parquet are never trusted: every cell
is read as the text it would be in CSV.
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
from eunomia.inputs.problems import SHOWN, InvalidInput, Problems
from eunomia.inputs.table import InputTable

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 20_000_000  # a few bytes of Parquet can promise billions of equal rows
BOM = b"\xef\xbb\xbf"
NOT_PLAIN = (b'"', b"\r", b"\n\n", b"\0")
MOST_CELL = 131_072  # characters; the slow way refuses more
Row = list[str]


def read_parquet(raw: bytes, file_name: str) -> InputTable:
    """Return the table in a Parquet file; a null is an empty cell, and lines count as if a header were line 1.

    Raises InvalidInput at once for a column that has no text form, since checks of its cells would only repeat it.
    """
    columns, rows = _columns(raw, file_name)
    table = InputTable(file=file_name, header_line=1, line=np.arange(2, rows + 2), columns={})
    for name, column in columns:
        table.columns[name] = _texts(table, name, column)
    table.raise_if_any()
    return table


def _columns(raw: bytes, file_name: str) -> tuple[list[tuple[str, pa.ChunkedArray]], int]:
    """Return (name, cells) of each column, and the number of rows."""
    import pyarrow as pa  # 36 MiB, which processes that read no table do without
    import pyarrow.parquet as pq

    problems = Problems(file_name)
    try:
        file = pq.ParquetFile(pa.BufferReader(raw))
        if file.metadata.num_rows > MOST_ROWS:
            problems.add(
                f"a table must hold at most {MOST_ROWS:,} rows",
                "split it, a trace by time",
                value=file.metadata.num_rows,
            )
        problems.raise_if_any()
        found = file.read()
        found.validate(full=True)  # else text might not be UTF-8
        return list(zip(found.column_names, found.columns, strict=True)), found.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problems.add(
            f"this is not a readable Parquet file ({str(error).splitlines()[0].rstrip('.')})",
            "copy or write it again, or give it as CSV",
        )
        raise InvalidInput(problems.kept) from error


def _texts(table: InputTable, name: str, column: pa.ChunkedArray) -> Cells:
    if name in table.columns:
        table.note(1, name, None, "two columns have this name", "rename or remove one")
    import pyarrow as pa

    try:
        texts = column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        table.note(
            1, name, None, f"a column of type {column.type} cannot be read", "store it as a number or as UTF-8 text"
        )
        return ("",) * table.line.size
    return texts.fill_null("").combine_chunks()


def read_metadata(path: Path, key: str) -> str:
    """Return a text of the metadata of a Parquet file that can be read; "" where it has none."""
    import pyarrow.parquet as pq

    found: bytes = (pq.read_schema(path).metadata or {}).get(key.encode(), b"")
    return found.decode(errors="replace")


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
