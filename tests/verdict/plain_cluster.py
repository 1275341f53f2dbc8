"""The cluster, its tenants and its jobs over time, split at every instant at which anything changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from tests.verdict.plain_timelines import History, Lease, Timeline
from tests.verdict.worlds import World

HOUR = 3600.0
NAN = math.nan


@dataclass(frozen=True)
class Part:
    """A part of the time in which nothing changes."""

    begin: float
    end: float

    @property
    def lasts(self) -> float:
        """Its length."""
        return self.end - self.begin

    def within(self, begin: float, end: float) -> bool:
        """Whether all of it lies in [begin, end]."""
        return begin <= self.begin and self.end <= end


class PlainCluster:
    """What was in service, asked for, owned and held in each part of the time; lists have one entry per part."""

    def __init__(self, world: World, history: History) -> None:
        self.world, self.history, self.types = world, history, world.types
        self.jobs = list(history.jobs.values())
        self.begin = min(job.submitted for job in self.jobs)
        self.end = max(history.end_s, self.begin)
        self.capacity = {name: sum(size for kind, size in world.nodes if kind == name) for name in self.types}
        self.tenants = self._tree()
        self.parts = [Part(*edges) for edges in pairwise(self._edges())]
        self.present = [[job for job in self.jobs if p.within(job.submitted, self.until(job))] for p in self.parts]
        self.served = [
            [(job, lease) for job in self.jobs for lease in job.leases if p.within(lease.begin, lease.end)]
            for p in self.parts
        ]
        self.in_service = [self._in_service(p) for p in self.parts]
        self.asked = [
            {u: float(sum(job.size for job in present if owner(job) == u)) for u in self.tenants}
            for present in self.present
        ]
        self.owned = [
            self._owned(asked, self.shares(sum(room.values()), asked))
            for asked, room in zip(self.asked, self.in_service, strict=True)
        ]
        self.held = [self._held(served) for served in self.served]
        self.busy = [self._busy(served) for served in self.served]

    def _edges(self) -> list[float]:
        """Return every instant at which something changes, and the full hours."""
        times = {self.begin, self.end, *(HOUR * k for k in range(math.ceil(self.end / HOUR)))}
        for job in self.jobs:
            times |= {job.submitted, self.until(job)}
            times |= {edge for lease in job.leases for edge in (lease.begin, lease.end)}
        times |= {edge for _, since, until in self.history.outages for edge in (since, until)}
        return sorted(at for at in times if self.begin <= at <= self.end)

    def until(self, job: Timeline) -> float:
        """Return the end of a job's presence."""
        return self.end if math.isnan(job.ended) else job.ended

    def _in_service(self, part: Part) -> dict[str, float]:
        gone = [node for node, since, until in self.history.outages if part.within(since, until)]
        return {
            name: float(sum(size for n, (kind, size) in enumerate(self.world.nodes) if kind == name and n not in gone))
            for name in self.types
        }

    def _tree(self) -> list[str]:
        """Return the tenants, parents before children: declared ones first, then those of jobs."""
        names: list[str] = []
        for name in [*self.world.tenants, *map(owner, self.jobs)]:
            path = name.split("/")
            names += ["/".join(path[:depth]) for depth in range(1, len(path) + 1)]
        return list(dict.fromkeys(names))

    def shares(self, capacity: float, asked: dict[str, float]) -> dict[str, float]:
        """Return the accelerators of each tenant: its quota, or its part by weight of what quotas leave.

        A part goes only to tenants that ask, or below which one asks.
        """
        share: dict[str, float] = {}
        for name in self.tenants:
            parent = name.rpartition("/")[0]
            siblings = [each for each in self.tenants if each.rpartition("/")[0] == parent]
            said = {each: self.world.tenants.get(each, (1.0, NAN)) for each in siblings}
            asking = [each for each in siblings if any(asked[u] > 0 for u in self.tenants if is_in(u, each))]
            whole, (weight, quota) = share[parent] if parent else capacity, said[name]
            if math.isnan(quota):
                left = max(whole - sum(q for _, q in said.values() if not math.isnan(q)), 0.0)
                weights = sum(w for each, (w, q) in said.items() if math.isnan(q) and each in asking)
                share[name] = left * weight / weights if name in asking else 0.0
            else:
                share[name] = min(quota, whole) if parent else quota
        return share

    def _owned(self, asked: dict[str, float], share: dict[str, float]) -> dict[str, float]:
        """Return what each tenant's own jobs are entitled to: its share less what is deserved below it."""
        own = dict(share)
        for name in reversed(self.tenants):
            below = [each for each in self.tenants if each != name and is_in(each, name)]
            left = share[name] - sum(min(asked[each], own[each]) for each in below)
            own[name] = left if left > 1e-9 * share[name] else 0.0
        return own

    def _held(self, served: list[tuple[Timeline, Lease]]) -> dict[str, dict[str, float]]:
        """Return the accelerators that each tenant's jobs hold by type; both of a pair count."""
        held = {u: dict.fromkeys(self.types, 0.0) for u in self.tenants}
        for job, lease in served:
            held[owner(job)][lease.type] += len(lease.seats)
        return held

    def _busy(self, served: list[tuple[Timeline, Lease]]) -> dict[str, float]:
        """Return the accelerators in use by type; those that a pair shares count once."""
        seats = {t: {seat for _, lease in served if lease.type == t for seat in lease.seats} for t in self.types}
        return {t: float(len(used)) for t, used in seats.items()}

    def total(self, amount: Callable[[int], float], parts: Iterable[int] | None = None) -> float:
        """Return the integral of an amount, which is given by number of the part, over all parts or some."""
        return math.fsum(amount(k) * self.parts[k].lasts for k in (range(len(self.parts)) if parts is None else parts))

    def totals(self, amounts: list[dict[str, float]], parts: Iterable[int] | None = None) -> dict[str, float]:
        """Return the integral of an amount of each type."""
        numbers = range(len(self.parts)) if parts is None else list(parts)
        return {t: math.fsum(amounts[k][t] * self.parts[k].lasts for k in numbers) for t in self.types}

    def rates(self, job: Timeline) -> dict[str, float]:
        """Return the steps/s of a job by type; 0 where the type has fewer accelerators than its gang."""
        rate = {name: self.world.rate[name, job.job_type, job.size] for name in self.types}
        return {name: each if self.capacity[name] >= job.size else 0.0 for name, each in rate.items()}

    def alone_s(self, job: Timeline) -> float:
        """Return the run time on the fastest type that holds the gang."""
        return job.steps / max(self.rates(job).values())


def owner(job: Timeline) -> str:
    """Return the tenant of a job."""
    return job.tenant or "-"


def is_in(tenant: str, other: str) -> bool:
    """Whether a tenant is another or is below it."""
    return tenant == other or tenant.startswith(f"{other}/")
