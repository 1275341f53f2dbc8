"""What to do: orders to the world, and questions to the adviser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_ids import JobIdList
from eunomia.model.value_equality import ValueEqual
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
    max_steps: float | None = None  # steps the gang may do under this lease; None = as many as it has time for


@dataclass(frozen=True, slots=True, eq=False)
class Starts(ValueEqual):
    """Start many gangs. Gang g sits on seats[first[g]:first[g + 1]], all of them of one type."""

    jobs: JobIdList  # (gang,)
    epochs: Ints  # (gang,)
    first: Ints  # (gang + 1,)
    seats: Ints  # (seat,) devices
    until: Floats  # (gang,) end of the lease; inf = none
    shape: Ints  # (gang,)
    partners: JobIdList  # (gang,) who shares the seats; nobody (row -1) for most
    partner_epochs: Ints  # (gang,)
    # (gang,) steps that it may do under this lease, and its partner too; a Renew that follows may tell them apart.
    max_steps: Floats | None = None  # None, inf = as many as it has time for

    @classmethod
    def of(cls, *starts: Start) -> Starts:
        """Return these starts as one decision."""
        sizes = [len(start.seats) for start in starts]
        mates = [start.partner_id for start in starts]
        limits = [start.max_steps for start in starts]
        return cls(
            jobs=JobIdList.of(*(start.job_id for start in starts)),
            epochs=np.array([start.epoch for start in starts], dtype=np.int64),
            first=np.cumsum([0, *sizes]),
            seats=np.array([seat for start in starts for seat in start.seats], dtype=np.int64),
            until=np.array([start.until for start in starts], dtype=float),
            shape=np.array([start.shape for start in starts], dtype=np.int64),
            partners=JobIdList(
                np.array([g if mate is not None else -1 for g, mate in enumerate(mates)], dtype=np.int64),
                [mate or "" for mate in mates],
            ),
            partner_epochs=np.array([start.partner_epoch for start in starts], dtype=np.int64),
            max_steps=None if all(limit is None for limit in limits) else _steps(limits),
        )

    def __len__(self) -> int:
        return len(self.epochs)

    def each(self) -> Iterator[Start]:
        """Yield the starts one by one, for worlds that start gangs so."""
        seats, first = self.seats.tolist(), self.first.tolist()
        for g, (name, mate) in enumerate(zip(self.jobs, self.partners, strict=True)):
            paired = bool(self.partners.rows[g] >= 0)
            limit = np.inf if self.max_steps is None else float(self.max_steps[g])
            yield Start(
                name,
                int(self.epochs[g]),
                tuple(seats[first[g] : first[g + 1]]),
                float(self.until[g]),
                int(self.shape[g]),
                mate if paired else None,
                int(self.partner_epochs[g]),
                None if limit == np.inf else limit,
            )


def _steps(limits: Sequence[float | None]) -> Floats:
    return np.array([np.inf if limit is None else limit for limit in limits])


@dataclass(frozen=True, slots=True, eq=False)
class Renew(ValueEqual):
    """These jobs keep their seats until then. One order however many they are; it costs them nothing.

    `max_steps` (job,) are further steps that each may do from now on; None = as many as it has time for.
    """

    job_ids: Sequence[str]
    until: float
    max_steps: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stop(ValueEqual):
    """Stop these jobs and free their seats; with `save` they write a checkpoint first."""

    job_ids: Sequence[str]
    epochs: Sequence[int] | Ints
    save: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Flow(ValueEqual):
    """From now on each of these jobs receives its shares of time, and nobody else receives anything.

    Nobody sits down, so only a world whose time can be divided at will carries it out. A pair is two entries, each
    naming the other, on the same accelerators.
    """

    jobs: JobIdList  # (entry,)
    types: Ints  # (entry,) accelerator type
    x: Floats  # (entry,) share of time, above 0
    sizes: Ints  # (entry,) accelerators of its gang
    partners: JobIdList  # (entry,) who shares them; nobody (row -1) for most


@dataclass(frozen=True, slots=True)
class Refuse:
    """This job will not be run (again)."""

    job_id: str
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """This job failed once more than it may be tried again: it is over. A failed job that is not given up waits.

    It follows from the failure, so records do not hold it.
    """

    job_id: str


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send `Woken` at that time; a later order replaces an earlier one. inf = do not wake."""

    at: float


Decision: TypeAlias = Ask | Start | Starts | Renew | Stop | Flow | Refuse | GiveUp | WakeAt


def given_up(decisions: Sequence[Decision]) -> frozenset[str]:
    """Return the jobs that failed at this moment and have no retry left."""
    return frozenset(decision.job_id for decision in decisions if isinstance(decision, GiveUp))


def one_by_one(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the decisions as a record holds them: every `Starts` taken apart, and no `GiveUp`."""
    apart: list[Decision] = []
    for decision in decisions:
        if not isinstance(decision, GiveUp):
            apart += decision.each() if isinstance(decision, Starts) else [decision]
    return apart
