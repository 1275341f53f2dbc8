"""A supervisor that is frozen, at whatever step, keeps no seat for ever and loses no gang; real processes."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends.gangs_here import GangsHere, is_supervisor
from tests.backends.test_gang_faults import STRAY, main_process, quarantined, supervisor_of, until
from tests.unkillable import freezer

from eunomia.backends.orders import Halt, Launch
from eunomia.backends.processes import gangs
from eunomia.backends.processes.gang_group import SUBREAPER, control, is_running, start_time, stat_of
from eunomia.backends.processes.group_base import GroupBase
from eunomia.backends.reports import GangEnded, LaunchDelayed, Launched, SeatsTaken

SLEEPS = ("-c", "import time; time.sleep(600)")
# The supervisor of job a stops itself before this step, again whenever it is continued.
FROZEN = """
import os, signal, sys
sys.path.append({source!r})
from eunomia.backends.processes import supervision
step = supervision.Supervisor.{step}
def frozen(self, *values, **named):
    while self.spec["job"] == "a" and ({when}):
        os.kill(os.getpid(), signal.SIGSTOP)
    return step(self, *values, **named)
supervision.Supervisor.{step} = frozen
supervision.main()
"""
STEPS = {
    "before the record": ("may_launch", "True"),
    "with the record and without the locks": ("read_lease", "not self.locks or not self.pids"),
    "with the locks": ("sign_locks", "True"),
    "with the gang and before it says so": ("write_record", "named.get('launched')"),
    "while it runs": ("check_memory", "True"),
    "while the gang saves": ("wait", "self.kill_at < float('inf')"),
    "while it kills": ("kill_remaining", "True"),
    "before it writes how the gang ended": ("write_ends", "True"),
}


@pytest.fixture(params=["control groups", "none"])
def either(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[GangsHere]:
    """A world with control groups, if this machine has them, and one without."""
    monkeypatch.setattr(gangs, "WATCH_S", 1.0)
    if request.param == "none":
        monkeypatch.setattr(GroupBase, "find", GroupBase)
    elif not GroupBase.find().path:
        pytest.skip("needs a cgroup v2 that can be written")
    found = GangsHere(tmp_path)
    yield found
    found.end()
    control(SUBREAPER, 0)


def freeze_at(step: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the supervisor of job a freeze before a step."""
    name, when = STEPS[step]
    script = folder / "supervisor.py"
    source = str(Path(gangs.__file__).parents[3])
    script.write_text(FROZEN.format(source=source, step=name, when=when))
    monkeypatch.setattr(gangs, "SUPERVISOR", script)


def frozen(world: GangsHere, job: str) -> int:
    """Wait until the supervisor of a job is frozen, and return it."""

    def found() -> list[int]:
        return [pid for pid in world.processes(job) if is_supervisor(pid) and stat_of(pid)[:1] == ["T"]]

    until(found)
    return found()[0]


@pytest.mark.parametrize("step", STEPS)
def test_a_supervisor_that_is_frozen_at_any_step_is_killed_with_its_gang_and_the_next_gang_gets_the_seat(
    either: GangsHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    freeze_at(step, tmp_path, monkeypatch)
    command = ("-c", "pass") if "kills" in step or "ended" in step else SLEEPS
    either.launch("a", *command, checkpoint={"grace_s": 0.1})
    if "saves" not in step:
        frozen(either, "a")
    else:
        either.wait(Launched, "a")
    either.halt("a")
    either.launch("b", "-c", "print('now')")
    ends = [either.next(GangEnded) for _ in range(2)]
    assert {(end.job_id, end.outcome) for end in ends} == {("a", "lost"), ("b", "finished")}
    assert either.processes("a") == []


def test_a_supervisor_that_stops_itself_again_and_again_before_its_gang_runs_is_killed_though_nothing_stops_the_job(
    either: GangsHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze_at("with the gang and before it says so", tmp_path, monkeypatch)
    either.launch("a", *SLEEPS)
    assert either.wait(GangEnded, "a").outcome == "lost"
    assert either.processes("a") == []


def test_a_supervisor_that_was_stopped_once_before_its_gang_runs_is_continued_and_its_gang_goes_on(
    either: GangsHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STEPS, "once", ("sign_locks", "not vars(self).get('was') and not setattr(self, 'was', 1)"))
    freeze_at("once", tmp_path, monkeypatch)
    either.launch("a", "-c", "import time; time.sleep(3); print('whole')")  # longer than a frozen one may be late
    assert either.wait(GangEnded, "a").outcome == "finished"
    assert "whole" in either.log("a")


def test_a_waiting_gang_says_which_process_of_which_job_has_its_accelerator_and_since_when(either: GangsHere) -> None:
    ignores = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    either.launch("a", "-c", ignores, checkpoint={"grace_s": 600})
    until(lambda: (either.folder / "jobs" / "a" / "log").exists() and "ready" in either.log("a"))
    holder = supervisor_of(either, "a")
    either.halt("a")
    either.launch("b", "-c", "pass")
    said = either.wait(LaunchDelayed, "b").reason
    assert re.fullmatch(
        rf"locked since \d{{4}}-\d\d-\d\dT[\d:]+Z: accelerator 0 by process {holder} of job a, "
        "which is being stopped; it begins once that has ended", said
    )  # fmt: skip
    os.kill(holder, signal.SIGKILL)
    assert {one.job_id: one.outcome for one in (either.next(GangEnded), either.next(GangEnded))} == {
        "a": "lost",
        "b": "finished",
    }


def test_a_seat_that_an_unknown_process_has_locked_is_given_to_no_gang_until_it_lets_go(either: GangsHere) -> None:
    path = either.folder / "jobs" / "seats" / "2.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        either.launch("b", "-c", "pass", seats=(2,))
        taken = either.seats_taken() or either.seats_taken()
        assert taken.keys() == {2}
        assert taken[2].startswith(f"process {os.getpid()}, which has locked it since 2")
        ended = either.wait(GangEnded, "b")
        assert (ended.outcome, ended.reason) == ("stopped", f"its accelerator is used by {taken[2]}")
    while either.seats_taken():
        pass
    either.launch("b", "-c", "pass", seats=(2,), epoch=2)
    assert either.wait(GangEnded, "b").outcome == "finished"


def dead() -> tuple[int, str]:
    """Return a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        found = process.pid, start_time(process.pid) or "1"
    return found


FILES: dict[str, Any] = {
    "an end": lambda: {"exit-1.json": {"code": 0, "cause": "exited", "epoch": 1}},
    "the end of another start": lambda: {"exit.json": {"code": 0, "cause": "exited", "epoch": 7}},
    "no record": lambda: {"supervisor-1.json": None},
    "nothing that a record has": lambda: {"supervisor-1.json": {"x": 1}},
    "a process that has ended": lambda: {
        "supervisor-1.json": dict(zip(("pid", "start"), dead(), strict=True)) | {"launched": True, "seats": [0]}
    },
    "the process of another": lambda: {
        "supervisor-1.json": {"pid": os.getpid(), "start": start_time(os.getpid()), "launched": True, "seats": [3]}
    },
    "everything gone": lambda: dict.fromkeys(("supervisor-1.json", "lease-1.json", "job.lock", "log", "exit-1.json")),
}  # fmt: skip


@pytest.mark.parametrize("files", FILES)
def test_after_a_restart_a_gang_has_ended_only_when_nothing_of_it_is_left_whatever_its_job_wrote(
    either: GangsHere, tmp_path: Path, files: str
) -> None:
    either.launch("a", *SLEEPS)
    either.wait(Launched, "a")
    main_process(either, "a")
    os.kill(supervisor_of(either, "a"), signal.SIGSTOP)
    either.gangs.close()
    folder = tmp_path / "jobs" / "a"
    for name, value in FILES[files]().items():
        (folder / name).unlink(missing_ok=True)
        if value is not None:
            (folder / name).write_text(json.dumps(value))
    orders = [Launch(1, "a", 1, (), {"command": ["python"]}, adopt_only=True), Halt(2, "a", 1)]
    after = GangsHere(tmp_path, orders=orders)
    after.wait(GangEnded, "a")
    assert after.processes("a") == []
    after.launch("b", "-c", "pass")
    assert after.wait(GangEnded, "b").outcome == "finished"
    after.end()


def test_an_end_that_a_job_wrote_before_it_killed_its_supervisor_is_believed_once_nothing_of_it_is_left(
    either: GangsHere, tmp_path: Path
) -> None:
    either.launch("a", "-c", STRAY, tmp_path / "pid")
    either.wait(Launched, "a")
    until((tmp_path / "pid").exists)
    stray = int((tmp_path / "pid").read_text())
    started = start_time(stray)
    (tmp_path / "jobs" / "a" / "exit-1.json").write_text('{"code": 0, "cause": "exited", "epoch": 1}')
    os.kill(supervisor_of(either, "a"), signal.SIGKILL)
    either.wait(GangEnded, "a")
    assert not is_running(stray, started)


def test_what_cannot_be_killed_keeps_its_seats_after_a_restart_though_order_and_files_name_none(
    tmp_path: Path,
) -> None:
    world = GangsHere(tmp_path)
    world.launch("a", *SLEEPS, seats=(1, 2), checkpoint={"grace_s": 0.1})
    world.wait(Launched, "a")
    pid = main_process(world, "a")
    with freezer() as cold:
        cold.freeze(pid)
        world.gangs.close()
        os.kill(supervisor_of(world, "a"), signal.SIGKILL)
        (tmp_path / "jobs" / "a" / "supervisor-1.json").unlink()
        order = Launch(1, "a", 1, (), {"command": ["python"]}, adopt_only=True)
        after = GangsHere(tmp_path, orders=[order])
        assert quarantined(after) == {1: "a", 2: "a"}
        cold.thaw()
        after.wait(GangEnded, "a")
    after.end()


def test_gangs_that_are_found_again_after_a_restart_make_no_seat_taken(either: GangsHere, tmp_path: Path) -> None:
    either.launch("a", *SLEEPS, seats=(0, 1))
    either.launch("b", *SLEEPS, seats=(2,))
    for _ in "ab":
        either.next(Launched)
    either.gangs.close()
    orders = [
        Launch(1, "a", 1, (0, 1), {"command": ["python"]}, adopt_only=True),
        Launch(2, "b", 1, (), {"command": ["python"]}, adopt_only=True),
    ]
    after = GangsHere(tmp_path, orders=orders)
    seen = [after.reports.get(timeout=120)]
    while sum(isinstance(one, Launched) for one in seen) < len(orders):
        seen.append(after.reports.get(timeout=120))
    after.launch("c", "-c", "pass", seats=(3,))
    while not isinstance(seen[-1], GangEnded):
        seen.append(after.reports.get(timeout=120))
    assert [one.holders for one in seen if isinstance(one, SeatsTaken)] == [()]
    after.end()


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_frozen_supervisor_whose_seat_file_was_moved_or_replaced_has_ended_before_the_next_gang_begins(
    either: GangsHere, tmp_path: Path, is_replaced: bool
) -> None:
    either.launch("a", *SLEEPS, checkpoint={"grace_s": 0.1})
    either.wait(Launched, "a")
    path = tmp_path / "jobs" / "seats" / "0.lock"
    path.rename(tmp_path / "moved")
    if is_replaced:
        path.touch(0o600)
    os.kill(supervisor_of(either, "a"), signal.SIGSTOP)
    either.halt("a")
    either.wait(GangEnded, "a")
    assert either.processes("a") == []
    either.launch("b", "-c", "pass")
    assert either.wait(GangEnded, "b").outcome == "finished"
