"""Where a waiting job stands: the jobs ahead of it by the last order, and those on accelerators that it could use."""

from __future__ import annotations

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.job_lifecycle import Stage


def jobs_ahead(scheduler: Scheduler, row: int) -> list[int]:
    """Return the waiting jobs ahead of a job: those before it in the last order, then those that came since."""
    state, last = scheduler.state, scheduler.mechanism.candidates
    jobs = state.jobs
    earlier = state.active[: np.searchsorted(state.active, row)]
    if last is None or scheduler.info.answer_type == "grants":
        before = earlier
    elif len(place := np.flatnonzero(last.job == row)):
        before = _once(last.job[: place[0]], len(jobs))
    else:
        came = jobs.submitted[earlier] > scheduler.asks.last_at
        since = earlier[came] if jobs.submitted[row] > scheduler.asks.last_at else NO_INTS
        before = np.concatenate((_once(last.job, len(jobs)), since))
    ahead: list[int] = before[jobs.stage[before] == Stage.WAITING].tolist()
    return ahead


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
