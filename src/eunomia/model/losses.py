"""What the accelerator-seconds that jobs held were good for, and what the others went to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Why seats that a job held made no progress of its own, in the order in which they are told.
HELD_FOR: dict[str, str] = {
    "start": "first starts",
    "restore": "writing and reading checkpoints",
    "placement": "gangs that did not sit close together",
    "neighbours": "other gangs on the same machine",
    "sharing": "partners on the same accelerators; below 0 where two together do more than one alone",
    "rolled_back": "work that a failure or a lost machine undid",
    "failed_jobs": "work of jobs that failed in the end",
    "cancelled_jobs": "work of jobs that were cancelled or killed",
    "standing": "seats kept after the steps of a lease were done",
    "unheard": "seats kept after an end that the scheduler had not heard of",
}


@dataclass(frozen=True, slots=True)
class Losses:
    """Accelerator-seconds that jobs held, two that share counted once: held = useful + Σ lost.

    Useful is what the steps that stay would have taken alone, as well placed as can be, on the same type.
    """

    useful: float
    lost: Mapping[str, float]  # by the keys of HELD_FOR

    @property
    def held(self) -> float:
        """Return the accelerator-seconds that were held."""
        return self.useful + sum(self.lost.values())
