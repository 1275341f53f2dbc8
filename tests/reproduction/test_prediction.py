"""The experiments on estimates: what they rest on, and that skill is skill."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eunomia.throughputs import read_table
from eunomia.throughputs.catalogue import accelerators
from eunomia_reproduction import estimator, ignorance, load
from eunomia_reproduction.larger_counts import judge_counts
from eunomia_reproduction.mig_slices import judge_slices
from eunomia_reproduction.own_tables import judge_tables, read_muri
from eunomia_reproduction.single_jobs import judge_singles
from eunomia_reproduction.table import Request
from eunomia_reproduction.type_transfer_data import (
    judge_ratios,
    judge_specs,
    judge_transfer,
    model_errors,
    read_mlperf,
    read_neusight,
)

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
    assert ours.coverage80 is not None and 0.775 <= ours.coverage80 <= 0.82


def test_another_type_of_mlperf_is_within_its_goal(data: Path) -> None:
    found = judge_transfer(read_mlperf(data / "prediction" / "mlperf-training"))
    assert found.median_case <= 0.12
    assert found.coverage80 is not None and 0.78 <= found.coverage80 <= 0.82


@pytest.mark.nightly
@pytest.mark.slow
def test_one_measurement_of_a_single_job_beats_the_ratio_of_like_jobs(data: Path) -> None:
    table = read_table(str(data / "gavel" / "simulation_throughputs.json.gz"))
    for other_batches, mean in ((False, 0.25), (True, 0.16)):
        found = judge_singles(table, other_batches=other_batches)
        assert found.mean <= mean < found.ratio_mean
        assert found.median < found.ratio_median
        assert 0.78 <= found.coverage80 <= 0.82


@pytest.mark.slow
def test_the_intervals_of_a_calibration_hold_on_a_table_that_it_was_not_made_for(data: Path) -> None:
    found = judge_tables([read_muri(data / "throughputs" / "muri-stage-times" / "stage_times.csv")])
    assert (found.rates, found.mean < 0.1) == (48, True)
    assert 0.78 <= found.coverage80 <= 0.82


def test_a_larger_count_is_within_its_goal_where_the_benchmark_is_known_on_other_types(data: Path) -> None:
    found, left_out = (
        judge_counts(data / "prediction" / "mlperf-training", other_types=each) for each in (True, False)
    )
    assert found.median <= 0.12 < found.power_law
    assert found.median < left_out.median and found.mean < left_out.mean
    assert 0.76 <= found.coverage80 <= 0.84


@pytest.mark.slow
def test_a_type_known_by_its_data_sheet_alone_has_honest_intervals(data: Path) -> None:
    found = judge_specs(read_neusight(data / "prediction" / "neusight-latency"))
    assert found.mean < 0.155 and found.median < 0.11  # roofline without any measurement: 0.31
    assert found.coverage80 is not None and 0.7 <= found.coverage80 <= 0.9


def test_a_die_of_amd_is_as_fast_beside_an_a100_as_the_catalogue_says(data: Path) -> None:
    amd, errors = accelerators()["mi250x"], model_errors(read_neusight(data / "prediction" / "neusight-latency"))
    dies = [each for each in errors if "MI250" in each.device]
    assert {each.rows for each in dies} == {6, 10}
    for each in dies:
        assert amd.efficiency * each.model == pytest.approx(each.measured, rel=0.05)
    assert amd.fp32_tflops / 2 == pytest.approx(45.3, rel=0.06)  # NeuSight's figure of one die, at a lower clock


@pytest.mark.slow
def test_with_rates_dealt_anew_among_jobs_and_types_the_skill_is_gone(data: Path) -> None:
    table = read_mlperf(data / "prediction" / "mlperf-training")
    dealt = replace(table, rate=np.random.default_rng(0).permutation(table.rate))
    assert judge_transfer(dealt).median_case > 5 * judge_transfer(table).median_case


@pytest.mark.slow
def test_mig_slices_follow_from_a_shared_run_where_the_utilization_alone_is_known(data: Path) -> None:
    folder = data / "interference" / "miso-a100"
    assert judge_slices(folder, unseen="mix", utilization=True) <= 0.012
    assert judge_slices(folder, unseen="model", utilization=True) <= 0.025
    assert 0.012 < judge_slices(folder, unseen="mix", utilization=False) < 0.03


@pytest.mark.slow
def test_the_estimator_experiment_compares_every_estimate_with_true_throughputs(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimator, "JOBS", 8)
    monkeypatch.setattr(estimator, "RATES_PER_HOUR", (2.0,))
    found = load("estimator")(Request(reference=data / "gavel"))
    assert {row.series for row in found.rows} == set(estimator.CURVES)
    ratios = [row for row in found.rows if row.published is not None]
    assert [row.series for row in ratios] == [
        each for each in estimator.CURVES if each not in (estimator.ALONE, estimator.TRUE)
    ]
    assert all(row.measured is not None and 0.5 < row.measured < 2 for row in ratios)


def test_the_price_of_ignorance_is_measured_for_every_policy_that_reads_a_belief(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ignorance, "JOBS", 6)
    monkeypatch.setattr(ignorance, "ERRORS", (0.8,))
    monkeypatch.setattr(ignorance, "BY_THROUGHPUT", ("max_min_fairness",))
    monkeypatch.setattr(ignorance, "BY_RUN_TIME", ("srtf",))
    monkeypatch.setattr(ignorance, "BY_PAIRS", ("makespan",))
    few = {name: ignorance.ESTIMATES[name] for name in ("50% measured", "2% measured")}
    monkeypatch.setattr(ignorance, "ESTIMATES", few)
    found = load("ignorance")(Request())
    assert [(row.series.split(",")[0], row.x) for row in found.rows] == [
        ("max_min_fairness", 0.8), ("srtf", "history"), ("srtf", "none"), *(("estimated pairs", name) for name in few),
        *(("makespan", name) for name in few),
    ]  # fmt: skip
    more, less = (row.measured or 0.0 for row in found.rows[3:5])
    assert 0 < more < less < 0.2
    ratios = [row.measured for row in found.rows if row.quantity == ignorance.QUANTITY]
    assert all(ratio is not None and 0.3 < ratio < 3 for ratio in ratios)
    assert [len(curve.x) for figure in found.figures for curve in figure.curves] == [2, 3]
    assert found.figures[1].curves[0].x == (0.0, pytest.approx(more, abs=1e-4), pytest.approx(less, abs=1e-4))
