"""Intervals of forecasts, their correction by outcomes, and their score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.forecasts.intervals import NEEDED, IntervalCorrection, TimeInterval, quantiles
from eunomia.forecasts.scoring import ForecastOutcome, score
from eunomia.records.record import Record
from eunomia.records.replay import new_scheduler

INF = float("inf")


def outcome(tenant: str, started: float, *, latest: float = 100.0) -> ForecastOutcome:
    return ForecastOutcome(
        tenant=tenant, size=1, said_at=0.0, start=TimeInterval(50.0, 100.0, 200.0),
        finish=TimeInterval(1000.0, 2000.0, 3000.0), latest_start=latest, started=started, finished=started + 1500.0,
    )  # fmt: skip


def test_outer_points_of_twenty_futures_leave_one_out_on_each_side() -> None:
    low, middle, high = quantiles(np.arange(20.0)[::-1, None])
    assert (low[0], middle[0], high[0]) == (1.0, 9.5, 18.0)
    assert quantiles(np.array([[5.0]]))[:, 0].tolist() == [5.0, 5.0, 5.0]
    assert quantiles(np.array([[1.0], [INF], [2.0]]))[:, 0].tolist() == [1.0, 2.0, INF]


def test_a_truth_drawn_like_the_futures_is_in_the_interval_in_eight_of_ten_cases() -> None:
    draws = np.random.default_rng(0).lognormal(6.0, 1.0, (21, 4000))
    low, _, high = quantiles(draws[:20])
    assert 0.78 <= ((low <= draws[20]) & (draws[20] <= high)).mean() <= 0.84


def test_intervals_that_were_too_narrow_are_widened_and_never_narrowed() -> None:
    said = TimeInterval(900.0, 1000.0, 1100.0)
    correction = IntervalCorrection()
    rng = np.random.default_rng(1)
    for _ in range(NEEDED + 300):
        correction.learn(0.0, said, float(1000.0 * rng.lognormal(0.0, 0.6)))
    wide = correction.apply(0.0, said)
    assert wide.p50 == 1000.0 and wide.p10 < 800.0 and wide.p90 > 1300.0
    exact = IntervalCorrection()
    for _ in range(NEEDED + 300):
        exact.learn(0.0, said, 1000.0)
    found = exact.apply(0.0, said)
    assert found.p10 <= 900.0 + 1e-6 and found.p90 >= 1100.0 - 1e-6


def test_no_start_is_foreseen_to_the_second() -> None:
    found = IntervalCorrection().apply(0.0, TimeInterval(1000.0, 1000.0, 1000.0))
    assert found.p10 < 990.0 and found.p90 > 1010.0
    far = TimeInterval(10.0, 20.0, INF)
    assert IntervalCorrection().apply(0.0, far) == far


def test_the_score_counts_what_was_said_against_what_came() -> None:
    found = score([*(outcome("a", 150.0) for _ in range(30)), *(outcome("b", 1000.0, latest=300.0) for _ in range(10))])
    assert found["jobs"] == 40
    assert found["start_coverage"] == 0.75 and found["finish_coverage"] == 1.0
    assert found["within_1_min"] == 0.75 and found["within_10_min"] == 0.75
    assert found["median_moved_past_first_p90"] == 0.25
    assert found["start_coverage_by_tenant"] == {"a": {"jobs": 30, "coverage": 1.0}}
    assert score([])["start_coverage"] is None


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("record"), '[policy]\nname = "fifo"\n')


def recorded(folder: Path, policy: str) -> Path:
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.exponential(60.0, 120))
    run_s = rng.lognormal(6.0, 0.8, 120)
    rows = [f"j{k},{at[k]:.1f},{run_s[k]:.1f},{rng.choice([1, 2])},any,{'ab'[k % 2]}" for k in range(120)]
    (folder / "jobs.csv").write_text(
        "job_id,submitted_s,duration_s,scale_factor,job_type,tenant\n" + "\n".join(rows) + "\n"
    )
    (folder / "scenario.toml").write_text(
        '[cluster]\naccelerators = { gpu = 8 }\n[workload]\ntrace = "jobs.csv"\n[throughputs]\nsource = "uniform"\n'
        + policy
    )
    found = CliRunner().invoke(
        app, ["simulate", str(folder / "scenario.toml"), "--out", str(folder / "out"), "--record"]
    )
    assert found.exit_code == 0, found.output
    return folder / "out"


def test_declared_run_times_of_a_queue_are_foreseen_from_its_record(record: Path) -> None:
    found = CliRunner().invoke(app, ["forecast", "score", "--record", str(record), "--jobs", "25", "--json"])
    assert found.exit_code == 0, found.output
    figures = json.loads(found.stdout)
    assert figures["jobs"] == figures["forecasts"] == 25
    assert figures["within_1_min_or_5_percent"] == 1.0 == figures["start_coverage"]


def test_what_tenants_may_use_is_known_from_the_record(tmp_path: Path) -> None:
    out = recorded(tmp_path, '[policy]\nname = "quotas"\n[tenants.a]\nquota = 6\n[tenants.b]\nquota = 2\nweight = 3\n')
    tree = new_scheduler(Record(out / "record.jsonl.gz")).state.owners.tree
    assert dict(zip(tree.names, tree.said_quota.tolist(), strict=True)) == {"a": 6.0, "b": 2.0}
    assert dict(zip(tree.names, tree.weight.tolist(), strict=True)) == {"a": 1.0, "b": 3.0}


@pytest.mark.parametrize(
    "promises", [{"complete": False, "separable": True}, {"complete": True, "separable": True, "door": "shares"}]
)
def test_a_record_of_before_is_read_though_its_policy_promised_what_had_no_effect(
    record: Path, promises: dict[str, object]
) -> None:
    old = Record(record)
    old.header = {**old.header, "policy": {**old.header["policy"], **promises, "ranks_by": ""}}
    assert not new_scheduler(old).info.promises.covers_all_jobs


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_text("{}\n")
    found = CliRunner().invoke(app, ["forecast", "score", "--record", str(tmp_path / "record.jsonl")])
    assert found.exit_code == 2 and "record" in found.output
