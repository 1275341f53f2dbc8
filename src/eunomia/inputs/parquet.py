"""A Parquet file → an `InputTable`. Types are never trusted: every cell is read as the text it would be in CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eunomia.inputs.columns import Cells
from eunomia.inputs.problems import InvalidInput, Problems
from eunomia.inputs.table import InputTable

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 20_000_000  # a few bytes of Parquet can promise billions of equal rows


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
