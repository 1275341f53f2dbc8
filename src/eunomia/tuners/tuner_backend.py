"""A world with users in it: they hear what their jobs do, and what they wish becomes part of what happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from eunomia.backends.protocol import TunableBackend
from eunomia.model.decisions import Decision, Refuse
from eunomia.model.events import (
    AppFinished,
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Measured,
    Moment,
)
from eunomia.model.job import Job
from eunomia.tuners.tuner import Tuner, TunerRequests, Wish

Loss = Callable[[Job, float], float]  # of a job that has done so many steps; nan = nobody knows


class TunerBackend:
    """A backend: another world, and a tuner for every app that has one. `loss` says how good a job is.

    A trial is submitted when its time has come and its tuner has asked for it; what is never asked for never happens.
    """

    def __init__(self, world: TunableBackend, jobs: Sequence[Job], tuners: dict[str, Tuner], loss: Loss):
        self._world, self._tuners, self._loss = world, tuners, loss
        self._jobs = {job.job_id: job for job in jobs if job.app in tuners}
        self._trials: dict[str, list[Job]] = {app: [] for app in tuners}
        for job in self._jobs.values():
            self._trials[job.app].append(job)
        self._at = 0.0
        self._begun: set[str] = set()
        self._failures: dict[str, int] = {}
        self._asked: set[str] = set()
        self._held: set[str] = set()  # their time has come, but they were not asked for
        self._submitted: set[str] = set()
        self._unwanted: set[str] = set()  # given up before they were submitted
        self._paused: set[str] = set()
        self._was_paused: dict[str, bool] = {}  # before this moment, of those that were paused or resumed in it
        self._refused: list[str] = []  # whose tuners have not heard of it yet

    def moments(self) -> Iterator[Moment]:
        """Yield what happens, with what users wish at once because of it."""
        for moment in self._world.moments():
            self._at = moment.at
            events: list[Event] = []
            for event in moment.events:
                events += self._heard(event)
            events += self._turned()
            if events:
                yield Moment.of(self._at, events)
            while self._refused:  # by what was decided just now; what users wish then must not wait for more to happen
                refused, self._refused = self._refused, []
                wishes = [wish for name in refused for wish in self._gone(name)]
                wishes += self._turned()
                if wishes:
                    yield Moment.of(self._at, wishes)

    def carry_out(self, decision: Decision) -> None:
        """Do as decided; who is refused ends for its tuner too."""
        self._world.carry_out(decision)
        if isinstance(decision, Refuse) and decision.job_id in self._jobs:
            self._refused.append(decision.job_id)

    # ---- what happens ----------------------------------------------------------------------------------------

    def _heard(self, event: Event) -> list[Event]:
        """Return what is heard of an event, and what its user wishes because of it."""
        match event:
            case JobSubmitted(job) if job.job_id in self._jobs:
                return self._come(job)
            case JobCancelled(name) if name in self._jobs and name not in self._submitted:
                self._unwanted.add(name)
                return self._gone(name)
            case Measured(name, steps, loss) if name in self._jobs:
                if math.isnan(loss):
                    event = replace(event, loss=self._loss(self._jobs[name], steps))
                loss = event.loss
                return [event, *self._told(name, lambda tuner: tuner.measured(name, steps, loss))]
            case JobFinished(name) | JobFailed(name) | JobCancelled(name) if name in self._jobs:
                return [event, *self._ended(name, event)]
        return [event]

    def _come(self, job: Job) -> list[Event]:
        """A trial's time has come: it is submitted, or held back until it is asked for."""
        name, wishes = job.job_id, list[Event]()
        if job.app not in self._begun:
            self._begun.add(job.app)
            wishes = self._told(name, lambda tuner: tuner.begin(job.app, self._trials[job.app]))
        if name not in self._asked:
            self._held.add(name)
            return wishes
        return [*self._submit(job), *wishes]

    def _submit(self, job: Job) -> list[Event]:
        """Let a trial become known to all; one that was given up before is cancelled on arrival."""
        name = job.job_id
        self._submitted.add(name)
        late = replace(job, submitted=self._at) if self._at > job.submitted else job
        if name in self._unwanted:
            return [JobSubmitted(late), *self._true([JobCancelled(name, by_tuner=True)])]
        return [JobSubmitted(late), *self._told(name, lambda tuner: tuner.submitted(late))]

    def _ended(self, name: str, event: Event) -> list[Event]:
        """Tell its user that a trial has ended for good; of one that is paused there will be word when it goes on."""
        loss = math.nan
        if isinstance(event, JobFailed):
            if name in self._paused:
                return []
            self._failures[name] = self._failures.get(name, 0) + 1
            if self._jobs[name].may_retry(self._failures[name]):
                return []
        elif isinstance(event, JobFinished):
            if name in self._paused:
                return []
            loss = self._loss(self._jobs[name], self._jobs[name].total_steps)
        return self._told(name, lambda tuner: tuner.ended(name, loss))

    def _gone(self, name: str) -> list[Event]:
        """Tell its user that a trial has ended without a result."""
        return self._told(name, lambda tuner: tuner.ended(name, math.nan))

    # ---- what users wish -------------------------------------------------------------------------------------

    def _told(self, name: str, word: Callable[[Tuner], TunerRequests]) -> list[Event]:
        """Tell the tuner of a trial something; return what it wishes and what of it came true."""
        app = self._jobs[name].app
        tuner = self._tuners[app]
        wishes = word(tuner)
        for job_id, steps in wishes.watch.items():
            self._world.watch(job_id, steps)
        events: list[Event] = self._true(wishes.events)
        for job_id in tuner.ask():
            self._asked.add(job_id)
            if job_id in self._held:
                self._held.remove(job_id)
                events += self._submit(self._jobs[job_id])
        if any(isinstance(wish, AppFinished) for wish in wishes.events):
            self._forget_rest(app)
        return events

    def _true(self, wishes: Sequence[Wish]) -> list[Event]:
        """Let wishes come true; return those that did and that others hear of."""
        done: list[Event] = []
        for wish in wishes:
            if isinstance(wish, JobCancelled) and wish.job_id not in self._submitted:
                self._unwanted.add(wish.job_id)
            elif self._world.accept(wish) or (isinstance(wish, JobCancelled) and wish.job_id in self._paused):
                if isinstance(wish, JobPaused | JobResumed):  # told when the moment is whole: see `_turned`
                    self._was_paused.setdefault(wish.job_id, wish.job_id in self._paused)
                else:
                    done.append(wish)
                if isinstance(wish, JobPaused):
                    self._paused.add(wish.job_id)
                elif isinstance(wish, JobResumed | JobCancelled):
                    self._paused.discard(wish.job_id)
                if isinstance(wish, JobCancelled):
                    self._was_paused.pop(wish.job_id, None)
        return done

    def _turned(self) -> list[Event]:
        """Return whose rest begins or ends with this moment, whatever their users wished in between."""
        before, self._was_paused = self._was_paused, {}
        turned = [(name, rested) for name, rested in before.items() if rested != (name in self._paused)]
        return [JobResumed(name) if rested else JobPaused(name) for name, rested in turned]

    def _forget_rest(self, app: str) -> None:
        """The search is over: let the world end what it never asked for, of which nobody else has heard."""
        for job in self._trials[app]:
            if job.job_id not in self._asked:
                self._held.discard(job.job_id)
                self._world.accept(JobCancelled(job.job_id))
