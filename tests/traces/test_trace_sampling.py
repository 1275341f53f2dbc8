"""A part of a trace: what stays, what moves, and that the same seed draws the same jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import Trace, generate, read
from eunomia.traces.sampling import JITTER_S, sample
from eunomia.traces.writing import write_native

DAY = 86_400.0


def workload(jobs: int = 2000) -> Trace:
    """Jobs of three tenants over about ten days, some with deadlines."""
    trace = generate("philly-like", 7, jobs=jobs, rate_per_hour=jobs / 240, tenants=3)
    deadlines = np.where(np.arange(jobs) % 3 == 0, trace.submitted_s + 1000, np.inf)
    return replace(trace, deadline_s=deadlines)


TRACE = workload()


@settings(max_examples=40)
@given(rate=st.floats(0.05, 4), seed=st.integers(0, 2**32 - 1))
def test_a_sample_has_about_rate_times_the_jobs_and_the_same_for_the_same_seed(rate: float, seed: int) -> None:
    part, again = sample(TRACE, rate=rate, seed=seed), sample(TRACE, rate=rate, seed=seed)
    assert part.job_id == again.job_id
    assert np.array_equal(part.submitted_s, again.submitted_s)
    assert len(part) == pytest.approx(rate * len(TRACE), abs=6 * np.sqrt(len(TRACE)) / 2)
    assert len(set(part.job_id)) == len(part)
    assert (np.diff(part.submitted_s) >= 0).all()
    kept = part.deadline_s - part.submitted_s
    assert np.allclose(kept[np.isfinite(kept)], 1000)


def test_copies_come_within_half_an_hour_of_their_job_which_stays_where_it_was() -> None:
    part = sample(TRACE, rate=2, seed=1)
    at = dict(zip(TRACE.job_id, TRACE.submitted_s.tolist(), strict=True))
    for job, submitted in zip(part.job_id, part.submitted_s.tolist(), strict=True):
        origin, _, copy = job.partition("~")
        assert submitted == at[origin] if not copy else abs(submitted - at[origin]) <= JITTER_S
    assert set(Counter(job.partition("~")[0] for job in part.job_id).values()) == {2}


@settings(max_examples=20)
@given(rates=st.lists(st.floats(0.5, 4), min_size=1, max_size=3), seed=st.integers(0, 2**32 - 1))
def test_a_sample_of_a_sample_is_a_trace_that_can_be_read(rates: list[float], seed: int) -> None:
    """What is drawn again holds jobs called a~1 already, and so may any trace."""
    part = replace(workload(5), job_id=("a", "a~1", "a~1~1", "b~2", "b"))
    for rate in rates:
        part = sample(part, rate=rate, seed=seed)
    with TemporaryDirectory() as folder:
        write_native(part, Path(folder) / "part.csv")
        assert read(Path(folder) / "part.csv").job_id == part.job_id


def test_copies_are_counted_and_pass_over_the_names_of_others() -> None:
    part = sample(replace(workload(3), job_id=("a", "a~2", "b")), rate=4, seed=0)
    assert set(part.job_id) == {
        "a", "a~1", "a~3", "a~4", "a~2", "a~2~1", "a~2~2", "a~2~3", "b", "b~1", "b~2", "b~3",
    }  # fmt: skip


def test_a_rate_keeps_the_days_and_a_load_the_gaps() -> None:
    half = sample(TRACE, rate=0.5, seed=3)
    assert half.submitted_s[-1] == pytest.approx(TRACE.submitted_s[-1], rel=0.02)
    dense = sample(TRACE, load=2)
    assert np.allclose(np.diff(dense.submitted_s) * 2, np.diff(TRACE.submitted_s))


def test_tenants_time_and_number_are_cut_in_that_order() -> None:
    part = sample(TRACE, tenants=["tenant-1"], start_s=DAY, end_s=2 * DAY, max_jobs=10)
    mine = [
        (job, at - DAY)
        for job, at, tenant in zip(TRACE.job_id, TRACE.submitted_s.tolist(), TRACE.tenant, strict=True)
        if tenant == "tenant-1" and DAY <= at < 2 * DAY
    ]
    assert list(zip(part.job_id, part.submitted_s.tolist(), strict=True)) == mine[:10]
    assert len(part.notes) == 3  # tenants, window, number left out


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": 101}, "rate"),
        ({"seed": -1, "rate": 0.5}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"tenants": ["tenant-9"]}, "tenant"),
        ({"load": 0.0}, "load"),
        ({"start_s": 1e12}, "start_s"),
        ({"max_jobs": 0}, "max_jobs"),
    ],
)
def test_a_wrong_wish_is_refused(options: dict[str, object], column: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        sample(TRACE, **options)  # type: ignore[arg-type]
    assert caught.value.problems[0].column == column


def test_a_rate_that_leaves_no_job_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no job is left"):
        sample(workload(3), rate=1e-9)
