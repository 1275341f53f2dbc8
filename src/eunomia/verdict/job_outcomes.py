"""The jobs of a real run: how each ended, why, and the last lines of its log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 500  # rows; jobs.csv has the others
URGENT = ("failed", "unfinished", "rejected", "cancelled", "finished")  # statuses, most urgent first


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job of a real run ended. All text is for display only."""

    job_id: str
    status: str  # as in jobs.csv
    reason: str = ""  # of its last failure, or of its refusal
    starts: int = 0
    jct_s: float = math.nan
    log: str = ""  # path
    last_lines: tuple[str, ...] = ()  # of the log, of a job that did not end well

    @property
    def done(self) -> bool:
        """Whether the job ended as its user wanted: finished, or cancelled."""
        return self.status in ("finished", "cancelled")


def by_urgency(outcomes: Sequence[JobOutcome]) -> list[JobOutcome]:
    """Return the jobs, most urgent status first."""
    return sorted(outcomes, key=lambda outcome: URGENT.index(outcome.status))
