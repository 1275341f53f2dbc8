"""A cohort of queues that lend each other idle quota: who holds what, and whose jobs may be stopped for whom.

Reference: Kubernetes SIGs, "Preemption", kueue.sigs.k8s.io/docs/concepts/preemption (fair sharing), and KEP-1714.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import top_of

_ROUNDING = 1e-9  # of a share


@dataclass(slots=True)
class BorrowingGroup:
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
    newest: list[int]  # jobs that ran at first, the last started first
    shares: Floats = field(init=False)  # (queue,) as they are now
    _there: dict[tuple[int, int], list[int]] = field(init=False)  # type and queue -> jobs that may stop, newest first
    _count: Ints = field(init=False)  # (type, queue) how many these are
    _place: dict[int, int] = field(init=False)  # in `newest`

    def __post_init__(self) -> None:
        self.shares = np.array([self.share(u) for u in range(len(self.quota))])
        self._place = {m: place for place, m in enumerate(self.newest)}
        self._there, self._count = {}, np.zeros((len(self.free), len(self.quota)), dtype=np.int64)
        for m in self.newest:
            self._come(m)

    @classmethod
    def seen(cls, view: View) -> BorrowingGroup:
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

    def may_give(self) -> bool:
        """Say whether something is free, or a queue uses more than its quota."""
        return bool(self.free.any() or (self.used > self.quota).any())

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
        """Take the accelerators of a job that ran at first."""
        type, u = int(self.on_type[job]), int(self.queue[job])
        self._move(job, type, -1)
        self._there[type, u].remove(job)
        self._count[type, u] -= 1

    def _go_on(self, job: int) -> None:
        """Give a job that was stopped its accelerators again."""
        self._move(job, int(self.on_type[job]), 1)
        self._come(job)

    def _come(self, job: int) -> None:
        type, u = int(self.on_type[job]), int(self.queue[job])
        insort(self._there.setdefault((type, u), []), job, key=self._place.__getitem__)
        self._count[type, u] += 1

    def _move(self, job: int, type: int, sign: int) -> None:
        u = int(self.queue[job])
        self.used[u] += sign * self.size[job]
        self.free[type] -= sign * self.size[job]
        self.shares[u] = self.share(u)

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
                self._go_on(other)
                stopped.remove(other)
        for other in stopped:
            self._go_on(other)
        return stopped if fits else []

    def _by_final_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop jobs of the queues that borrow most, while these then have no less than the job's queue with it."""
        mine, closed = self._closed_to_others(job)
        while not self._fits(job, type):
            v = self._most_borrowing(type, closed)
            if v < 0 or mine > self.shares[v] + _ROUNDING:  # nor do the others borrow enough
                return
            fair = (c for c in self._there[type, v] if mine <= self.share(v, -float(self.size[c])) + _ROUNDING)
            if (victim := next(fair, -1)) < 0:
                closed[v] = True
            else:
                self.stop(victim)
                stopped.append(victim)

    def _by_initial_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop one job each of queues that have more now than the job's queue would have with it."""
        mine, closed = self._closed_to_others(job)
        while not self._fits(job, type):
            v = self._most_borrowing(type, closed)
            if v < 0 or mine >= self.shares[v] - _ROUNDING:
                return
            stopped.append(self._there[type, v][0])
            self.stop(stopped[-1])
            closed[v] = True

    def _closed_to_others(self, job: int) -> tuple[float, Bools]:
        """Return the share of a job's queue with it, and the queues, (queue,), of which nobody stops for it."""
        closed = np.zeros(len(self.quota), dtype=bool)
        closed[self.queue[job]] = True
        return self.share(int(self.queue[job]), float(self.size[job])), closed

    def _most_borrowing(self, type: int, closed: Bools) -> int:
        """Return the queue with the largest share among those that borrow and have jobs there; -1 = none."""
        open_ = (self._count[type] > 0) & (self.used > self.quota) & ~closed
        return int(np.argmax(np.where(open_, self.shares, -1.0))) if open_.any() else -1

    def _fits(self, job: int, type: int) -> bool:
        return bool(self.free[type] >= self.size[job])
