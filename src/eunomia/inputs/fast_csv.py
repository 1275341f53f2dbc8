"""Comma-separated text without quotes, blank lines or ragged rows, read by Arrow in a fraction of the time.

Most files are that plain. Whatever is not is left to the slow way, which says what is wrong and in which line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eunomia.inputs.columns import Cells
from eunomia.inputs.table import InputTable

if TYPE_CHECKING:
    import pyarrow as pa

BOM = b"\xef\xbb\xbf"
NOT_PLAIN = (b'"', b"\r", b"\n\n", b"\0")
MOST_CELL = 131_072  # characters; the slow way refuses more


def read_plain(raw: bytes, file_name: str) -> InputTable | None:
    """Return the table in text as plain as that, or None. Names of columns are each there once."""
    text = raw.removeprefix(BOM)
    header, _, body = text.partition(b"\n")
    if not body or not header or body.startswith(b"\n") or any(mark in text for mark in NOT_PLAIN):
        return None
    import pyarrow as pa  # 36 MiB, which processes that read no table do without

    try:
        names = header.decode().split(",")
        table = _table(body, len(names))
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    columns: dict[str, Cells] = dict(zip(names, (column.combine_chunks() for column in table.columns), strict=True))
    if len(columns) < len(names) or any(_long(cells) for cells in columns.values()):
        return None
    line = np.arange(2, table.num_rows + 2)
    return InputTable(file=file_name, header_line=1, line=line, columns=columns)


def _table(body: bytes, width: int) -> pa.Table:
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
