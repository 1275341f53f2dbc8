"""Checks that a plug-in tuner follows the interface of `Tuner`; and a backend whose jobs report their loss."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eunomia.backends.protocol import TunableBackend
from eunomia.model.decisions import Decision
from eunomia.model.events import AppFinished, Event, JobSubmitted, Measured, Moment
from eunomia.model.job import Job
from eunomia.tuners.tuner import InvalidTunerRequest, Tuner, TunerRequests, Wish
from eunomia.tuners.tuner_backend import Loss

REPORTS = 20  # of a job
TOLERANCE = 1e-9  # of steps, relative


class CheckedTuner:
    """Wraps a plug-in tuner and checks what it returns. Raises InvalidTunerRequest for anything invalid."""

    def __init__(self, tuner: Tuner, name: str) -> None:
        self._tuner, self._name = tuner, name
        self._app, self._trials = "", frozenset[str]()

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Forward the call."""
        self._app, self._trials = app, frozenset(job.job_id for job in trials)
        return self._requests("begin", lambda: self._tuner.begin(app, trials))

    def ask(self) -> Sequence[str]:
        """Forward the call; the result must be a list of trials of the app."""
        trials = self._call("ask", self._tuner.ask)
        if isinstance(trials, str) or not isinstance(trials, Sequence):
            raise self._error("ask", f"returned {type(trials).__name__}; return a list of job ids")
        self._check_trials("ask", trials)
        return trials

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Forward the call; the result must be a mapping."""
        settings = self._call("settings", lambda: self._tuner.settings(job_id))
        if not isinstance(settings, Mapping):
            raise self._error("settings", f"returned {type(settings).__name__}; return a mapping")
        return settings

    def submitted(self, job: Job) -> TunerRequests:
        """Forward the call."""
        return self._requests("submitted", lambda: self._tuner.submitted(job))

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Forward the call."""
        return self._requests("measured", lambda: self._tuner.measured(job_id, steps, loss))

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Forward the call."""
        return self._requests("ended", lambda: self._tuner.ended(job_id, loss))

    def _requests(self, method: str, function: Callable[[], TunerRequests]) -> TunerRequests:
        """Call a method of the tuner and check the requests that it returns."""
        requests = self._call(method, function)
        if not isinstance(requests, TunerRequests):
            raise self._error(method, f"returned {type(requests).__name__}; return TunerRequests(...), or NOTHING")
        if not isinstance(requests.watch, Mapping):
            raise self._error(method, "watches what is no mapping; give job ids and steps")
        for name, steps in requests.watch.items():
            if not isinstance(steps, int | float) or not 0 <= steps < math.inf:
                raise self._error(method, f"watches {name!r} for {steps!r} steps; give a number of at least 0")
        self._check_trials(method, requests.watch)
        for event in requests.events:
            if not isinstance(event, Wish):
                raise self._error(method, f"wishes {event!r}, which is no event of a user")
            if not isinstance(event, AppFinished):
                self._check_trials(method, [event.job_id])
            elif event.app != self._app:
                raise self._error(method, f"says that the app {event.app!r} is over, and owns {self._app!r}")
        return requests

    def _call(self, method: str, function: Callable[[], Any]) -> Any:
        """Run code of the plug-in. Raises InvalidTunerRequest with the line at which it raised any exception."""
        try:
            return function()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            failed = f"failed at {last.filename}:{last.lineno}: {type(error).__name__}: {error}"
            raise self._error(method, failed) from error

    def _check_trials(self, method: str, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._trials:
                raise self._error(method, f"names {name!r}, which is no trial of its app")

    def _error(self, method: str, what: str) -> InvalidTunerRequest:
        return InvalidTunerRequest(f"tuner {self._name}, app {self._app!r}: {method}() {what}")


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
