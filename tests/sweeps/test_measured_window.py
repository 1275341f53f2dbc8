"""A warm-up, measured jobs, a drain: figures are of the measured jobs, which meet the same cluster as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eunomia
from eunomia.inputs.problems import InvalidInput


def run(measure: dict[str, Any] | None = None, **world: Any) -> eunomia.Result:
    """Simulate forty jobs, of which those that `measure` says are measured."""
    return eunomia.simulate(
        {
            "cluster": {"accelerators": {"gpu": 4}},
            "workload": {"generator": "poisson", "jobs": 40, "rate_per_hour": 6.0, "mean_duration_s": 2000},
            "throughputs": {"source": "uniform"},
            "policy": {"name": "las"},
            "world": world,
            **({"measure": measure} if measure else {}),
        }
    )


def test_measured_jobs_fare_as_in_the_whole_run_and_alone_are_in_the_figures() -> None:
    whole, part = run(), run({"first_job": 10, "last_job": 19})
    assert part.jobs["job_id"].tolist() == [str(k) for k in range(10, 20)]
    for name, column in part.jobs.items():
        if name != "rho_themis":  # which depends on jobs that arrive later
            assert str(column.tolist()) == str(whole.jobs[name][10:20].tolist()), name
    assert part.summary["jobs_submitted"] == 10
    assert part.summary["jct_mean_s"] == pytest.approx(np.mean(whole.jobs["jct_s"][10:20]))
    assert list(part.summary) == list(whole.summary)


def test_the_run_ends_with_the_last_measured_job_while_others_would_still_come() -> None:
    part, on = run({"first_job": 10, "last_job": 19}), run({"first_job": 10, "last_job": 19, "stop": False})
    assert part.summary["end_s"] == part.jobs["finished_s"].max()
    assert on.summary["end_s"] == run().summary["end_s"]
    assert on.summary["end_s"] > part.summary["end_s"]  # type: ignore[operator]
    assert on.jobs["jct_s"].tolist() == part.jobs["jct_s"].tolist()


def test_a_window_of_all_jobs_measures_what_no_window_does() -> None:
    assert run({"last_job": 39}).summary == run().summary


def test_a_window_of_time_takes_jobs_by_their_submission() -> None:
    part = run({"from_s": 6000.0, "to_s": 12000.0})
    whole = run().jobs["submitted_s"]
    assert part.jobs["submitted_s"].tolist() == whole[(whole >= 6000) & (whole < 12000)].tolist()


@pytest.mark.parametrize("mishap", [{"cancel_fraction": 1.0}, {"job_failures_per_hour": 20.0}])
def test_measured_jobs_that_are_cancelled_or_fail_end_the_run_too(mishap: dict[str, float]) -> None:
    part = run({"first_job": 10, "last_job": 14}, **mishap)
    assert part.summary["jobs_unfinished"] == 0
    assert part.summary["jobs_finished"] != 5


@pytest.mark.parametrize(
    ("measure", "column"),
    [
        ({"first_job": 40}, "measure.first_job"),
        ({"last_job": 40}, "measure.last_job"),
        ({"from_s": 1e9}, "measure.from_s"),
        ({"first_job": 9, "last_job": 8}, "measure.last_job"),
        ({"from_s": 9.0, "to_s": 9.0}, "measure.to_s"),
        ({"firstjob": 9}, "measure.firstjob"),
    ],
)
def test_a_window_beyond_the_workload_or_turned_round_is_refused(measure: dict[str, Any], column: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        run(measure)
    assert [problem.column for problem in refusal.value.problems] == [column]
