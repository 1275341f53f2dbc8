"""Why a waiting job waits, diagnosed from the state directly after a decision: the same for records and services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.wait_reason import NOT_RANKED, Reason
from eunomia.records.queue_position import QueuePosition, last_position, names_of, seat_holders


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An interval of waiting for one reason."""

    from_s: float
    to_s: float | None  # None = until the end of the record
    why: tuple[Reason, ...]  # the main one, and what is to be added to it
    free: dict[str, int]  # accelerators, by type
    behind: tuple[str, ...] = ()  # waiting jobs ahead of it
    behind_count: int | None = 0  # None = the policy has not ranked it yet
    held_by: tuple[str, ...] = ()  # running jobs on seats that it could use, those ahead of it first
    held_by_count: int = 0

    @property
    def reason(self) -> str:
        """One of `wait_reason.KINDS`."""
        return self.why[0].kind

    @property
    def text(self) -> str:
        """Why, in words."""
        return "; ".join(map(str, self.why))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        others = ("free", "behind", "behind_count", "held_by", "held_by_count")
        shown = {"from_s": self.from_s, "to_s": self.to_s, "reason": self.reason, "text": self.text}
        return shown | {name: getattr(self, name) for name in others}


def free_by_type(scheduler: Scheduler) -> dict[str, int]:
    """Return the free accelerators, by type."""
    return {
        name: int(count) for name, count in zip(scheduler.state.topology.types, scheduler.mechanism.free, strict=True)
    }


def diagnose(
    scheduler: Scheduler,
    row: int,
    at: float,
    may_see: Callable[[str], bool] = lambda tenant: True,
    position: QueuePosition | None = None,
    preempted: Reason | None = None,
) -> Wait:
    """Return why a waiting job waits, from the state directly after a decision.

    Other jobs are named only if the asker may see those of their tenant. `position` is that in a later order than the
    last one; `preempted` says that the job has waited since it was preempted.
    """
    runs = scheduler.belief.throughput[row] > 0
    holders = seat_holders(scheduler, runs)
    held = names_of(scheduler, holders, may_see)
    position = last_position(scheduler, row, at, may_see) if position is None else position
    why = _reasons(scheduler, row, at, runs, position)
    if why[0].code == "no_capacity":
        if position is not None and position.count == 0 and holders:
            why = (*why, Reason("seats_held", held, (len(holders),)))
        if preempted is not None:
            why = (preempted, *why)
    return Wait(
        from_s=at,
        to_s=None,
        why=why,
        free=free_by_type(scheduler),
        behind=() if position is None else position.names,
        behind_count=None if position is None else position.count,
        held_by=held,
        held_by_count=len(holders),
    )


def _reasons(
    scheduler: Scheduler, row: int, at: float, runs: Any, position: QueuePosition | None
) -> tuple[Reason, ...]:
    """Return the reason, and what is to be added to it."""
    state, types = scheduler.state, scheduler.state.topology.types
    size = int(state.jobs.scale_factor[row])
    if (said := scheduler.asks.why_of(row)) is not None:
        return (said,)
    usable = runs & (state.capacity >= size)
    if not usable.any():
        return (Reason("types_absent", numbers=(size,)),)
    holdup = scheduler.mechanism.wait_reason(row, at)
    if holdup is not None:
        return (holdup,)

    def reason(code: str, free: int, on: Any) -> Reason:
        place = NOT_RANKED if position is None else (position.count, position.accelerators, position.is_old)
        names = scheduler.info.name, *(types[j] for j in on)
        return Reason(code, () if position is None else position.names, (size, free, *place), names)

    has_room = usable & (state.floor.free >= size)
    if not has_room.any():
        spare, on = int(state.floor.free[usable].sum()), np.flatnonzero(usable)
        if spare >= size:
            return (reason("several_types", spare, on),)
        if share := scheduler.mechanism.spent_share(row):
            used = Reason("share_used", numbers=tuple(x for _, x in share), names=tuple(types[j] for j, _ in share))
            return (used, *_prices(scheduler))
        return (reason("no_capacity", spare, on),)
    most, wanted = int(state.floor.free[has_room].max()), _wanted(scheduler, row)
    if wanted and not any(has_room[j] for j in wanted):
        return (reason("type_drawn", most, wanted),)
    if position is None:
        return (reason("not_ranked", most, ()),)
    if position.count:
        behind = reason("behind", most, ())
        return (behind,) if position.first_fits else (behind, Reason("first_misfit"))
    return (reason("not_chosen", most, ()),)


def _wanted(scheduler: Scheduler, row: int) -> list[int]:
    """Return the types that the last order names for a job."""
    last = scheduler.mechanism.candidates
    return [] if last is None else sorted(set(last.type[last.job == row].tolist()))


def _prices(scheduler: Scheduler) -> tuple[Reason, ...]:
    """Return the exchange rates of types by the prices of the last answer, if it has some."""
    proof = scheduler.certificate
    if proof is None or proof.price is None:
        return ()
    return (Reason("prices", text=proof.exchange_rates(scheduler.state.topology.types)),)
