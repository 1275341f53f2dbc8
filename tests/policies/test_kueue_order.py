"""Kueue's fair sharing beside the same read off its documentation job by job, looking through everybody each time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.view import View
from eunomia.policies.order.kueue_fair_share import _STRATEGIES, KueueFairShare

ROUNDING = 1e-9


@dataclass
class Slow:
    """The books as plain lists of jobs; nothing is kept that can be counted."""

    view: View
    holds: dict[int, int] = field(default_factory=dict)  # job -> type
    ran: list[int] = field(default_factory=list)  # who may stop, the last started first

    def __post_init__(self) -> None:
        view = self.view
        self.quota = view.tenants.quota(float(view.capacity.sum()))
        self.holds = {m: int(view.on_type[m]) for m in range(view.jobs) if view.on_type[m] >= 0}
        self.ran = sorted(self.holds, key=lambda m: (-view.started[m], -m))

    def size(self, m: int) -> int:
        return int(self.view.scale_factor[m])

    def queue(self, m: int) -> int:
        return int(self.view.tenant[m])  # the trees here are flat

    def used(self, u: int) -> int:
        return sum(self.size(m) for m in self.holds if self.queue(m) == u)

    def free(self, j: int) -> int:
        return int(self.view.capacity[j]) - sum(self.size(m) for m, on in self.holds.items() if on == j)

    def share(self, u: int, more: int = 0) -> float:
        over = max(self.used(u) + more - self.quota[u], 0.0)
        return float(over / self.view.capacity.sum() / self.view.tenants.weight[u])

    def may_use(self, m: int) -> bool:
        u = self.queue(m)
        return bool(self.view.tenants.borrows[u] or self.used(u) + self.size(m) <= self.quota[u])

    def victims(self, m: int, j: int, *, final: bool, initial: bool) -> list[int]:
        """Stop by the first rule of those on all candidates, then by the second on those passed over, once a queue."""
        kept, stopped, mine = dict(self.holds), [], self.share(self.queue(m), self.size(m))
        tried = [c for c in self.ran if self.holds.get(c) == j and self.queue(c) != self.queue(m)]
        for place, rule in enumerate(["final"] * final + ["initial"] * initial):
            passed_over, done = [], set()
            while tried and self.free(j) < self.size(m):
                there = [c for c in tried if self.used(self.queue(c)) > self.quota[self.queue(c)]]
                if not there:
                    break
                most = max(self.share(self.queue(c)) for c in there)
                c = next(c for c in there if self.share(self.queue(c)) >= most - ROUNDING)  # the last started of them
                tried.remove(c)
                v = self.queue(c)
                fair = mine <= self.share(v, -self.size(c)) + ROUNDING if rule == "final" else mine < most - ROUNDING
                if not fair or (place == 1 and v in done):
                    passed_over.append(c)
                    continue
                done.add(v)
                del self.holds[c]
                stopped.append(c)
            tried = sorted(passed_over + tried, key=self.ran.index)
        fits = self.free(j) >= self.size(m)
        for other in stopped[:-1][::-1] if fits else []:
            if self.free(j) - self.size(other) >= self.size(m):
                self.holds[other] = j
                stopped.remove(other)
        self.holds = kept
        return stopped if fits else []

    def admit(self, strategy: str) -> dict[int, int]:
        """Admit the jobs that fit, and return the final holders."""
        view, (final, initial) = self.view, _STRATEGIES[strategy]
        can = (view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity)
        waiting = [m for m in range(view.jobs) if view.on_type[m] < 0 and can[m].any()]
        while waiting:
            heads = {self.queue(m): m for m in reversed(waiting)}.values()
            m = min(heads, key=lambda m: (self.share(self.queue(m), self.size(m)), m))
            waiting.remove(m)
            if not self.may_use(m):
                continue
            types = [j for j in np.argsort(-view.throughput[m], kind="stable").tolist() if can[m, j]]
            found = [(j, []) for j in types if self.free(j) >= self.size(m)]
            found += [(j, gone) for j in types if (gone := self.victims(m, j, final=final, initial=initial))]
            if found:
                for one in found[0][1]:
                    del self.holds[one]
                    self.ran.remove(one)
                self.holds[m] = found[0][0]
        return self.holds


def crowded(seed: int) -> View:
    """Return a view of up to six queues, some of which borrow, on one to three types."""
    rng = np.random.default_rng(seed)
    types, owners, n = int(rng.integers(1, 4)), int(rng.integers(2, 7)), int(rng.integers(5, 40))
    said = {f"q{u}": Tenant(float(rng.integers(1, 4)), borrows=bool(rng.random() < 0.8)) for u in range(owners)}
    capacity, size = rng.integers(4, 17, types).astype(float), rng.choice([1, 1, 2, 3, 4], n)
    owner, on_type, left = np.minimum(rng.geometric(0.4, n), owners) - 1, np.full(n, -1), capacity.copy()
    for m in range(n // 2):
        j = int(rng.integers(types))
        if size[m] <= left[j]:
            on_type[m], left[j] = j, left[j] - size[m]
    columns = {
        "throughput": rng.integers(0, 4, (n, types)).astype(float) + (on_type[:, None] == np.arange(types)),
        "scale_factor": size,
        "capacity": capacity,
        "on_type": on_type,
        "tenant": owner,
        "tenants": Tenants.of((), said),
        "started": np.where(on_type >= 0, rng.integers(0, 5, n) * 1.0, np.inf),
    }
    return View(at=10.0, types=tuple("abc"[:types]), jobs=n, columns=columns)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(_STRATEGIES)))
def test_the_same_jobs_are_let_in_and_stopped(seed: int, strategy: str) -> None:
    view = crowded(seed)
    answer = KueueFairShare(preemption=strategy).decide(view)  # type: ignore[arg-type]
    found = dict(zip(answer.rows.job.tolist(), answer.rows.type.tolist(), strict=True))
    assert found == Slow(view).admit(strategy)
