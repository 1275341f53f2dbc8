"""A cohort of queues that borrow idle quota from each other: usage, borrowed shares, and preemption.

Reference: Kubernetes SIGs, "Preemption", kueue.sigs.k8s.io/docs/concepts/preemption (fair sharing), and KEP-1714.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
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
    _sizes: list[int] = field(init=False)  # (job,) as `size`

    def __post_init__(self) -> None:
        self.shares = np.array([self.share(u) for u in range(len(self.quota))])
        self._place, self._sizes = {m: place for place, m in enumerate(self.newest)}, self.size.tolist()
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
            self._stop_by_share(job, type, stopped, self._keeps_final_share)
        if initial and not self._fits(job, type):
            self._stop_by_share(job, type, stopped, self._keeps_initial_share)
        fits = self._fits(job, type)
        for other in stopped[:-1][::-1] if fits else []:  # undo stops that turned out unnecessary
            if self.free[type] - self.size[other] >= self.size[job]:
                self._undo_stop(other)
                stopped.remove(other)
        for other in stopped:
            self._undo_stop(other)
        return stopped if fits else []

    def _keeps_final_share(self, own: float, v: int, victim: int) -> bool:
        """Return whether a share is at most that of queue v without one of its jobs."""
        return bool(is_at_most(own, self.share(v, -float(self.size[victim]))))

    def _keeps_initial_share(self, own: float, v: int, victim: int) -> bool:
        """Return whether a share is below that of queue v as it is."""
        return not is_at_least(own, self.shares[v])

    def _stop_by_share(self, job: int, type: int, stopped: list[int], keeps: Callable[[float, int, int], bool]) -> None:
        """Stop jobs of other queues until the job fits: of the queue that borrows most, the last started first.

        A candidate whose stop does not satisfy `keeps` is passed over, and the queue's next smaller one is tried: what
        the rules do not allow of a job they do not allow of a larger one. The second rule stops at most one job of each
        queue: without a job that the first rule passed over, a queue borrows less than the job's queue would.
        """
        own = self.share(int(self.queue[job]), float(self.size[job]))
        passed_over = np.zeros(len(self.quota), dtype=np.int64)  # (queue,) candidates tried and kept
        passed_over[self.queue[job]] = len(self.newest)
        while not self._fits(job, type):
            queues = self._most_borrowing(type, passed_over)
            if not queues or not is_at_most(own, self.shares[queues[0]]):  # no other queue borrows enough either
                return
            heads = [(self._place[self._running[type, v][passed_over[v]]], v) for v in queues]
            heapq.heapify(heads)
            while heads:
                v = heads[0][1]
                victim = self._running[type, v][passed_over[v]]
                if keeps(own, v, victim):
                    self.stop(victim)
                    stopped.append(victim)
                    break
                running, size = self._running[type, v], self._sizes[victim]
                later = range(int(passed_over[v]) + 1, len(running))
                passed_over[v] = next((k for k in later if self._sizes[running[k]] < size), len(running))
                heapq.heappop(heads)
                if passed_over[v] < len(running):
                    heapq.heappush(heads, (self._place[running[passed_over[v]]], v))

    def _most_borrowing(self, type: int, passed_over: Ints) -> list[int]:
        """Return the queues with the largest share among those that borrow and have candidates left on the type.

        Of several that whose next candidate started last gives way.
        """
        shares = np.where((self._count[type] > passed_over) & (self.used > self.quota), self.shares, -1.0)
        largest = shares.max()
        return np.flatnonzero(is_at_least(shares, largest)).tolist() if largest >= 0 else []

    def _fits(self, job: int, type: int) -> bool:
        return bool(self.free[type] >= self.size[job])


class QueueHeads:
    """The first waiting job of each queue, ordered by the share of its queue with it, then by row."""

    def __init__(self, lines: Mapping[int, deque[int]], cohort: BorrowingGroup):
        self._lines, self._cohort = lines, cohort
        self._version = dict.fromkeys(lines, 0)  # of the heap entry of a queue that is valid
        self._heap: list[tuple[float, int, int, int]] = []  # share with its head, head, queue, version
        self._sizes = cohort.size.tolist()
        self._shares: dict[int, dict[int, float]] = {}  # queue -> size of a head -> share with it
        self.update(lines)

    def update(self, queues: Iterable[int]) -> None:
        """Recompute the shares of these queues, after their usage changed."""
        for u in queues:
            self._shares[u] = {}
            if self._lines.get(u):
                self._version[u] += 1
                heapq.heappush(self._heap, self._entry(u))

    def pop(self) -> int:
        """Remove the next job from its queue and return it; -1 = none is left."""
        while self._heap:
            _, head, u, version = self._heap[0]
            if version != self._version[u]:
                heapq.heappop(self._heap)
                continue
            self._lines[u].popleft()
            if self._lines[u]:
                heapq.heapreplace(self._heap, self._entry(u))
            else:
                heapq.heappop(self._heap)
                self._version[u] += 1
            return head
        return -1

    def _entry(self, u: int) -> tuple[float, int, int, int]:
        head, shares = self._lines[u][0], self._shares[u]
        size = self._sizes[head]
        if (share := shares.get(size)) is None:
            share = shares[size] = self._cohort.share(u, float(size))
        return share, head, u, self._version[u]
