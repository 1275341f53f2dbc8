"""A world in which every gang goes at one step per second, and being stopped costs a gang work.

The cost counts as remaining work at once, and what a gang has not made up of it when it is stopped again stays owed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eunomia.model.decisions import Decision, Start, Starts, Stop, WakeAt
from eunomia.model.events import Event, JobFinished, JobSubmitted, Moment, Progressed, Woken
from eunomia.model.job import Job


@dataclass(slots=True)
class _Gang:
    job: Job
    done: float = 0.0  # steps up to `since`; below 0 when stops have cost more than was done
    since: float = math.nan  # nan = it does not run
    epoch: int = 0


class CostlyStops:
    """Moments of arrivals and ends. `cost` gives the steps that a stop costs a gang of so many accelerators."""

    def __init__(self, jobs: Sequence[Job], cost: Callable[[int], float]):
        self._cost = cost
        self._coming = sorted(jobs, key=lambda job: (job.submitted, job.sequence), reverse=True)
        self._gangs = {job.job_id: _Gang(job) for job in jobs}
        self._ends: list[tuple[float, str, int]] = []  # (at, job, epoch), a heap
        self._stopped: list[str] = []  # since the last moment
        self._at, self._wake = 0.0, math.inf

    def moments(self) -> Iterator[Moment]:
        """Yield moments until nothing more can happen."""
        while True:
            events = self._told()
            if not events:
                arrival = self._coming[-1].submitted if self._coming else math.inf
                self._at = min(arrival, self._ends[0][0] if self._ends else math.inf, self._wake)
                if math.isinf(self._at):
                    return
                events = [*self._come(), *self._over()]
                if self._wake <= self._at:
                    self._wake = math.inf
                    events.append(Woken())
            if events:
                yield Moment.of(self._at, events)

    def _told(self) -> list[Event]:
        """Return what gangs that were stopped just now have done."""
        names, self._stopped = tuple(self._stopped), []
        return [Progressed(names, tuple(self._gangs[name].done for name in names))] if names else []

    def _come(self) -> list[Event]:
        come: list[Event] = []
        while self._coming and self._coming[-1].submitted == self._at:
            come.append(JobSubmitted(self._coming.pop()))
        return come

    def _over(self) -> list[Event]:
        over: list[Event] = []
        while self._ends and self._ends[0][0] == self._at:
            _, name, epoch = heapq.heappop(self._ends)
            if self._gangs[name].epoch == epoch and not math.isnan(self._gangs[name].since):
                self._gangs[name].since = math.nan
                over.append(JobFinished(name, epoch))
        return over

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Starts():
                for order in decision.each():
                    self._start(order)
            case Start():
                self._start(decision)
            case Stop():
                for name in decision.job_ids:
                    self._stop(self._gangs[name])
            case WakeAt(at):
                self._wake = at

    def _start(self, order: Start) -> None:
        gang = self._gangs[order.job_id]
        gang.since, gang.epoch = self._at, order.epoch
        heapq.heappush(self._ends, (self._at + gang.job.total_steps - gang.done, order.job_id, order.epoch))

    def _stop(self, gang: _Gang) -> None:
        gang.done += self._at - gang.since - self._cost(gang.job.scale_factor)
        gang.since = math.nan
        self._stopped.append(gang.job.job_id)
