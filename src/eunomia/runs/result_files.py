"""Writes JSON objects and CSV tables of results."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.model.arrays import Array

_CHUNK_ROWS = 50_000  # in memory as text at a time
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e10  # between them Arrow writes fractions as Python does
_SPECIAL = re.compile(r'[",\r\n]')


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write one object; an absent value is null, never NaN."""
    path.write_text(json.dumps(dict(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a table; nan is an empty field, numbers have the shortest form that reads back exactly."""
    import pyarrow.compute as pc  # 34 MiB, which a run does without until it is over

    rows = len(next(iter(columns.values()), ()))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)
        for begin in range(0, rows, _CHUNK_ROWS):
            texts = [_texts(column[begin : begin + _CHUNK_ROWS]) for column in columns.values()]
            file.write("\n".join(pc.binary_join_element_wise(*texts, ",").to_pylist()) + "\n")


def _texts(column: Array) -> Any:
    """Return the fields of a column as text, an array of Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.dtype.kind == "f":
        texts = pc.cast(pa.array(column), pa.string())
        texts = pc.if_else(column == np.floor(column), pc.binary_join_element_wise(texts, ".0", ""), texts)
        size = np.abs(column)
        differs = ~(((size >= _LEAST_PLAIN) & (size < _MOST_PLAIN)) | (size == 0.0))  # from Python's form, or nan
        if not differs.any():
            return texts
        others = [repr(value) if math.isfinite(value) else "" for value in column[differs].tolist()]
        return pc.replace_with_mask(texts, pa.array(differs), pa.array(others, pa.string()))
    values = column.tolist()
    field_by_text = {value: _quoted(value) for value in dict.fromkeys(values)}
    return pa.array([field_by_text[value] for value in values], pa.string())


def _quoted(value: object) -> str:
    """Return a value as a field, quoted if needed."""
    text = repr(value) if isinstance(value, float) else str(value)
    if not _SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
