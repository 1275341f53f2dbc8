"""What Gavel's clock has no page for is refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import load_scenario, scenario_from_dict
from eunomia.setup.run_config import set_up


def complaints(cluster: dict[str, int], mechanism: dict[str, Any] | None = None, **tables: Any) -> str:
    """Return what is said of a scenario under this clock; empty where it is set up."""
    said = {
        "cluster": {"accelerators": cluster},
        "workload": {"generator": "philly-like", "jobs": 3, "multi_accelerator": False},
        "policy": {"name": "max_min_fairness"},
        "mechanism": {"name": "gavel", **(mechanism or {})},
        **tables,
    }
    try:
        set_up(scenario_from_dict(said, Path()))
    except InvalidInput as error:
        return " ".join(f"{problem.column} {problem.value} {problem.rule} {problem.fix}" for problem in error.problems)
    return ""


def test_a_plain_scenario_is_set_up() -> None:
    assert complaints({"v100": 4, "k80": 4}) == ""


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"overheads": {"restore_by_size": {"1": 60}}}, "[overheads] says something"),
        ({"world": {"replay_status": True}}, "replay_status"),
        ({"mechanism": {"visit": ["v101"]}}, "v100"),
        ({"mechanism": {"visit": "v100"}}, "list"),
        ({"mechanism": {"visit": ["v100", "v100"]}}, "names a type twice"),
    ],
)
def test_what_it_cannot_book_is_named(tables: dict[str, Any], said: str) -> None:
    mechanism = tables.pop("mechanism", None)
    assert said in complaints({"v100": 4}, mechanism, **tables)


def test_every_wrong_value_is_reported_with_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(
        """[cluster]\naccelerators = { v100 = 4 }\n[workload]\ngenerator = "philly-like"\njobs = 3
multi_accelerator = false\n[policy]\nname = "max_min_fairness"\n[mechanism]\nname = "gavel"
round_s = -1\nfill = "yes"\ncredit_s = "half"\nsticky = false\nvisit = "v100"\nmost_failures = -2\n"""
    )
    with pytest.raises(InvalidInput) as refused:
        set_up(load_scenario(file))
    found = {problem.row: (problem.column, problem.value, problem.rule) for problem in refused.value.problems}
    assert found == {
        11: ("mechanism.round_s", "-1", "it is above 0 and finite: seconds of the longest round"),
        12: ("mechanism.fill", "yes", "it is true or false"),
        13: ("mechanism.credit_s", "half", "it is a number"),
        15: ("mechanism.visit", "v100", "must be a list of accelerator types"),
        16: ("mechanism.most_failures", "-2", "it is at least 0"),
    }


def test_a_cluster_of_types_that_it_never_visits_is_refused() -> None:
    assert "visit = []" in complaints({"a100": 4})
    assert complaints({"a100": 4}, {"visit": []}) == ""


def test_types_that_are_never_visited_are_reported() -> None:
    def reported(cluster: dict[str, int], **more: Any) -> list[str]:
        workload = {"generator": "gavel", "jobs": 3, "rate_per_hour": 5}
        policy = {"name": "gavel:max_min_fairness_perf"}
        said = {"cluster": {"accelerators": cluster}, "workload": workload, "policy": policy}
        notes = set_up(scenario_from_dict({**said, "mechanism": {"name": "gavel", **more}}, Path())).notes
        return [note for note in notes if "mechanism.visit" in note]

    assert reported({"v100": 4, "k80": 4}) == []
    assert reported({"v100": 4, "k80": 4}, visit=[]) == []
    assert reported({"v100": 4, "k80": 4}, visit=["k80"]) == ["mechanism.visit names no v100: no job ever runs there."]
