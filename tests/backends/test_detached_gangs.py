"""The local world of a service: gangs under supervisors of their own, with real processes."""

from __future__ import annotations

import os
import queue
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eunomia.backends.local.detached_gangs import DetachedGangs
from eunomia.backends.local.gang import processes_with
from eunomia.backends.reports import GangEnded, Launched, StepsSaved
from eunomia.model.topology import Node, Topology
from eunomia.service.messages import Halt, Launch

RENDEZVOUS = str(Path(__file__).with_name("rendezvous.py"))


class LocalWorld:
    """Gangs on four accelerators, and their reports."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.number = folder, 0
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        topology = Topology.of([Node(type="cpu", accelerators=4)])
        self.gangs = DetachedGangs(folder / "jobs", topology, lease_s=30.0, report=self.reports.put, **options)
        self.gangs.start()

    def launch(self, job: str, *command: object, seats: tuple[int, ...] = (0,), epoch: int = 1, **spec: Any) -> None:
        self.number += 1
        words = ["python", *map(str, command)]
        self.gangs.carry_out([Launch(self.number, job, epoch, seats, {"command": words, **spec})])

    def halt(self, job: str, epoch: int = 1) -> None:
        self.number += 1
        self.gangs.carry_out([Halt(self.number, job, epoch)])

    def wait(self, kind: type, job: str) -> Any:
        """Return the next report of a kind about a job."""
        deadline = time.monotonic() + 60
        while True:
            found = self.reports.get(timeout=max(deadline - time.monotonic(), 0.01))
            if type(found) is kind and found.job_id == job:
                return found

    def processes(self, job: str, epoch: int = 1) -> list[int]:
        lease = self.folder / "jobs" / job / f"lease-{epoch}.json"
        return processes_with(f"EUNOMIA_LEASE_FILE={lease}".encode())

    def log(self, job: str) -> str:
        return (self.folder / "jobs" / job / "log").read_text()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    found = LocalWorld(tmp_path)
    yield found
    for lease in (tmp_path / "jobs").glob("*/lease-*.json"):
        lease.write_text('{"end_s": 0, "stop": 0.0}')
    found.gangs.close(stop_jobs=True)


def test_a_gang_of_several_processes_meets_stops_with_one_checkpoint_and_goes_on_at_another_size(
    world: LocalWorld, tmp_path: Path
) -> None:
    several = {"processes": "per_accelerator"}
    world.launch("a", RENDEZVOUS, tmp_path, 10_000, seats=(0, 1, 2), **several)
    world.wait(Launched, "a")
    while len(list(tmp_path.glob("rank-*-1"))) < 3:
        time.sleep(0.02)
    world.halt("a")
    saved = world.wait(StepsSaved, "a").steps
    assert saved > 0
    assert world.wait(GangEnded, "a").outcome == "stopped"
    assert [(tmp_path / f"rank-{rank}-1").read_text() for rank in range(3)] == [f"3 0 {rank}" for rank in range(3)]
    world.launch("a", RENDEZVOUS, tmp_path, int(saved) + 3, seats=(0, 1), epoch=2, **several)
    assert world.wait(GangEnded, "a") == GangEnded("a", 2, "finished")
    assert [(tmp_path / f"rank-{rank}-2").read_text() for rank in (0, 1)] == [
        f"2 {saved:.0f} {rank}" for rank in (0, 1)
    ]


def test_when_one_process_fails_the_whole_gang_ends_with_its_exit_code(world: LocalWorld, tmp_path: Path) -> None:
    world.launch("b", RENDEZVOUS, tmp_path, 10_000, 2, seats=(0, 1, 2), processes="per_accelerator")
    ended = world.wait(GangEnded, "b")
    assert (ended.outcome, ended.reason.partition(":")[0]) == ("failed", "exit code 3")
    assert world.processes("b") == []


def test_when_one_process_is_killed_others_that_ignore_the_call_are_killed_after_the_grace(world: LocalWorld) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(7, flush=True); time.sleep(99)"
    )
    spec = {"processes": "per_accelerator", "checkpoint": {"grace_s": 0.5}}
    world.launch("c", "-c", stubborn, seats=(0, 1), **spec)
    world.wait(Launched, "c")
    while world.log("c").count("7\n") < 2:
        time.sleep(0.02)
    gang = [pid for pid in world.processes("c") if b"supervisor.py" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(gang[0], signal.SIGKILL)
    ended = world.wait(GangEnded, "c")
    assert (ended.outcome, ended.reason.partition(":")[0]) == ("failed", "killed by SIGKILL")
    assert world.processes("c") == []


def test_a_gang_of_one_process_gets_no_variables_of_torchrun(world: LocalWorld) -> None:
    world.launch("d", "-c", "import os; print({'RANK', 'MASTER_PORT'} & set(os.environ))", seats=(0, 1))
    assert world.wait(GangEnded, "d").outcome == "finished"
    assert "set()" in world.log("d")
