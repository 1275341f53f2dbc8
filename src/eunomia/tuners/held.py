"""A tuner that is not ours, held to what every tuner promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eunomia.model.events import AppFinished
from eunomia.model.job import Job
from eunomia.tuners.tuner import InvalidWish, Tuner, Wishes


class Held:
    """A tuner that is not ours, held to the interface: what it returns is checked before it comes true."""

    def __init__(self, tuner: Tuner, name: str) -> None:
        self._tuner, self._name = tuner, name
        self._app, self._trials = "", frozenset[str]()

    def begin(self, app: str, trials: Sequence[Job]) -> Wishes:
        """Pass it on."""
        self._app, self._trials = app, frozenset(job.job_id for job in trials)
        return self._wishes("begin", lambda: self._tuner.begin(app, trials))

    def ask(self) -> Sequence[str]:
        """Pass it on. Raises InvalidWish for what is no list of its trials."""
        asked = self._tuner.ask()
        if isinstance(asked, str) or not isinstance(asked, Sequence):
            raise self._mistake("ask", f"returned {type(asked).__name__}; return a list of job ids")
        self._demand_own("ask", asked)
        return asked

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Pass it on."""
        return self._tuner.settings(job_id)

    def submitted(self, job: Job) -> Wishes:
        """Pass it on."""
        return self._wishes("submitted", lambda: self._tuner.submitted(job))

    def measured(self, job_id: str, steps: float, loss: float) -> Wishes:
        """Pass it on."""
        return self._wishes("measured", lambda: self._tuner.measured(job_id, steps, loss))

    def ended(self, job_id: str, loss: float) -> Wishes:
        """Pass it on."""
        return self._wishes("ended", lambda: self._tuner.ended(job_id, loss))

    def _wishes(self, method: str, word: Callable[[], Wishes]) -> Wishes:
        wishes = word()
        if not isinstance(wishes, Wishes):
            raise self._mistake(method, f"returned {type(wishes).__name__}; return Wishes(...), or NOTHING")
        self._demand_own(method, wishes.watch)
        for event in wishes.events:
            if isinstance(event, AppFinished):
                if event.app != self._app:
                    raise self._mistake(method, f"says that the app {event.app!r} is over, and owns {self._app!r}")
            else:
                self._demand_own(method, [event.job_id])
        return wishes

    def _demand_own(self, method: str, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._trials:
                raise self._mistake(method, f"names {name!r}, which is no trial of its app")

    def _mistake(self, method: str, what: str) -> InvalidWish:
        return InvalidWish(f"tuner {self._name}, app {self._app!r}: {method}() {what}")
