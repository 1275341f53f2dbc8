"""What becomes of jobs, against the tables of the Philly paper."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.backends.simulated.job_outcomes import OutcomeModel
from eunomia.failures.philly_reasons import REASONS
from eunomia.failures.run_times import (
    failing_by_class,
    killed_by_class,
    pick_reasons,
    run_time_to_failure,
    run_time_until_killed,
    size_class,
)
from eunomia.model.job import Job
from eunomia.traces.distributions import DISTRIBUTIONS, LEVELS, PHILLY_QUANTILES_S

MINUTE_S = 60.0


def jobs(count: int, sizes: Iterable[int] = repeat(1), retries: int = 0) -> list[Job]:
    return [
        Job(job_id=f"j{i}", total_steps=1.0, sequence=i, scale_factor=size, retries=retries)
        for i, size in zip(range(count), sizes, strict=False)
    ]


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


def submitted(count: int, seed: int) -> tuple[list[Job], np.ndarray]:
    """Jobs as they were submitted to Philly, with two retries, and how long each would run."""
    size, seconds = DISTRIBUTIONS["philly-submitted"](*np.random.default_rng(seed).spawn(2), count)
    return jobs(count, size.tolist(), retries=2), seconds


def test_failures_and_kills_happen_to_jobs_that_are_long_enough_for_them() -> None:
    many, seconds = submitted(20_000, 1)
    drawn = OutcomeModel().sample(many, seconds, np.random.default_rng(0))
    rows = np.flatnonzero(drawn.reason >= 0)
    needed = np.array([sum(drawn.time_to_failure(row, trial, math.inf) for trial in range(3)) for row in rows.tolist()])
    short = seconds[rows] < needed
    assert short.mean() < 0.02
    assert needed[short].min(initial=math.inf) > np.percentile(needed, 90)  # only the longest found no job
    assert len(rows) == pytest.approx(0.172 * 20_000, rel=0.05)
    killed = drawn.share < 1
    for size in range(3):
        mine = killed & (size_class(np.array([job.scale_factor for job in many])) == size)
        asked = run_time_until_killed(np.full(999, (1, 4, 8)[size]), np.linspace(0, 1, 999, endpoint=False))
        ran = np.quantile((drawn.share * seconds)[mine], (0.25, 0.5, 0.75))
        np.testing.assert_allclose(np.log(ran), np.log(np.quantile(asked, (0.25, 0.5, 0.75))), atol=0.7)


def test_jobs_that_pass_run_as_those_of_philly_that_passed() -> None:
    many, seconds = submitted(100_000, 2)
    drawn = OutcomeModel().sample(many, seconds, np.random.default_rng(3))
    alone = np.array([job.scale_factor == 1 for job in many])
    passed = seconds[alone & (drawn.reason < 0) & (drawn.share == 1)]
    for place in (3, 4, 5, 6, 7):  # 25 to 95 %
        assert np.quantile(passed, LEVELS[place]) == pytest.approx(PHILLY_QUANTILES_S[1][place], rel=0.1)


def test_a_job_that_is_too_short_to_be_killed_when_it_should_be_ends_before_its_last_step() -> None:
    drawn = OutcomeModel(failing=0.0, killed=1.0).sample(jobs(500), np.ones(500), np.random.default_rng(4))
    assert (drawn.share < 1).all() and 0.4 < drawn.share.mean() < 0.6


@given(st.floats(0, 1), st.floats(0, 1))
def test_shares_of_classes_add_up_to_what_is_wanted_however_large(failing: float, killed: float) -> None:
    sizes = np.repeat([1, 4, 8], [700, 200, 100])
    part, by_class = np.array([0.7, 0.2, 0.1]), failing_by_class(sizes, failing)
    assert (by_class <= 1).all() and float(part @ by_class) == pytest.approx(failing)
    left = part * (1 - by_class)
    killing = killed_by_class(sizes, by_class, killed)
    assert (killing <= 1).all() and float(left @ killing) == pytest.approx(min(killed, 1 - failing), abs=1e-9)


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
