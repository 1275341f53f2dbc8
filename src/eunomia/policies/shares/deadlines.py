"""Deadlines as floors under throughput, and what to do when not all of them can be met.

    Σ_j T[m,j] X[m,j] ≥ r_m / (d_m - t)    for each job m with a deadline d_m, r remaining steps, t now

When the floors cannot be met together the least weighted set of jobs is late: their floors are dropped, no others, and
the answer names them. A job whose deadline has passed is late already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.view import View
from eunomia.policies.shares import pair_programs
from eunomia.solvers.late import late_rows

NEEDS = frozenset({"deadline", "remaining"})


@dataclass(frozen=True, slots=True)
class DeadlineFloors:
    """The floors that are kept, and who is late."""

    floor: Floats  # (job,) steps/s, 0 = none
    dropped: Bools  # (job,) a floor was asked for and is not kept
    late: tuple[int, ...]  # those of them that had a deadline
    fewest: bool = True  # it is proven that no lighter set can be late

    @classmethod
    def only(cls, floor: Floats) -> DeadlineFloors:
        """Return floors that can all be kept."""
        return cls(floor, np.zeros(len(floor), dtype=bool), ())

    def why(self) -> dict[int, str]:
        """Say of each job whose floor is not kept which one that is."""
        told = dict.fromkeys(
            np.flatnonzero(self.dropped).tolist(), "its equal part cannot be kept beside the deadlines"
        )
        set_of = "late, in the smallest set found" if not self.fewest else "late"
        return told | dict.fromkeys(self.late, f"{set_of}: its deadline cannot be met together with the others'")


def floors(view: View, T: Floats, other: Floats | None = None, *, space_sharing: bool = False) -> DeadlineFloors:
    """Return floors for T (job, type); `other` (job,) are those of jobs without a deadline that can still be met.

    With space sharing a job is late only if its deadline cannot be met in pairs either.
    """
    left = view.deadline - view.at
    timed = np.isfinite(left)
    other = np.zeros(view.jobs) if other is None else other
    floor = other.copy()
    soon = timed & (left > 0)
    floor[soon] = view.remaining[soon] / left[soon]
    hopeless = (timed & (left <= 0) & (view.remaining > 0)) | (floor > T.max(axis=1, initial=0.0) * (1 + 1e-12))
    floor[hopeless] = other[hopeless]
    if space_sharing:
        found = pair_programs.late_jobs(view, T, floor)
    else:
        found = late_rows(T, view.scale_factor.astype(float), view.capacity, floor, weight=view.weight)
    floor[found.rows] = 0.0
    late = hopeless.copy()
    late[found.rows] = True
    return DeadlineFloors(floor, late, tuple(np.flatnonzero(late & timed).tolist()), found.least)
