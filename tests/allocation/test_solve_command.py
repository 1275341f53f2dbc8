"""`eunomia solve`: the answer on stdout, what is wrong on stderr, 0 done, 2 misused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from eunomia.cli.app import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "problem.json"
Fields = dict[str, Any]
Ask = Callable[..., Result]


@pytest.fixture
def ask(tmp_path: Path, plain: Fields, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what types `eunomia solve …` about the plain problem, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("problem.json").write_text(json.dumps(plain))

    def typed(*words: str, policy: str = "fifo", problem: str = "problem.json") -> Result:
        return CliRunner().invoke(app, ["solve", "--policy", policy, "--problem", problem, *words])

    return typed


def refusal(result: Result) -> dict[str, Any]:
    """Return the only problem of what was refused with --json."""
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["error"]["problems"]
    return dict(problem)


def test_a_person_reads_who_gets_what(ask: Ask) -> None:
    result = ask()
    assert result.exit_code == 0
    assert result.stdout.startswith("fifo: decided in ")
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["job", "v100", "k80", "steps/s"], ["0", "1.000", "–", "3"], ["1", "–", "1.000", "3"],
    ]  # fmt: skip


def test_of_many_jobs_the_first_twenty_are_shown(ask: Ask) -> None:
    many = {"types": ["gpu"], "capacity": [5], "throughput": [[1.0]] * 30}
    Path("problem.json").write_text(json.dumps(many))
    lines = ask(policy="isolated").stdout.splitlines()
    assert len(lines) == 1 + 1 + 20 + 1
    assert lines[-1].startswith("… and 10 jobs more")


def test_a_program_reads_one_json_object(ask: Ask) -> None:
    answer = json.loads(ask("--json").stdout)
    assert list(answer) == [
        "status", "policy", "objective", "bound", "gap", "types", "job_ids", "x", "effective_throughput", "prices",
        "point", "late", "why", "seconds", "compile_seconds",
    ]  # fmt: skip
    assert answer["x"] == [[1.0, 0.0], [0.0, 1.0]]


def test_an_optimum_is_shown_with_its_proof(ask: Ask) -> None:
    lines = ask(policy="max_min_fairness").stdout.splitlines()
    assert lines[0].startswith("max_min_fairness: optimal")
    assert lines[1].startswith("objective 1.5, bound 1.5, relative gap ")
    assert lines[2].startswith("prices: ")


@pytest.mark.parametrize("name", ["answer.json", "answer.npz"])
def test_an_answer_is_written_whole_and_an_old_one_only_replaced_with_force(ask: Ask, name: str) -> None:
    assert ask("--out", name).stdout.splitlines()[-1] == f"answer: {name}"
    before = Path(name).read_bytes()
    assert refusal(ask("--out", name, "--json"))["column"] == "--out"
    assert Path(name).read_bytes() == before
    assert ask("--out", name, "--force", policy="isolated").exit_code == 0
    answer = json.loads(Path(name).read_text())["policy"] if name.endswith("json") else np.load(name)["policy"].item()
    assert answer == "isolated"
    assert sorted(path.name for path in Path().iterdir()) == [name, "problem.json"]


@pytest.mark.parametrize("out", ["answer.txt", "nowhere/answer.json", "."])
def test_a_place_where_no_answer_can_be_is_refused_before_the_policy_is_asked(ask: Ask, out: str) -> None:
    assert refusal(ask("--out", out, "--json", policy="fiffo"))["column"] == "--out"


def test_wrong_input_is_reported_on_stderr(ask: Ask) -> None:
    Path("problem.json").write_text('{"types": ["gpu"], "capacity": [1], "throughput": [[-1]], "wieght": [1]}')
    result = ask()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "problem.json: wieght: there is no such field; did you mean 'weight'?" in result.stderr
    assert "problem.json:1: throughput.gpu is '-1.0': must be a finite number, at least 0" in result.stderr


@pytest.mark.parametrize(
    ("policy", "fix"), [("fiffo", "fifo"), ("fifo?backfil=skip", "backfill"), ("srtf", "add steps_remaining")]
)
def test_a_policy_that_is_not_known_or_needs_more_is_refused(ask: Ask, policy: str, fix: str) -> None:
    assert fix in refusal(ask("--json", policy=policy))["fix"]


def test_the_example_can_be_solved(ask: Ask) -> None:
    result = ask("--json", policy="srtf", problem=str(EXAMPLE))
    assert result.exit_code == 0
    assert json.loads(result.stdout)["job_ids"] == ["resnet", "language", "recommend", "gan", "wide"]
