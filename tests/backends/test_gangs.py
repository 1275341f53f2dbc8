"""The local world of a service: gangs under supervisors of their own, with real processes."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.backends.gangs_here import GangsHere, is_supervisor

from eunomia.backends.processes import gangs
from eunomia.backends.processes.device_use import DeviceUse
from eunomia.backends.processes.gang_group import descendants
from eunomia.backends.reports import EnergyUsed, GangEnded, Launched, MemoryUsed, SeatsIdle, StepsSaved

RENDEZVOUS = str(Path(__file__).with_name("rendezvous.py"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GangsHere]:
    found = GangsHere(tmp_path)
    yield found
    found.end()


def test_a_gang_of_several_processes_meets_stops_with_one_checkpoint_and_goes_on_at_another_size(
    world: GangsHere, tmp_path: Path
) -> None:
    several = {"processes": "per_accelerator"}
    world.launch("a", RENDEZVOUS, tmp_path, 10_000, seats=(0, 1, 2), **several)
    world.wait(Launched, "a")
    while len(list(tmp_path.glob("rank-*-1"))) < 3:
        time.sleep(0.02)
    world.halt("a")
    while (saved := world.wait(StepsSaved, "a").steps) == 0:  # a script that can save says so before its first step
        pass
    assert world.wait(GangEnded, "a").outcome == "stopped"
    assert [(tmp_path / f"rank-{rank}-1").read_text() for rank in range(3)] == [f"3 0 {rank}" for rank in range(3)]
    world.launch("a", RENDEZVOUS, tmp_path, int(saved) + 3, seats=(0, 1), epoch=2, **several)
    assert world.wait(GangEnded, "a") == GangEnded("a", 2, "finished")
    assert [(tmp_path / f"rank-{rank}-2").read_text() for rank in (0, 1)] == [
        f"2 {saved:.0f} {rank}" for rank in (0, 1)
    ]


def test_when_one_process_fails_the_whole_gang_ends_with_its_exit_code(world: GangsHere, tmp_path: Path) -> None:
    world.launch("b", RENDEZVOUS, tmp_path, 10_000, 2, seats=(0, 1, 2), processes="per_accelerator")
    ended = world.wait(GangEnded, "b")
    assert (ended.outcome, ended.reason.partition(":")[0]) == ("failed", "exit code 3")
    assert world.processes("b") == []


def test_when_one_process_is_killed_others_that_ignore_the_call_are_killed_after_the_grace(world: GangsHere) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(7, flush=True); time.sleep(99)"
    )
    spec = {"processes": "per_accelerator", "checkpoint": {"grace_s": 0.5}}
    world.launch("c", "-c", stubborn, seats=(0, 1), **spec)
    world.wait(Launched, "c")
    while world.log("c").count("7\n") < 2:
        time.sleep(0.02)
    gang = [pid for pid in world.processes("c") if not is_supervisor(pid)]
    os.kill(gang[0], signal.SIGKILL)
    ended = world.wait(GangEnded, "c")
    assert (ended.outcome, ended.reason.partition(":")[0]) == ("failed", "killed by SIGKILL")
    assert world.processes("c") == []


class FakeDriver:
    """A driver that says what the test wants: processes with their memory, by accelerator."""

    def __init__(self) -> None:
        self.processes: list[dict[int, float]] = [{} for _ in range(4)]
        self.busy = [0.9] * 4
        self.energy_j = [float("nan")] * 4
        self.fails = False

    def read(self) -> list[DeviceUse]:
        if self.fails:
            raise OSError("the test says so")
        every = zip(self.processes, self.busy, self.energy_j, strict=True)
        return [DeviceUse(dict(one), busy, energy_j) for one, busy, energy_j in every]


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[tuple[GangsHere, FakeDriver]]:
    driver = FakeDriver()
    world = GangsHere(tmp_path, type="v100", driver=driver)
    yield world, driver
    world.end()


def test_a_seat_that_a_stranger_uses_is_reported_not_launched_on_and_free_again_after_it_left(
    driven: tuple[GangsHere, FakeDriver],
) -> None:
    world, driver = driven
    assert world.seats_taken() == {}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        driver.processes[1] = {stranger.pid: 3.0}
        holder = world.seats_taken()[1]
        assert f"(process {stranger.pid}) of user {getpass.getuser()}" in holder
        driver.processes[2] = {stranger.pid: 1.0}  # between two looks: the launch itself asks
        world.launch("a", "-c", "print('never')", seats=(2, 3))
        assert world.wait(GangEnded, "a") == GangEnded("a", 1, "stopped", f"its accelerator is used by {holder}")
        assert not (world.folder / "jobs" / "a" / "log").exists()
        driver.fails = True  # not known: nothing changes
        time.sleep(0.3)
        world.launch("b", "-c", "print('never')", seats=(1,))
        assert world.wait(GangEnded, "b").outcome == "stopped"
        driver.fails = False
        driver.processes = [{} for _ in range(4)]
        begun = time.monotonic()
        while world.seats_taken():
            pass
        assert time.monotonic() - begun < 60.0
        stranger.kill()
    world.launch("a", "-c", "print('now')", seats=(2, 3), epoch=2)
    assert world.wait(GangEnded, "a").outcome == "finished"


def test_our_own_processes_are_no_strangers_but_on_a_foreign_seat_they_are_and_their_memory_is_reported(
    driven: tuple[GangsHere, FakeDriver],
) -> None:
    world, driver = driven
    world.launch("a", "-c", "import subprocess; subprocess.run(['env', '-i', 'sleep', '60'])", seats=(0,))
    world.wait(Launched, "a")
    children: list[int] = []
    while not children:  # the program, and its child, may not have begun
        for first in [pid for pid in world.processes("a") if not is_supervisor(pid)]:
            children = [pid for pid in descendants(first) if pid not in world.processes("a")]
        time.sleep(0.02)
    driver.processes[0] = {children[0]: 2.5, first: 1.0}
    while (used := world.wait(MemoryUsed, "a")).gib < 3.5:  # it may look before it knows the child
        pass
    assert used == MemoryUsed("a", 1, 3.5)
    driver.processes[3] = {children[0]: 2.5}
    while 3 not in (found := world.seats_taken()):
        pass
    assert found == {3: "job a, to which it was not given"}
    world.halt("a")


def test_energy_is_reported_of_the_seats_whose_driver_counts_it_and_begins_anew_with_its_counter(
    driven: tuple[GangsHere, FakeDriver], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, driver = driven
    monkeypatch.setattr(gangs, "ENERGY_S", 0.0)
    driver.energy_j = [1000.0, 5000.0, float("nan"), 7.0]
    world.launch("a", "-c", "import time; time.sleep(600)", seats=(0, 1, 2))
    world.wait(Launched, "a")
    (live,) = world.gangs._live.values()
    while set(live.energy_j) != {0, 1}:  # the first look counts from
        time.sleep(0.02)
    driver.energy_j = [1600.0, 50.0, float("nan"), 9.0]  # the second counter began anew
    used = world.wait(EnergyUsed, "a")
    while not used.energy_j:  # of a look before that
        used = world.wait(EnergyUsed, "a")
    assert used.energy_j == 600.0 and used.metered_s > 0
    world.halt("a")


def test_an_accelerator_that_is_held_and_hardly_used_is_reported_and_no_more_once_it_is_busy(
    driven: tuple[GangsHere, FakeDriver],
) -> None:
    world, driver = driven
    assert world.gangs._seats is not None
    world.gangs._seats.idle_s = 0.3
    driver.busy = [0.0, 0.01, 0.9, 0.9]
    world.launch("a", "-c", "import time; time.sleep(60)", seats=(1, 2))
    world.wait(Launched, "a")
    found = world.next(SeatsIdle)
    assert [seat for seat, _ in found.idle_s] == [1]
    driver.busy = [0.0, 0.5, 0.0, 0.9]
    while world.next(SeatsIdle).idle_s:
        pass
    world.halt("a")


def test_python_is_that_of_the_shell_that_submitted_and_without_one_there_that_of_the_service(
    world: GangsHere, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    mine = tmp_path / "bin" / "python"
    mine.write_text("#!/bin/sh\necho 'mine:' \"$@\"\n")
    mine.chmod(0o755)
    for job, path in (("a", str(mine.parent)), ("b", str(tmp_path))):
        world.launch(job, "-c", "import sys; print(sys.executable)", env={"PATH": path})
        assert world.wait(GangEnded, job).outcome == "finished"
    assert "mine: -c" in world.log("a")
    assert f"\n{os.path.abspath(sys.executable)}\n" in world.log("b")


def test_files_of_a_job_are_made_with_the_umask_that_it_is_given(tmp_path: Path) -> None:
    world = GangsHere(tmp_path, umask=0o027)
    before = os.umask(0o077)
    try:
        world.launch("a", "-c", "import os; print(oct(os.umask(0)))")
        assert world.wait(GangEnded, "a").outcome == "finished"
        assert "0o27" in world.log("a")
    finally:
        os.umask(before)
        world.end()


def test_a_gang_of_one_process_gets_no_variables_of_torchrun(world: GangsHere) -> None:
    world.launch("d", "-c", "import os; print({'RANK', 'MASTER_PORT'} & set(os.environ))", seats=(0, 1))
    assert world.wait(GangEnded, "d").outcome == "finished"
    assert "set()" in world.log("d")
