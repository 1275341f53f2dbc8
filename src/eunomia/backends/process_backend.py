"""Backends of `eunomia run` in real time: submissions and timers that fall due, around a world of processes."""

from __future__ import annotations

import json
import logging
import math
import os
import queue
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from eunomia.backends.driver import Driver
from eunomia.backends.engines.job_files import CLUSTER
from eunomia.backends.inputs import BackendClass, BackendInputs
from eunomia.backends.orders import Launch
from eunomia.backends.processes.folder import JobFolder, lock
from eunomia.backends.reports import (
    EngineReport,
    GangEnded,
    GangUnknown,
    LaunchDelayed,
    NodeState,
    SeatsTaken,
    StepsSaved,
)
from eunomia.backends.run_clock import RunClock
from eunomia.backends.world import ProcessWorld, WorldInputs
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import (
    AcceleratorsTaken,
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Measured,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.topology import Topology

REACH_S = 30.0  # for an engine to be reached, such as by a process that is started for it
MAX_WAIT_S = 2.0  # until it is seen that the thread of the world has failed
OF_A_RUN = ("exit*.json", "claim-*", "supervisor-*", "lease*.json", "finished.json", "progress.json", "cluster_id")
Settings = Callable[[str], Mapping[str, Any]]  # job id → settings, called at each start
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class RunJob:
    """A job of a run and its last start."""

    job: Job
    spec: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    seats: tuple[int, ...] = ()
    shape: int = 0
    shared: bool = False
    end_s: float = math.inf  # of its lease, in s of time.monotonic
    ended_epoch: int = 0
    losses: int = 0
    lost_at: float = -1.0
    finished_early: bool = False
    steps: float | None = None  # in a checkpoint, as last reported

    @property
    def saved_steps(self) -> float:
        return self.steps or 0.0

    def launch(self, number: int, adopt_only: bool) -> Launch:
        return Launch(
            number, self.job.job_id, self.epoch, self.seats, self.spec, total_steps=self.job.total_steps,
            shared=self.shared, adopt_only=adopt_only, shape=self.shape, end_s=self.end_s,
        )  # fmt: skip


class ProcessBackend(BackendClass):
    """Runs the jobs of a scenario as processes of a world, which `open_world` makes. Close it, or use it with `with`.

    Time is in seconds since the first call of `moments`, or continues from the time given to `resume`; it is saved in
    the file `clock`, for the case that this process is killed. A gang whose lease lapsed, or whose world lost it, saves
    and waits to be started again. Raises InvalidInput if another run uses `workdir` for more than `wait_s`.
    """

    real_time = True
    repeats_starts: ClassVar[bool] = True  # after a resume, as supervisors under an engine refuse to run twice

    def __init__(
        self, jobs: Sequence[Job], topology: Topology, *, workdir: Path, grace_s: float = 10.0, cwd: Path | None = None,
        settings: Settings | None = None, clock: Path | None = None, wait_s: float = 0.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._jobs = {job.job_id: RunJob(job) for job in jobs}
        self._coming = deque(sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id)))
        self._topology, self._grace_s, self._settings = topology, grace_s, settings
        self._workdir, self._cwd, self._options = workdir.resolve(), (cwd or Path.cwd()).resolve(), options or {}
        self._driver = Driver()
        self._world: ProcessWorld | None = None  # from the first moment on
        self._reports: queue.SimpleQueue[EngineReport] = queue.SimpleQueue()
        self._events: list[Event] = []  # not yet reported
        self._steps: dict[str, float] = {}  # likewise
        self._lost: list[Event] = []  # likewise: jobs that wait again through no fault of theirs
        self._taken: tuple[int, ...] = ()  # seats that others use, as reported
        self._live: set[str] = set()  # jobs whose gangs have not ended
        self._finished: set[str] = set()
        self._wake, self._at = math.inf, 0.0  # when the timer fires; time of the last moment
        self._clock = RunClock(clock)
        self._is_resumed = self._closed = False
        self._lock = lock(self._workdir, wait_s)

    @classmethod
    def build(cls, inputs: BackendInputs) -> Self:
        """Return the backend of a run."""
        return cls(
            inputs.jobs, inputs.topology, workdir=inputs.workdir, grace_s=inputs.grace_s, cwd=inputs.folder,
            settings=inputs.settings, clock=inputs.clock, wait_s=inputs.wait_s, options=inputs.options,
        )  # fmt: skip

    @classmethod
    def open_world(cls, inputs: WorldInputs) -> ProcessWorld:
        """Return the world in which gangs run, of a run or of a service."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def moments(self) -> Iterator[Moment]:
        """Yield events as they happen, until no job can arrive or run and no timer is set."""
        if self._closed:
            return
        self._forget_earlier_run()
        self._world = self.open_world(
            WorldInputs(
                workdir=self._workdir, topology=self._topology, report=self._reports.put, options=self._options,
                lock=self._lock,
            )
        )  # fmt: skip
        self._hand_over()
        self._world.start()
        self._world.wait_until_ready(REACH_S)  # no time of the run passes until then
        self._clock.start(self._at)
        while not self._closed:
            if not self._has_events() and self._reports.empty() and not self._more_can_happen():
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
        for job_id, done in steps.items():
            self._jobs[job_id].steps = done
        for job_id in submitted - {start.job_id for start in running}:
            if job_id in finished or JobFolder.of(self._workdir, job_id).read_exit() is not None:
                self._jobs[job_id].finished_early = True
                self._finished.add(job_id)
        for start in running:
            self._start(start, adopt_only=not self.repeats_starts)
        return None

    def watch(self, job_id: str, steps: float) -> None:
        """Do nothing: jobs report their progress by themselves."""

    def accept(self, wish: Event) -> bool:
        """Return whether a job can be cancelled or paused, which the scheduler then does; False if it has finished."""
        return not (isinstance(wish, JobCancelled | JobPaused) and wish.job_id in self._finished)

    def loss(self, job: Job, steps: float) -> float:
        """Return the last loss that a job reported; nan if none."""
        return JobFolder.of(self._workdir, job.job_id).read_loss()

    def log(self, job_id: str) -> Path:
        """Return the file with the output of a job."""
        return JobFolder.of(self._workdir, job_id).log

    def close(self) -> None:
        """Stop every gang: TERM, checkpoint, KILL after the grace.

        A first interrupt shortens the grace; after a second one, supervisors stop their gangs alone. What an engine has
        goes on if this process is killed.
        """
        if self._closed:
            return
        self._closed = True
        self._clock.save(at_once=True)
        try:
            if self._world is not None:
                self._close_world(self._world)
        finally:
            os.close(self._lock)

    def _close_world(self, world: ProcessWorld) -> None:
        try:
            world.close(stop_jobs=True)
        except KeyboardInterrupt:
            world.close(stop_jobs=True, hurry=True)
            raise

    def _forget_earlier_run(self) -> None:
        """Remove what another run left in the folders of jobs that have not been submitted in this one."""
        if not self._is_resumed:
            marks = self._workdir / CLUSTER  # of another run: no longer ours
            if marks.is_file():  # a job may have this name, too
                marks.unlink()
        for job in self._coming:
            for pattern in OF_A_RUN:
                for path in JobFolder.of(self._workdir, job.job_id).path.glob(pattern):
                    path.unlink()

    # ---- decisions -----------------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Carry out a decision. A decision about an earlier epoch or an ended job is ignored."""
        match decision:
            case Start() | Starts():
                for start in decision.each():
                    self._start(start)
            case Renew(job_ids, until):
                for job_id in job_ids:
                    if job_id in self._live:
                        job = self._jobs[job_id]
                        job.end_s = self._lease_end(until)
                        self._driver.extend(job_id, job.epoch, job.end_s)
            case Stop(job_ids, epochs, save):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._stop(job_id, int(epoch), save)
            case SetTimer(at):
                self._wake = at
            case Refuse(job_id, why):
                _log.info("job %r refused: %s", job_id, why)
            case Ask():
                raise AssertionError("an ask was sent to a backend")
        self._hand_over()

    def _hand_over(self) -> None:
        if self._world is not None and self._driver.orders:
            self._world.carry_out(self._driver.take_orders())

    def _start(self, start: Start, adopt_only: bool = False) -> None:
        gangs = start.gangs()
        for job_id, epoch in gangs:
            job = self._jobs[job_id]
            job.spec, job.shape, job.end_s = self._spec(job.job), start.shape, self._lease_end(start.until)
            if self._driver.start(job, epoch, start.seats, shared=len(gangs) > 1, adopt_only=adopt_only):
                self._live.add(job_id)
            else:
                self._events.append(JobFinished(job_id, epoch))

    def _stop(self, job_id: str, epoch: int, save: bool) -> None:
        job = self._jobs.get(job_id)
        if job is not None and job_id in self._live and job.epoch == epoch:
            job.seats = ()
            self._driver.stop(job_id, epoch, save=save)

    def _spec(self, job: Job) -> dict[str, Any]:
        return {
            "command": list(job.command),
            "cwd": str(self._cwd),
            "env": {} if self._settings is None else {"EUNOMIA_SETTINGS": json.dumps(self._settings(job.job_id))},
            "checkpoint": {"grace_s": self._grace_s},
            "checkpoint_dir": str(self._cwd / job.checkpoint_dir) if job.checkpoint_dir else "",
            "cpus": job.cpus,
            "memory_gib": job.memory_gib,
        }

    def _lease_end(self, until: float) -> float:
        """Return when a gang stops by itself, in s of time.monotonic: end of the lease + grace for late renewals."""
        return math.inf if math.isinf(until) else self._clock.origin + until + self._grace_s

    # ---- moments -------------------------------------------------------------------------------------------------

    def _more_can_happen(self) -> bool:
        return bool(self._live or self._coming) or self._wake < math.inf

    def _has_events(self) -> bool:
        return bool(self._events or self._steps or self._lost)

    def _due(self) -> float:
        """Return the time of the next submission or timer."""
        return min(self._coming[0].submitted if self._coming else math.inf, self._wake)

    def _wait(self) -> None:
        """Wait for a report or for what is due, and take in all reports that have come."""
        assert self._world is not None
        self._clock.save()
        wait_s = min(max(self._due() - self._clock.now(), 0.0), self._clock.limit_wait(MAX_WAIT_S))
        try:
            report = self._reports.get(timeout=0.0 if self._has_events() else wait_s)
            while True:
                self._take(report)
                report = self._reports.get_nowait()
        except queue.Empty:
            pass
        if self._world.failure is not None:
            raise RuntimeError("no more orders can be carried out; an engine goes on with the gangs that it has") from (
                self._world.failure
            )

    def _next_moment(self) -> Moment | None:
        """Return the earliest unreported moment. Due events have their due time, so that rounds are exact."""
        due, now = self._due(), self._clock.now()
        if due <= now:
            self._at = max(self._at, due)
            return Moment.of(self._at, self._take_due())
        self._at = max(self._at, now)
        if self._lost:  # a moment of their own: beside a pause that a tuner wishes, they would undo it
            lost, self._lost = self._lost, []
            return Moment.of(self._at, lost)
        events, self._events = self._events, []
        if self._steps:
            job_ids = tuple(sorted(self._steps))
            events.append(Progressed(job_ids, tuple(self._steps[job_id] for job_id in job_ids)))
            self._steps = {}
        return Moment.of(self._at, events) if events else None

    def _take_due(self) -> list[Event]:
        events: list[Event] = []
        while self._coming and self._coming[0].submitted <= self._at:
            events.append(JobSubmitted(self._coming.popleft()))
        if self._wake <= self._at:
            self._wake = math.inf
            events.append(TimerFired())
        return events

    def _take(self, report: EngineReport) -> None:
        match report:
            case GangEnded():
                self._take_end(report)
            case StepsSaved(job_id, _, steps) if (job := self._jobs[job_id]).saved_steps != steps:
                job.steps = self._steps[job_id] = steps
                if self._settings is not None and not math.isnan(loss := self.loss(job.job, steps)):
                    self._events.append(Measured(job_id, steps, loss))
            case NodeState(node, reason):
                if reason:
                    _log.warning("node %d is out of service: %s", node, reason)
                self._events.append(NodeLost(node) if reason else NodeJoined(node))
            case SeatsTaken(holders):
                taken, self._taken = self._taken, tuple(seat for seat, _ in holders)
                if taken != self._taken:
                    self._events.append(AcceleratorsTaken(self._taken))
            case LaunchDelayed(job_id, _, reason):
                _log.warning("job %r is launched later: %s", job_id, reason)
            case GangUnknown(job_id, _, reason):
                _log.warning("nothing is known of job %r: %s", job_id, reason)

    def _take_end(self, report: GangEnded) -> None:
        job_id, epoch, job = report.job_id, report.epoch, self._jobs[report.job_id]
        if report.outcome == "finished":
            self._finished.add(job_id)
        if epoch != job.epoch or job_id not in self._live:  # it was stopped, and has started again
            return
        self._live.discard(job_id)
        match self._driver.end(job, report):
            case "finished":
                self._events.append(JobFinished(job_id, epoch))
            case "failed":
                self._events.append(JobFailed(job_id, epoch, report.reason))
            case "lost":
                _log.warning("job %r waits again: %s", job_id, report.reason or "it was stopped")
                self._lost += [JobPaused(job_id), JobResumed(job_id)]
            case "stopped":
                _log.info("job %r stopped", job_id)
