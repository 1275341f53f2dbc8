"""Every trial of a simulated run that failed: its reason, the size of its gang, and how long it ran."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.model.decisions import Decision, Start, Starts
from eunomia.model.events import JobFailed, JobSubmitted, Moment


class FailedTrials:
    """An observer. A trial's run time is counted from its start, or from its last start where it was preempted."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, int, float]] = []  # job, reason, accelerators, seconds
        self._size: dict[str, int] = {}
        self._started: dict[str, float] = {}

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Receive one moment and its decisions."""
        for event in moment.events:
            if isinstance(event, JobSubmitted):
                self._size[event.job.job_id] = event.job.scale_factor
            elif isinstance(event, JobFailed):
                ran_s = moment.at - self._started[event.job_id]
                self.found.append((event.job_id, event.reason, self._size[event.job_id], ran_s))
        for decision in decisions:
            if isinstance(decision, Start):
                self._started[decision.job_id] = moment.at
            elif isinstance(decision, Starts):
                self._started |= dict.fromkeys(decision.jobs, moment.at)
