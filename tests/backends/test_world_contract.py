"""The simulated and the local world keep the published contract of worlds."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from eunomia.backends.processes.gang_group import processes_with
from eunomia.backends.processes.gangs import LocalGangs
from eunomia.backends.simulated import FaultModel, Simulation
from eunomia.backends.world import WorldInputs
from eunomia.model.decisions import SetTimer, Start, Stop
from eunomia.model.events import JobFailed, JobFinished, Moment, NodeJoined, NodeLost, Progressed
from eunomia.model.job import Job
from eunomia.model.topology import Node, Topology
from eunomia.testing import NotApplicable, ProcessDriver, Work, WorldContract, WorldDriver
from eunomia.testing.process_driver import GANG
from eunomia.testing.small_worlds import DrawnRates

CLUSTER = Topology.of([Node(type="a", accelerators=2), Node(type="a", accelerators=2), Node(type="b", accelerators=2)])
SEED = 1  # with which node 0 fails first, and node 1 long after it
CPUS = Topology.of([Node(type="cpu", accelerators=2)] * 3)


class SimulatedDriver(WorldDriver):
    """Virtual time: a moment is played when the suite lets time pass."""

    topology = CLUSTER
    without_processes = "a simulation runs no processes"

    def __init__(self, works: Mapping[str, Work], faults: FaultModel, seed: int) -> None:
        sizes = tuple(range(2, CLUSTER.devices + 1))
        jobs = [Job(job_id=name, total_steps=one.steps * one.step_s, other_shapes=sizes) for name, one in works.items()]
        rates = DrawnRates(types=CLUSTER.types, by_kind={"": (1.0, 1.0)})
        self._world = Simulation(jobs, CLUSTER, rates, faults=faults, seed=seed)
        self._moments = self._world.moments()
        self._status: dict[tuple[str, int], str] = {}
        self._seats: dict[tuple[str, int], tuple[int, ...]] = {}
        self._steps: dict[str, float] = {}
        self._lines: list[dict[str, Any]] = []
        self._lost: set[int] = set()
        self.at = 0.0
        self._take(next(self._moments))

    def launch(self, job_id: str, epoch: int, seats: tuple[int, ...]) -> None:
        held = {seat for key in self._running() for seat in self._seats[key]}
        if held & set(seats):
            raise NotApplicable("the scheduler starts no gang on seats that are held, and gives no order twice")
        self._seats[job_id, epoch] = seats
        self._status[job_id, epoch] = "running"
        self._write("start", job_id, epoch)
        self._world.carry_out(Start(job_id, epoch, seats, math.inf))

    def stop(self, job_id: str, epoch: int) -> None:
        if (job_id, epoch) in self._running():
            self._end(job_id, epoch, "stopped")
        self._world.carry_out(Stop((job_id,), (epoch,)))

    def _running(self) -> list[tuple[str, int]]:
        return [key for key, status in self._status.items() if status == "running"]

    def _end(self, job_id: str, epoch: int, how: str) -> None:
        self._status[job_id, epoch] = how
        self._write("end", job_id, epoch)

    def _write(self, what: str, job_id: str, epoch: int) -> None:
        self._lines.append({"what": what, "job_id": job_id, "epoch": epoch, "at": self.at})

    def until(self, holds: Callable[[], bool], within_s: float) -> None:
        while not holds():
            moment = next(self._moments, None)
            assert moment is not None, f"nothing more happens, at {self.at:g} s"
            self._take(moment)

    def let_pass(self, seconds: float) -> None:
        end = self.at + seconds
        self._world.carry_out(SetTimer(end))
        while self.at < end and (moment := next(self._moments, None)) is not None:
            self._take(moment)

    def _take(self, moment: Moment) -> None:
        self.at = moment.at
        for event in moment.events:
            match event:
                case JobFinished(job_id, epoch):
                    self._end(job_id, epoch, "finished")
                case JobFailed(job_id, epoch):
                    self._end(job_id, epoch, "failed")
                case Progressed(job_ids, steps):
                    self._steps.update(zip(job_ids, map(float, steps), strict=True))
                case NodeLost(node):
                    self._lost.add(node)
                    for job_id, epoch in self._running():
                        if node in CLUSTER.node[list(self._seats[job_id, epoch])]:
                            self._end(job_id, epoch, "lost")
                            self._world.carry_out(Stop((job_id,), (epoch,), save=False))  # as the scheduler does
                case NodeJoined(node):
                    self._lost.discard(node)

    def drain(self, node: int) -> None:
        """Wait for one of the machine failures that the seed draws."""

    lose = resume = drain

    def status(self, job_id: str, epoch: int) -> str:
        return self._status[job_id, epoch]

    def saved_steps(self, job_id: str) -> float:
        return self._steps.get(job_id, 0.0)

    def in_service(self, node: int) -> bool:
        return node not in self._lost

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        return dict(Counter(CLUSTER.node[list(self._seats[job_id, epoch])].tolist()))

    def records(self, job_id: str, what: str = "") -> list[dict[str, Any]]:
        return [line for line in self._lines if line["job_id"] == job_id and what in ("", line["what"])]


class TestSimulatedWorld(WorldContract):
    settle_s = 5.0
    within_s = math.inf
    faults = FaultModel()

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        return SimulatedDriver(works, self.faults, seed=SEED)

    def test_a_node_that_is_taken_out_of_service_and_comes_back_is_reported(self, tmp_path: Path) -> None:
        self.faults = FaultModel(node_failures_per_hour=360.0, node_repair_s=5.0)
        super().test_a_node_that_is_taken_out_of_service_and_comes_back_is_reported(tmp_path)

    def test_a_gang_on_a_node_that_is_lost_ends_and_another_goes_on(self, tmp_path: Path) -> None:
        self.faults = FaultModel(node_failures_per_hour=360.0, node_repair_s=5.0)
        super().test_a_gang_on_a_node_that_is_lost_ends_and_another_goes_on(tmp_path)


@contextmanager
def process_with_id(pid: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process with an id that was another's. Raises NotApplicable where ids cannot be chosen."""
    deadline = time.monotonic() + 120.0
    while True:
        try:
            with suppress(ChildProcessError, OSError):
                os.waitpid(pid, os.WNOHANG)  # the process that had the id may be a child of this one
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        except OSError as refused:
            raise NotApplicable(f"this user cannot choose the id of a process: {refused}") from None
        other = subprocess.Popen(["sleep", "600"])
        if other.pid == pid:
            break
        other.kill()
        other.wait()
        assert time.monotonic() < deadline, f"no process has got the id {pid}"
    try:
        yield other
    finally:
        other.kill()
        other.wait()


class LocalDriver(ProcessDriver):
    """Supervised processes of this machine, as `eunomia serve` runs them."""

    def __init__(self, folder: Path, works: Mapping[str, Work]) -> None:
        jobs = folder / "jobs"
        super().__init__(
            folder, works, CPUS,
            lambda report: LocalGangs(WorldInputs(workdir=jobs, topology=CPUS, lease_s=30.0, report=report)),
        )  # fmt: skip

    @contextmanager
    def reused(self, job_id: str, epoch: int) -> Iterator[Callable[[], bool]]:
        """While no service runs the gang is killed, and its supervisor's process id goes to another process."""
        [record] = self._folder.glob(f"jobs/*/supervisor-{epoch}.json")
        pid = int(json.loads(record.read_text())["pid"])
        other: list[subprocess.Popen[bytes]] = []
        with ExitStack() as others:

            def take_id() -> None:
                for each in (pid, *processes_with({f"{GANG}={self._folder_of(job_id)}".encode()})):
                    os.kill(each, signal.SIGKILL)
                other.append(others.enter_context(process_with_id(pid)))

            self.restart(meanwhile=take_id)
            yield lambda: other[0].poll() is None

    def orphans(self) -> list[tuple[str, int]]:
        raise NotApplicable("a gang without a service keeps its seats locked, and stops when its lease ends")


class TestLocalWorld(WorldContract):
    settle_s = 0.5

    def driver(self, folder: Path, works: Mapping[str, Work]) -> WorldDriver:
        return LocalDriver(folder, works)
