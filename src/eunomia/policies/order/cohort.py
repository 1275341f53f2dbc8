"""A cohort of queues that lend each other idle quota: who holds what, and whose jobs may be stopped for whom.

Reference: Kubernetes SIGs, "Preemption", kueue.sigs.k8s.io/docs/concepts/preemption (fair sharing), and KEP-1714.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.order.usage import top_of

_ROUNDING = 1e-9  # of a share


@dataclass(slots=True)
class Cohort:
    """The books of one decision; `admit` and `stop` change them."""

    quota: Floats  # (queue,) accelerators
    weight: Floats  # (queue,)
    borrows: Bools  # (queue,)
    said: Bools  # (queue,) the quota was said, and will not change
    used: Floats  # (queue,) accelerators
    free: Floats  # (type,)
    queue: Ints  # (job,)
    size: Ints  # (job,)
    on_type: Ints  # (job,) -1 = waits
    lendable: float
    newest: list[int]  # jobs that run, the last started first

    @classmethod
    def seen(cls, view: View) -> Cohort:
        """Read the books off the view; what is below a tenant at the top counts as its own."""
        tenants, capacity = view.tenants, float(view.capacity.sum())
        queue, runs, size = top_of(tenants)[view.tenant], view.on_type >= 0, view.scale_factor
        newest = np.flatnonzero(runs)[::-1]
        return cls(
            quota=tenants.quota(capacity),
            weight=tenants.weight,
            borrows=tenants.borrows,
            said=~np.isnan(tenants.said_quota),
            used=np.bincount(queue, np.where(runs, size, 0), minlength=len(tenants.names)).astype(float),
            free=view.capacity - np.bincount(view.on_type[runs], size[runs], minlength=len(view.types)),
            queue=queue,
            size=size,
            on_type=view.on_type.copy(),
            lendable=max(capacity, 1.0),
            newest=newest[np.argsort(-view.started[newest], kind="stable")].tolist(),
        )

    def never(self) -> list[int]:
        """Return the jobs that could not run even alone: wider than the quota of a queue that may not borrow."""
        bound = self.said & ~self.borrows
        return np.flatnonzero(bound[self.queue] & (self.size > self.quota[self.queue])).tolist()

    def someone_borrows(self) -> bool:
        """Say whether a queue uses more than its quota."""
        return bool((self.used > self.quota).any())

    def share(self, queue: int, more: float = 0.0) -> float:
        """Return what a queue borrows of all there is to lend, by its weight, if it used so much more."""
        borrowed = max(float(self.used[queue]) + more - float(self.quota[queue]), 0.0)
        return borrowed / self.lendable / float(self.weight[queue]) if borrowed > 0 else 0.0

    def may_use(self, job: int) -> bool:
        """Say whether the job's queue may have so much."""
        u = self.queue[job]
        return bool(self.borrows[u] or self.used[u] + self.size[job] <= self.quota[u])

    def admit(self, job: int, type: int) -> None:
        """Let a job have accelerators."""
        self._move(job, type, 1)
        self.on_type[job] = type

    def stop(self, job: int) -> None:
        """Take a job's accelerators."""
        self._move(job, int(self.on_type[job]), -1)

    def _move(self, job: int, type: int, sign: int) -> None:
        self.used[self.queue[job]] += sign * self.size[job]
        self.free[type] -= sign * self.size[job]

    def victims(self, job: int, type: int, *, final: bool, initial: bool) -> list[int]:
        """Return whom to stop so that the job fits on this type; nobody where that cannot be."""
        stopped: list[int] = []
        if final:
            self._by_final_share(job, type, stopped)
        if initial and not self._fits(job, type):
            self._by_initial_share(job, type, stopped)
        fits = self._fits(job, type)
        for other in stopped[:-1][::-1] if fits else []:  # who need not have been stopped goes on
            if self.free[type] - self.size[other] >= self.size[job]:
                self._move(other, type, 1)
                stopped.remove(other)
        for other in stopped:
            self._move(other, type, 1)
        return stopped if fits else []

    def _by_final_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop jobs of the queues that borrow most, while these then have no less than the job's queue with it."""
        mine, closed = self.share(self.queue[job], self.size[job]), {int(self.queue[job])}
        while not self._fits(job, type):
            v, candidates = self._most_borrowing(type, closed, stopped)
            if v < 0:
                return
            fair = (c for c in candidates if mine <= self.share(v, -float(self.size[c])) + _ROUNDING)
            if (victim := next(fair, -1)) < 0:
                closed.add(v)
            else:
                self.stop(victim)
                stopped.append(victim)

    def _by_initial_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop one job each of queues that have more now than the job's queue would have with it."""
        mine, closed = self.share(self.queue[job], self.size[job]), {int(self.queue[job])}
        while not self._fits(job, type):
            v, candidates = self._most_borrowing(type, closed, stopped)
            if v < 0 or mine >= self.share(v) - _ROUNDING:
                return
            self.stop(candidates[0])
            stopped.append(candidates[0])
            closed.add(v)

    def _most_borrowing(self, type: int, closed: Iterable[int], stopped: list[int]) -> tuple[int, list[int]]:
        """Return the queue with the largest share among those that borrow, and its jobs there; -1 = none."""
        there = [m for m in self.newest if self.on_type[m] == type and m not in stopped]
        open_ = {int(self.queue[m]) for m in there} - set(closed)
        borrowing = [u for u in sorted(open_) if self.used[u] > self.quota[u]]
        if not borrowing:
            return -1, []
        v = max(borrowing, key=self.share)
        return v, [m for m in there if self.queue[m] == v]

    def _fits(self, job: int, type: int) -> bool:
        return bool(self.free[type] >= self.size[job])
