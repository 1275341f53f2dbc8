"""A policy's parameter that names an accelerator type or an app which is not there is refused: it would do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia import solve
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.policies.grants.philly import Philly
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up

TYPES = {"v100": 4, "k80": 4}
AGNOSTIC = {"types": "agnostic", "reference_type": "v100"}
PROBLEM = {
    "types": ["v100", "k80"],
    "capacity": [1, 1],
    "scale_factor": [1, 1],
    "weight": [1, 1],
    "throughput": [[2, 1], [2, 1]],
    "steps_remaining": [10, 10],
    "elapsed_s": [0, 0],
}


def scenario(policy: str, cluster: dict[str, int] | None = None, **parameters: Any) -> dict[str, Any]:
    return {
        "cluster": {"accelerators": TYPES if cluster is None else cluster},
        "workload": {"generator": "philly-like", "jobs": 3, "multi_accelerator": False},
        "policy": {"name": policy, **parameters},
    }


def refused(policy: str, **parameters: Any) -> Problem:
    with pytest.raises(InvalidInput) as caught:
        set_up(scenario_from_dict(scenario(policy, **parameters), Path()))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("policy", ["makespan", "finish_time_fairness"])
def test_a_misspelt_reference_type_is_refused_with_the_nearest(policy: str) -> None:
    found = refused(policy, types="agnostic", reference_type="v10")
    assert (found.column, found.value, found.fix) == ("policy.reference_type", "v10", "did you mean 'v100'?")
    set_up(scenario_from_dict({**scenario(policy), "policy": {"name": f"{policy}", **AGNOSTIC}}, Path()))


def test_a_preset_runs_where_its_published_type_is_not_and_a_user_who_writes_it_is_refused() -> None:
    a100 = {"a100": 4}
    set_up(scenario_from_dict(scenario("gavel:finish_time_fairness", a100), Path()))
    said = {**scenario("", a100), "policy": {"name": "finish_time_fairness", **AGNOSTIC}}
    with pytest.raises(InvalidInput, match="there is no accelerator type of this name here"):
        set_up(scenario_from_dict(said, Path()))


def test_a_liar_that_is_no_app_is_refused_and_one_that_is_lies() -> None:
    """A job that names no app is an app of its own."""
    found = refused("themis", liar="app-99", lie=3.0)
    assert (found.column, found.value, found.rule) == ("policy.liar", "app-99", "there is no app of this name here")
    first = set_up(scenario_from_dict(scenario("themis"), Path())).jobs[0].job_id
    set_up(scenario_from_dict(scenario("themis", liar=first, lie=3.0), Path()))


def test_the_policy_inside_another_is_looked_at_too() -> None:
    found = refused("pop", inner="makespan?types=agnostic&reference_type=v10")
    assert (found.column, found.value) == ("policy.inner", "v10")
    set_up(scenario_from_dict(scenario("pop", inner="makespan?types=agnostic&reference_type=v100"), Path()))


def test_a_single_decision_refuses_them_likewise() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'v100'"):
        solve("makespan?types=agnostic&reference_type=v10", PROBLEM)
    assert solve("makespan?types=agnostic&reference_type=k80", PROBLEM).share.sum() == pytest.approx(2.0)


def test_a_pool_for_every_job_without_time_in_it_is_refused() -> None:
    with pytest.raises(ValueError, match="prerun=all needs prerun_s above 0, such as prerun_s=300"):
        Philly(prerun="all")
    assert Philly(prerun="all", prerun_s=300).prerun == "all"
