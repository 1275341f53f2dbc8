"""What backends in real time share: submissions and timers that fall due, and decisions handed to gangs."""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from eunomia.backends.inputs import BackendClass
from eunomia.backends.processes.clock import RunClock
from eunomia.backends.processes.folder import lock
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import Event, JobCancelled, JobPaused, JobSubmitted, Moment, TimerFired
from eunomia.model.job import Job

_log = logging.getLogger(__name__)


class RealWorld(BackendClass):
    """Base of worlds that run the jobs of a scenario as processes. Close it, or use it with `with`."""

    real_time = True

    def __init__(
        self, jobs: Sequence[Job], workdir: Path, cwd: Path, *, clock: Path | None = None, wait_s: float = 0.0
    ) -> None:
        self._jobs = {job.job_id: job for job in jobs}
        self._coming = deque(sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id)))
        self._workdir, self._cwd = workdir.resolve(), cwd.resolve()
        self._finished: set[str] = set()
        self._events: list[Event] = []  # not yet reported
        self._wake, self._at = math.inf, 0.0  # when the timer fires; time of the last moment
        self._clock = RunClock(clock)
        self._is_resumed = self._closed = False
        self._lock = lock(self._workdir, wait_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Stop every gang."""

    def carry_out(self, decision: Decision) -> None:
        """Carry out a decision. A decision about an earlier epoch or an ended job is ignored."""
        match decision:
            case Start():
                self._start(decision)
            case Starts():
                for order in decision.each():
                    self._start(order)
            case Renew(job_ids, until):
                for job_id in job_ids:
                    self._renew(job_id, until)
            case Stop(job_ids, epochs, save):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._stop(job_id, int(epoch), save)
            case SetTimer(at):
                self._wake = at
            case Refuse(job_id, why):
                _log.info("job %r refused: %s", job_id, why)
            case Ask():
                raise AssertionError("an ask was sent to a backend")

    @abstractmethod
    def _start(self, start: Start) -> None:
        """Start the one or two gangs of a start when their seats are free."""

    @abstractmethod
    def _stop(self, job_id: str, epoch: int, save: bool) -> None:
        """Stop a gang, if it has not ended."""

    def _renew(self, job_id: str, until: float) -> None:
        """Renew the lease of a job, in a world where leases have an end."""

    def watch(self, job_id: str, steps: float) -> None:
        """Do nothing: jobs report their progress by themselves."""

    def accept(self, wish: Event) -> bool:
        """Return whether a job can be cancelled or paused, which the scheduler then does; False if it has finished."""
        return not (isinstance(wish, JobCancelled | JobPaused) and wish.job_id in self._finished)

    def _due(self) -> float:
        """Return the time of the next submission or timer."""
        return min(self._coming[0].submitted if self._coming else math.inf, self._wake)

    def _next_moment(self) -> Moment | None:
        """Return the earliest unreported moment. Due events have their due time, so that rounds are exact."""
        due, now = self._due(), self._clock.now()
        if due <= now:
            self._at = max(self._at, due)
            return Moment.of(self._at, self._take_due())
        self._at = max(self._at, now)
        events = self._take_events()
        return Moment.of(self._at, events) if events else None

    def _take_due(self) -> list[Event]:
        events: list[Event] = []
        while self._coming and self._coming[0].submitted <= self._at:
            events.append(JobSubmitted(self._coming.popleft()))
        if self._wake <= self._at:
            self._wake = math.inf
            events.append(TimerFired())
        return events

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events
