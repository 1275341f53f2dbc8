"""The driver of worlds that run processes for a service: orders go in, reports come out, gangs write what they did."""

from __future__ import annotations

import json
import queue
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

from eunomia.backends.orders import Halt, Launch
from eunomia.backends.processes.gang_group import processes_with
from eunomia.backends.reports import GangEnded, GangUnknown, Launched, NodeState, Report, StepsSaved
from eunomia.backends.world import ProcessWorld
from eunomia.model.topology import Topology
from eunomia.testing.world_driver import Work, WorldDriver

SCRIPT = Path(__file__).with_name("recording_job.py")
POLL_S = 0.02
GANG = "CONTRACT_GANG"  # variable that tells the processes of this driver's gangs from all others
RECORDING = ("steps", "step_s", "exit_code", "ignores_term", "has_child")  # of `Work`, read by the recording program


class ProcessDriver(WorldDriver):
    """Drives a `ProcessWorld`; `open_world` makes it, and is called again after a restart."""

    def __init__(
        self,
        folder: Path,
        works: Mapping[str, Work],
        topology: Topology,
        open_world: Callable[[Callable[[Report], None]], ProcessWorld],
    ) -> None:
        self.topology, self._works, self._ledger = topology, works, folder / "ledger"
        self._open, self._folder = open_world, folder
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._status: dict[tuple[str, int], str] = {}
        self._reasons: dict[tuple[str, int], str] = {}
        self._steps: dict[str, float] = {}
        self._away_nodes: set[int] = set()
        self._orders: dict[tuple[str, int], Launch] = {}  # of gangs that have not ended, as a service knows them
        self._numbers = count(1)
        self.world = self._open(self._reports.put)
        self.world.start()

    def launch(self, job_id: str, epoch: int, seats: tuple[int, ...]) -> None:
        work = self._works[job_id]
        order = Launch(next(self._numbers), job_id, epoch, seats, self._spec(job_id, work), float(work.steps))
        self._orders[job_id, epoch] = order
        self._status.setdefault((job_id, epoch), "waiting")
        self.world.carry_out([order])

    def _spec(self, job_id: str, work: Work) -> dict[str, Any]:
        said = {key: value for key, value in asdict(work).items() if key in RECORDING}
        command = work.command or (sys.executable, str(SCRIPT), str(self._ledger), json.dumps(said), *work.arguments)
        return {
            "command": list(command),
            "env": {**work.env, GANG: self._folder_of(job_id)},
            "checkpoint": {"grace_s": work.grace_s},
        }

    def _folder_of(self, job_id: str) -> str:
        return f"{self._folder}/{job_id}"

    def stop(self, job_id: str, epoch: int) -> None:
        self.world.carry_out([Halt(next(self._numbers), job_id, epoch)])

    def until(self, holds: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        self._read()
        while not holds():
            assert time.monotonic() < deadline, f"not within {within_s:g} s; the world said {self._status}"
            time.sleep(POLL_S)
            self._read()

    def let_pass(self, seconds: float) -> None:
        time.sleep(seconds)
        self._read()

    def _read(self) -> None:
        while not self._reports.empty():
            report = self._reports.get()
            match report:
                case Launched(job_id, epoch):
                    self._status[job_id, epoch] = "running"
                case GangUnknown(job_id, epoch):
                    self._status[job_id, epoch] = "unknown"
                case GangEnded(job_id, epoch, outcome, reason):
                    self._status[job_id, epoch], self._reasons[job_id, epoch] = outcome, reason
                    self._orders.pop((job_id, epoch), None)
                case StepsSaved(job_id, _, steps):
                    self._steps[job_id] = steps
                case NodeState(node, reason):
                    (self._away_nodes.add if reason else self._away_nodes.discard)(node)

    def close(self) -> None:
        self.world.close(stop_jobs=True)

    def status(self, job_id: str, epoch: int) -> str:
        self._read()
        return self._status[job_id, epoch]

    def reason(self, job_id: str, epoch: int) -> str:
        return self._reasons[job_id, epoch]

    def saved_steps(self, job_id: str) -> float:
        self._read()
        return self._steps.get(job_id, 0.0)

    def placement(self, job_id: str, epoch: int) -> dict[int, int]:
        """Return what the gang itself was given; an engine's driver asks the engine."""
        [start] = [line for line in self.records(job_id, "start") if line["epoch"] == epoch]
        seats = [int(seat) for seat in start["env"]["EUNOMIA_SEATS"].split(",")]
        return dict(Counter(self.topology.node[seats].tolist()))

    def records(self, job_id: str, what: str = "") -> list[dict[str, Any]]:
        text = self._ledger.read_text() if self._ledger.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in lines if line["job_id"] == job_id and what in ("", line["what"])]

    def processes(self, job_id: str) -> int:
        return len(processes_with({f"{GANG}={self._folder_of(job_id)}".encode()}))

    def restart(
        self, *, away_s: float = 0.0, forgets: tuple[str, ...] = (), meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        self._read()
        self.world.close()
        meanwhile()
        time.sleep(away_s)
        self._orders = {key: order for key, order in self._orders.items() if key[0] not in forgets}
        running = {key for key, status in self._status.items() if status in ("running", "unknown")}
        self._status.update(dict.fromkeys(self._orders, "waiting"))
        self.world = self._open(self._reports.put)
        self.world.carry_out([replace(one, adopt_only=key in running) for key, one in self._orders.items()])
        self.world.start()
