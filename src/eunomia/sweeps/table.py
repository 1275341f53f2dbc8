"""Writes the results of a sweep as one Parquet table, byte-identical for identical results."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eunomia.inputs.atomic_write import write_whole
from eunomia.runs.compare import KNOWS_DURATIONS
from eunomia.sweeps.plan import FIRST, PlannedRun

Summary = Mapping[str, float | int | None]


def write_table(
    path: Path, rows: Sequence[PlannedRun], summaries: Sequence[Summary], prices: Sequence[Summary]
) -> None:
    """Write one row a run, in order of the sweep file: axes, names of summary.json, prices, knows_durations, hash."""
    axes = list(dict.fromkeys((*FIRST, *(key for row in rows for key in row.labels))))
    numbers = [{**summary, **price} for summary, price in zip(summaries, prices, strict=True)]
    names = list(dict.fromkeys(name for row in (*summaries, *prices) for name in row))
    columns: dict[str, Any] = {key: _axis(key, [row.labels.get(key) for row in rows]) for key in axes}
    columns |= {name: _numbers([row.get(name) for row in numbers]) for name in names}
    columns[KNOWS_DURATIONS] = pa.array([row.knows_durations for row in rows], pa.bool_())
    columns["scenario_hash"] = pa.array([row.scenario_hash for row in rows], pa.string())
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd", store_schema=False)
    write_whole(path, buffer.getvalue())


def _axis(key: str, values: list[Any]) -> Any:
    """Return a column with the type of the values, or text if their types differ."""
    kinds = {type(value) for value in values if value is not None}
    if key == "load" or (kinds <= {int, float} and float in kinds):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if len(kinds) == 1 and kinds <= {int, bool}:
        return pa.array(values, pa.int64() if int in kinds else pa.bool_())
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())


def _numbers(values: list[float | int | None]) -> Any:
    if all(value is None or isinstance(value, int) for value in values) and any(value is not None for value in values):
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
