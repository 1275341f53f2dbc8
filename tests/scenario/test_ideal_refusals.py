"""What cannot be divided at will is refused under the mechanism `ideal`, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up


def complaints(**tables: Any) -> str:
    """Return what is said of a scenario under this mechanism; empty where it is set up."""
    said = {
        "cluster": {"accelerators": {"v100": 4}},
        "workload": {"generator": "philly-like", "jobs": 3, "multi_accelerator": False},
        "policy": {"name": "max_min_fairness"},
        "mechanism": {"name": "ideal"},
        **tables,
    }
    try:
        set_up(scenario_from_dict(said, Path()))
    except InvalidInput as error:
        return " ".join(f"{problem.column} {problem.rule} {problem.fix}" for problem in error.problems)
    return ""


@pytest.mark.parametrize(
    "tables", [{}, {"physics": {"pairs": "modelled"}}, {"belief": {"kind": "noisy", "error": 0.1}}]
)
def test_what_needs_no_seats_is_set_up(tables: dict[str, Any]) -> None:
    assert complaints(**tables) == ""


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"policy": {"name": "fifo"}}, "fifo answers an order"),
        ({"policy": {"name": "locality"}}, "locality answers grants of seats"),
        ({"overheads": {"restore_s": 1}}, "[overheads] says something"),
        ({"world": {"backend": "local"}}, "backend is not simulated"),
        ({"world": {"node_failures_per_hour": 1}}, "has failures"),
        ({"world": {"replay_status": True}}, "replay_status"),
        ({"physics": {"neighbours": "philly"}}, "[physics] says more than pairs"),
        ({"mechanism": {"name": "ideal", "length_s": 360}}, "mechanism.length_s"),
    ],
)
def test_what_needs_seats_is_named(tables: dict[str, Any], said: str) -> None:
    assert said in complaints(**tables)
