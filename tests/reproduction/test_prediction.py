"""The experiments on estimates: what they rest on, and that skill is skill."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia_reproduction import estimator, load
from eunomia_reproduction.table import Request
from eunomia_reproduction.type_transfer_data import judge_ratios, judge_transfer, read_mlperf, read_neusight

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(os.environ.get("EUNOMIA_DATA", REPO.parent / "shared" / "data"))
    if not (folder / "prediction").is_dir():
        pytest.skip(f"no reference data in {folder}; set EUNOMIA_DATA to its folder")
    return folder


def test_the_model_of_a_case_is_left_out_but_for_its_source(data: Path) -> None:
    table = read_neusight(data / "prediction" / "neusight-latency")
    for target, source, others in table.cases():
        assert table.job[target] == table.job[source]
        assert table.facts.type_group[table.type[target]] != table.facts.type_group[table.type[source]]
        assert table.facts.family[table.job[target]] not in table.facts.family[table.job[others]]


def test_one_measurement_on_another_type_beats_the_median_ratio_and_intervals_hold(data: Path) -> None:
    table = read_neusight(data / "prediction" / "neusight-latency")
    ours, naive = judge_transfer(table), judge_ratios(table)
    assert ours.mean <= 0.085 < naive.mean
    assert ours.median < 0.065 < naive.median
    assert ours.coverage80 is not None and 0.78 <= ours.coverage80 <= 0.82


def test_another_type_of_mlperf_is_within_its_goal(data: Path) -> None:
    found = judge_transfer(read_mlperf(data / "prediction" / "mlperf-training"))
    assert found.median_case <= 0.12
    assert found.coverage80 is not None and 0.78 <= found.coverage80 <= 0.82


def test_with_rates_dealt_anew_among_jobs_and_types_the_skill_is_gone(data: Path) -> None:
    table = read_mlperf(data / "prediction" / "mlperf-training")
    dealt = replace(table, rate=np.random.default_rng(0).permutation(table.rate))
    assert judge_transfer(dealt).median_case > 5 * judge_transfer(table).median_case


def test_the_estimator_experiment_compares_every_estimate_with_true_throughputs(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimator, "JOBS", 8)
    monkeypatch.setattr(estimator, "RATES_PER_HOUR", (2.0,))
    found = load("estimator")(Request(reference=data / "gavel"))
    assert {row.series for row in found.rows} == set(estimator.CURVES)
    ratios = [row for row in found.rows if row.published is not None]
    assert [row.series for row in ratios] == ["matching, free", "ours, free", "ours, charged"]
    assert all(row.measured is not None and 0.5 < row.measured < 2 for row in ratios)
