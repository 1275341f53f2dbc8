"""The files of one run: summary.json, jobs.csv, timing.json."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

from eunomia.model.arrays import Array


def write_json(path: Path, values: Mapping[str, object]) -> None:
    """Write one object; an absent value is null, never NaN."""
    path.write_text(json.dumps(dict(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """Write a table; nan is an empty field, numbers are the shortest that read back the same."""
    texts = [[_text(value) for value in column.tolist()] for column in columns.values()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*texts, strict=True))


def _text(value: object) -> str:
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return str(value)
