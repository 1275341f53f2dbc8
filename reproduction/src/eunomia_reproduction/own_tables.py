"""`eunomia calibrate --check` on small tables like a user's own: how often its intervals hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eunomia.inputs.open_table import read_table as read_rows
from eunomia.throughputs import read_table
from eunomia.throughputs.estimators.calibration import check_one_by_one
from eunomia.throughputs.estimators.pair_table import SPREAD
from eunomia.throughputs.measured_table import Measurements

Rates = Mapping[tuple[str, str, int], float]
JOB_TYPES = 6
FIRST_DRAW = 100  # draws 0 to 15 were looked at while the calibration was written


@dataclass(frozen=True, slots=True)
class CheckScores:
    """Each rate estimated from all others of its table."""

    mean: float
    median: float
    coverage80: float
    rates: int


def judge_tables(tables: list[Rates]) -> CheckScores:
    """Estimate each rate of each table from the others of it."""
    found = [each for table in tables for each in check_one_by_one(Measurements("table", dict(table), {}))]
    errors = [each.error for each in found]
    inside = [each.inside for each in found]
    return CheckScores(float(np.mean(errors)), float(np.median(errors)), float(np.mean(inside)), len(found))


def gavel_draws(path: Path, draws: int) -> list[Rates]:
    """Return tables of six job types of Gavel's table each: three types, gangs of 1 to 8."""
    alone = {key: rate for key, rate in read_table(str(path)).alone.items() if rate > 0 and not key[0].endswith(SPREAD)}
    names, found = sorted({job for _, job, _ in alone}), list[Rates]()
    for draw in range(FIRST_DRAW, FIRST_DRAW + draws):
        chosen = {names[m] for m in np.random.default_rng(draw).permutation(len(names))[:JOB_TYPES]}
        found.append({key: rate for key, rate in alone.items() if key[1] in chosen})
    return found


def read_muri(path: Path) -> Rates:
    """Return Muri's rates of eight models on one type, gangs of 1 to 32."""
    table = read_rows(path, path.name).stripped()
    columns = [table.text(name) for name in ("model_name", "batch_size", "num_gpu", "iteration_time")]
    return {
        ("v100", f"{model} (batch size {batch})", int(size)): 1e3 * int(size) / float(ms)
        for model, batch, size, ms in zip(*columns, strict=True)
    }


def read_elasticflow(path: Path) -> Rates:
    """Return ElasticFlow's rates on two types, gangs of 1 to 64 that share one batch."""
    table = read_rows(path, path.name).stripped()
    types = {"A100": "a100-40gb", "T4": "t4"}
    names, models, batches = (table.text(name) for name in ("gpu_type", "model", "global_batch_size"))
    found = {}
    for size in (1, 2, 4, 8, 16, 32, 64):
        for name, model, batch, rate in zip(names, models, batches, table.text(str(size)), strict=True):
            if rate and float(rate) > 0:
                found[types[name], f"{model} (batch size {batch})", size] = float(rate)
    return found
