"""Deadlines as lower bounds (floors) of throughput, and which floors to drop when they conflict.

    Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t - L)    for each job m with a deadline d_m, r remaining steps, t now

L is the length of a lease: jobs receive their shares in whole leases, up to one of them late. No floor is above the
speed of a job's best type, which all of its time brings: a job that can be in time alone, but for rounding
(`model.tolerance`), is not late for its own sake. Where these floors cannot all be met, L = 0 is tried.
When the floors cannot all be met, those of a set of jobs with the least total weight are dropped; these jobs are late,
and the answer lists them. Where few jobs conflict, it is of equal sets the one under which the policy's objective is
best, as far as exchanges of one late job for another find it. A job whose deadline has passed is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.tolerance import is_at_least, is_at_most
from eunomia.model.view import View
from eunomia.model.wait_reason import Reason, WaitReasons
from eunomia.policies.shares import pair_programs
from eunomia.solvers.min_late_jobs import SLACK, LateRows, late_rows
from eunomia.solvers.program import Infeasible

Solved = TypeVar("Solved")
NEEDS = frozenset({"deadline", "remaining", "longest_lease"})
_EXCHANGES = 30  # most pairs of a late job and one in time that are tried; where there are more, none is


@dataclass(frozen=True, slots=True)
class DeadlineFloors:
    """The floors that are kept, and the late jobs."""

    floor: Floats  # (job,) steps/s, 0 = none
    dropped: Bools  # (job,) its floor is dropped
    late: tuple[int, ...]  # of these, the jobs with a deadline
    fewest: bool = True  # the total weight is proven minimal
    exchanges: tuple[tuple[int, int, float], ...] = ()  # late job, job in time of its weight, floor of the late one

    @classmethod
    def all_kept(cls, floor: Floats) -> DeadlineFloors:
        """Return floors none of which is dropped."""
        return cls(floor, np.zeros(len(floor), dtype=bool), ())

    def solved(self, program: Callable[[Floats], Solved]) -> Solved:
        """Return a program's answer to these floors, lowered by `SLACK` where rounding leaves no room for them."""
        try:
            return program(self.floor)
        except Infeasible:
            return program(self.floor * (1 - SLACK))

    def best_of_equal(self, value: Callable[[DeadlineFloors], float]) -> DeadlineFloors:
        """Return floors with as much weight of late jobs whose value, by exchanges of one for another, is largest."""
        if not self.exchanges:
            return self
        best, found = value(self), self
        for late, in_time, wanted in self.exchanges:
            if not (found.dropped[late] and found.floor[in_time] > 0):
                continue  # an earlier exchange has been one of these two
            tried = found.exchanged(late, in_time, wanted)
            try:
                reached = value(tried)
            except Infeasible:
                continue
            if not is_at_most(reached, best):
                best, found = reached, tried
        return found

    def exchanged(self, late: int, in_time: int, wanted: float) -> DeadlineFloors:
        """Return the floors with the late job at its floor, and the other one late in its place."""
        floor, dropped = self.floor.copy(), self.dropped.copy()
        floor[[late, in_time]], dropped[[late, in_time]] = (wanted, 0.0), (False, True)
        rows = tuple(sorted({*self.late, in_time} - {late}))
        return replace(self, floor=floor, dropped=dropped, late=rows)

    def why(self) -> Mapping[int, Reason]:
        """Return the reason of each job whose floor is dropped."""
        jobs, is_late = len(self.dropped), np.array(self.late, dtype=np.int64)
        late = Reason("deadline_dropped" if self.fewest else "deadline_dropped_unproven")
        dropped = WaitReasons.of(jobs, self.dropped, Reason("floor_dropped"))
        return WaitReasons.at(jobs, dropped, WaitReasons.of(jobs, is_late, late)) or {}


def floors(view: View, T: Floats, other: Floats | None = None, *, space_sharing: bool = False) -> DeadlineFloors:
    """Return the kept floors for T (job, type); `other` (job,) are the floors of jobs without a deadline.

    With space sharing a job is late only if its deadline cannot be met in pairs either.
    """
    left = view.deadline - view.at
    timed = np.isfinite(left)
    other = np.zeros(view.jobs) if other is None else other
    fastest = T.max(axis=1, initial=0.0)
    infeasible = timed & (view.remaining > 0) & ~is_at_most(view.at + _over(view.remaining, fastest), view.deadline)
    kept = timed & ~infeasible
    need = np.where(kept & (view.remaining > 0), np.minimum(_over(view.remaining, left), fastest), 0.0)
    floor = np.where(kept, need, other)
    early = floor.copy()
    if np.isfinite(view.longest_lease):
        kept &= need > 0
        spare = np.maximum(left - view.longest_lease, 0.0)
        early[kept] = np.minimum(_over(view.remaining, spare), fastest)[kept]
    dropped = _dropped(view, T, early, space_sharing)
    if len(dropped.rows):  # the margin may be what does not fit
        dropped = _dropped(view, T, floor, space_sharing)
    else:
        floor = early
    wanted = floor.copy()
    floor[dropped.rows] = 0.0
    late = infeasible.copy()
    late[dropped.rows] = True
    exchanges = _exchanges(view.weight, wanted, kept & late, kept & ~late)
    return DeadlineFloors(floor, late, tuple(np.flatnonzero(late & timed).tolist()), dropped.least, exchanges)


def _exchanges(weight: Floats, wanted: Floats, late: Bools, in_time: Bools) -> tuple[tuple[int, int, float], ...]:
    """Return which late jobs could change places with which in time: of one weight, and with floors; none if many."""
    gone, there = np.flatnonzero(late & (wanted > 0)), np.flatnonzero(in_time & (wanted > 0))
    if len(gone) * len(there) > _EXCHANGES:
        return ()
    return tuple(
        (one, other, float(wanted[one]))
        for one in gone.tolist()
        for other in there.tolist()
        if is_at_most(weight[one], weight[other]) and is_at_least(weight[one], weight[other])
    )


def _over(steps: Floats, of: Floats) -> Floats:
    """Return steps ÷ seconds, or steps ÷ speed; inf where there are none."""
    return np.asarray(np.divide(steps, of, out=np.full(len(steps), np.inf), where=of > 0))


def _dropped(view: View, T: Floats, floor: Floats, space_sharing: bool) -> LateRows:
    if space_sharing:
        return pair_programs.late_jobs(view, T, floor)
    return late_rows(T, view.scale_factor.astype(float), view.capacity, floor, weight=view.weight)
