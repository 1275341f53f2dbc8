"""A sweep gives the same bytes with any number of workers, can be resumed, and does not stop for a failed run."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import select
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from eunomia.cli.app import app
from eunomia.runs.compare import PRICES

if TYPE_CHECKING:
    from conftest import Desk

POLICIES = """\
import os, signal
from pathlib import Path
from eunomia.policies.order.fifo import Fifo

HERE = Path(__file__).parent

class Raising(Fifo):
    def decide(self, view):
        print("a policy may print what it likes")
        if (HERE / "broken").exists():
            raise RuntimeError("no mood today")
        return super().decide(view)

class Dying(Fifo):
    def decide(self, view):
        if (HERE / "broken").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().decide(view)

class Stopping(Fifo):
    def decide(self, view):
        if (HERE / "stop").exists():
            number = getattr(signal, (HERE / "stop").read_text())
            (HERE / "stop").unlink()
            (HERE / "worker").write_text(str(os.getpid()))
            os.kill(os.getppid(), number)
            signal.pause()
        return super().decide(view)
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, files: Mapping[str, str]) -> Path:
    """A folder with the sweep of conftest, done by one worker. To be copied, not changed."""
    folder = tmp_path_factory.mktemp("finished")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out"), "--jobs", "1"])
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def done(desk: Desk, finished: Path) -> Desk:
    """The desk, with the sweep done."""
    shutil.copytree(finished / "out", desk.folder / "out")
    return desk


def stamps(desk: Desk) -> dict[str, int]:
    """Return when each finished run was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in desk.folder.glob("out/runs/*/summary.json")}


def ends(process: int) -> bool:
    """Return whether a process ends by itself; where the system cannot tell, it is taken to."""
    if not hasattr(os, "pidfd_open"):
        return True
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30.0)[0])
    finally:
        os.close(watched)


def test_the_table_has_the_same_bytes_whatever_the_workers_the_hash_seed_and_the_locale(done: Desk) -> None:
    environment = {"PYTHONHASHSEED": "7", "LC_ALL": "de_DE.ISO-8859-1", "TZ": "Asia/Tokyo", "PYTHONIOENCODING": "ascii"}
    ran = done.shell("sweep", "sweep.toml", "--out", "again", "--jobs", "3", **environment)
    assert ran.returncode == 0, ran.stderr
    for name in ("sweep.parquet", "report.html"):
        assert (done.folder / "again" / name).read_bytes() == (done.folder / "out" / name).read_bytes(), name
    assert "8 of 8 runs" in ran.stderr


def test_a_row_has_what_a_comparison_has_and_the_hash(done: Desk) -> None:
    rows = done.table()
    assert [(row["policy"], row["load"], row["seed"]) for row in rows] == [
        (policy, load, seed) for policy in ("fifo", "srtf") for load in (1.0, 2.0) for seed in (0, 1)
    ]
    assert done.type("compare", "tiny.toml", "--policy", "fifo", "--policy", "srtf", "--out", "both", "--json") == 0
    fifo, srtf = json.loads(done.stdout)
    for row, alone in ((rows[0], fifo), (rows[4], srtf)):
        assert {name: row[name] for name in alone} == alone
    head, *lines = csv.reader((done.folder / "both" / "compare.csv").read_text().splitlines())
    assert list(rows[0]) == [*head, "scenario_hash"]
    for row, line in zip((rows[0], rows[4]), lines, strict=True):
        assert [row[name] for name in PRICES] == [float(line[head.index(name)]) for name in PRICES]


def test_what_fairness_costs_is_counted_among_the_policies_of_one_setting(desk: Desk) -> None:
    """The size of the cluster sets runs apart as load and seed do."""
    axes = 'policy = ["fifo", "srtf"]\n"cluster.accelerators.gpu" = [2, 4]\nload = [1.0, 2.0]\n'
    desk.write("sweep.toml", f'scenario = "tiny.toml"\n[axes]\n{axes}')
    desk.sweep()
    rows = desk.table()
    assert len(rows) == 8
    for row in rows:
        pair = [one for one in rows if all(one[key] == row[key] for key in ("load", "cluster.accelerators.gpu"))]
        assert row["price_of_fairness"] == row["jct_mean_s"] / min(one["jct_mean_s"] for one in pair)
        assert min(one["price_of_fairness_service"] for one in pair) == 1.0


def test_seeds_that_draw_nothing_are_one_run_without_an_interval(desk: Desk) -> None:
    """The jobs of the trace have types and all speeds are 1: two seeds of fifo and srtf are one run each."""
    verdict = " ".join(desk.sweep()["verdict"])
    assert "Nothing is random: the 2 seeds gave identical runs, and count as one." in verdict
    assert "average completion time: on these jobs at load 1" in verdict
    assert " to −" not in verdict
    assert "better" not in verdict


def test_a_policy_that_draws_is_judged_by_all_its_seeds_beside_one_that_does_not(desk: Desk) -> None:
    desk.write("sweep.toml", 'scenario = "tiny.toml"\n[axes]\npolicy = ["fifo", "lottery"]\nseed = [0, 1, 2]\n')
    verdict = " ".join(desk.sweep()["verdict"])
    assert "Nothing is random under fifo: the 3 seeds" in verdict
    assert "Averages over 1 to 3 seeds, differences paired by seed" in verdict
    assert "one run" not in verdict


def test_the_folder_of_a_run_holds_the_scenario_that_makes_it_again(done: Desk) -> None:
    row = done.table()[-1]
    folder = done.folder / "out" / "runs" / row["scenario_hash"]
    names = ["notes.json", "scenario.toml", "service.json", "summary.json", "tenants.csv", "timing.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    words = ("simulate", str(folder / "scenario.toml"), "--out", str(done.folder / "again"))
    assert done.type(*words) == 0, done.stderr  # its paths are whole, as its folder is another one
    assert (done.folder / "again" / "summary.json").read_bytes() == (folder / "summary.json").read_bytes()


@pytest.mark.parametrize(("which", "code"), [("SIGKILL", -9), pytest.param("SIGINT", 130, marks=pytest.mark.slow)])
def test_a_stopped_sweep_resumes_and_repeats_nothing(desk: Desk, which: str, code: int) -> None:
    desk.write("policies.py", POLICIES)
    desk.write(
        "sweep.toml",
        'scenario = "tiny.toml"\n[axes]\npolicy = ["fifo", "policies.py:Stopping"]\nseed = [0, 1]\n',
    )
    desk.write("stop", which)
    stopped = desk.shell("sweep", "sweep.toml", "--out", "out", "--jobs", "1")
    assert stopped.returncode == code, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert ends(int((desk.folder / "worker").read_text()))
    before = stamps(desk)
    assert len(before) == 2
    assert not (desk.folder / "out" / "sweep.parquet").exists()
    went_on = desk.sweep("--jobs", "2")
    assert (went_on["done_before"], len(went_on["runs"])) == (2, 4)
    assert stamps(desk).items() >= before.items()
    assert not list(desk.folder.glob("out/runs/.*"))
    desk.sweep("--jobs", "1", out="whole")
    assert (desk.folder / "out/sweep.parquet").read_bytes() == (desk.folder / "whole/sweep.parquet").read_bytes()


def test_only_what_has_changed_is_run_again(done: Desk) -> None:
    before = stamps(done)
    done.write("sweep.toml", (done.folder / "sweep.toml").read_text().replace("2.0]", "3.0]"))
    assert done.sweep("--jobs", "1")["done_before"] == 4
    assert stamps(done).items() >= before.items()
    assert [row["load"] for row in done.table()] == [1.0, 1.0, 3.0, 3.0] * 2
    done.write("jobs.csv", (done.folder / "jobs.csv").read_text().replace("j11,143", "j11,144"))
    assert done.sweep("--dry-run")["waiting"] == 8


def test_a_failed_run_stops_no_other_is_reported_and_is_retried(desk: Desk) -> None:
    desk.write("policies.py", POLICIES)
    desk.write(
        "sweep.toml",
        'scenario = "tiny.toml"\n[axes]\npolicy = ["policies.py:Raising", "policies.py:Dying", "fifo"]\n',
    )
    desk.write("broken", "")
    failed: list[dict[str, Any]] = desk.sweep("--jobs", "1")["failed"]
    assert desk.code == 1
    assert [run["policy"] for run in failed] == ["policies.py:Raising", "policies.py:Dying"]
    assert "RuntimeError: no mood today" in failed[0]["error"]
    assert "killed by signal 9" in failed[1]["error"]
    assert [row["policy"] for row in desk.table()] == ["fifo"]
    kept = [json.loads(path.read_text()) for path in desk.folder.glob("out/errors/*.json")]
    assert sorted(kept, key=str) == sorted(failed, key=str)
    assert "no mood today" in (desk.folder / "out" / "report.html").read_text(encoding="utf-8")
    (desk.folder / "broken").unlink()
    again = desk.sweep("--jobs", "1")
    assert (desk.code, again["failed"], again["done_before"]) == (0, [], 1)
    assert not list(desk.folder.glob("out/errors/*.json"))
    assert len(desk.table()) == 3


def test_jobs_are_kept_on_request(done: Desk) -> None:
    done.write("sweep.toml", 'keep_jobs = true\nscenario = "tiny.toml"\n')
    found = done.sweep("--jobs", "1")
    assert (found["done_before"], len(found["runs"])) == (0, 1)
    assert (done.folder / "out" / "runs" / found["runs"][0]["scenario_hash"] / "jobs.csv").is_file()


def test_a_dry_run_lists_what_is_to_do_estimates_the_time_and_writes_nothing(done: Desk) -> None:
    before = sorted(done.folder.rglob("*"))
    found = done.sweep("--dry-run", "--jobs", "4", out="new")
    assert (len(found["runs"]), found["waiting"], found["workers"]) == (8, 8, 4)
    assert found["estimate_s"] > 0
    assert "pilot" in found["basis"]
    done.write("sweep.toml", (done.folder / "sweep.toml").read_text().replace("2.0]", "3.0]"))
    found = done.sweep("--dry-run")
    assert [run["done"] for run in found["runs"]] == [True, True, False, False] * 2
    assert "made before" in found["basis"]
    assert sorted(done.folder.rglob("*")) == before


@pytest.mark.parametrize("out", ["jobs.csv", "."])
def test_a_folder_that_holds_something_else_is_refused_and_left_alone(desk: Desk, out: str) -> None:
    before = sorted(desk.folder.rglob("*"))
    assert desk.type("sweep", "sweep.toml", "--out", out, "--json") == 2
    assert json.loads(desk.stdout)["error"]["problems"][0]["column"] == "--out"
    assert sorted(desk.folder.rglob("*")) == before


def test_two_sweeps_do_not_share_a_folder_at_the_same_time(done: Desk) -> None:
    held = os.open(done.folder / "out" / "runs", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert done.type("sweep", "sweep.toml", "--out", "out", "--json") == 2
    finally:
        os.close(held)
    assert "another sweep" in json.loads(done.stdout)["error"]["problems"][0]["rule"]
    assert done.sweep()["done_before"] == 8


def test_a_sweep_whose_runs_all_failed_still_reports_it(desk: Desk) -> None:
    desk.write("policies.py", POLICIES)
    desk.write("broken", "")
    desk.write("sweep.toml", 'scenario = "tiny.toml"\n[axes]\npolicy = ["policies.py:Raising"]\n')
    found = desk.sweep("--jobs", "1")
    assert (desk.code, found["runs"], len(found["failed"])) == (1, [], 1)
    assert desk.table() == []
    assert found["verdict"][0].startswith("1 run failed")
