"""`eunomia tune`: spaces, the search on one half of the weeks, and the judgement on the other."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.history.tuning_space import read_space
from eunomia.inputs.problems import InvalidInput
from eunomia.scenario import Scenario, load_scenario

Write = Callable[..., Path]
RUN = CliRunner()


@pytest.fixture
def las(scenario: Write) -> Scenario:
    return load_scenario(scenario(), ["policy.name=las"])


def space_of(folder: Path, text: str) -> Path:
    path = folder / "space.toml"
    path.write_text(f"[parameters]\n{text}\n")
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('"policy.quantum" = [60, 600.5]', (60, 600.5)),
        ("policy.quantum = { low = 1, high = 4 }", (1, 2, 3, 4)),
        ("policy.quantum = { low = 1.0, high = 2.0, steps = 3 }", (1.0, 1.5, 2.0)),
        ('policy.quantum = { low = 1, high = 1000, steps = 4, scale = "log" }', (1, 10, 100, 1000)),
        ('policy.types = ["fastest", "agnostic"]', ("fastest", "agnostic")),
    ],
)
def test_values_are_listed_or_spread_over_a_range(tmp_path: Path, las: Scenario, text: str, values: object) -> None:
    (one,) = read_space(space_of(tmp_path, text), las).parameters
    assert one.values == values


@pytest.mark.parametrize(
    ("text", "row", "what"),
    [
        ("policy.quantun = [1, 2]", 2, "no such parameter; did you mean 'quantum'"),
        ("policy.quantum = [1, -2]", 2, "above 0"),
        ("policy.quantum = [1]", 2, "two values or more"),
        ("policy.quantum = [1, 1]", 2, "each once"),
        ("policy.quantum = 1", 2, "two values or more"),
        ("policy.quantum = { low = 3, high = 2 }", 2, "numbers that rise"),
        ('policy.quantum = { low = 0, high = 2, scale = "log" }', 2, "low is above 0"),
        ("policy.quantum = { low = 1, high = 2, steps = 1 }", 2, "steps is a whole number"),
        ("policy.quantum = { low = 1, high = 2, step = 1 }", 2, "steps and scale"),
        ("seed = [1, 2]", 2, "a tuned key belongs to policy, mechanism, belief"),
        ("\nmechanism.lengths = [1, 2]", 3, "mechanism.lengths"),
        ("", None, r"no table \[parameters\]"),
        ("policy.quantum = [1, 2]\n[other]\nx = 1", 3, r"\[parameters\] only"),
    ],
)
def test_an_invalid_space_is_refused_with_line_and_fix(
    tmp_path: Path, las: Scenario, text: str, row: int | None, what: str
) -> None:
    with pytest.raises(InvalidInput, match=what) as refused:
        read_space(space_of(tmp_path, text), las)
    assert refused.value.problems[0].row == row


def tuned(path: Path, space: Path, out: Path, *words: str) -> tuple[dict[str, object], str]:
    done = RUN.invoke(app, ["tune", str(path), "--space", str(space), "--out", str(out), "--jobs", "1", *words])
    assert done.exit_code == 0, done.output
    return json.loads((out / "tune.json").read_text()), done.stderr


@pytest.mark.slow
def test_the_better_values_are_found_on_early_weeks_and_judged_on_late_ones(tmp_path: Path, scenario: Write) -> None:
    """Gangs of 4 on 8 accelerators: endless leases are best for equal jobs, short rounds that swap them worst."""
    path = scenario()
    cheap = "[overheads]\ncheckpoint_s = 1\nrestore_s = 1\n"  # or a quantum of 600 is too short for a gang to restore
    path.write_text(path.read_text().replace("fifo", "las") + "quantum = 600.0\n" + cheap)
    space, out = space_of(tmp_path, "policy.quantum = [60.0, 600.0, 1e6]"), tmp_path / "out"
    found, _ = tuned(path, space, out, "--weeks", "4", "--budget", "3")
    measured = {one["policy.quantum"]: one["ratio"] for one in found["measurements"]}
    assert measured[600.0] == 1.0
    assert measured[1e6] < 0.9
    assert found["winner"] == {"policy.quantum": 1e6}
    days = [float(str(name).removeprefix("day ")) for part in ("searched", "judged") for name in found[f"weeks_{part}"]]
    assert days == sorted(days)
    assert len(found["weeks_searched"]) == len(found["weeks_judged"]) == 2
    assert found["jct_change_unseen"]["mean"] < -0.1
    rows = list(csv.DictReader((out / "tune.csv").read_text().splitlines()))
    assert [float(row["best"]) for row in rows] == sorted((float(row["best"]) for row in rows), reverse=True)
    assert load_scenario(out / "best.toml").policy.parameters["quantum"] == 1e6
    assert (out / "best-found.svg").read_text().startswith("<?xml")

    kept = {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("summary.json")}
    again, _ = tuned(path, space, out, "--weeks", "4", "--budget", "3")
    assert again == found
    assert {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("summary.json")} == kept


@pytest.mark.slow
def test_the_scenario_s_own_values_stay_where_none_is_better(tmp_path: Path, scenario: Write) -> None:
    path, out = scenario(), tmp_path / "out"
    space = space_of(tmp_path, 'policy.backfill = ["none", "skip"]')
    found, _ = tuned(path, space, out, "--weeks", "2", "--method", "random", "--budget", "2")
    assert found["winner"] == {}
    assert "None of 2 measured combinations is better" in str(found["sentence"])
    assert load_scenario(out / "best.toml").policy == load_scenario(path).policy


def test_an_interruption_keeps_what_was_measured(
    tmp_path: Path, scenario: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eunomia.solvers.bayesian import GridSearch

    path, out = scenario(), tmp_path / "out"
    space = space_of(tmp_path, 'policy.backfill = ["none", "skip", "easy"]')
    tell = GridSearch.tell

    def interrupted(self: GridSearch, point: int, y: float) -> None:
        if self._logs:
            raise KeyboardInterrupt
        tell(self, point, y)

    monkeypatch.setattr(GridSearch, "tell", interrupted)
    words = ["tune", str(path), "--space", str(space), "--out", str(out), "--weeks", "2", "--jobs", "1"]
    done = RUN.invoke(app, words)
    assert done.exit_code == 130
    assert "the same command continues" in done.stderr
    assert len(json.loads((out / "tune.json").read_text())["measurements"]) == 1


def test_an_unknown_method_is_refused_and_nothing_is_written(tmp_path: Path, scenario: Write) -> None:
    out, space = tmp_path / "out", space_of(tmp_path, 'policy.backfill = ["none", "skip"]')
    words = ["tune", str(scenario()), "--space", str(space), "--out", str(out), "--method", "gp-pi", "--json"]
    done = RUN.invoke(app, words)
    assert done.exit_code == 2
    assert "must be one of gp-ei" in json.loads(done.stdout)["error"]["problems"][0]["rule"]
    assert not out.exists()
