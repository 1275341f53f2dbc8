"""Philly's own log: attempts add up to jobs, and errors are reported by the number of the job."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import read

Write = Callable[..., Path]


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    """An attempt on machines with that many accelerators each; times are of 7 October 2017."""
    when = [None if time is None else f"2017-10-07 {time}" for time in (start, end)]
    detail = [{"ip": f"m{k}", "gpus": [f"gpu{j}" for j in range(count)]} for k, count in enumerate(gpus)]
    return {"start_time": when[0], "end_time": when[1], "detail": detail}


def job(name: str, *attempts: dict[str, Any], **keys: Any) -> dict[str, Any]:
    said = {"status": "Pass", "vc": "ee9e8c", "jobid": name, "submitted_time": "2017-10-07 01:00:00", "user": "ce2f"}
    return {**said, "attempts": list(attempts), **keys}


def test_a_job_runs_the_sum_of_its_attempts_on_its_widest_one(written: Write) -> None:
    jobs = [
        job("b", attempt("01:00:10", "01:01:10", 8), attempt("01:02:00", "01:03:30", 8, 8), status="Failed"),
        job("a", attempt("00:59:00", "00:59:30", 1), submitted_time="2017-10-07 00:58:00", user="x"),
    ]
    path = written(json.dumps(jobs), name="cluster_job_log")
    trace = read(path, "auto")
    assert (trace.job_id, trace.submitted_s.tolist(), trace.row.tolist()) == (("a", "b"), [0, 120], [2, 1])
    assert (trace.duration_s.tolist(), trace.scale_factor.tolist()) == ([30, 150], [1, 16])
    assert (trace.status, trace.tenant, trace.began) == (
        ("finished", "failed"), ("ee9e8c", "ee9e8c"), datetime(2017, 10, 7, 0, 58)
    )  # fmt: skip
    assert trace.notes == ()
    assert read(path, "philly-log", tenant="user").tenant == ("x", "ce2f")


def test_half_a_surrogate_pair_is_refused_with_its_job_and_column(written: Write) -> None:
    ran = attempt("01:00:00", "01:00:20", 4)
    jobs = [job("a😀", ran), job("b", ran, vc="x\ud800"), job("\udfffc", ran)]
    with pytest.raises(InvalidInput) as refused:
        read(written(json.dumps(jobs)), "philly-log")
    assert [(problem.row, problem.column) for problem in refused.value.problems] == [(2, "vc"), (3, "jobid")]


def test_what_was_not_logged_is_left_out_and_noted(written: Write) -> None:
    jobs = [
        job("never"),
        job("open", attempt("01:00:00", None, 4)),
        job("half", attempt("01:00:00", "01:00:20", 4), attempt("01:01:00", None, 4)),
        job("clock", attempt("01:59:50", "01:00:10", 2), attempt("02:00:00", "02:00:05", 2)),
        job("instant", attempt("01:00:00", "01:00:00", 1)),
    ]
    trace = read(written(json.dumps(jobs)), "philly-log")
    assert (trace.job_id, trace.duration_s.tolist()) == (("half", "clock", "instant"), [20, 5, 1])
    assert [note.split(" jobs ")[0] for note in trace.notes] == ["2", "1", "1", "1"]


@pytest.mark.parametrize(
    ("wrong", "column"),
    [
        ({"status": "Passed"}, "status"),
        ({"status": None}, "status"),
        ({"vc": ""}, "vc"),
        ({"jobid": "good"}, "jobid"),
        ({"jobid": None}, "jobid"),
        ({"submitted_time": "None"}, "submitted_time"),
        ({"attempts": "many"}, "attempts"),
        ({"attempts": [{"start_time": "soon", "end_time": "2017-10-07", "detail": []}]}, "attempts"),
        ({"attempts": [{"start_time": None}]}, "attempts"),
        ({"attempts": 7}, "attempts"),
        ({"attempts": [{"start_time": None, "detail": [{"ip": "m0", "gpus": "gpu0gpu1"}]}]}, "attempts"),
        ({"attempts": [{"start_time": None, "detail": [{"ip": "m0", "gpus": {"gpu0": 1}}]}]}, "attempts"),
        ({"jobid": ["bad"]}, "jobid"),
        ({"vc": {"name": "a"}}, "vc"),
        ({"status": ["Pass"]}, "status"),
        ({"colour": "red"}, None),
    ],
)
def test_a_wrong_job_is_reported_by_its_number(wrong: dict[str, Any], column: str | None, written: Write) -> None:
    good = job("good", attempt("01:00:00", "01:00:20", 4))
    path = written(json.dumps([good, {**good, "jobid": "bad", **wrong}]))
    if column is None:
        assert len(read(path, "philly-log")) == 2  # further keys are not read
        return
    with pytest.raises(InvalidInput) as caught:
        read(path, "philly-log")
    assert [(problem.row, problem.column) for problem in caught.value.problems] == [(2, column)]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "at least one job"),
        (b"[]", "at least one job"),
        (b"{}", "must be a list"),
        (b'[{"jobid": 1,\n', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1, null]", "missing"),
        (b"\xff", "UTF-8"),
    ],
)
def test_what_is_no_log_is_refused(raw: bytes, said: str, written: Write) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(written(raw=raw), "philly-log")


def test_damaged_bytes_give_a_trace_or_an_answer_but_no_accident(written: Write) -> None:
    whole = json.dumps([job("a", attempt("01:00:00", "01:00:20", 4)), job("b")]).encode()
    edit = st.tuples(st.integers(0, len(whole)), st.integers(0, 4), st.binary(max_size=3))

    @settings(max_examples=100)
    @given(st.lists(edit, min_size=1, max_size=3))
    def is_answered(edits: list[tuple[int, int, bytes]]) -> None:
        raw = whole
        for start, length, instead in edits:
            raw = raw[:start] + instead + raw[start + length :]
        with suppress(InvalidInput):
            assert len(read(written(raw=raw), "philly-log")) >= 1

    is_answered()
