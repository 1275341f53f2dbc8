"""Run times from history: causal, calibrated, better than chance only where there is something to learn."""

from __future__ import annotations

import csv
import gzip
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from eunomia.throughputs.durations.run_time_history import (
    ANY_LOG_S,
    LONGER,
    RECENT,
    UNKNOWN,
    RunTimeEstimate,
    RunTimeHistory,
    _line_up,
    _median,
)
from eunomia_reproduction.run_time_scores import RunTimeScores, replay, score


def tenants_of_steady_habits(jobs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Tenants whose run times differ by a factor of ten each, with a spread of 30 %."""
    rng = np.random.default_rng(seed)
    tenant = rng.integers(0, 4, jobs)
    run_s = 60.0 * 10.0**tenant * np.exp(rng.normal(0, 0.3, jobs))
    return np.cumsum(rng.exponential(3000, jobs)), run_s, [f"t{m}" for m in tenant]


def test_before_jobs_have_ended_an_interval_holds_that_of_any_job_and_narrows_as_they_do() -> None:
    history = RunTimeHistory()
    first = history.submit("0", "a", 1, "", 0.0)
    assert first.low_s <= UNKNOWN.low_s and first.high_s == pytest.approx(UNKNOWN.high_s)
    widths = [first.high_s / first.low_s]
    for m in range(1, 200):
        history.end(str(m - 1), 60.0, float(m))
        found = history.submit(str(m), "a", 1, "", float(m))
        widths.append(found.high_s / found.low_s)
    assert widths[0] > widths[10] > widths[50] > widths[199]


def test_tenants_are_distinguished_and_intervals_hold_what_they_say() -> None:
    submitted, run_s, tenant = tenants_of_steady_habits(1500)
    found = score(replay(submitted, run_s, tenant, [1] * 1500, [""] * 1500), run_s)
    assert found.concordance > 0.85
    assert 0.76 <= found.coverage80 <= 0.84
    assert found.median_factor < 1.5


def test_skill_vanishes_when_run_times_are_dealt_anew() -> None:
    submitted, run_s, tenant = tenants_of_steady_habits(1500)
    dealt = np.random.default_rng(5).permutation(run_s)
    found = score(replay(submitted, dealt, tenant, [1] * 1500, [""] * 1500), dealt)
    assert abs(found.concordance - 0.5) < 0.04


def test_an_estimate_does_not_depend_on_what_ends_later() -> None:
    submitted, run_s, tenant = tenants_of_steady_habits(300)
    other = run_s.copy()
    other[200:] *= 50.0
    first, second = (replay(submitted, each, tenant, [1] * 300, [""] * 300) for each in (run_s, other))
    assert first[:201] == second[:201]
    assert first[201:] != second[201:]


def test_before_any_job_has_ended_the_estimate_rests_on_none() -> None:
    found = RunTimeHistory().submit("a", "t", 1, "", 0.0)
    assert found.measurements == 0
    assert found.low_s < found.median_s < found.high_s


def test_a_waiting_job_is_expected_to_run_longer_once_its_tenants_jobs_turn_out_long() -> None:
    history = RunTimeHistory()
    for m in range(20):
        history.submit(f"short-{m}", "t", 1, "", 1000.0 * m)
        history.end(f"short-{m}", 60.0, 1000.0 * m + 60.0)
    first = history.submit("waits", "t", 1, "", 30_000.0)
    assert history.estimate_again("waits", 30_000.0) == first  # nothing has ended since
    for m in range(10):
        history.submit(f"long-{m}", "t", 1, "", 30_100.0 + m)
    for m in range(10):
        history.end(f"long-{m}", 6000.0, 36_200.0 + m)
    found = history.estimate_again("waits", 36_300.0)
    assert found.median_s > 3 * first.median_s
    assert found.measurements == 30
    assert history.estimate_again("waits", 36_300.0) == found  # to ask teaches nothing


def median(*jobs: tuple[float, float], at: float = 1e6, by: tuple[float, ...] = (64.0, 1e9, 1.0, 1.0, 1e-9)) -> float:
    """The median of a tenant's jobs, oldest first, each with its log run time, below 0 = running, and its submission.

    Left out, all weigh the same, and those of any tenant next to nothing.
    """
    recent = np.zeros((RECENT, 4))
    recent[: len(jobs), :2] = np.reshape(jobs, (-1, 2))
    lined = np.zeros((4, RECENT + len(ANY_LOG_S)))
    length = _line_up(recent, len(jobs), at, -1, lined)
    return _median(recent, len(jobs), 0.0, 0.0, np.array(by), lined[:, :length])


def test_the_last_jobs_of_a_tenant_outweigh_those_of_any() -> None:
    assert median() == 7.5  # half an hour
    assert median((2.0, 0.0), (2.0, 0.0), (2.0, 0.0), by=(64.0, 40.0, 1.0, 1.0, 1.0)) == 2.0
    newer, older = (3.0, 0.0), (9.0, 0.0)
    assert median(older, newer, by=(64.0, 1.0, 1.0, 1.0, 1e-9)) == 3.0


def test_a_job_that_still_runs_is_censored_at_what_it_has_run_so_far() -> None:
    """By hand: of 2, 4+, 6, 8 the curve falls to 3/4 at 2, to 3/8 at 6; of 2, 4, 6, 8 to 1/2 at 4."""
    at = 1e6
    running = (-1.0, at - float(np.exp(4.0)))
    assert median((2.0, 0.0), running, (6.0, 0.0), (8.0, 0.0), at=at) == 6.0
    assert median((2.0, 0.0), (4.0, 0.0), (6.0, 0.0), (8.0, 0.0), at=at) == 4.0


def test_a_tenant_whose_jobs_all_run_is_expected_to_run_longer_still() -> None:
    assert median(*[(-1.0, 0.0)] * 6, by=(64.0, 1e9, 1.0, 1.0, 1e-12)) == pytest.approx(np.log(1e6) + LONGER)


def test_a_job_that_never_ran_teaches_nothing() -> None:
    history = RunTimeHistory()
    history.submit("a", "t", 1, "", 0.0)
    history.end("a", 0.0, 5.0)
    assert history.submit("b", "t", 1, "", 6.0).measurements == 0


def test_a_tenant_whose_last_job_failed_is_expected_to_fail_again() -> None:
    """Outcomes come in rows of 4; failed jobs run 5 minutes, others 50, both within a wide spread."""
    rng = np.random.default_rng(3)
    failing = np.repeat(rng.integers(0, 2, 500), 4) == 1
    jobs = len(failing)
    run_s = np.where(failing, 300.0, 3000.0) * np.exp(rng.normal(0, 1.5, jobs))
    submitted = np.arange(jobs) * 400_000.0
    said = ["failed" if each else "completed" for each in failing]
    informed, silent = (
        score(replay(submitted, run_s, ["t"] * jobs, [1] * jobs, [""] * jobs, outcome), run_s) for outcome in (said, ())
    )
    assert informed.concordance > silent.concordance + 0.02


def test_pairs_whose_shorter_job_was_killed_are_not_compared() -> None:
    run_s = np.array([10.0, 20.0, 30.0, 1.0, 100.0] * 30)
    found = [RunTimeEstimate(50.0 if run == 1.0 else run, 1.0, 1e3, 0) for run in run_s]
    outcome = ["killed" if run == 1.0 else "completed" for run in run_s]
    scores = score(found, run_s, outcome)
    assert scores.concordance < 1.0  # 50 s were expected of the jobs that were killed after one
    assert scores.censored_concordance == 1.0


def trace(path: Path) -> RunTimeScores:
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if int(row["gpus"]) > 0]
    times = [datetime.fromisoformat(row["submit_time"]).timestamp() for row in rows]
    run_s = np.maximum([float(row["run_time_s"]) for row in rows], 1.0)
    users, sizes = [row["user"] for row in rows], [int(row["gpus"]) for row in rows]
    outcome = [{"Pass": "completed", "Failed": "failed", "Killed": "killed"}[row["status"]] for row in rows]
    return score(replay(np.array(times) - times[0], run_s, users, sizes, [""] * len(rows), outcome), run_s, outcome)


@pytest.mark.slow
def test_venus_is_ordered_better_than_by_the_last_jobs_and_intervals_are_calibrated(reference: Path) -> None:
    found = trace(reference / "traces/helios-venus/venus_status_15k.csv.gz")
    assert found.concordance >= 0.72  # the last 20 jobs of a user and size: 0.691
    assert found.censored_concordance >= 0.72  # 0.683
    assert 0.78 <= found.coverage80 <= 0.82


def test_philly_is_ordered_better_than_by_the_last_jobs_and_intervals_are_calibrated(reference: Path) -> None:
    found = trace(reference / "traces/philly/philly_status_first15k.csv.gz")
    assert found.concordance >= 0.72  # the last 20 jobs of a user and size: 0.634
    assert found.censored_concordance >= 0.75  # 0.660
    assert 0.78 <= found.coverage80 <= 0.82
