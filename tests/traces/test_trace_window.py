"""How a part of a trace is cut out and pressed together."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.traces import Trace, generate, window
from eunomia.traces.table import trace_of

TRACE = trace_of(
    "five jobs",
    list("abcde"),
    np.array([0.0, 10, 10, 20, 30]),
    np.arange(1, 6),
    duration_s=np.full(5, 7.0),
    deadline_s=np.array([5.0, inf, 40, 25, inf]),
    notes=("a note",),
)


def test_without_bounds_nothing_changes() -> None:
    whole = window(TRACE)
    assert whole.job_id == TRACE.job_id
    assert (whole.submitted_s == TRACE.submitted_s).all()
    assert (whole.deadline_s == TRACE.deadline_s).all()
    assert whole.notes == ("a note",)


def test_the_start_belongs_to_the_window_and_the_end_does_not() -> None:
    part = window(TRACE, start_s=10, end_s=30)
    assert part.job_id == ("b", "c", "d")
    assert part.submitted_s.tolist() == [0, 0, 10]
    assert part.row.tolist() == [2, 3, 4]
    assert part.notes == ("a note (in the whole trace)", "2 jobs are left out: 3 jobs of [10 s, 30 s) are used")


def test_load_presses_submissions_together_and_leaves_durations_and_the_time_to_a_deadline() -> None:
    part = window(TRACE, start_s=10, load=2)
    assert part.submitted_s.tolist() == [0, 0, 5, 10]
    assert part.duration_s.tolist() == [7] * 4
    assert part.deadline_s.tolist() == [inf, 30, 10, inf]


def test_a_number_of_jobs_is_counted_from_the_start_of_the_window() -> None:
    assert window(TRACE, start_s=5, max_jobs=2).job_id == ("b", "c")
    assert len(window(TRACE, max_jobs=99)) == 5


@pytest.mark.parametrize(
    ("bounds", "column"),
    [
        ({"start_s": 31}, "start_s"),
        ({"start_s": 10, "end_s": 10}, "start_s"),
        ({"start_s": -1}, "start_s"),
        ({"start_s": inf}, "start_s"),
        ({"end_s": 0}, "end_s"),
        ({"end_s": float("nan")}, "end_s"),
        ({"load": 0}, "load"),
        ({"load": inf}, "load"),
        ({"load": 1e-320}, "load"),
        ({"load": True}, "load"),
        ({"max_jobs": 0}, "max_jobs"),
        ({"max_jobs": 2.0}, "max_jobs"),
    ],
)
def test_a_window_that_leaves_nothing_or_makes_no_sense_is_refused(bounds: dict[str, float], column: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        window(TRACE, **bounds)  # type: ignore[arg-type]
    assert [(problem.file, problem.column) for problem in caught.value.problems] == [("five jobs", column)]


def test_an_endless_window_reads_to_the_end() -> None:
    assert len(window(TRACE, end_s=inf)) == 5


def test_windows_side_by_side_hold_every_job_once() -> None:
    trace: Trace = generate("poisson", 3, jobs=200, rate_per_hour=60)
    cuts = [0.0, 1000.5, 4321.0, inf]
    parts = [window(trace, start_s=low, end_s=high) for low, high in pairwise(cuts)]
    assert sum((part.job_id for part in parts), ()) == trace.job_id
