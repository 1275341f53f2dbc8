"""The backend of `eunomia run` on an engine: decisions become orders of its gangs, and their reports become events."""

from __future__ import annotations

import json
import logging
import math
import queue
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from eunomia.backends.engines.engine import Engine, EngineAway, EngineRefused
from eunomia.backends.engines.gang_state import EngineTimes
from eunomia.backends.engines.gangs import EngineGangs
from eunomia.backends.engines.job_files import CLUSTER, folder_of
from eunomia.backends.inputs import BackendInputs
from eunomia.backends.orders import Halt, Launch
from eunomia.backends.processes.environment_filter import check_commands
from eunomia.backends.processes.folder import folder_name
from eunomia.backends.processes.real_world import RealWorld
from eunomia.backends.reports import EngineReport, GangEnded, GangUnknown, NodeState, SeatsTaken, StepsSaved
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.decisions import Start
from eunomia.model.events import (
    AcceleratorsTaken,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    Measured,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
)
from eunomia.model.job import Job
from eunomia.model.topology import Topology

REACH_S = 30.0  # for the engine to be reached, such as by a process that is started for it
MAX_WAIT_S = 2.0  # until it is seen that the thread of the gangs has failed
OF_A_START = ("exit-*.json", "claim-*", "supervisor-*", "lease-*.json", "finished.json", "progress.json")
_log = logging.getLogger(__name__)


class EngineWorld(RealWorld):
    """Runs the jobs of a scenario on an engine; a subclass names it."""

    engine_of: ClassVar[Callable[[Mapping[str, Any]], Engine]]  # from the engine's table of the scenario

    def __init__(self, inputs: BackendInputs) -> None:
        super().__init__(inputs.jobs, inputs.workdir, inputs.folder, clock=inputs.clock, wait_s=inputs.wait_s)
        self._inputs, self._topology = inputs, inputs.topology
        self._reports: queue.SimpleQueue[EngineReport] = queue.SimpleQueue()
        self._gangs: EngineGangs | None = None
        self._orders: list[Launch | Halt] = []  # before the first moment
        self._numbers = count(1)
        self._live: dict[tuple[str, int], bool] = {}  # whether its stop was ordered

    @classmethod
    def check(cls, inputs: BackendInputs) -> None:
        """Raise InvalidInput for jobs that cannot run here."""
        check_commands(inputs.jobs)

    @classmethod
    def build(cls, inputs: BackendInputs) -> EngineWorld:
        """Return the backend of a run."""
        return cls(inputs)

    @classmethod
    def for_service(
        cls, workdir: Path, topology: Topology, *, report: Callable[[EngineReport], None], options: Mapping[str, Any],
        forked: Callable[[], None],
    ) -> EngineGangs:  # fmt: skip
        """Return the world of a service."""
        times = EngineTimes(poll_s=float(options.get("poll_s", 1.0)))
        return EngineGangs(cls.engine_of(options), workdir, topology, report=report, times=times, forked=forked)

    @classmethod
    def discovered(cls, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the engine's nodes as those of a cluster. Raises InvalidInput if it does not answer."""
        engine = cls.engine_of(options)
        try:
            nodes = engine.nodes()
        except (EngineAway, EngineRefused) as error:
            fix = "declare the nodes instead, as in accelerators = { v100 = 4 }"
            raise InvalidInput([Problem(file="[cluster] discover", rule=str(error), fix=fix)]) from error
        finally:
            engine.close()
        return [
            {"type": kind, "accelerators": count, "cpus": node.cpus, "memory_gib": node.memory_gib}
            for node in nodes
            for kind, count in node.accelerators.items()
        ]

    def moments(self) -> Iterator[Moment]:
        """Yield events as they happen, until no job can arrive or run and no timer is set."""
        if not self._is_resumed:
            self._forget_earlier_run()
        options = self._inputs.options
        self._gangs = EngineGangs(
            type(self).engine_of(options), self._workdir, self._topology, report=self._reports.put,
            times=EngineTimes(poll_s=float(options.get("poll_s", 1.0))), base=self._cwd,
        )  # fmt: skip
        self._gangs.carry_out(self._orders)
        self._gangs.start()
        self._gangs.wait_for_answer(REACH_S)  # no time of the run passes until then
        self._clock.start(self._at)
        while not self._closed:
            if not self._events and self._reports.empty() and not self._more_can_happen():
                return
            self._wait()
            if moment := self._next_moment():
                yield moment

    def resume(
        self,
        at: float,
        *,
        submitted: Set[str],
        finished: Set[str],
        running: Sequence[Start],
        steps: Mapping[str, float],
        wake: float,
    ) -> Moment | None:
        """Continue at time `at` a run whose process ended; the first moments say what its gangs did since."""
        self._is_resumed, self._at, self._wake = True, at, wake
        self._coming = deque(job for job in self._coming if job.job_id not in submitted)
        self._finished = set(finished)
        for start in running:
            self._start(start)
        return None

    def loss(self, job: Job, steps: float) -> float:
        """Return the last loss that a job reported; nan if none."""
        return folder_of(self._workdir, job.job_id, 0).read_loss()

    def log(self, job_id: str) -> Path:
        """Return the file with the output of a job."""
        return folder_of(self._workdir, job_id, 0).log

    def close(self) -> None:
        """Stop every gang with a checkpoint; a run that is killed leaves them to the engine."""
        if not self._closed:
            self._closed = True
            self._clock.save(at_once=True)
            if self._gangs is not None:
                self._gangs.close(stop_jobs=True)

    # ---- orders --------------------------------------------------------------------------------------------------

    def _start(self, start: Start) -> None:
        pairs = [(start.job_id, start.epoch)]
        if start.partner_id is not None:
            pairs.append((start.partner_id, start.partner_epoch))
        for job_id, epoch in pairs:
            if job_id in self._finished:  # it finished while it was being stopped
                self._events.append(JobFinished(job_id, epoch))
                continue
            job = self._jobs[job_id]
            self._live[job_id, epoch] = False
            self._order(
                Launch(
                    next(self._numbers), job_id, epoch, tuple(start.seats), self._spec(job),
                    total_steps=job.total_steps, shared=len(pairs) > 1,
                )
            )  # fmt: skip

    def _stop(self, job_id: str, epoch: int, save: bool) -> None:
        if (job_id, epoch) in self._live:
            self._live[job_id, epoch] = True
            self._order(Halt(next(self._numbers), job_id, epoch, save))

    def _spec(self, job: Job) -> dict[str, Any]:
        settings = self._inputs.settings
        return {
            "command": list(job.command),
            "cwd": str(self._cwd),
            "env": {} if settings is None else {"EUNOMIA_SETTINGS": json.dumps(settings(job.job_id))},
            "checkpoint": {"grace_s": self._inputs.grace_s},
            "checkpoint_dir": job.checkpoint_dir,
            "cpus": job.cpus,
            "memory_gib": job.memory_gib,
        }

    def _order(self, order: Launch | Halt) -> None:
        if self._gangs is None:
            self._orders.append(order)
        else:
            self._gangs.carry_out([order])

    def _forget_earlier_run(self) -> None:
        """Remove what another run left in the folder: its marks are no longer ours."""
        (self._workdir / CLUSTER).unlink(missing_ok=True)
        for job in self._coming:
            for pattern in OF_A_START:
                for path in (self._workdir / folder_name(job.job_id)).glob(pattern):
                    path.unlink()

    # ---- moments -------------------------------------------------------------------------------------------------

    def _more_can_happen(self) -> bool:
        return bool(self._live or self._coming) or self._wake < math.inf

    def _wait(self) -> None:
        """Wait for a report or for what is due, and take in all reports that have come."""
        self._clock.save()
        wait_s = min(max(self._due() - self._clock.now(), 0.0), self._clock.limit_wait(MAX_WAIT_S))
        try:
            report = self._reports.get(timeout=0.0 if self._events else wait_s)
            while True:
                self._take(report)
                report = self._reports.get_nowait()
        except queue.Empty:
            pass
        assert self._gangs is not None
        if self._gangs.failure is not None:
            raise RuntimeError(
                "no more orders can be carried out; the engine goes on with the gangs that it has"
            ) from (self._gangs.failure)

    def _take(self, report: EngineReport) -> None:
        match report:
            case GangEnded(job_id, epoch, outcome, reason):
                self._ended(job_id, epoch, outcome, reason)
            case StepsSaved(job_id, _, steps):
                self._events.append(Progressed((job_id,), (steps,)))
                loss = self.loss(self._jobs[job_id], steps)
                if self._inputs.settings is not None and not math.isnan(loss):
                    self._events.append(Measured(job_id, steps, loss))
            case NodeState(node, reason):
                if reason:
                    _log.warning("node %d is out of service: %s", node, reason)
                self._events.append(NodeLost(node) if reason else NodeJoined(node))
            case SeatsTaken(holders):
                self._events.append(AcceleratorsTaken(tuple(seat for seat, _ in holders)))
            case GangUnknown(job_id, _, reason):
                _log.warning("nothing is known of job %r: %s", job_id, reason)

    def _ended(self, job_id: str, epoch: int, outcome: str, reason: str) -> None:
        was_stopped = self._live.pop((job_id, epoch), True)
        if outcome == "finished":
            self._finished.add(job_id)
            if not was_stopped:
                self._events.append(JobFinished(job_id, epoch))
        elif was_stopped:
            _log.info("job %r stopped", job_id)
        elif outcome == "failed":
            self._events.append(JobFailed(job_id, epoch, reason))
        else:  # through no fault of its own: it waits again
            _log.warning("job %r: %s", job_id, reason)
            self._events += [JobPaused(job_id), JobResumed(job_id)]
