"""What a world of processes reports: it may be repeated or come late, and names the epoch that it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

BY_ENGINE = "reported by "  # begins the reason of a node that an engine took out of service


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
    by_restart: bool = False  # of the machine, which says nothing about the job


@dataclass(frozen=True, slots=True)
class GangFound:
    """A gang runs on these seats that no order has named; its supervisor has the locks of the job and of the seats."""

    job_id: str
    epoch: int
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchDelayed:
    """The gang is launched later, as its machine has none of something now. `Launched` or `GangEnded` follows."""

    job_id: str
    epoch: int
    reason: str


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
class GangUnknown:
    """Nothing is known of the gang, as its engine does not answer. `Launched` or `GangEnded` follows when it does."""

    job_id: str
    epoch: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GangFaulty:
    """What the gang left in its files, or what it was to be started with, cannot be used. `GangEnded` follows when it
    has ended."""

    job_id: str
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node has left service, and why, or has come back (reason "")."""

    node: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QuarantinedSeat:
    """Why a seat is out of service: processes of a job's gang that should have ended."""

    job_id: str
    since: str  # moment in UTC
    why: str


@dataclass(frozen=True, slots=True)
class SeatsTaken:
    """All seats that cannot be given away now, each with who uses it: a stranger's processes, or some of an ended gang
    that cannot be killed. The latter are in `quarantined` too."""

    holders: tuple[tuple[int, str], ...]
    quarantined: tuple[tuple[int, QuarantinedSeat], ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryUsed:
    """The most memory that a gang has used on one accelerator so far."""

    job_id: str
    epoch: int
    gib: float


@dataclass(frozen=True, slots=True)
class EnergyUsed:
    """Energy that a gang's accelerators used since the last such report, and in how many accelerator-seconds."""

    job_id: str
    epoch: int
    energy_j: float
    metered_s: float


@dataclass(frozen=True, slots=True)
class SeatsIdle:
    """All seats that gangs hold and have hardly used for long, each with since how many seconds."""

    idle_s: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class SubmissionFound:
    """A user submitted a job to the engine itself, and it waits to be placed. `key` is that of this submission."""

    key: str
    tenant: str
    user: str
    document: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class SubmissionGone:
    """Such a job has ended without having been started by us: its user cancelled it."""

    key: str
    tenant: str


Report: TypeAlias = (
    Launched
    | LaunchDelayed
    | GangFound
    | GangEnded
    | GangFaulty
    | GangUnknown
    | StepsSaved
    | OrderTaken
    | SeatsTaken
    | SeatsIdle
    | MemoryUsed
    | EnergyUsed
    | NodeState
)
EngineReport: TypeAlias = Report | SubmissionFound | SubmissionGone
