"""Beliefs that are estimated: they arrive as events, are recorded and replay, and policies see the median."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eunomia
from eunomia.core.belief import Belief, median_left
from eunomia.inputs.problems import InvalidInput
from eunomia.model.events import Estimated, JobSubmitted, Moment
from eunomia.model.job import Job
from eunomia.records.explain import explain
from eunomia.records.replay import first_difference

SMALL: Mapping[str, Any] = {
    "seed": 3,
    "cluster": {"accelerators": {"v100": 4, "k80": 4}},
    "workload": {"generator": "poisson", "jobs": 40, "rate_per_hour": 12.0},
    "policy": {"name": "srtf"},
}


class TwoTypes:
    """Jobs of 2 steps/s on the first type, and half of that on the second."""

    types = ("fast", "slow")

    def alone(self, job_type: str, scale_factor: int) -> np.ndarray:
        return np.array([2.0, 1.0])

    def beside(self, job_type: str, partner: str, scale_factor: int) -> np.ndarray:
        return np.zeros(2)


def test_what_is_left_is_the_median_given_that_it_has_lasted() -> None:
    rng = np.random.default_rng(0)
    u = rng.random(400_000)
    total = 100.0 * (u / (1 - u)) ** (1 / 1.5)  # log-logistic with median 100 and steepness 1.5
    for done in (0.0, 50.0, 400.0):
        by_hand = np.median(total[total > done]) - done
        found = median_left(np.array([100.0]), np.array([1.5]), np.array([done]))[0]
        assert found == pytest.approx(by_hand, rel=0.02)


def test_an_estimate_counts_on_the_fastest_type_and_a_declaration_replaces_it() -> None:
    belief = Belief(TwoTypes())
    row = belief.learn(Job(job_id="a", total_steps=7.0))
    belief.estimate(row, Estimated("a", 50.0, 5.0, 500.0, 9))
    assert belief.remaining_at(0.0, np.array([row]))[0] == pytest.approx(100.0)
    belief.declare(row, 30.0)
    assert belief.remaining_at(0.0, np.array([row]))[0] == 30.0
    assert belief.estimates == {}


def test_an_estimate_is_sorted_behind_the_submission_of_its_job() -> None:
    job = Job(job_id="a", total_steps=1.0)
    events = Moment.of(0.0, [Estimated("a", 1.0, 0.5, 2.0), JobSubmitted(job)]).events
    assert [type(event) for event in events] == [JobSubmitted, Estimated]


@pytest.mark.parametrize("duration", ["history", "none"])
def test_estimates_are_recorded_and_replay_identically(tmp_path: Path, duration: str) -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": duration}}, record_to=tmp_path / "record.jsonl.gz")
    assert found.record is not None
    assert first_difference(found.record) is None
    assert found.summary["jobs_finished"] == 40
    assert any("Run times of jobs are" in note for note in found.notes)


def test_an_explanation_says_what_a_run_time_rests_on(tmp_path: Path) -> None:
    found = eunomia.simulate({**SMALL, "belief": {"duration": "history"}}, record_to=tmp_path / "record.jsonl.gz")
    assert found.record is not None
    text = explain(found.record, str(found.jobs["job_id"][-1])).estimate
    assert text is not None
    assert "measurements of like jobs, 80 % between" in text
    declared = eunomia.simulate(SMALL, record_to=tmp_path / "declared.jsonl.gz")
    assert declared.record is not None
    assert "estimate" not in explain(declared.record, str(declared.jobs["job_id"][-1])).as_dict()


def test_ignorance_changes_what_srtf_decides() -> None:
    declared, guessed = (eunomia.simulate({**SMALL, "belief": {"duration": each}}) for each in ("declared", "none"))
    assert declared.summary["jct_mean_s"] != guessed.summary["jct_mean_s"]


def sharing(**belief: Any) -> dict[str, Any]:
    policy = {"name": "max_min_fairness", "space_sharing": True}
    return {**SMALL, "policy": policy, "belief": {"kind": "estimated", **belief}}


@pytest.mark.parametrize("method", ["best", "match"])
def test_space_sharing_runs_on_estimated_throughputs(tmp_path: Path, method: str) -> None:
    scenario = sharing(method=method) | {"workload": {"generator": "poisson", "jobs": 12, "rate_per_hour": 30.0}}
    found = eunomia.simulate(scenario, record_to=tmp_path / "record.jsonl.gz")
    assert found.summary["jobs_finished"] == 12
    assert found.record is not None and first_difference(found.record) is None


def test_more_references_than_job_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"belief.references.*only \d+ job types run on every accelerator type"):
        eunomia.simulate(sharing(references=99))


def test_throughputs_without_pairs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no pair to estimate"):
        eunomia.simulate({**sharing(), "throughputs": {"source": "uniform"}})


def test_an_option_of_estimates_needs_them() -> None:
    with pytest.raises(InvalidInput, match='write kind = "estimated" beside it'):
        eunomia.simulate({**SMALL, "belief": {"profiled": 0.5}})
