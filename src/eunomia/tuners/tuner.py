"""The narrow interface between a search and the world that its trials run in.

A tuner owns the jobs of one app. It is told how good they are and answers with wishes; it never sees the scheduler.
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
    """What a user wants now: to be told when jobs have done so many steps, and events that come true in the world."""

    watch: Mapping[str, float] = field(default_factory=dict)  # job -> steps
    events: Sequence[Wish] = ()


NOTHING = TunerRequests()


class InvalidTunerRequest(ValueError):
    """What a tuner returned that can be nobody's wish; it names the tuner's mistake."""


class Tuner(Protocol):
    """The user of one app. Deterministic: the same words, the same wishes."""

    def begin(self, app: str, trials: Sequence[Job]) -> TunerRequests:
        """The app begins; these are the trials that it is known to have, some of which may be submitted later."""
        ...

    def ask(self) -> Sequence[str]:
        """Return the trials that are to be submitted from now on and were not asked for before.

        It is asked whenever it has been told something. A trial comes when it is asked for, but not before its time.
        """
        ...

    def settings(self, job_id: str) -> Mapping[str, Any]:
        """Return what a trial is to be run with, the same whenever asked; for worlds that run real ones."""
        ...

    def submitted(self, job: Job) -> TunerRequests:
        """A trial has been submitted."""
        ...

    def measured(self, job_id: str, steps: float, loss: float) -> TunerRequests:
        """A trial that is watched has done so many steps."""
        ...

    def ended(self, job_id: str, loss: float) -> TunerRequests:
        """A trial has ended with this loss; nan = it failed for good, was refused, or somebody else cancelled it."""
        ...
