"""A tuner that is not ours, held to what every tuner promises."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eunomia.model.events import AppFinished
from eunomia.model.job import Job
from eunomia.tuners.tuner import InvalidTunerRequest, Tuner, TunerRequests, Wish


class CheckedTuner:
    """A tuner that is not ours, held to the interface: what it returns is checked before it comes true."""

    def __init__(self, tuner: Tuner, name: str) -> None:
        self._tuner, self._name = tuner, name
        self._app, self._trials = "", frozenset[str]()

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Pass it on."""
        self._app, self._trials = app, frozenset(job.job_id for job in trials)
        return self._wishes("begin", lambda: self._tuner.begin(app, trials))

    def ask(self) -> Sequence[str]:
        """Pass it on. Raises InvalidTunerRequest for what is no list of its trials."""
        asked = self._asked("ask", self._tuner.ask)
        if isinstance(asked, str) or not isinstance(asked, Sequence):
            raise self._mistake("ask", f"returned {type(asked).__name__}; return a list of job ids")
        self._demand_own("ask", asked)
        return asked

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Pass it on. Raises InvalidTunerRequest for what is no mapping."""
        said = self._asked("settings", lambda: self._tuner.settings(job_id))
        if not isinstance(said, Mapping):
            raise self._mistake("settings", f"returned {type(said).__name__}; return a mapping")
        return said

    def submitted(self, job: Job) -> TunerRequests:
        """Pass it on."""
        return self._wishes("submitted", lambda: self._tuner.submitted(job))

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Pass it on."""
        return self._wishes("measured", lambda: self._tuner.measured(job_id, steps, loss))

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Pass it on."""
        return self._wishes("ended", lambda: self._tuner.ended(job_id, loss))

    def _wishes(self, method: str, word: Callable[[], TunerRequests]) -> TunerRequests:
        """Return what the tuner wishes. Raises InvalidTunerRequest for what can be nobody's wish."""
        wishes = self._asked(method, word)
        if not isinstance(wishes, TunerRequests):
            raise self._mistake(method, f"returned {type(wishes).__name__}; return TunerRequests(...), or NOTHING")
        if not isinstance(wishes.watch, Mapping):
            raise self._mistake(method, "watches what is no mapping; give job ids and steps")
        for name, steps in wishes.watch.items():
            if not isinstance(steps, int | float) or not 0 <= steps < math.inf:
                raise self._mistake(method, f"watches {name!r} for {steps!r} steps; give a number of at least 0")
        self._demand_own(method, wishes.watch)
        for event in wishes.events:
            if not isinstance(event, Wish):
                raise self._mistake(method, f"wishes {event!r}, which is no event of a user")
            if not isinstance(event, AppFinished):
                self._demand_own(method, [event.job_id])
            elif event.app != self._app:
                raise self._mistake(method, f"says that the app {event.app!r} is over, and owns {self._app!r}")
        return wishes

    def _asked(self, method: str, word: Callable[[], Any]) -> Any:
        """Run code of others, which may fail in any way; say where it did."""
        try:
            return word()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            failed = f"failed at {last.filename}:{last.lineno}: {type(error).__name__}: {error}"
            raise self._mistake(method, failed) from error

    def _demand_own(self, method: str, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._trials:
                raise self._mistake(method, f"names {name!r}, which is no trial of its app")

    def _mistake(self, method: str, what: str) -> InvalidTunerRequest:
        return InvalidTunerRequest(f"tuner {self._name}, app {self._app!r}: {method}() {what}")
