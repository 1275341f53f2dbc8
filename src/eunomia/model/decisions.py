"""Decisions of the scheduler: orders to the backend, and asks to the policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_ids import JobIdList
from eunomia.model.value_equality import ValueEqual
from eunomia.model.view import View

_ZERO, _NO_PARTNER = np.zeros(1, dtype=np.int64), np.full(1, -1)  # shared by many decisions: read-only


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to the policy; its answer is an `Answered` event of the same number."""

    asked: int
    view: View


@dataclass(frozen=True, slots=True)
class Start:
    """Start a gang, or two that share accelerators, on these seats. Each start of a job is a new epoch."""

    job_id: str
    epoch: int
    seats: tuple[int, ...]  # devices
    until: float  # end of the lease; inf = none
    shape: int = 0
    partner_id: str | None = None
    partner_epoch: int = 0
    max_steps: float | None = None  # step limit of this lease; None = no limit

    def each(self) -> Iterator[Start]:
        """Yield this start alone, as `Starts` yields its many."""
        yield self

    def gangs(self) -> tuple[tuple[str, int], ...]:
        """Return job and epoch of its gang, or of the two that share the seats."""
        first = (self.job_id, self.epoch)
        return (first,) if self.partner_id is None else (first, (self.partner_id, self.partner_epoch))


@dataclass(frozen=True, slots=True, eq=False)
class Starts(ValueEqual):
    """Start many gangs. Gang g gets seats[first[g]:first[g + 1]], all of one type."""

    jobs: JobIdList  # (gang,)
    epochs: Ints  # (gang,)
    first: Ints  # (gang + 1,)
    seats: Ints  # (seat,) devices
    until: Floats  # (gang,) end of the lease; inf = none
    shape: Ints  # (gang,)
    partners: JobIdList  # (gang,) job that shares the seats; row -1 = none
    partner_epochs: Ints  # (gang,)
    # (gang,) step limit of this lease for the gang and its partner (a later Renew may set two); None, inf = no limit
    max_steps: Floats | None = None

    @classmethod
    def of(cls, *starts: Start) -> Starts:
        """Return these starts as one decision."""
        sizes = [len(start.seats) for start in starts]
        partners = [start.partner_id for start in starts]
        limits = [start.max_steps for start in starts]
        return cls(
            jobs=JobIdList.of(*(start.job_id for start in starts)),
            epochs=np.array([start.epoch for start in starts], dtype=np.int64),
            first=np.cumsum([0, *sizes]),
            seats=np.array([seat for start in starts for seat in start.seats], dtype=np.int64),
            until=np.array([start.until for start in starts], dtype=float),
            shape=np.array([start.shape for start in starts], dtype=np.int64),
            partners=JobIdList(
                np.array([-1 if partner is None else g for g, partner in enumerate(partners)], dtype=np.int64),
                [partner or "" for partner in partners],
            ),
            partner_epochs=np.array([start.partner_epoch for start in starts], dtype=np.int64),
            max_steps=None
            if all(limit is None for limit in limits)
            else np.array([np.inf if limit is None else limit for limit in limits]),
        )

    @classmethod
    def single(cls, job: JobIdList, epoch: Ints, seats: Ints, until: float) -> Starts:
        """Return the start of one job, alone and in its first shape; `job` and `epoch` are (1,)."""
        return cls(
            jobs=job,
            epochs=epoch,
            first=np.array([0, len(seats)]),
            seats=seats,
            until=np.array([until]),
            shape=_ZERO,
            partners=JobIdList(_NO_PARTNER, job.table),
            partner_epochs=_ZERO,
        )

    def __len__(self) -> int:
        return len(self.epochs)

    def each(self) -> Iterator[Start]:
        """Yield the starts one by one."""
        seats, first = self.seats.tolist(), self.first.tolist()
        for g, (name, partner) in enumerate(zip(self.jobs, self.partners, strict=True)):
            paired = bool(self.partners.rows[g] >= 0)
            limit = np.inf if self.max_steps is None else float(self.max_steps[g])
            yield Start(
                name,
                int(self.epochs[g]),
                tuple(seats[first[g] : first[g + 1]]),
                float(self.until[g]),
                int(self.shape[g]),
                partner if paired else None,
                int(self.partner_epochs[g]),
                None if limit == np.inf else limit,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Renew(ValueEqual):
    """These jobs keep their seats until then, at no cost.

    `max_steps` (job,) limits the further steps of each from now on; None = no limit.
    """

    job_ids: Sequence[str]
    until: float
    max_steps: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stop(ValueEqual):
    """Stop these jobs, after a checkpoint with `save`, and release their seats."""

    job_ids: Sequence[str]
    epochs: Sequence[int] | Ints
    save: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class SetShares(ValueEqual):
    """From now on each of these jobs receives its shares of time, and no other job receives any.

    No seats are allocated, so only a fluid backend carries this out. A pair is two entries, each with the other as its
    partner.
    """

    jobs: JobIdList  # (entry,)
    types: Ints  # (entry,) accelerator type
    x: Floats  # (entry,) share of time, above 0
    sizes: Ints  # (entry,) accelerators of its gang
    partners: JobIdList  # (entry,) job that shares the accelerators; row -1 = none


@dataclass(frozen=True, slots=True)
class Refuse:
    """Reject a job that never ran."""

    job_id: str
    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """This job failed once more than it may be tried again: it is over. A failed job that is not given up waits.

    It follows from the failure, so records do not hold it.
    """

    job_id: str


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Report `TimerFired` at that time; a later order replaces an earlier one. inf = none."""

    at: float


Decision: TypeAlias = Ask | Start | Starts | Renew | Stop | SetShares | Refuse | GiveUp | SetTimer


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
