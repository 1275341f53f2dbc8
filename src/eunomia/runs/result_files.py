"""Writes JSON objects and CSV tables of results."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from eunomia.model.arrays import Array

_CHUNK_ROWS = 50_000  # in memory as text at a time
_SPECIAL = re.compile(r'[",\r\n]')


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write one object; an absent value is null, never NaN."""
    path.write_text(json.dumps(dict(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a table; nan is an empty field, numbers have the shortest form that reads back exactly."""
    rows = len(next(iter(columns.values()), ()))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)
        for begin in range(0, rows, _CHUNK_ROWS):
            texts = [_texts(column[begin : begin + _CHUNK_ROWS]) for column in columns.values()]
            file.writelines(f"{line}\n" for line in map(",".join, zip(*texts, strict=True)))


def _texts(column: Array) -> Iterable[str]:
    """Return the fields of a column as text."""
    values = column.tolist()
    if column.dtype.kind == "f":
        texts = list(map(repr, values))
        for row in np.flatnonzero(~np.isfinite(column)).tolist():
            texts[row] = ""
        return texts
    if column.dtype.kind in "iub":
        return map(str, values)
    field_by_text = {value: _quoted(value) for value in set(values)}
    return map(field_by_text.__getitem__, values)


def _quoted(value: object) -> str:
    """Return a value as a field, quoted if needed."""
    text = repr(value) if isinstance(value, float) else str(value)
    if not _SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'
