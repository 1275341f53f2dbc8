"""The tenants of a sweep over its seeds: averages with intervals of the columns of tenants.csv."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from eunomia.inputs.atomic_write import write_whole
from eunomia.metrics.statistics import estimate
from eunomia.sweeps.plan import PlannedRun

SEED, TENANT, POLICY = "seed", "tenant", "policy"

Row = Mapping[str, str]


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
