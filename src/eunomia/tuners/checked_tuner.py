"""Checks that a plug-in tuner follows the interface of `Tuner`."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eunomia.model.events import AppFinished
from eunomia.model.job import Job
from eunomia.tuners.tuner import InvalidTunerRequest, Tuner, TunerRequests, Wish


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
