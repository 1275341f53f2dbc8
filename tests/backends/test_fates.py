"""What becomes of jobs, against the tables of the Philly paper."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.backends.simulated.job_outcomes import OutcomeModel, pick_reasons, run_time_to_failure, size_class
from eunomia.failures.table7 import REASONS
from eunomia.model.job import Job

MINUTE_S = 60.0


def jobs(count: int, size: int = 1) -> list[Job]:
    return [Job(job_id=f"j{i}", total_steps=1.0, submitted=0.0, sequence=i, scale_factor=size) for i in range(count)]


def test_the_table_is_whole() -> None:
    assert sum(reason.trials for reason in REASONS) == 39_776  # its sum in the paper
    assert all(sum(reason.trials_by_size) == reason.trials for reason in REASONS)


@pytest.mark.parametrize(
    "reason", [reason for reason in REASONS if reason.trials > 100], ids=lambda reason: reason.name
)
def test_sampled_run_times_to_failure_have_the_published_quantiles(reason) -> None:  # type: ignore[no-untyped-def]
    draws = (np.arange(2000) + 0.5) / 2000
    times = np.array([run_time_to_failure(reason, draw) for draw in draws.tolist()]) / MINUTE_S
    assert np.percentile(times, 50) == pytest.approx(reason.p50_min, rel=0.02)
    assert np.percentile(times, 90) == pytest.approx(reason.p90_min, rel=0.02)


def test_the_sigmas_are_those_of_a_lognormal_through_both_quantiles() -> None:
    # worked by hand: ln(17.73 / 13.45) / 1.2816 = 0.2155; one sigma above the median
    oom = REASONS[0]
    assert math.log(run_time_to_failure(oom, 0.841344746) / (13.45 * MINUTE_S)) == pytest.approx(0.2155, abs=1e-4)


@given(st.sampled_from(REASONS), st.floats(0, 1, exclude_max=True))
def test_no_trial_runs_longer_than_the_95th_percentile(reason, draw: float) -> None:  # type: ignore[no-untyped-def]
    assert 0 < run_time_to_failure(reason, draw) <= reason.p95_min * MINUTE_S


def test_the_mix_of_final_status_is_the_papers() -> None:
    drawn = OutcomeModel().sample(jobs(50_000), np.full(50_000, 1e9), np.random.default_rng(0))
    failing, killed = np.mean(drawn.reason >= 0), np.mean(drawn.share < 1)
    assert failing == pytest.approx(0.172, abs=0.003)
    assert killed == pytest.approx(0.135, abs=0.003)
    assert not np.any((drawn.reason >= 0) & (drawn.share < 1))


def test_reasons_are_as_frequent_among_gangs_of_a_size_as_in_the_table() -> None:
    by_size = np.array([reason.trials_by_size for reason in REASONS])
    per_trial = np.array([reason.jobs / reason.trials for reason in REASONS])
    for column, size in enumerate((1, 3, 8)):
        picked = pick_reasons(np.full(100_000, size), np.random.default_rng(column).random(100_000))
        expected = by_size[:, column] * per_trial
        np.testing.assert_allclose(
            np.bincount(picked, minlength=len(REASONS)) / 100_000, expected / expected.sum(), atol=0.006
        )


def test_trials_of_each_reason_have_the_published_mix_of_sizes() -> None:
    # as many jobs of each size as the table's jobs have, and for each reason as many trials a job
    by_size = np.array([reason.trials_by_size for reason in REASONS], dtype=float)
    per_trial = np.array([reason.jobs / reason.trials for reason in REASONS])
    share = (by_size * per_trial[:, None]).sum(axis=0)
    rng = np.random.default_rng(1)
    sizes = rng.choice([1, 2, 8], size=400_000, p=share / share.sum())
    picked = pick_reasons(sizes, rng.random(400_000))
    for row in (0, 1, 2, 6):
        mix = np.bincount(size_class(sizes[picked == row]), minlength=3) / np.sum(picked == row)
        np.testing.assert_allclose(mix, by_size[row] / by_size[row].sum(), atol=0.02)


def test_failures_happen_to_jobs_that_are_long_enough_for_all_their_trials() -> None:
    seconds = np.random.default_rng(1).lognormal(7, 2.5, 20_000)
    three = [replace(job, retries=2) for job in jobs(20_000)]
    drawn = OutcomeModel().sample(three, seconds, np.random.default_rng(0))
    rows = np.flatnonzero(drawn.reason >= 0)
    needed = np.array([sum(drawn.time_to_failure(row, trial, math.inf) for trial in range(3)) for row in rows.tolist()])
    short = seconds[rows] < needed
    assert short.mean() < 0.02
    assert needed[short].min(initial=math.inf) > np.percentile(needed, 90)  # only the longest found no job
    assert len(rows) == pytest.approx(0.172 * 20_000, rel=0.05)


def test_every_trial_of_a_job_that_fails_fails_and_at_a_time_of_its_own() -> None:
    drawn = OutcomeModel(failing=1.0, killed=0.0).sample(jobs(3), np.full(3, 1e9), np.random.default_rng(5))
    times = [drawn.time_to_failure(1, trial, 1e12) for trial in range(4)]
    assert len(set(times)) == 4
    assert times == [drawn.time_to_failure(1, trial, 1e12) for trial in range(4)]
    assert drawn.time_to_failure(1, 0, 10.0) <= 10.0


def test_a_job_that_passes_never_fails() -> None:
    assert (
        OutcomeModel(failing=0.0, killed=0.0)
        .sample(jobs(1), np.ones(1), np.random.default_rng(0))
        .time_to_failure(0, 0, 5.0)
        == math.inf
    )
