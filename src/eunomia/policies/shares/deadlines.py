"""Deadlines as lower bounds (floors) of throughput, and which floors to drop when they conflict.

    Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t)    for each job m with a deadline d_m, r remaining steps, t now

When the floors cannot all be met, those of a set of jobs with the least total weight are dropped; these jobs are late,
and the answer lists them. A job whose deadline has passed is late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs
from eunomia.solvers.min_late_jobs import late_rows

NEEDS = frozenset({"deadline", "remaining"})


@dataclass(frozen=True, slots=True)
class DeadlineFloors:
    """The floors that are kept, and the late jobs."""

    floor: Floats  # (job,) steps/s, 0 = none
    dropped: Bools  # (job,) its floor is dropped
    late: tuple[int, ...]  # of these, the jobs with a deadline
    fewest: bool = True  # the total weight is proven minimal

    @classmethod
    def all_kept(cls, floor: Floats) -> DeadlineFloors:
        """Return floors none of which is dropped."""
        return cls(floor, np.zeros(len(floor), dtype=bool), ())

    def why(self) -> dict[int, str]:
        """Return the reason of each job whose floor is dropped."""
        jobs = np.flatnonzero(self.dropped).tolist()
        reasons = dict.fromkeys(jobs, "its equal part cannot be kept beside the deadlines")
        late = "late" if self.fewest else "late, in the smallest set found"
        return reasons | dict.fromkeys(self.late, f"{late}: its deadline cannot be met together with the others'")


def floors(view: View, T: Floats, other: Floats | None = None, *, space_sharing: bool = False) -> DeadlineFloors:
    """Return the kept floors for T (job, type); `other` (job,) are the floors of jobs without a deadline.

    With space sharing a job is late only if its deadline cannot be met in pairs either.
    """
    left = view.deadline - view.at
    timed = np.isfinite(left)
    other = np.zeros(view.jobs) if other is None else other
    floor = other.copy()
    soon = timed & (left > 0)
    floor[soon] = view.remaining[soon] / left[soon]
    infeasible = (timed & (left <= 0) & (view.remaining > 0)) | (floor > T.max(axis=1, initial=0.0) * (1 + 1e-12))
    floor[infeasible] = other[infeasible]
    if space_sharing:
        dropped = pair_programs.late_jobs(view, T, floor)
    else:
        dropped = late_rows(T, view.scale_factor.astype(float), view.capacity, floor, weight=view.weight)
    floor[dropped.rows] = 0.0
    late = infeasible.copy()
    late[dropped.rows] = True
    return DeadlineFloors(floor, late, tuple(np.flatnonzero(late & timed).tolist()), dropped.least)
