"""What is ordered of a world of processes: gangs to start and to stop. An order may be handed over more than once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a gang on these seats, or adopt it if it runs. `number` orders the outbox."""

    number: int
    job_id: str
    epoch: int
    seats: tuple[int, ...]
    spec: dict[str, Any] = field(hash=False)
    total_steps: float = 0.0  # 0 = not declared
    array_index: int | None = None
    shared: bool = False  # a partner has the same seats
    adopt_only: bool = False  # it was running: do not start it again
    user: str = ""  # who submitted the job
    shape: int = 0  # index of its shape
    end_s: float | None = None  # when the gang stops by itself, in s of time.monotonic, see `Extend`; None = never


@dataclass(frozen=True, slots=True)
class Halt:
    """Stop a gang, after a checkpoint with `save`."""

    number: int
    job_id: str
    epoch: int
    save: bool = True


@dataclass(frozen=True, slots=True)
class Extend:
    """Let a gang run until another time. An engine keeps gangs without such an end."""

    number: int
    job_id: str
    epoch: int
    end_s: float


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Tell the engine that a node has left service, and why, or has come back (reason ""). Not for the local world."""

    number: int
    node: int
    reason: str = ""


Order: TypeAlias = Launch | Halt | Extend | DrainNode
