"""A backend whose jobs report their loss while they run, whether or not a tuner watches them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eunomia.backends.protocol import TunableBackend
from eunomia.model.decisions import Decision
from eunomia.model.events import Event, JobSubmitted, Measured, Moment
from eunomia.model.job import Job
from eunomia.tuners.tuner_backend import Loss

REPORTS = 20  # of a job
TOLERANCE = 1e-9  # of steps, relative


class LossReporting:
    """Wraps a backend: every job reports its loss at each twentieth of its steps, and where a tuner watches it."""

    def __init__(self, world: TunableBackend, jobs: Sequence[Job], loss: Loss):
        self._world, self._loss = world, loss
        self._jobs = {job.job_id: job for job in jobs}
        self._reports: dict[str, int] = {}  # so far
        self._watched: dict[str, float] = {}  # steps that a tuner watches

    def moments(self) -> Iterator[Moment]:
        """Yield the moments, with the losses of jobs."""
        for moment in self._world.moments():
            yield Moment(moment.at, tuple(self._with_loss(event) for event in moment.events))

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision."""
        self._world.carry_out(decision)

    def watch(self, job_id: str, steps: float) -> None:
        """Report when the job has done so many steps."""
        self._watched[job_id] = steps
        self._watch(job_id)

    def accept(self, wish: Event) -> bool:
        """Apply a tuner's event now; return False if it is too late."""
        return self._world.accept(wish)

    def _with_loss(self, event: Event) -> Event:
        match event:
            case JobSubmitted(job):
                self._reports[job.job_id] = 0
                self._watch(job.job_id)
            case Measured(name, steps, loss):
                job = self._jobs[name]
                if steps >= self._watched.get(name, math.inf) * (1 - TOLERANCE):
                    del self._watched[name]
                self._reports[name] = math.floor(steps / job.total_steps * REPORTS * (1 + TOLERANCE))
                self._watch(name)
                return replace(event, loss=self._loss(job, steps)) if math.isnan(loss) else event
        return event

    def _watch(self, name: str) -> None:
        """Watch the next report or the steps of the tuner, whichever is first."""
        mark = self._jobs[name].total_steps * (self._reports.get(name, 0) + 1) / REPORTS
        self._world.watch(name, min(mark, self._watched.get(name, math.inf)))
