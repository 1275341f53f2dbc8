"""Accelerator-seconds that jobs held: useful ones, and lost ones by reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Reasons of lost time, in the order in which they are reported.
LOST_TIME_REASONS: dict[str, str] = {
    "start": "first starts",
    "restore": "writing and reading checkpoints",
    "placement": "gangs spread over machines",
    "neighbours": "other gangs on the same machine",
    "sharing": "partners on the same accelerators; below 0 where two jobs together do more than one alone",
    "rolled_back": "work that a failure or a lost machine undid",
    "failed_jobs": "work of jobs that failed in the end",
    "cancelled_jobs": "work of jobs that were cancelled or killed",
    "standing": "seats held after the step limit of a lease",
    "unheard": "seats held after an end that was not reported yet",
}


@dataclass(frozen=True, slots=True)
class HeldTime:
    """Accelerator-seconds that jobs held, a shared accelerator counted once: held = useful + Σ lost.

    Useful is the time that the completed steps would take alone, with the best placement, on the same type.
    """

    useful: float
    lost: Mapping[str, float]  # by reason

    @property
    def held(self) -> float:
        """Return the accelerator-seconds that were held."""
        return self.useful + sum(self.lost.values())
