"""A backend with tuners: they receive events of their trials, and their requests become events."""

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

Loss = Callable[[Job, float], float]  # of a job after so many steps; nan if unknown


class TunerBackend:
    """Wraps a backend with a tuner for each of some apps.

    A trial is submitted when its submission time has come and its tuner has requested it; else it never is.
    """

    def __init__(self, world: TunableBackend, jobs: Sequence[Job], tuners: dict[str, Tuner], loss: Loss):
        self._world, self._tuners, self._loss = world, tuners, loss
        self._jobs = {job.job_id: job for job in jobs if job.app in tuners}
        self._trials: dict[str, list[Job]] = {app: [] for app in tuners}
        for job in self._jobs.values():
            self._trials[job.app].append(job)
        self._at = 0.0
        self._started: set[str] = set()  # apps
        self._failures: dict[str, int] = {}
        self._requested: set[str] = set()
        self._deferred: set[str] = set()  # submission time has come, but not requested
        self._submitted: set[str] = set()
        self._cancelled_early: set[str] = set()  # cancelled before submission
        self._paused: set[str] = set()
        self._was_paused: dict[str, bool] = {}  # before this moment, of jobs paused or resumed in it
        self._refused: list[str] = []  # not yet reported to their tuners

    def moments(self) -> Iterator[Moment]:
        """Yield the moments, with the requests of tuners at the same instant."""
        for moment in self._world.moments():
            self._at = moment.at
            events: list[Event] = []
            for event in moment.events:
                events += self._with_requests(event)
            events += self._pause_changes()
            if events:
                yield Moment.of(self._at, events)
            while self._refused:  # by the decisions just made; requests must not wait for the next event
                refused, self._refused = self._refused, []
                requests = [event for name in refused for event in self._lose(name)]
                requests += self._pause_changes()
                if requests:
                    yield Moment.of(self._at, requests)

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision; report a refused trial to its tuner."""
        self._world.carry_out(decision)
        if isinstance(decision, Refuse) and decision.job_id in self._jobs:
            self._refused.append(decision.job_id)

    def _with_requests(self, event: Event) -> list[Event]:
        """Return an event as the scheduler receives it, and the requests of its tuner in response."""
        match event:
            case JobSubmitted(job) if job.job_id in self._jobs:
                return self._arrive(job)
            case JobCancelled(name) if name in self._jobs and name not in self._submitted:
                self._cancelled_early.add(name)
                return self._lose(name)
            case Measured(name, steps, loss) if name in self._jobs:
                if math.isnan(loss):
                    event = replace(event, loss=self._loss(self._jobs[name], steps))
                loss = event.loss
                return [event, *self._notify(name, lambda tuner: tuner.measured(name, steps, loss))]
            case JobFinished(name) | JobFailed(name) | JobCancelled(name) if name in self._jobs:
                return [event, *self._ended(name, event)]
        return [event]

    def _arrive(self, job: Job) -> list[Event]:
        """Submit a trial whose submission time has come, or defer it until it is requested."""
        name, requests = job.job_id, list[Event]()
        if job.app not in self._started:
            self._started.add(job.app)
            requests = self._notify(name, lambda tuner: tuner.begin(job.app, self._trials[job.app]))
        if name not in self._requested:
            self._deferred.add(name)
            return requests
        return [*self._submit(job), *requests]

    def _submit(self, job: Job) -> list[Event]:
        """Submit a trial; cancel it at once if it was cancelled before."""
        name = job.job_id
        self._submitted.add(name)
        late = replace(job, submitted=self._at) if self._at > job.submitted else job
        if name in self._cancelled_early:
            return [JobSubmitted(late), *self._apply([JobCancelled(name, by_tuner=True)])]
        return [JobSubmitted(late), *self._notify(name, lambda tuner: tuner.submitted(late))]

    def _ended(self, name: str, event: Event) -> list[Event]:
        """Notify the tuner of the final end of a trial; that of a paused trial is reported after it resumes."""
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
        return self._notify(name, lambda tuner: tuner.ended(name, loss))

    def _lose(self, name: str) -> list[Event]:
        """Notify the tuner that a trial ended without a result."""
        return self._notify(name, lambda tuner: tuner.ended(name, math.nan))

    def _notify(self, name: str, call: Callable[[Tuner], TunerRequests]) -> list[Event]:
        """Call the tuner of a trial and apply its requests; return the resulting events."""
        app = self._jobs[name].app
        tuner = self._tuners[app]
        requests = call(tuner)
        for job_id, steps in requests.watch.items():
            self._world.watch(job_id, steps)
        events: list[Event] = self._apply(requests.events)
        for job_id in tuner.ask():
            self._requested.add(job_id)
            if job_id in self._deferred:
                self._deferred.remove(job_id)
                events += self._submit(self._jobs[job_id])
        if any(isinstance(event, AppFinished) for event in requests.events):
            self._cancel_unrequested(app)
        return events

    def _apply(self, requests: Sequence[Wish]) -> list[Event]:
        """Apply requested events; return those that the backend accepted and that are not changes of pauses."""
        accepted: list[Event] = []
        for event in requests:
            if isinstance(event, JobCancelled) and event.job_id not in self._submitted:
                self._cancelled_early.add(event.job_id)
            elif self._world.accept(event) or (isinstance(event, JobCancelled) and event.job_id in self._paused):
                if isinstance(event, JobPaused | JobResumed):  # reported at the end of the moment: see `_pause_changes`
                    self._was_paused.setdefault(event.job_id, event.job_id in self._paused)
                else:
                    accepted.append(event)
                if isinstance(event, JobPaused):
                    self._paused.add(event.job_id)
                elif isinstance(event, JobResumed | JobCancelled):
                    self._paused.discard(event.job_id)
                if isinstance(event, JobCancelled):
                    self._was_paused.pop(event.job_id, None)
        return accepted

    def _pause_changes(self) -> list[Event]:
        """Return the net changes of pauses of this moment; opposite requests within it cancel."""
        before, self._was_paused = self._was_paused, {}
        changed = [(name, was_paused) for name, was_paused in before.items() if was_paused != (name in self._paused)]
        return [JobResumed(name) if was_paused else JobPaused(name) for name, was_paused in changed]

    def _cancel_unrequested(self, app: str) -> None:
        """Cancel the trials of a finished app that were never requested; the scheduler does not know them."""
        for job in self._trials[app]:
            if job.job_id not in self._requested:
                self._deferred.discard(job.job_id)
                self._world.accept(JobCancelled(job.job_id))
