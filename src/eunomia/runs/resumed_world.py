"""Resumes a real run of an earlier process: replays recorded moments, then continues with real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from eunomia.backends.inputs import RealBackend
from eunomia.model.decisions import Decision, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import Event, JobFailed, JobFinished, JobSubmitted, Moment, Progressed, TimerFired


class ResumedWorld:
    """A backend that replays the moments of `past` without starting jobs, then continues with `world` at time `at`.

    Gangs that should be running then have ended, as supervisors stop them when the scheduler ends. The first moment
    after the replay reports how: finished, failed, or lost with a node that has joined again.
    """

    def __init__(self, world: RealBackend, past: Sequence[Moment], at: float):
        self._world, self._past, self._at = world, past, at
        self._is_live = False
        self._running: dict[str, Start] = {}  # by job; the start without a partner
        self._submitted: set[str] = set()
        self._finished: set[str] = set()
        self._steps: dict[str, float] = {}
        self._wake = math.inf

    def moments(self) -> Iterator[Moment]:
        """Yield recorded moments, then one with the ends of gangs since, then real moments."""
        for moment in self._past:
            for event in moment.events:
                self._repeat(event)
            yield moment
        self._is_live = True
        at = max([self._at, *(moment.at for moment in self._past[-1:])])
        recovered = self._world.resume(
            at,
            submitted=self._submitted,
            finished=self._finished,
            running=list(self._running.values()),
            steps=self._steps,
            wake=self._wake,
        )
        if recovered is not None:
            yield recovered
        yield from self._world.moments()

    def carry_out(self, decision: Decision) -> None:
        """Carry out a decision; during the replay only track the expected state."""
        if self._is_live:
            self._world.carry_out(decision)
            return
        match decision:
            case Start() | Starts():
                for start in decision.each():
                    for job_id, epoch in start.gangs():
                        self._running[job_id] = Start(job_id, epoch, start.seats, start.until, start.shape)
            case Stop(job_ids, epochs):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._end(job_id, int(epoch))
            case SetTimer(at):
                self._wake = at
            case Renew():
                pass  # ended gangs get a new lease when they start

    def watch(self, job_id: str, steps: float) -> None:
        """Forward the request to report steps of a job."""
        self._world.watch(job_id, steps)

    def accept(self, wish: Event) -> bool:
        """Return whether the backend accepts a tuner's event."""
        return self._world.accept(wish)

    def _end(self, job_id: str, epoch: int) -> None:
        if job_id in self._running and self._running[job_id].epoch == epoch:
            del self._running[job_id]

    def _repeat(self, event: Event) -> None:
        match event:
            case JobSubmitted(job):
                self._submitted.add(job.job_id)
            case JobFinished(job_id, epoch):
                self._finished.add(job_id)
                self._end(job_id, epoch)
            case JobFailed(job_id, epoch):
                self._end(job_id, epoch)
            case Progressed(job_ids, steps):
                self._steps.update(zip(job_ids, map(float, steps), strict=True))
            case TimerFired():
                self._wake = math.inf
