"""Virtual clusters: whose quota a job counts against, and what each of them uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View


def seats_of(jobs: Bools, holder: Ints) -> Bools:
    """Say which devices these jobs, (job,), hold, (device,)."""
    return np.append(jobs, [False, False])[holder]  # -1 is free and -2 lost


@dataclass(slots=True)
class Clusters:
    """The tenants at the top of the tree; what is below one counts as its own."""

    of: Ints  # (job,) rows of the tenants
    quota: Floats  # (tenant,) accelerators
    used: Floats  # (tenant,) accelerators, kept up to date while a decision is made
    said: Bools  # (tenant,) the quota was said, and will not change
    borrows: Bools  # (tenant,)
    size: Ints  # (job,) accelerators of each gang

    @classmethod
    def seen(cls, view: View) -> Clusters:
        """Read them off the view."""
        top = np.arange(len(view.tenants.names))
        for row in np.flatnonzero(view.tenants.parent >= 0).tolist():
            top[row] = top[view.tenants.parent[row]]  # parents stand before their children
        of = top[view.tenant]
        sitting = view.holder[view.holder >= 0]
        used = np.bincount(of[sitting], minlength=len(top)).astype(float)
        quota = view.tenants.quota(float(view.capacity.sum()))
        return cls(of, quota, used, ~np.isnan(view.tenants.said_quota), view.tenants.borrows, view.scale_factor)

    def within(self, job: int) -> bool:
        """Say whether a gang that starts now stays within its quota."""
        mine = self.of[job]
        return bool(self.used[mine] + self.size[job] <= self.quota[mine])

    def all_within(self) -> Bools:
        """Say of every job whether it would stay within its quota if it started now, (job,)."""
        return np.asarray(self.used[self.of] + self.size <= self.quota[self.of])

    def never(self) -> Bools:
        """Say of every job whether it could not start if it were alone, (job,)."""
        bound = self.said & ~self.borrows
        return np.asarray(bound[self.of] & (self.size > self.quota[self.of]))

    def over(self, job: int) -> bool:
        """Say whether a job's virtual cluster uses more than its quota."""
        return bool(self.used[self.of[job]] > self.quota[self.of[job]])

    def add(self, job: int, sign: int = 1) -> None:
        """A gang sits down, or with -1 stands up."""
        self.used[self.of[job]] += sign * self.size[job]
