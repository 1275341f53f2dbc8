"""Where a waiting job stands: the jobs ahead of it by the last order, and those on accelerators it could use."""

from __future__ import annotations

import numpy as np

from eunomia.core.ranked_pass import BY_SUBMISSION, rank_of
from eunomia.core.scheduler import Scheduler
from eunomia.core.state import State
from eunomia.model.arrays import Bools, Ints
from eunomia.model.job_lifecycle import Stage


def jobs_ahead(scheduler: Scheduler, row: int) -> list[int] | None:
    """Return the waiting jobs before a job in the last order; None if the policy has not ranked it yet.

    A policy that gives seats itself makes no order: no job is ahead of another.
    """
    state, last = scheduler.state, scheduler.mechanism.candidates
    if scheduler.info.answer_type == "grants":
        return []
    if rank_of(scheduler.info) == BY_SUBMISSION:
        return _waiting(state, state.active[: np.searchsorted(state.active, row)])
    if last is None:
        return None
    if len(place := np.flatnonzero(last.job == row)):
        return _waiting(state, _once(last.job[: place[0]], len(state.jobs)))
    if scheduler.asks.is_stale or state.jobs.submitted[row] > scheduler.asks.last_at:
        return None
    return _waiting(state, _once(last.job, len(state.jobs)))  # the last answer left it out: it ranks last


def _waiting(state: State, rows: Ints) -> list[int]:
    found: list[int] = rows[state.jobs.stage[rows] == Stage.WAITING].tolist()
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
