"""A simulation in which every gang runs at one step per second, and stopping a gang costs it work.

The cost counts as remaining work at once; what a gang has not made up of it when it is stopped again stays owed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eunomia.backends.simulated.virtual_clock import VirtualClock
from eunomia.model.decisions import Start, Stop
from eunomia.model.events import Event, JobFinished, Progressed
from eunomia.model.job import Job


@dataclass(slots=True)
class _Gang:
    job: Job
    done: float = 0.0  # steps up to `since`; below 0 when stops have cost more than was done
    since: float = math.nan  # nan = it does not run
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class _End:
    gang: _Gang
    epoch: int


class CostlyStops(VirtualClock):
    """`cost` gives the steps that a stop costs a gang of so many accelerators."""

    def __init__(self, jobs: Sequence[Job], cost: Callable[[int], float]):
        super().__init__(jobs)
        self._cost = cost
        self._gangs = {job.job_id: _Gang(job) for job in jobs}

    def _happen(self, event: object) -> list[Event]:
        if not isinstance(event, _End):
            return super()._happen(event)
        gang = event.gang
        if gang.epoch != event.epoch or math.isnan(gang.since):
            return []
        gang.since = math.nan
        self._unfinished -= 1
        return [JobFinished(gang.job.job_id, gang.epoch)]

    def _start_gang(self, order: Start) -> None:
        gang = self._gangs[order.job_id]
        gang.since, gang.epoch = self._at, order.epoch
        self._schedule(self._at + gang.job.total_steps - gang.done, _End(gang, order.epoch))

    def _stop(self, order: Stop) -> None:
        gangs = [self._gangs[name] for name in order.job_ids]
        for gang in gangs:
            gang.done += self._at - gang.since - self._cost(gang.job.scale_factor)
            gang.since = math.nan
        self._schedule(self._at, Progressed(tuple(order.job_ids), tuple(gang.done for gang in gangs)))
