"""A world whose jobs tell how good they are as they go on, whether or not they belong to a search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eunomia.backends.protocol import TunableBackend
from eunomia.model.decisions import Decision
from eunomia.model.events import Event, JobSubmitted, Measured, Moment
from eunomia.model.job import Job
from eunomia.tuners.tuner_backend import Loss

REPORTS = 20  # of a job until its end
_SAME = 1e-9  # relative: steps that differ by rounding alone


class LossReporting:
    """A backend: another world, in which every job tells its loss at each twentieth of its steps.

    Users may watch further steps of theirs. `loss` says how good a job is.
    """

    def __init__(self, world: TunableBackend, jobs: Sequence[Job], loss: Loss):
        self._world, self._loss = world, loss
        self._jobs = {job.job_id: job for job in jobs}
        self._told: dict[str, int] = {}  # reports so far
        self._wanted: dict[str, float] = {}  # steps that a user watches

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, with the losses that jobs tell."""
        for moment in self._world.moments():
            yield Moment(moment.at, tuple(self._heard(event) for event in moment.events))

    def carry_out(self, decision: Decision) -> None:
        """Hand the decision on."""
        self._world.carry_out(decision)

    def watch(self, job_id: str, steps: float) -> None:
        """Have it said when the job has done so many steps."""
        self._wanted[job_id] = steps
        self._watch(job_id)

    def accept(self, wish: Event) -> bool:
        """Let a user's wish come true now; False when it came too late."""
        return self._world.accept(wish)

    def _heard(self, event: Event) -> Event:
        match event:
            case JobSubmitted(job):
                self._told[job.job_id] = 0
                self._watch(job.job_id)
            case Measured(name, steps, loss):
                job = self._jobs[name]
                if steps >= self._wanted.get(name, math.inf) * (1 - _SAME):
                    del self._wanted[name]
                self._told[name] = math.floor(steps / job.total_steps * REPORTS * (1 + _SAME))
                self._watch(name)
                return replace(event, loss=self._loss(job, steps)) if math.isnan(loss) else event
        return event

    def _watch(self, name: str) -> None:
        """Watch what comes first: the next report, or what a user wants to hear."""
        mark = self._jobs[name].total_steps * (self._told.get(name, 0) + 1) / REPORTS
        self._world.watch(name, min(mark, self._wanted.get(name, math.inf)))
