"""A cohort of queues that borrow idle quota from each other: usage, borrowed shares, and preemption.

Reference: Kubernetes SIGs, "Preemption", kueue.sigs.k8s.io/docs/concepts/preemption (fair sharing), and KEP-1714.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tolerance import is_at_least, is_at_most
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import top_of


@dataclass(slots=True)
class BorrowingGroup:
    """State of one decision; `admit` and `stop` change it."""

    quota: Floats  # (queue,) accelerators
    weight: Floats  # (queue,)
    borrows: Bools  # (queue,)
    declared: Bools  # (queue,) the quota is declared, not derived from weights
    used: Floats  # (queue,) accelerators
    free: Floats  # (type,)
    queue: Ints  # (job,)
    size: Ints  # (job,)
    on_type: Ints  # (job,) -1 = waiting
    lendable: float
    newest: list[int]  # jobs running at the start of the decision, the last started first
    shares: Floats = field(init=False)  # (queue,) borrowed shares
    _running: dict[tuple[int, int], list[int]] = field(init=False)  # (type, queue) -> jobs of `newest` not stopped
    _count: Ints = field(init=False)  # (type, queue) number of these jobs
    _place: dict[int, int] = field(init=False)  # of a job in `newest`

    def __post_init__(self) -> None:
        self.shares = np.array([self.share(u) for u in range(len(self.quota))])
        self._place = {m: place for place, m in enumerate(self.newest)}
        self._running, self._count = {}, np.zeros((len(self.free), len(self.quota)), dtype=np.int64)
        for m in self.newest:
            self._add_running(m)

    @classmethod
    def of(cls, view: View) -> BorrowingGroup:
        """Build the state from a view; a queue is a tenant at the top with all tenants below it."""
        tenants, capacity = view.tenants, float(view.capacity.sum())
        queue, runs, size = top_of(tenants)[view.tenant], view.on_type >= 0, view.scale_factor
        newest = np.flatnonzero(runs)[::-1]
        return cls(
            quota=tenants.quota(capacity),
            weight=tenants.weight,
            borrows=tenants.borrows,
            declared=~np.isnan(tenants.said_quota),
            used=np.bincount(queue, np.where(runs, size, 0), minlength=len(tenants.names)).astype(float),
            free=view.capacity - np.bincount(view.on_type[runs], size[runs], minlength=len(view.types)),
            queue=queue,
            size=size,
            on_type=view.on_type.copy(),
            lendable=max(capacity, 1.0),
            newest=newest[np.argsort(-view.started[newest], kind="stable")].tolist(),
        )

    def infeasible_jobs(self) -> list[int]:
        """Return the jobs that are wider than the quota of a queue that may not borrow."""
        bound = self.declared & ~self.borrows
        return np.flatnonzero(bound[self.queue] & (self.size > self.quota[self.queue])).tolist()

    def has_available(self) -> bool:
        """Return whether accelerators are free, or a queue uses more than its quota."""
        return bool(self.free.any() or (self.used > self.quota).any())

    def share(self, queue: int, more: float = 0.0) -> float:
        """Return a queue's borrowed fraction of the capacity over its weight, if it used `more` accelerators."""
        borrowed = max(float(self.used[queue]) + more - float(self.quota[queue]), 0.0)
        return borrowed / self.lendable / float(self.weight[queue]) if borrowed > 0 else 0.0

    def may_use(self, job: int) -> bool:
        """Return whether the job's queue may use that many more accelerators."""
        u = self.queue[job]
        return bool(self.borrows[u] or self.used[u] + self.size[job] <= self.quota[u])

    def admit(self, job: int, type: int) -> None:
        """Allocate accelerators of a type to a job."""
        self._allocate(job, type, 1)
        self.on_type[job] = type

    def stop(self, job: int) -> None:
        """Release the accelerators of a job of `newest`."""
        type, u = int(self.on_type[job]), int(self.queue[job])
        self._allocate(job, type, -1)
        self._running[type, u].remove(job)
        self._count[type, u] -= 1

    def _undo_stop(self, job: int) -> None:
        """Allocate a stopped job's accelerators to it again."""
        self._allocate(job, int(self.on_type[job]), 1)
        self._add_running(job)

    def _add_running(self, job: int) -> None:
        type, u = int(self.on_type[job]), int(self.queue[job])
        insort(self._running.setdefault((type, u), []), job, key=self._place.__getitem__)
        self._count[type, u] += 1

    def _allocate(self, job: int, type: int, sign: int) -> None:
        u = int(self.queue[job])
        self.used[u] += sign * self.size[job]
        self.free[type] -= sign * self.size[job]
        self.shares[u] = self.share(u)

    def victims(self, job: int, type: int, *, final: bool, initial: bool) -> list[int]:
        """Return the jobs to preempt so that the job fits on this type; empty if the job cannot fit."""
        stopped: list[int] = []
        if final:
            self._by_final_share(job, type, stopped)
        if initial and not self._fits(job, type):
            self._by_initial_share(job, type, stopped)
        fits = self._fits(job, type)
        for other in stopped[:-1][::-1] if fits else []:  # undo stops that turned out unnecessary
            if self.free[type] - self.size[other] >= self.size[job]:
                self._undo_stop(other)
                stopped.remove(other)
        for other in stopped:
            self._undo_stop(other)
        return stopped if fits else []

    def _by_final_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop jobs of the queues that borrow most, while their shares stay at least the job's queue's with it."""
        own, closed = self._share_with(job)
        while not self._fits(job, type):
            v = self._most_borrowing(type, closed)
            if v < 0 or not is_at_most(own, self.shares[v]):  # no other queue borrows enough either
                return
            fair = (c for c in self._running[type, v] if is_at_most(own, self.share(v, -float(self.size[c]))))
            if (victim := next(fair, -1)) < 0:
                closed[v] = True
            else:
                self.stop(victim)
                stopped.append(victim)

    def _by_initial_share(self, job: int, type: int, stopped: list[int]) -> None:
        """Stop one job each of queues whose share is above that of the job's queue with it."""
        own, closed = self._share_with(job)
        while not self._fits(job, type):
            v = self._most_borrowing(type, closed)
            if v < 0 or is_at_least(own, self.shares[v]):
                return
            stopped.append(self._running[type, v][0])
            self.stop(stopped[-1])
            closed[v] = True

    def _share_with(self, job: int) -> tuple[float, Bools]:
        """Return the share of a job's queue with it, and the queues, (queue,), that it may not preempt: its own."""
        closed = np.zeros(len(self.quota), dtype=bool)
        closed[self.queue[job]] = True
        return self.share(int(self.queue[job]), float(self.size[job])), closed

    def _most_borrowing(self, type: int, closed: Bools) -> int:
        """Return the queue with the largest share among those that borrow and run jobs on the type; -1 = none."""
        open_ = (self._count[type] > 0) & (self.used > self.quota) & ~closed
        return int(np.argmax(np.where(open_, self.shares, -1.0))) if open_.any() else -1

    def _fits(self, job: int, type: int) -> bool:
        return bool(self.free[type] >= self.size[job])


class QueueHeads:
    """The first waiting job of each queue, ordered by the share of its queue with it, then by row."""

    def __init__(self, lines: Mapping[int, deque[int]], cohort: BorrowingGroup):
        self._lines, self._cohort = lines, cohort
        self._version = dict.fromkeys(lines, 0)  # of the heap entry of a queue that is valid
        self._heap: list[tuple[float, int, int, int]] = []  # share with its head, head, queue, version
        self.update(lines)

    def update(self, queues: Iterable[int]) -> None:
        """Recompute the shares of these queues, after their usage or heads changed."""
        for u in queues:
            if self._lines.get(u):
                head = self._lines[u][0]
                self._version[u] += 1
                share = self._cohort.share(u, float(self._cohort.size[head]))
                heapq.heappush(self._heap, (share, head, u, self._version[u]))

    def pop(self) -> int:
        """Remove the next job from its queue and return it; -1 = none is left."""
        while self._heap:
            _, head, u, version = heapq.heappop(self._heap)
            if version == self._version[u]:
                self._lines[u].popleft()
                self._version[u] += 1
                self.update((u,))
                return head
        return -1
