"""Why a waiting job waits, diagnosed from the state directly after a decision: the same for records and services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.records.preemptions import Preemption
from eunomia.records.queue_position import QueuePosition, last_position, names_of, seat_holders
from eunomia.records.wait_reasons import code_of, describe_takers, free_words, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An interval of waiting for one reason."""

    from_s: float
    to_s: float | None  # None = until the end of the record
    reason: str  # one of `wait_reasons.REASONS`
    text: str
    free: dict[str, int]  # accelerators, by type
    behind: tuple[str, ...] = ()  # waiting jobs ahead of it
    behind_count: int | None = 0  # None = the policy has not ranked it yet
    held_by: tuple[str, ...] = ()  # running jobs on seats that it could use, those ahead of it first
    held_by_count: int = 0


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
) -> Wait:
    """Return why a waiting job waits, from the state directly after a decision.

    Other jobs are named only if the asker may see those of their tenant. `position` is that in a later order than the
    last one.
    """
    free, runs = free_by_type(scheduler), scheduler.belief.throughput[row] > 0
    holders = seat_holders(scheduler, runs)
    held = names_of(scheduler, holders, may_see)
    position = last_position(scheduler, row, at, may_see) if position is None else position
    reason, text = _reason(scheduler, row, at, runs, position)
    if reason == "no_capacity" and position is not None and position.count == 0 and holders:
        text += f"; the others are held by {listed(held, len(holders), 'job')}"
    return Wait(
        from_s=at,
        to_s=None,
        reason=reason,
        text=text,
        free=free,
        behind=() if position is None else position.names,
        behind_count=None if position is None else position.count,
        held_by=held,
        held_by_count=len(holders),
    )


def _reason(scheduler: Scheduler, row: int, at: float, runs: Any, position: QueuePosition | None) -> tuple[str, str]:
    state, types, policy = scheduler.state, scheduler.state.topology.types, scheduler.info.name
    size = int(state.jobs.scale_factor[row])
    queue = f"{policy} has not ranked it yet" if position is None else position.describe()
    behind = f", {queue}" if queue else ""
    if (said := scheduler.asks.why_of(row)) is not None:
        return code_of(said), said
    usable = runs & (state.capacity >= size)
    if not usable.any():
        return "types_absent", f"no type in service that it can run on has {size} accelerators"
    holdup = scheduler.mechanism.wait_reason(row, at)
    if holdup is not None:
        return holdup
    has_room = usable & (state.floor.free >= size)
    on = [types[j] for j in np.flatnonzero(usable)]
    if not has_room.any():
        spare = int(state.floor.free[usable].sum())
        if spare >= size:
            return (
                "fragmentation",
                f"it needs {size} of one type; {free_words(spare)}, spread over {', '.join(on)}{behind}",
            )
        share = _describe_spent_share(scheduler, row)
        if share:
            return (
                "share_used",
                f"it has had its share for now ({share}), and no seat is spare{_describe_prices(scheduler)}",
            )
        return "no_capacity", f"it needs {size}; {free_words(spare)} on {', '.join(on)}{behind}"
    wanted = _wanted(scheduler, row)
    if wanted and not any(has_room[j] for j in wanted):
        named = ", ".join(types[j] for j in wanted)
        return "type_drawn", f"it may only use {named}, where fewer than {size} are free{behind}"
    room = f"{free_words(int(state.floor.free[has_room].max()))} and it needs {size}"
    if position is None:
        return "next_question", f"{room}; {queue}"
    if position.count:
        head = "" if position.first_fits else "; the first of them does not fit yet"
        return "behind", f"{room}, but it is {queue}{head}"
    return "not_chosen", f"{room}, but the last answer of {policy} gives it none of them"


def _wanted(scheduler: Scheduler, row: int) -> list[int]:
    """Return the types that the last order names for a job."""
    last = scheduler.mechanism.candidates
    return [] if last is None else sorted(set(last.type[last.job == row].tolist()))


def _describe_prices(scheduler: Scheduler) -> str:
    """Return the exchange rates of types by the prices of the last answer; "" if it has none."""
    proof = scheduler.certificate
    if proof is None or proof.price is None:
        return ""
    return f"; {proof.exchange_rates(scheduler.state.topology.types)}"


def _describe_spent_share(scheduler: Scheduler, row: int) -> str:
    """Return the shares of a job if it has received all of them for now; else ""."""
    types = scheduler.state.topology.types
    return ", ".join(f"{x:.0%} of {types[j]}" for j, x in scheduler.mechanism.spent_share(row))


def after_preemption(scheduler: Scheduler, wait: Wait, last: Preemption, names: tuple[str, ...]) -> Wait:
    """Return the wait of a job since it was preempted, by jobs of which these may be named."""
    if wait.reason != "no_capacity":
        return wait
    policy = scheduler.info.name if last.ranked else ""
    return replace(
        wait, reason="preempted", text=f"it was preempted{describe_takers(names, len(last.by), policy)}; {wait.text}"
    )
