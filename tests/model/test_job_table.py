"""Jobs as columns: they read as the jobs that they were made of, and jobs that could never run are refused."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.job import InvalidJob, Job
from eunomia.model.job_table import JobTable, SubmittedJobs, in_order, job_array, job_values

NUMBERS = (
    "total_steps",
    "submitted",
    "sequence",
    "scale_factor",
    "weight",
    "deadline",
    "cpus",
    "memory_gib",
    "retries",
)


def jobs_of(count: int) -> tuple[Job, ...]:
    """Jobs that differ in every field that a trace has."""
    return tuple(
        Job(
            job_id=f"job-{m}",
            total_steps=1.5 + m,
            submitted=float(m // 2),
            sequence=m,
            scale_factor=1 + m % 4,
            job_type="ab"[m % 2],
            other_shapes=(2, 1) if m % 3 else (),
            tenant=f"t{m % 2}",
            app="sweep" if m % 5 == 0 else "",
            weight=1.0 + m % 2,
            deadline=10.0 * m if m % 2 else np.inf,
            cpus=float(m % 3),
            retries=m % 2,
            status="failed" if m % 4 == 0 else "",
            interruptible=m % 3 > 0,
            command=("python", f"{m}.py"),
        )
        for m in range(count)
    )


def table_of(jobs: tuple[Job, ...], *, without: tuple[str, ...] = ("debug", "loss")) -> JobTable:
    """These jobs as columns, but for fields that have their default in all."""
    columns: dict[str, Any] = {
        each.name: tuple(getattr(job, each.name) for job in jobs) for each in fields(Job) if each.name not in without
    }
    return JobTable(columns | {name: np.array(columns[name]) for name in NUMBERS})


def test_a_table_reads_as_the_jobs_that_it_was_made_of() -> None:
    jobs = jobs_of(9)
    table = table_of(jobs)
    assert table == jobs and jobs == table and table != jobs[:-1]
    assert list(table) == [table[m] for m in range(9)] == list(jobs)
    assert table[-1] == jobs[-1] and jobs[3] in table
    for at in (slice(2, 5), slice(None), slice(7, 3), slice(-3, None), slice(None, None, 2), slice(None, None, -1)):
        assert list(table[at]) == list(jobs[at])
    for field in fields(Job):
        assert list(table[2:6].values(field.name)) == [getattr(job, field.name) for job in jobs[2:6]]  # type: ignore[attr-defined]
        assert [type(value) for value in table.values(field.name)] == [type(getattr(job, field.name)) for job in jobs]
    with pytest.raises(IndexError):
        table[9]


def test_fields_are_read_alike_from_tables_and_from_objects() -> None:
    jobs = jobs_of(6)
    submitted = SubmittedJobs()
    submitted.extend(table_of(jobs)[:4])
    submitted.extend(jobs[4:])
    for some in (jobs, list(jobs), table_of(jobs), submitted):
        assert job_array(some, "weight", float).tolist() == [job.weight for job in jobs]
        assert list(job_values(some, "tenant")) == [job.tenant for job in jobs]
        assert job_array(some, "scale_factor", np.int64).dtype == np.int64


@pytest.mark.parametrize(
    "wrong",
    [
        {"total_steps": 0.0}, {"total_steps": np.nan}, {"total_steps": np.inf}, {"scale_factor": 0}, {"weight": 0.0},
        {"weight": np.inf}, {"cpus": -1.0}, {"memory_gib": np.nan}, {"other_shapes": (2, 0)},
    ],
)  # fmt: skip
def test_a_table_refuses_a_job_that_could_never_run_in_the_words_of_the_job(wrong: dict[str, Any]) -> None:
    columns: dict[str, Any] = {
        "job_id": ("a", "b", "c"),
        "total_steps": np.ones(3),
        "scale_factor": np.ones(3, dtype=np.int64),
        "weight": np.ones(3),
        "cpus": np.zeros(3),
        "memory_gib": np.zeros(3),
        "other_shapes": ((), (), ()),
    }
    for name, value in wrong.items():
        if isinstance(value, tuple):
            columns[name] = ((), value, value)
        else:
            columns[name][1:] = value
    with pytest.raises(InvalidJob, match="job 'b'") as caught:
        JobTable(columns)
    with pytest.raises(InvalidJob) as alone:
        Job(job_id="b", **{"total_steps": 1.0, **wrong})
    assert str(caught.value) == str(alone.value)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_submitted_jobs_read_in_order_however_they_came(sizes: list[int]) -> None:
    jobs = jobs_of(sum(sizes) + 1)
    table, submitted, first = table_of(jobs), SubmittedJobs(), 0
    for number, size in enumerate(sizes):
        if number % 3 == 2:
            for job in jobs[first : first + size]:
                submitted.append(job)
        else:
            submitted.extend((jobs if number % 3 else table)[first : first + size])
        first += size
    before = deepcopy(submitted)
    assert len(submitted) == first and submitted == jobs[:first]
    assert [submitted[m] for m in range(first)] == submitted[:] == list(submitted) == list(jobs[:first])
    submitted.append(jobs[first])
    assert submitted[-1] == jobs[first] and before == jobs[:first]


def test_parts_of_a_table_that_follow_each_other_stay_one_part() -> None:
    table, submitted = table_of(jobs_of(8)), SubmittedJobs()
    for first in range(0, 8, 2):
        submitted.extend(table[first : first + 2])
    assert submitted.values("job_id") is table.values("job_id")


def test_jobs_are_put_in_order_of_submission_sequence_and_id() -> None:
    jobs = jobs_of(7)
    assert in_order(table := table_of(jobs)) is table
    for mixed in (table_of(jobs[::-1]), jobs[::-1]):
        assert in_order(mixed) == list(jobs)
