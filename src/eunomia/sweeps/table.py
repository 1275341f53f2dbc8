"""Writes the results of a sweep: all as one Parquet table, byte-identical for identical results, and tenants as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eunomia.inputs.atomic_write import write_whole
from eunomia.metrics.statistics import estimate
from eunomia.runs.compare import KNOWS_DURATIONS
from eunomia.sweeps.plan import FIRST, PlannedRun

SEED, TENANT, POLICY = "seed", "tenant", "policy"

Summary = Mapping[str, float | int | None]
Row = Mapping[str, str]


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


def write_tenants(path: Path, rows: Sequence[PlannedRun], tables: Iterable[Sequence[Row]], confidence: float) -> None:
    """Write a row for each setting and tenant: the axes but the seed, then mean, low and high of each number.

    `tables` are the rows of tenants.csv of each run. Without a second seed there is no interval.
    """
    axes = list(dict.fromkeys(key for row in rows for key in row.labels if key != SEED))
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for run, tenants in zip(rows, tables, strict=True):
        for row in tenants:
            key = (*(_text(run.labels.get(axis)) for axis in axes), row[TENANT])
            values = found.setdefault(key, {})
            for name, text in row.items():
                if name not in (TENANT, POLICY):
                    values.setdefault(name, []).append(_number(text))
    names = list(dict.fromkeys(name for values in found.values() for name in values))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    ends = ("mean", "low", "high")
    writer.writerow([*axes, TENANT, "seeds", *(f"{name}_{end}" for name in names for end in ends)])
    for key, values in found.items():
        seeds = max(len(each) for each in values.values())
        writer.writerow([*key, seeds, *(cell for name in names for cell in _cells(values.get(name, []), confidence))])
    write_whole(path, table.getvalue().encode())


def _cells(values: Sequence[float], confidence: float) -> list[float | str]:
    known = np.array([value for value in values if math.isfinite(value)])
    average = estimate(known, confidence)
    if average is None:
        return ["", "", ""]
    return ["" if value is None else value for value in (average.mean, average.low, average.high)]


def _text(label: object) -> str:
    return "" if label is None else str(label)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
