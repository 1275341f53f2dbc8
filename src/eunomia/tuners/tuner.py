"""The interface between a tuner and the backend that runs its trials.

A tuner owns the jobs of one app. It receives their losses and returns requests; it has no access to the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
