"""`eunomia tune job`: a walk with real processes, a search in a table, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.desk import CommandDesk

from eunomia.job_tuning.local_steps import LocalSteps

SCRIPT = """\
import sys, time
from eunomia.lease import Lease
workers, servers = map(int, sys.argv[1:])
if servers > workers:
    sys.exit("more servers than workers [bold]")
with Lease() as lease:
    for step in lease.steps():
        time.sleep(0.04 / workers)
        lease.progress(step + 1)
"""
COMMAND = ("--", "python", "train.py", "{workers}", "{servers}")
FAST = ("tune", "job", "--steps", "6", "--warm-up", "1", "--out", "tuned")
REFUSED = (*FAST, "--json")  # what the desk adds behind the command is a word of that
TABLE = "workers,servers,type,steps_per_s\n" + "".join(
    f"{w},0,{kind},{speed * w / (1 + 0.1 * w * w):.4f}\n"
    for kind, speed in (("a", 2.0), ("b", 3.0)) for w in (1, 2, 3, 4, 6, 8)
)  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandDesk:
    monkeypatch.chdir(tmp_path)
    found = CommandDesk(tmp_path)
    found.write("train.py", SCRIPT)
    found.write("steps.csv", TABLE)
    return found


def result(folder: Path) -> dict[str, list[dict[str, object]]]:
    return json.loads((folder / "tuned" / "tune-job.json").read_text())


def test_real_processes_are_measured_failing_shapes_noted_and_a_second_command_starts_none(desk: CommandDesk) -> None:
    words = (*FAST, "--workers", "1,3", "--servers", "0,2", *COMMAND)
    assert desk.type(*words) == 0, desk.stderr
    rows = {(row["workers"], row["servers"]): row for row in result(desk.folder)["measurements"]}
    assert set(rows) == {(1, 0), (3, 0), (1, 2), (3, 2)}
    assert rows[1, 2]["steps_per_s"] == 0
    assert rows[1, 2]["reason"] == "exit code 1: more servers than workers [bold]"
    assert 5 < rows[1, 0]["steps_per_s"] < 25 < rows[3, 0]["steps_per_s"] < 75
    assert "best: 3 workers" in desk.stdout
    assert "[bold]" in desk.stdout
    assert "the search ended: every shape is measured" in desk.stdout
    logs = {path: path.stat().st_mtime_ns for path in (desk.folder / "tuned" / "work").rglob("log")}
    said = desk.stdout
    assert desk.type(*words) == 0
    assert desk.stdout == said
    assert logs == {path: path.stat().st_mtime_ns for path in (desk.folder / "tuned" / "work").rglob("log")}


def test_a_job_that_runs_nowhere_ends_with_1_and_one_that_reports_nothing_says_how_to_report(desk: CommandDesk) -> None:
    desk.write("quiet.py", "print('trained')")
    assert desk.type(*FAST, "--workers", "1-2", "--", "python", "quiet.py") == 1
    assert "the job ran in none of 2 shapes" in desk.stderr
    [reason] = {str(row["reason"]) for row in result(desk.folder)["measurements"]}
    assert reason == "it ended by itself; it reported no steps: call progress or save of eunomia.lease"


def test_a_measurement_that_takes_too_long_is_stopped(desk: CommandDesk) -> None:
    desk.write("hangs.py", "import time; time.sleep(60)")
    assert desk.type(*FAST, "--limit", "1", "--workers", "1", "--", "python", "hangs.py", "{workers}") == 1
    assert "it was stopped after 1 s; it reported no steps" in str(result(desk.folder)["measurements"][0]["reason"])


def test_an_interruption_keeps_what_was_measured(desk: CommandDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = LocalSteps.measure

    def interrupted(self: LocalSteps, shape: object) -> object:
        if (desk.folder / "tuned" / "measurements.csv").exists():
            raise KeyboardInterrupt
        return measure(self, shape)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalSteps, "measure", interrupted)
    words = (*FAST, "--workers", "1-2", *COMMAND[:-1], "0")
    assert desk.type(*words) == 130
    assert "the same command continues from there" in desk.stderr
    assert len((desk.folder / "tuned" / "measurements.csv").read_text().splitlines()) == 2
    monkeypatch.undo()
    monkeypatch.chdir(desk.folder)
    assert desk.type(*words) == 0
    assert len(result(desk.folder)["measurements"]) == 2


def test_a_table_is_searched_without_running_anything(desk: CommandDesk) -> None:
    assert desk.type("tune", "job", "--table", "steps.csv", "--json") == 0
    found = json.loads(desk.stdout)
    assert (found["best"]["workers"], found["best"]["type"]) == (3, "b")
    assert found["best"]["steps_per_s"] == pytest.approx(9 / 1.9, abs=1e-4)
    assert len(found["measurements"]) < 12
    assert desk.type("tune", "job", "--table", "steps.csv", "--workers", "1-2", "--type", "a", "--json") == 0
    assert json.loads(desk.stdout)["best"]["workers"] == 2
    assert sorted(path.name for path in desk.folder.iterdir()) == ["steps.csv", "train.py"]


def test_a_table_is_searched_for_price_and_its_result_kept(desk: CommandDesk) -> None:
    words = ("--objective", "price", "--price", "a=1,b=3", "--out", "tuned")
    assert desk.type("tune", "job", "--table", "steps.csv", *words) == 0, desk.stderr
    assert result(desk.folder)["unit"] == "steps/US$"
    assert "best: 1 worker, a: 6546 steps/US$" in desk.stdout


def test_a_dry_run_lists_commands_and_starts_and_writes_nothing(desk: CommandDesk) -> None:
    before = desk.listing()
    assert desk.type(*FAST, "--workers", "1-4", "--servers", "0-2", "--dry-run", *COMMAND) == 0
    assert "12 shapes, of which at most 15 are measured for speed" in desk.stdout
    assert "  2 workers, 1 server, cpu:  python train.py 2 1\n" in desk.stdout
    assert "nothing was started" in desk.stdout
    assert desk.type(*FAST, "--workers", "1-4", "--servers", "0-2", "--dry-run", "--json", *COMMAND) == 0
    assert json.loads(desk.stdout)["first"][0]["command"] == ["python", "train.py", "2", "1"]
    assert desk.listing() == before


def test_everything_wrong_with_the_options_is_said_at_once(desk: CommandDesk) -> None:
    found = desk.refused(
        "tune", "job", "--method", "gp-pi", "--objective", "cost", "--price", "cpu=0", "--steps", "1e300"
    )
    assert [problem["column"] for problem in found["problems"]] == [
        "--method", "--objective", "COMMAND", "--workers", "--steps", "--out", "--price"
    ]  # fmt: skip


def test_a_bad_table_is_refused_with_its_lines_beside_other_problems(desk: CommandDesk) -> None:
    desk.write("bad.csv", "workers,servers,type,steps_per_s\n0,0,a,1\n1,0,a,fast\n")
    assert desk.places("tune", "job", "--table", "bad.csv", "--workers", "x") == [
        ("bad.csv", 2, "workers"), ("bad.csv", 3, "steps_per_s"), ("command line", None, "--workers")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "column"),
    [
        (("--workers", "1-2", "--", "no-such-program"), "COMMAND"),
        (("--workers", "1-2", "--servers", "0-2", "--", "python", "train.py"), "COMMAND"),
        (("--workers", "1-2", "--type", "v100", "--", "python", "train.py"), None),
        (("--table", "steps.csv", "--", "python", "train.py"), "--table"),
        (("--table", "steps.csv", "--workers", "5"), None),
        (("--table", "steps.csv", "--price", "a=1"), "--price"),
        (("--workers", "1", "--url", "http://127.0.0.1:1", "--", "python", "train.py"), "--url"),
    ],
)
def test_what_cannot_be_measured_is_refused_and_nothing_is_written(
    desk: CommandDesk, words: tuple[str, ...], column: str | None
) -> None:
    assert desk.places(*REFUSED, "--dry-run", *words)[0][2] == column


def test_measurements_of_another_command_and_foreign_folders_are_not_touched(desk: CommandDesk) -> None:
    assert desk.type(*FAST, "--workers", "1", *COMMAND[:-1], "0") == 0
    for command in (("--", "python", "other.py"), ("--", sys.executable, "train.py")):
        [problem] = desk.refused(*REFUSED, "--workers", "1", *command)["problems"]
        assert problem["rule"] == "the folder holds measurements of python train.py {workers} 0"
    (desk.folder / "mine").mkdir()
    desk.write("mine/notes", "mine")
    assert desk.places("tune", "job", "--table", "steps.csv", "--out", "mine") == [("mine", None, "--out")]
    edited = (desk.folder / "tuned" / "measurements.csv").read_text().replace("1,1,0,cpu", "1,1,0,")
    desk.write("tuned/measurements.csv", edited)
    assert desk.type(*FAST, "--workers", "1", *COMMAND[:-1], "0") == 2
    assert "measurements.csv:2: type" in desk.stderr


def test_a_scenario_is_tuned_with_or_without_the_word(desk: CommandDesk) -> None:
    for words in (("tune",), ("tune", "scenario")):
        assert desk.places(*words, "none.toml", "--space", "s.toml", "--out", "o")[0][0] == "none.toml"
        assert desk.places(*words, "--space", "s.toml", "--out", "o", "none.toml")[0][0] == "none.toml"
