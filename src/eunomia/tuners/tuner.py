"""The interface between a tuner and the backend that runs its trials; the base class of tuners, and the plainest one.

A tuner owns the jobs of one app. It receives their losses and returns requests; it has no access to the scheduler.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eunomia.model.events import AppFinished, JobCancelled, JobPaused, JobResumed, JobUpdated
from eunomia.model.job import Job

Wish = JobUpdated | JobPaused | JobResumed | JobCancelled | AppFinished


@dataclass(frozen=True, slots=True)
class TunerRequests:
    """Requests of a tuner: report when jobs have done so many steps, and events to apply in the backend."""

    watch: Mapping[str, float] = field(default_factory=dict)  # job -> steps
    events: Sequence[Wish] = ()


NOTHING = TunerRequests()


class InvalidTunerRequest(ValueError):
    """A tuner returned something invalid."""


class Tuner(Protocol):
    """The user of one app. Deterministic: equal calls have equal results."""

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Start the app with its trials, some of which may arrive later."""
        ...

    def ask(self) -> Sequence[str]:
        """Return further trials to submit; called after every other method.

        A trial is submitted when it is returned here, but not before its submission time.
        """
        ...

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Return the settings of a trial, always the same; for backends with real processes."""
        ...

    def submitted(self, job: Job) -> TunerRequests:
        """Handle the submission of a trial."""
        ...

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Handle a report of a watched trial."""
        ...

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Handle the end of a trial; a loss of nan = failed for good, refused, or cancelled by another user."""
        ...


class Trials:
    """The trials of one app, in order of submission; runs them all to completion, as random search does.

    Submits at most `parallel` trials at a time and at most `most` in all; None = no limit. The app ends with its last
    trial. Its result is the best completed trial; without a completed trial the app has not finished.
    """

    def __init__(self, *, parallel: int | None = None, most: int | None = None) -> None:
        self.app = ""
        self.jobs: dict[str, Job] = {}  # that it may submit
        self.alive: dict[str, None] = {}  # submitted or not, and not ended
        self.parallel, self._most = parallel, most
        self._unsubmitted: deque[str] = deque()
        self._running: set[str] = set()  # submitted, and alive at the last `ask`
        self._best = (math.inf, "")  # loss and trial
        self._is_over = False

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """Store the trials."""
        self.app = app
        self.jobs = {job.job_id: job for job in trials[: self._most]}
        self.alive = dict.fromkeys(self.jobs)
        self._unsubmitted.extend(self.jobs)
        return NOTHING

    def ask(self) -> Sequence[str]:
        """Return further trials to submit."""
        self._running &= self.alive.keys()
        room = len(self.jobs) if self.parallel is None else self.parallel - self._occupied()
        chosen: list[str] = []
        while self._unsubmitted and len(chosen) < room:
            name = self._unsubmitted.popleft()
            chosen += [name] if name in self.alive else []
        self._running.update(chosen)
        return chosen

    def _occupied(self) -> int:
        """Return how many of the `parallel` places are taken."""
        return len(self._running)

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Return no settings: the command of a trial has them."""
        return {}

    def submitted(self, job: Job) -> TunerRequests:
        """Request nothing."""
        return NOTHING

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """Request nothing."""
        return NOTHING

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """Record the loss of a trial."""
        self.alive.pop(job_id, None)
        if not math.isnan(loss):
            self._best = min(self._best, (loss, job_id))
        return TunerRequests(events=self.finish())

    def drop(self, names: Iterable[str]) -> list[JobCancelled]:
        """Cancel these trials; return the events."""
        cancelled = [name for name in names if name in self.alive]
        for name in cancelled:
            del self.alive[name]
        return [JobCancelled(name, by_tuner=True) for name in cancelled]

    def finish(self) -> list[AppFinished]:
        """Return the event that the app has finished, once, when no trial is alive; without result its trial is ""."""
        if self.alive or self._is_over:
            return []
        self._is_over = True
        loss, name = self._best
        return [AppFinished(self.app, name, loss)]
