"""What a world reports to a service: reports may be repeated or come late, and name the epoch that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Launched:
    """The gang of this epoch has been started, or was found running."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class GangEnded:
    """The gang of this epoch has ended, and holds no seat any more.

    `outcome`: finished, failed (by itself), stopped (by an order), or lost (its lease lapsed or its supervisor died).
    """

    job_id: str
    epoch: int
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepsSaved:
    """Checkpointed steps of a job."""

    job_id: str
    epoch: int
    steps: float


@dataclass(frozen=True, slots=True)
class OrderTaken:
    """An order was received and will be carried out, whatever happens to the service."""

    number: int


@dataclass(frozen=True, slots=True)
class SeatsTaken:
    """All seats that cannot be given away now, each with who uses it: a stranger's processes, or some of an ended gang
    that cannot be killed."""

    holders: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class MemoryUsed:
    """The most memory that a gang has used on one accelerator so far."""

    job_id: str
    epoch: int
    gib: float


@dataclass(frozen=True, slots=True)
class SeatsIdle:
    """All seats that gangs hold and have hardly used for long, each with since how many seconds."""

    idle_s: tuple[tuple[int, float], ...]


Report: TypeAlias = Launched | GangEnded | StepsSaved | OrderTaken | SeatsTaken | SeatsIdle | MemoryUsed
