"""`solve --belief`: the throughputs of a problem from a table by job type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.allocation import solve
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput

TABLE = """type,job_type,scale_factor,steps_per_s,steps_per_s_p10,steps_per_s_p90,origin
v100,a,1,3,2.5,3.5,measured
k80,a,1,1,0.5,2,estimated
v100,b,1,1,0.9,1.1,measured
k80,b,1,3,2.9,3.1,measured
v100,b,2,2,1.9,2.1,measured
k80,b,2,5,4.9,5.1,measured
"""
PROBLEM = {"types": ["v100", "k80"], "capacity": [1, 1], "job_type": ["a", "b"]}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "learnt.csv"
    path.write_text(TABLE)
    return path


def test_a_table_takes_the_place_of_throughput_and_says_which_are_estimates(table: Path) -> None:
    for stated in ({}, {"throughput": [[1.0, 9.0], [9.0, 1.0]]}):
        found = solve("max_min_fairness", {**PROBLEM, **stated}, belief=table)
        assert found.problem.throughput.tolist() == [[3.0, 1.0], [1.0, 3.0]]
        assert found.problem.throughput_estimated is not None
        assert found.problem.throughput_estimated.tolist() == [[0.0, 1.0], [0.0, 0.0]]
        assert found.effective_throughput.tolist() == pytest.approx([3.0, 3.0])


def test_a_gang_gets_the_throughput_of_its_size(table: Path) -> None:
    fields = {**PROBLEM, "capacity": [2, 2], "scale_factor": [1, 2]}
    assert solve("fifo", fields, belief=table).problem.throughput.tolist() == [[3.0, 1.0], [2.0, 5.0]]


def test_the_command_takes_a_table(table: Path, tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    problem.write_text(json.dumps(PROBLEM))
    arguments = ["solve", "--policy", "max_min_fairness", "--problem", str(problem), "--belief", str(table), "--json"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["throughputs_estimated"] == 1


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"types": ["v100"], "capacity": [1], "throughput": [[1.0]]}, "job_type: is missing"),
        ({**PROBLEM, "job_type": ["a", "c"]}, "there are no throughputs for this job type"),
        ({**PROBLEM, "types": ["v100", "h100"]}, "h100"),
        ({**PROBLEM, "job_type": [1.5, None]}, "job_type"),
        ({**PROBLEM, "scale_factor": [1]}, "scale_factor"),
        ({**PROBLEM, "scale_factor": [1, 1.5]}, "scale_factor"),
        ({"bids": []}, "leave --belief out"),
        ({**PROBLEM, "pairs": []}, "pairs: these throughputs would stay"),
        ({**PROBLEM, "throughput_apart": [[1.0, 1.0], [1.0, 1.0]]}, "throughput_apart: these throughputs would stay"),
    ],
)
def test_what_a_table_cannot_fill_in_is_refused(fields: dict[str, object], rule: str, table: Path) -> None:
    with pytest.raises(InvalidInput, match=rule):
        solve("max_min_fairness", fields, belief=table)
