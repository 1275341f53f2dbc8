"""What to do: orders to the world, and questions to the adviser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eunomia.model.view import View


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to the policy; its answer comes as an `Answered` event of the same number."""

    asked: int
    view: View


@dataclass(frozen=True, slots=True)
class Start:
    """Start a gang, or two that share, on these seats. Each start of a job is a new epoch."""

    job_id: str
    epoch: int
    seats: tuple[int, ...]  # devices
    until: float  # end of the lease; inf = none
    shape: int = 0
    partner_id: str | None = None
    partner_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Renew:
    """These jobs keep their seats until then. One order however many they are; it costs them nothing."""

    job_ids: tuple[str, ...]
    until: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop these jobs and free their seats; with `save` they write a checkpoint first."""

    job_ids: tuple[str, ...]
    epochs: tuple[int, ...]
    save: bool = True


@dataclass(frozen=True, slots=True)
class Refuse:
    """This job, which never ran, will not be run."""

    job_id: str
    why: str


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send `Woken` at that time; a later order replaces an earlier one. inf = do not wake."""

    at: float


Decision: TypeAlias = Ask | Start | Renew | Stop | Refuse | WakeAt
