"""What synthetic traces promise: published distributions, seeds, and checked parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import GENERATORS, generate, read, write_native
from eunomia.traces.distributions import DISTRIBUTIONS, GAVEL_SIZES, LEVELS, PHILLY_QUANTILES_S, PHILLY_SIZES


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_trace_is_a_valid_trace(name: str, tmp_path: Path) -> None:
    trace = generate(name, 1, jobs=500)
    write_native(trace, tmp_path / "jobs.csv")
    assert len(read(tmp_path / "jobs.csv")) == 500
    assert trace.source == name


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_draws_the_same_trace_and_another_seed_another(name: str) -> None:
    one, same, other = generate(name, 7), generate(name, 7), generate(name, 8)
    assert (one.submitted_s == same.submitted_s).all()
    assert (one.duration_s == same.duration_s).all()
    assert (one.submitted_s != other.submitted_s)[1:].all()  # the first may come at 0
    assert (one.duration_s != other.duration_s).all()


def test_another_rate_or_number_of_tenants_leaves_sizes_and_durations_alone() -> None:
    one, other = generate("philly-like", 0), generate("philly-like", 0, rate_per_hour=6, tenants=3)
    assert (one.duration_s == other.duration_s).all()
    assert (one.scale_factor == other.scale_factor).all()
    assert np.allclose(one.submitted_s, 2 * other.submitted_s)


def test_a_longer_trace_begins_with_the_same_arrivals() -> None:
    assert (generate("poisson", 5, jobs=10).submitted_s == generate("poisson", 5, jobs=20).submitted_s[:10]).all()


def test_poisson_arrivals_and_exponential_durations_have_their_means_and_no_memory() -> None:
    trace = generate("poisson", 0, jobs=100_000, rate_per_hour=36, mean_duration_s=50, scale_factor=4)
    for drawn, mean in ((np.diff(trace.submitted_s), 100), (trace.duration_s, 50)):
        assert drawn.mean() == pytest.approx(mean, rel=0.02)
        assert drawn.std() == pytest.approx(mean, rel=0.02)
        assert (drawn > mean).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert set(trace.scale_factor.tolist()) == {4}


def test_gavels_distribution_has_the_published_sizes_ranges_and_mean() -> None:
    trace = generate("philly-like", 0, jobs=100_000)
    for size, share in GAVEL_SIZES.items():
        assert (trace.scale_factor == size).mean() == pytest.approx(share, abs=0.005)
    minutes = trace.duration_s / 60
    assert (minutes.min() >= 10**1.5, minutes.max() <= 10**4) == (True, True)
    assert (minutes >= 1000).mean() == pytest.approx(0.2, abs=0.005)
    assert minutes.mean() == pytest.approx(1006, rel=0.02)


def test_phillys_distribution_has_the_sizes_and_quantiles_it_states() -> None:
    trace = generate("philly-like", 0, jobs=200_000, distribution="philly")
    smallest = 1
    for size, share in PHILLY_SIZES.items():
        assert (trace.scale_factor == size).mean() == pytest.approx(share, abs=0.003)
    for largest, quantiles in PHILLY_QUANTILES_S.items():
        drawn = trace.duration_s[(trace.scale_factor >= smallest) & (trace.scale_factor <= largest)]
        for level, quantile in zip(LEVELS[1:-1], quantiles[1:-1], strict=True):
            assert (drawn <= quantile).mean() == pytest.approx(level, abs=0.04)
        smallest = largest + 1


def test_phillys_distribution_states_what_the_real_trace_measures(real: Callable[[str], Path]) -> None:
    path = real("traces/philly/philly_jobs.csv.gz")
    size, ran = read(path, "philly").scale_factor, read(path, "philly", passed_only=True)
    assert (size == 1).mean() == pytest.approx(PHILLY_SIZES[1], abs=0.001)
    measured = np.quantile(ran.duration_s[ran.scale_factor == 1], LEVELS[1:-1])
    assert measured == pytest.approx(PHILLY_QUANTILES_S[1][1:-1], rel=0.02)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_gangs_can_be_held_to_one_accelerator(distribution: str) -> None:
    trace = generate("philly-like", 0, multi_accelerator=False, distribution=distribution)
    assert set(trace.scale_factor.tolist()) == {1}


def test_tenants_and_job_types_are_named_when_asked_for() -> None:
    trace = generate("philly-like", 0, tenants=3, job_type="LM")
    assert set(trace.tenant) == {"tenant-0", "tenant-1", "tenant-2"}
    assert set(trace.job_type or ()) == {"LM"}
    assert generate("philly-like", 0).job_type is None


def test_an_infinite_rate_submits_all_at_time_zero() -> None:
    assert set(generate("poisson", 0, rate_per_hour=float("inf")).submitted_s.tolist()) == {0}


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("philly", {}, "did you mean 'philly-like'"),
        ("poisson", {"job": 3}, "did you mean 'jobs'"),
        ("philly-like", {"distribution": "gavell"}, "did you mean 'gavel'"),
        ("gavel", {"table": "publish"}, "did you mean 'published'"),
        ("gavel", {"durations": "day"}, "did you mean 'days'"),
        ("philly-like", {"distribution": 3}, "must be text"),
        ("philly-like", {"multi_accelerator": 1}, "true or false"),
        *[("poisson", {"jobs": value}, "jobs is") for value in (0, -1, 5.0, 10**400, "many", True)],
        *[("poisson", {"rate_per_hour": value}, "rate_per_hour is") for value in (0, -1, 1e-320, float("nan"), "3")],
        ("poisson", {"mean_duration_s": float("inf")}, "mean_duration_s is"),
        ("poisson", {"mean_duration_s": 1.1e10}, "mean_duration_s is"),
        ("poisson", {"scale_factor": 0}, "scale_"),
        ("philly-like", {"tenants": -1}, "tenants is"),
        ("philly-like", {"job_type": 3}, "must be text"),
    ],
)
def test_a_wrong_name_or_value_is_refused(name: str, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        generate(name, 0, **parameters)


@pytest.mark.parametrize("seed", [-1, 0.5, "0", None, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed"):
        generate("poisson", seed)


def test_the_order_of_gavels_job_types_changes_the_types_of_single_jobs_and_nothing_else() -> None:
    now, then = (generate("gavel", 0, table=table) for table in ("artifact", "published"))
    assert (now.duration_s == then.duration_s).all()
    assert (now.submitted_s == then.submitted_s).all()
    assert now.job_type is not None
    assert then.job_type is not None
    assert {a for a, b in zip(now.job_type, then.job_type, strict=True) if a != b} == {
        *(f"LM (batch size {size})" for size in (5, 10, 20, 40, 80)),
        *(f"Recommendation (batch size {size})" for size in (512, 1024, 2048, 4096, 8192)),
        "A3C",
    }
    assert next(then.job_type[m] for m, name in enumerate(now.job_type) if name == "LM (batch size 5)") == "A3C"


def test_the_order_of_gavels_job_types_changes_the_random_numbers_of_gangs() -> None:
    now, then = (generate("gavel", 0, table=table, multi_accelerator=True) for table in ("artifact", "published"))
    assert (now.duration_s != then.duration_s).any()


def test_durations_of_days_are_five_lengths_drawn_evenly() -> None:
    drawn = generate("gavel", 0, jobs=2000, durations="days", deadlines=True)
    days, counts = np.unique(drawn.duration_s / 86400, return_counts=True)
    assert days.tolist() == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert counts == pytest.approx(400, abs=60)
    assert ((drawn.deadline_s - drawn.submitted_s) / drawn.duration_s).round(6).tolist()[:50].count(1.2) > 5
