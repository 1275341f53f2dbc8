"""How good estimates are: throughputs of pairs, speeds on other types, and run times, beside baselines."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np

from eunomia.inputs.open_table import read_table as read_rows
from eunomia.throughputs import read_table
from eunomia.throughputs.estimators.judging import JudgeSettings, judge
from eunomia.throughputs.estimators.pair_table import PairTable
from eunomia_reproduction.larger_counts import judge_counts
from eunomia_reproduction.mig_slices import judge_slices
from eunomia_reproduction.own_tables import gavel_draws, judge_tables, read_elasticflow, read_muri
from eunomia_reproduction.run_time_scores import RunTimeScores, replay, score
from eunomia_reproduction.single_jobs import judge_singles
from eunomia_reproduction.table import FigureRow, FigureTable, Request
from eunomia_reproduction.type_transfer_data import (
    judge_ratios,
    judge_specs,
    judge_transfer,
    model_errors,
    read_mlperf,
    read_neusight,
)

PAIRS = ((16, 0.05, 0.07), (16, 0.2, 0.055), (25, 0.2, 0.055))  # references, profiled share, goal of the mean error
OUTCOMES = {"Pass": "completed", "Failed": "failed", "Killed": "killed"}
TRACES = {
    "Venus": "traces/helios-venus/venus_status_15k.csv.gz",
    "Philly": "traces/philly/philly_status_first15k.csv.gz",
}


def reproduce(request: Request) -> FigureTable:
    """Measure every figure; `published` holds what others reached, goals are in the notes of rows."""
    data = request.folder("data")
    return FigureTable(
        rows=(
            *_pairs(data, request),
            *_types(data),
            *_singles(data),
            *_checks(data, request),
            *_counts(data),
            *_slices(data),
            *_run_times(data),
        ),
        notes=(
            f"Pairs: {request.seeds} seed(s) of references and profiled pairs. Types: each model left out in turn.",
            "Run times: causal replay, the last two thirds of the jobs that use accelerators.",
        ),
    )


def _row(series: str, quantity: str, measured: float | None, note: str = "", unit: str = "") -> FigureRow:
    value = None if measured is None else round(measured, 4)
    return FigureRow(series=series, quantity=quantity, unit=unit, measured=value, note=note)


def _pairs(data: Path, request: Request) -> list[FigureRow]:
    table = PairTable.of(read_table(str(data / "gavel" / "simulation_throughputs.json.gz")))
    rows = []
    for references, profiled, goal in PAIRS:
        for name, method, legacy in (
            ("column mean", "column_mean", False), ("matching", "match", False),
            ("matching, legacy indexing", "match", True), ("ours", "best", False),
        ):  # fmt: skip
            found = [
                judge(
                    table,
                    JudgeSettings(
                        references=references, profiled=profiled, method=method, legacy_indexing=legacy, seed=seed
                    ),
                ).summary()
                for seed in range(request.seeds)
            ]
            series = f"pairs, r {references}, q {profiled:g}: {name}"
            for key in ("mae_hidden", "median_relative_hidden", "coverage80_hidden", "rmse"):
                values = [each[key] for each in found if each[key] is not None]
                if values:
                    note = f"goal: at most {goal}" if (key, method) == ("mae_hidden", "best") else ""
                    rows.append(_row(series, key, float(np.mean([float(value or 0) for value in values])), note))
            request.tell(series)
    return rows


def _types(data: Path) -> list[FigureRow]:
    rows = []
    tables = {
        "NeuSight's table": read_neusight(data / "prediction" / "neusight-latency"),
        "MLPerf, 8 accelerators": read_mlperf(data / "prediction" / "mlperf-training"),
    }
    for name, table in tables.items():
        for series, found in (
            (f"another type from one source, {name}: median ratio", judge_ratios(table)),
            (f"another type from one source, {name}: ours", judge_transfer(table)),
            (f"a type known by its data sheet alone, {name}: ours", judge_specs(table)),
        ):
            rows += [
                _row(series, "mean error", found.mean), _row(series, "median error", found.median),
                _row(series, "p90 of error", found.p90), _row(series, "median error, every source", found.median_case),
            ]  # fmt: skip
            if found.coverage80 is not None:
                rows.append(_row(series, "coverage of the 80 % interval", found.coverage80))
    for each in model_errors(tables["NeuSight's table"]):
        series = f"{each.device} over the A100, {each.job_class}, median of {each.rows} rows"
        rows += [_row(series, "measured", each.measured), _row(series, "analytic model", each.model)]
    return rows


def _singles(data: Path) -> list[FigureRow]:
    table, rows = read_table(str(data / "gavel" / "simulation_throughputs.json.gz")), []
    for known, other_batches in (("other families", False), ("other batch sizes, too", True)):
        found = judge_singles(table, other_batches=other_batches)
        series = f"Gavel's single jobs on another type from one, known: {known}"
        rows += [
            _row(f"{series}: median ratio", "mean error", found.ratio_mean),
            _row(f"{series}: median ratio", "median error", found.ratio_median),
            _row(f"{series}: ours", "mean error", found.mean),
            _row(f"{series}: ours", "median error", found.median),
            _row(f"{series}: ours", "coverage of the 80 % interval", found.coverage80),
        ]
    return rows


def _checks(data: Path, request: Request) -> list[FigureRow]:
    rows, folder = [], data / "throughputs"
    for name, tables in {
        "six job types of Gavel's": gavel_draws(data / "gavel" / "simulation_throughputs.json.gz", request.seeds),
        "Muri's": [read_muri(folder / "muri-stage-times" / "stage_times.csv")],
        "ElasticFlow's": [read_elasticflow(folder / "elasticflow" / "throughputs.csv")],
    }.items():
        found, series = judge_tables(tables), f"calibrate --check, {name}"
        rows += [
            _row(series, "mean error", found.mean),
            _row(series, "median error", found.median),
            _row(series, "coverage of the 80 % interval", found.coverage80, "goal: 0.78 to 0.82"),
        ]
    return rows


def _counts(data: Path) -> list[FigureRow]:
    rows = []
    for known, other_types in (("known on other types", True), ("left out", False)):
        found, series = (
            judge_counts(data / "prediction" / "mlperf-training", other_types=other_types),
            f"a larger count from two smaller, MLPerf, benchmark {known}",
        )
        rows += [
            _row(f"{series}: power law", "median error", found.power_law),
            _row(f"{series}: ours", "median error", found.median, "goal: at most 0.12"),
            _row(f"{series}: ours", "mean error", found.mean),
            _row(f"{series}: ours", "p90 of error", found.p90),
            _row(f"{series}: ours", "coverage of the 80 % interval", found.coverage80),
        ]
    return rows


def _slices(data: Path) -> list[FigureRow]:
    folder, rows = data / "interference" / "miso-a100", []
    for unseen, goal in (("mix", 0.012), ("model", 0.025)):
        for known, utilization in (("the shared run", False), ("that and its utilization alone", True)):
            error = judge_slices(folder, unseen=unseen, utilization=utilization)
            series = f"MIG slices, {unseen} not seen, known of a job: {known}"
            rows.append(_row(series, "mean error", error, f"goal: at most {goal}"))
    return rows


def _run_times(data: Path) -> list[FigureRow]:
    rows = []
    for name, path in TRACES.items():
        found, series = judge_run_times(data / path), f"run times, {name}: ours"
        rows += [
            _row(series, "concordance", found.concordance, "goal: at least 0.72"),
            _row(series, "concordance, killed and failed jobs censored", found.censored_concordance),
            _row(series, "coverage of the 80 % interval", found.coverage80, "goal: 0.78 to 0.82"),
            _row(series, "median factor", found.median_factor),
            _row(series, "width of the interval", found.median_decades, unit="decades"),
        ]
    return rows


def judge_run_times(path: Path) -> RunTimeScores:
    """Replay the jobs of a status file that use accelerators, by user and size."""
    table = read_rows(path, path.name).stripped()
    columns = [table.text(name) for name in ("submit_time", "user", "gpus", "run_time_s", "status")]
    rows = [row for row in zip(*columns, strict=True) if int(row[2]) > 0]
    times = [datetime.fromisoformat(row[0]) for row in rows]
    submitted = np.array([(each - times[0]).total_seconds() for each in times])
    run_s = np.maximum([float(row[3]) for row in rows], 1.0)
    users, sizes = [row[1] for row in rows], [int(row[2]) for row in rows]
    outcomes = [OUTCOMES[row[4]] for row in rows]
    return score(replay(submitted, run_s, users, sizes, [""] * len(rows), outcomes), run_s, outcomes)
