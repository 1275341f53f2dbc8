"""Gangs of this machine in a folder, for tests: real processes, whose reports are kept."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Order
from eunomia.backends.processes.gang_group import processes_with
from eunomia.backends.processes.gangs import LocalGangs
from eunomia.backends.reports import SeatsTaken
from eunomia.backends.world import WorldInputs
from eunomia.model.topology import Node, Topology
from eunomia.service.messages import Halt, Launch


class GangsHere:
    """Gangs on four accelerators, and their reports."""

    def __init__(self, folder: Path, *, type: str = "cpu", orders: Sequence[Order] = (), **options: Any) -> None:
        self.folder, self.number = folder, 0
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        topology = Topology.of([Node(type=type, accelerators=4)])
        inputs = WorldInputs(
            workdir=folder / "jobs", topology=topology, lease_s=30.0, report=self.reports.put, **options
        )
        self.gangs = LocalGangs(inputs, look_s=0.1)
        self.gangs.carry_out(orders)
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
        deadline = time.monotonic() + 120
        while True:
            found = self.reports.get(timeout=max(deadline - time.monotonic(), 0.01))
            if type(found) is kind and found.job_id == job:
                return found

    def seats_taken(self) -> dict[int, str]:
        """Return the next report about seats."""
        return dict(self.next(SeatsTaken).holders)

    def next(self, kind: type) -> Any:
        """Return the next report of a kind."""
        while type(found := self.reports.get(timeout=120)) is not kind:
            pass
        return found

    def processes(self, job: str, epoch: int = 1) -> list[int]:
        lease = self.folder / "jobs" / job / f"lease-{epoch}.json"
        return processes_with({f"EUNOMIA_LEASE_FILE={lease}".encode()})

    def log(self, job: str) -> str:
        return (self.folder / "jobs" / job / "log").read_text()

    def end(self) -> None:
        for lease in (self.folder / "jobs").glob("*/lease-*.json"):
            lease.write_text('{"end_s": 0, "stop": 0.0}')
        self.gangs.close(stop_jobs=True)


def is_supervisor(pid: int) -> bool:
    return b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
