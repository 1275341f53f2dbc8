"""Static quotas beside the same read off the policy's page job by job; decisions on their own, and whole runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eunomia.model.job import Job
from eunomia.model.tenants import Tenant, Tenants
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.wrappers.inner import inner_policy
from eunomia.policies.wrappers.quota import Quotas
from eunomia.testing.small_worlds import SmallWorld, line_up, one_type, play

ENDLESS, SRTF = "fifo?backfill=skip", "srtf"
RECLAIM = ("newest", "youngest")
INNERS = (ENDLESS, SRTF, "smallest_first")


def owner_at_the_top(tenants: Tenants, u: int) -> int:
    """Return the row whose name is the first part of the owner's path."""
    return tenants.names.index(tenants.names[u].split("/")[0])


def quota_of(tenants: Tenants, top: int, capacity: float) -> float:
    """Return what a tenant at the top says, or its part by weight of what those that say something leave."""
    if not math.isnan(tenants.said_quota[top]):
        return float(tenants.said_quota[top])
    at_top = [u for u in range(len(tenants.names)) if tenants.parent[u] < 0]
    silent = [u for u in at_top if math.isnan(tenants.said_quota[u])]
    left = max(capacity - sum(float(tenants.said_quota[u]) for u in at_top if u not in silent), 0.0)
    return math.floor(left * tenants.weight[top] / sum(tenants.weight[u] for u in silent) + 1e-9)


# ---- one decision --------------------------------------------------------------------------------------------------


def a_question(seed: int) -> View:
    """Return a question of up to twelve jobs of tenants in a tree, some of which run on one of up to three types."""
    rng = np.random.default_rng(seed)
    n, types = int(rng.integers(1, 13)), int(rng.integers(1, 4))
    capacity = rng.integers(1, 9, types).astype(float)
    said = {}
    for u in range(int(rng.integers(1, 4))):
        spoken = float(rng.integers(0, 5)) if rng.random() < 0.6 else math.nan
        said[f"t{u}"] = Tenant(weight=float(rng.integers(1, 4)), quota=spoken, borrows=bool(rng.random() < 0.6))
    paths = [f"t{rng.integers(4)}" + ("/below" if rng.random() < 0.3 else "") for _ in range(n)]
    tenants = Tenants.of(paths, said)
    size, speed = rng.integers(1, 6, n), rng.integers(0, 4, (n, types)).astype(float)
    on_type, left = np.full(n, -1), capacity.copy()
    for m in range(n):
        for j in range(types):
            if speed[m, j] > 0 and size[m] <= left[j] and on_type[m] < 0 and rng.random() < 0.6:
                on_type[m], left[j] = j, left[j] - size[m]
    columns = {
        "throughput": speed,
        "scale_factor": size,
        "capacity": capacity,
        "on_type": on_type,
        "tenant": np.array([tenants.row_of(path) for path in paths]),
        "tenants": tenants,
        "started": np.where(on_type >= 0, rng.integers(0, 4, n) * 1.0, np.inf),
        "remaining": rng.integers(1, 50, n).astype(float),
    }
    return View(at=10.0, types=tuple("abc"[:types]), jobs=n, columns=columns)


@dataclass
class Slow:
    """The page read word by word: who is within, who borrows and runs, who borrows and waits, who may not at all."""

    view: View
    policy: Quotas

    def line(self) -> list[int]:
        """Return the inner policy's jobs in its order; without preemption, running jobs before waiting ones."""
        jobs: list[int] = list(
            dict.fromkeys(inner_policy(self.policy.inner, "order").decide(self.view).rows.job.tolist())
        )
        return sorted(jobs, key=lambda m: not self.stays(m))

    def stays(self, m: int) -> bool:
        """Return whether this job runs and the inner policy does not preempt."""
        return self.policy.inner == ENDLESS and self.view.on_type[m] >= 0

    def top(self, m: int) -> int:
        return owner_at_the_top(self.view.tenants, int(self.view.tenant[m]))

    def quota(self, u: int) -> float:
        return quota_of(self.view.tenants, u, float(self.view.capacity.sum()))

    def may_borrow(self, m: int) -> bool:
        return self.policy.borrowing and bool(self.view.tenants.borrows[self.top(m)])

    def too_wide(self, m: int) -> bool:
        """Tell whether a job that may not borrow is wider than what its tenant said that it has."""
        u = self.top(m)
        return not self.may_borrow(m) and self.view.scale_factor[m] > self.view.tenants.said_quota[u]

    def within(self) -> list[int]:
        """Return the jobs within their tenants' quotas; alone, a gang may be wider than an undeclared quota."""
        held: list[int] = []
        closed: set[int] = set()  # who runs wider than its part has nothing left
        for m in self.line():
            u, size = self.top(m), int(self.view.scale_factor[m])
            used = sum(int(self.view.scale_factor[k]) for k in held if self.top(k) == u)
            unsaid = math.isnan(self.view.tenants.said_quota[u])
            if u not in closed and used + size <= self.quota(u):
                held.append(m)
            elif u not in closed and used == 0 and unsaid and not self.may_borrow(m):
                held.append(m)
                closed.add(u)
        return held

    def order(self) -> list[int]:
        """Return the jobs that may run, best first."""
        within, line = self.within(), self.line()
        borrows = [m for m in line if m not in within and self.may_borrow(m)]
        inner = list(dict.fromkeys(inner_policy(self.policy.inner, "order").decide(self.view).rows.job.tolist()))
        newest = self.policy.reclaim == "newest"
        kept = sorted(
            (m for m in inner if m in borrows and self.view.on_type[m] >= 0),
            key=lambda m: float(self.view.started[m]) if newest else m,
        )
        waits = [m for m in inner if m in borrows and m not in kept]
        return [*(m for m in inner if m in within), *kept, *waits]

    def refused(self) -> set[int]:
        return {m for m in range(self.view.jobs) if self.view.on_type[m] < 0 and self.too_wide(m)}

    def held_by_quota(self) -> set[int]:
        """Return the jobs that wait because their tenants may not borrow."""
        waits = [m for m in range(self.view.jobs) if self.view.on_type[m] < 0 and m not in self.within()]
        return {m for m in waits if not self.may_borrow(m) and not self.too_wide(m)}


@given(st.integers(0, 2**32 - 1), st.sampled_from(INNERS), st.booleans(), st.sampled_from(RECLAIM))
def test_a_decision_is_what_its_page_says(seed: int, inner: str, borrowing: bool, reclaim: str) -> None:
    view, policy = a_question(seed), Quotas(inner, borrowing, reclaim)  # type: ignore[arg-type]
    answer, slow = policy.decide(view), Slow(view, policy)
    assert list(dict.fromkeys(answer.rows.job.tolist())) == slow.order()
    assert set(answer.refuse) == slow.refused()
    assert set(answer.why) == slow.held_by_quota()
    inside = inner_policy(inner, "order").decide(view).rows
    for m in slow.order():  # the types of the inner policy's rows, or its present one when it may not move
        types = [view.on_type[m]] if slow.stays(m) else inside.type[inside.job == m].tolist()
        assert answer.rows.type[answer.rows.job == m].tolist() == types


# ---- a whole run ---------------------------------------------------------------------------------------------------


@dataclass
class Runner:
    """One job of the slow run."""

    job: Job
    left: float
    since: float = math.inf  # when it sat down; inf = it waits
    ended: float = math.nan


class SlowRun:
    """One machine, and quotas that are all said: at every arrival and end everybody is looked at again, in words."""

    def __init__(self, jobs: tuple[Job, ...], quota: dict[str, Tenant], accelerators: int, inner: str, reclaim: str):
        self.jobs = [Runner(job, job.total_steps) for job in jobs]
        self.quota, self.accelerators, self.inner, self.reclaim = quota, accelerators, inner, reclaim

    def rank(self, at: float) -> list[Runner]:
        """Return who may run, best first."""
        here = [one for one in self.jobs if one.job.submitted <= at and math.isnan(one.ended)]
        line = sorted(here, key=lambda one: one.left) if self.inner == SRTF else here
        if self.inner == ENDLESS:
            line = sorted(line, key=lambda one: one.since == math.inf)
        own = {name: tenant.quota for name, tenant in self.quota.items()}
        within, borrowed = [], []
        for one in line:
            if one.job.scale_factor <= own[one.job.tenant]:
                own[one.job.tenant] -= one.job.scale_factor
                within.append(one)
            elif self.quota[one.job.tenant].borrows:
                borrowed.append(one)
        running = [one for one in borrowed if one.since < math.inf]
        age = (lambda one: one.since) if self.reclaim == "newest" else (lambda one: one.job.submitted)
        waits = [one for one in borrowed if one.since == math.inf]
        return [*within, *sorted(running, key=age), *waits]  # of jobs started at once, the first of the line

    def finished(self) -> dict[str, float]:
        at = 0.0
        while any(math.isnan(one.ended) for one in self.jobs):
            free, running = self.accelerators, []
            for one in self.rank(at):
                if one.job.scale_factor <= free:
                    free -= one.job.scale_factor
                    one.since = min(one.since, at)
                    running.append(one)
                else:
                    one.since = math.inf
            later = [one.job.submitted for one in self.jobs if one.job.submitted > at]
            soon = min([at + one.left for one in running] + later)
            for one in running:
                one.left -= soon - at
                if one.left <= 0:
                    one.ended, one.since = soon, math.inf
            at = soon
        return {one.job.job_id: one.ended for one in self.jobs}


@given(st.integers(0, 2**32 - 1), st.sampled_from((ENDLESS, SRTF)), st.sampled_from(RECLAIM))
def test_a_run_lends_and_takes_back_as_its_page_says(seed: int, inner: str, reclaim: str) -> None:
    """Whole seconds, no two jobs submitted at once, and every job fits within its quota, so that none is refused."""
    rng = np.random.default_rng(seed)
    accelerators, owners = int(rng.integers(4, 10)), int(rng.integers(2, 4))
    parts = 1 + rng.multinomial(accelerators - owners, np.ones(owners) / owners)
    said = {f"t{u}": Tenant(quota=float(q), borrows=bool(rng.random() < 0.8)) for u, q in enumerate(parts)}
    n = int(rng.integers(2, 12))
    came = np.sort(rng.choice(60, n, replace=False))
    owner = rng.integers(owners, size=n)
    wide = [int(rng.integers(1, (accelerators if said[f"t{u}"].borrows else parts[u]) + 1)) for u in owner]
    lined = line_up(*((float(s), float(rng.integers(5, 80)), z) for s, z in zip(came, wide, strict=True)))
    jobs = tuple(replace(job, tenant=f"t{u}") for job, u in zip(lined, owner, strict=True))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=jobs, speeds=one_type())
    real = play(Quotas(inner=inner, reclaim=reclaim), world, tenants=said).finished  # type: ignore[arg-type]
    assert real == pytest.approx(SlowRun(jobs, said, accelerators, inner, reclaim).finished())
