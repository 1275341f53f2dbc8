"""Where a waiting job stands: the jobs ahead of it by the last order, and those on accelerators it could use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eunomia.core.ranked_pass import rank_of
from eunomia.core.scheduler import Scheduler
from eunomia.core.state import State
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.rank import BY_SUBMISSION
from eunomia.model.tenants import NO_TENANT

SHOWN = 3  # named jobs; the others are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """The waiting jobs ahead of a job in one order."""

    count: int
    accelerators: int  # that they need in all
    names: tuple[str, ...]  # of the first ones that may be named
    first_fits: bool  # the first of them would fit into what is free
    is_old: bool = False  # the order was made before the present moment, and may have changed since


def last_position(scheduler: Scheduler, row: int, at: float, may_see: Callable[[str], bool]) -> QueuePosition | None:
    """Return the position of a job in the last order; None if the policy has not ranked it yet."""
    ahead = jobs_ahead(scheduler, row)
    if ahead is None:
        return None
    info = scheduler.info
    stays = rank_of(info) == BY_SUBMISSION and not info.promises.reserves  # of reservations records do not say the rank
    is_old = scheduler.asks.last_at < at and not stays
    return replace(position_behind(scheduler, ahead, may_see), is_old=is_old)


def position_behind(scheduler: Scheduler, ahead: Ints, may_see: Callable[[str], bool]) -> QueuePosition:
    """Return the position behind these jobs, of which those are named whose tenant the asker may see."""
    state = scheduler.state
    is_free = False
    if len(ahead):
        runs = scheduler.belief.throughput[ahead[0]] > 0
        is_free = bool((state.floor.free[runs] >= state.jobs.scale_factor[ahead[0]]).any())
    needs = int(state.jobs.scale_factor[ahead].sum())
    return QueuePosition(
        count=len(ahead), accelerators=needs, names=names_of(scheduler, ahead, may_see), first_fits=is_free
    )


def names_of(scheduler: Scheduler, rows: Sequence[int] | Ints, may_see: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the ids of the first of these jobs that the asker may see."""
    state, every = scheduler.state, np.asarray(rows, dtype=np.int64)
    seen = np.array([may_see("" if name == NO_TENANT else name) for name in state.owners.tree.names], dtype=bool)
    return tuple(state.ids[row] for row in every[seen[state.jobs.owner[every]]][:SHOWN].tolist())


def jobs_ahead(scheduler: Scheduler, row: int) -> Ints | None:
    """Return the waiting jobs before a job in the last order; None if the policy has not ranked it yet.

    A policy that gives seats itself makes no order: no job is ahead of another.
    """
    state, last = scheduler.state, scheduler.mechanism.candidates
    if scheduler.info.answer_type == "grants":
        return NO_INTS
    if rank_of(scheduler.info) == BY_SUBMISSION:
        before = state.active[: np.searchsorted(state.active, row)]
        fits = state.capacity >= state.jobs.scale_factor[before][:, None]
        return _waiting(state, before[(fits & (scheduler.belief.throughput[before] > 0)).any(axis=1)])
    if last is None:
        return None
    if len(place := np.flatnonzero(last.job == row)):
        return _waiting(state, _once(last.job[: place[0]], len(state.jobs)))
    if scheduler.asks.is_stale or state.jobs.submitted[row] > scheduler.asks.last_at:
        return None
    return _waiting(state, _once(last.job, len(state.jobs)))  # the last answer left it out: it ranks last


def _waiting(state: State, rows: Ints) -> Ints:
    found: Ints = rows[state.jobs.stage[rows] == Stage.WAITING]
    return found


def _once(rows: Ints, jobs: int) -> Ints:
    """Return each row at its first place; there are so many `jobs`."""
    order = np.arange(len(rows))
    first = np.empty(jobs, dtype=np.int64)
    first[rows[::-1]] = order[::-1]  # of equal indices the last one is written
    found: Ints = rows[first[rows] == order]
    return found


def seat_holders(scheduler: Scheduler, runs: Bools) -> list[int]:
    """Return the running jobs on types that a job could use, in the last order."""
    state, last = scheduler.state, scheduler.mechanism.candidates
    running = state.running()
    running = running[runs[state.jobs.on_type[running]]]
    place = np.full(len(state.jobs), np.iinfo(np.int64).max)
    if last is not None:
        place[last.job[::-1]] = np.arange(len(last.job))[::-1]
    found: list[int] = running[np.argsort(place[running], kind="stable")].tolist()
    return found
