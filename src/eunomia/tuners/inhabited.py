"""A world with users in it: they hear what their jobs do, and what they wish becomes part of what happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from eunomia.backends.door import Habitable
from eunomia.model.decisions import Decision, Refuse
from eunomia.model.events import Event, JobCancelled, JobFailed, JobFinished, JobSubmitted, Measured, Moment
from eunomia.model.job import Job
from eunomia.tuners.tuner import NOTHING, Tuner, Wish, Wishes

Loss = Callable[[Job, float], float]  # of a job that has done so many steps; nan = nobody knows


class Inhabited:
    """A backend: another world, and a tuner for every app that has one. `loss` says how good a job is."""

    def __init__(self, world: Habitable, jobs: Sequence[Job], tuners: dict[str, Tuner], loss: Loss):
        self._world, self._tuners, self._loss = world, tuners, loss
        self._jobs = {job.job_id: job for job in jobs if job.app in tuners}
        self._trials: dict[str, list[Job]] = {app: [] for app in tuners}
        for job in self._jobs.values():
            self._trials[job.app].append(job)
        self._begun: set[str] = set()
        self._failures: dict[str, int] = {}
        self._submitted: set[str] = set()
        self._unwanted: set[str] = set()  # given up before they were submitted; cancelled when they are
        self._unheard: list[Wish] = []  # wishes that came while something was carried out

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, with what users wish at once because of it."""
        for moment in self._world.moments():
            events = [self._told(event) for event in moment.events]
            wishes, self._unheard = self._unheard, []
            for event in events:
                wishes += self._wishes(self._ask(event))
            yield Moment.of(moment.at, [*events, *wishes])

    def carry_out(self, decision: Decision) -> None:
        """Do as decided; who is refused ends for its tuner too."""
        self._world.carry_out(decision)
        if isinstance(decision, Refuse) and decision.job_id in self._jobs:
            self._unheard += self._wishes(self._tuner(decision.job_id).ended(decision.job_id, math.nan))

    def _tuner(self, job_id: str) -> Tuner:
        return self._tuners[self._jobs[job_id].app]

    def _told(self, event: Event) -> Event:
        """Return the event with the loss that only the job's user knows."""
        if isinstance(event, Measured) and math.isnan(event.loss) and event.job_id in self._jobs:
            return replace(event, loss=self._loss(self._jobs[event.job_id], event.steps))
        return event

    def _ask(self, event: Event) -> Wishes:
        """Tell the tuner whose job the event concerns; return what it wishes."""
        match event:
            case JobSubmitted(job) if job.job_id in self._jobs:
                tuner, wishes = self._tuners[job.app], NOTHING
                self._submitted.add(job.job_id)
                if job.job_id in self._unwanted:
                    return Wishes(events=[JobCancelled(job.job_id)])
                if job.app not in self._begun:
                    self._begun.add(job.app)
                    wishes = tuner.begin(job.app, self._trials[job.app])
                more = tuner.submitted(job)
                return Wishes({**wishes.watch, **more.watch}, [*wishes.events, *more.events])
            case Measured(name, steps, loss) if name in self._jobs:
                return self._tuner(name).measured(name, steps, loss)
            case JobFinished(name) if name in self._jobs:
                job = self._jobs[name]
                return self._tuner(name).ended(name, self._loss(job, job.total_steps))
            case JobCancelled(name) if name in self._jobs:
                return self._tuner(name).ended(name, math.nan)
            case JobFailed(name) if name in self._jobs:
                self._failures[name] = self._failures.get(name, 0) + 1
                if self._failures[name] > self._jobs[name].retries:
                    return self._tuner(name).ended(name, math.nan)
        return NOTHING

    def _wishes(self, wishes: Wishes) -> list[Wish]:
        """Let wishes come true; return those that did."""
        for name, steps in wishes.watch.items():
            self._world.watch(name, steps)
        return [wish for wish in wishes.events if not self._is_early(wish) and self._world.accept(wish)]

    def _is_early(self, wish: Wish) -> bool:
        """Say whether a trial is given up that nobody else has heard of yet, and keep it in mind."""
        if not isinstance(wish, JobCancelled) or wish.job_id in self._submitted:
            return False
        self._unwanted.add(wish.job_id)
        return True
