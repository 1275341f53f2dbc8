"""One decision of ASTRAEA, on free accelerators and those of ended leases.

Phase 0: the gang that has starved longest is placed first, or has accelerators set aside until enough are free. Leases
that end one by one leave a wide gang no moment at which enough are free. Once it has waited for the threshold, and its
tenant's quota has room for it, no other job gets what comes free, and no other job of its tenant starts; so it waits
for at most one lease more. Where quotas are lent, what its tenant holds is no obstacle: those are leases that end too.

Phase 1: how many accelerators each tenant may hold, by giving them out on paper. A tenant may get more than its quota
when others ask for less.

    n[u] = what u holds,  U[u], W[u] its used and entitled accelerator-seconds over the long term,  W[u] += Q[u] L
    while accelerators are free and some tenant has jobs left:
        u = argmin n[u] / Q[u]   if that is less than a fifth,   else argmin U[u] / W[u]
        the first of its jobs that fits:  n[u] += z,  U[u] += z L;  those before it are skipped

Phase 2: tenant by tenant, job by job.

    for each tenant u, for each of its jobs m in order:
        while m never ran, its budget is short and u has fresh leases:  the most over-served of them ends
        m starts if n[u] + z[m] fits the budget of u and z[m] accelerators of a type that it can use are free
        else it waits; if u has starving jobs left or queues are blocked, all jobs behind it in u wait too

The quota that lends (`dynamic`): what tenants leave idle goes to others, up to `lend` times their quota, and is taken
back.

    reclaim    while claims within quotas are more than what is free:  stop the newest of the jobs above a quota
    lend       give what is still free, but no more than unused quota, to others in drawn order, up to lend · Q[u]

A tenant's jobs above its quota are those that do not fit into it by order of submission. Q quota, z scale factor, L
length of a lease; 0/0 = 1; ties go to the first tenant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.view import View
from eunomia.placement.grants_builder import LOST
from eunomia.policies.grants.astraea.selection import Keys, line_up, ranked
from eunomia.policies.grants.astraea.tenant_order import TenantOrder, wishes

MINIMUM_PART = 0.2  # of its quota: a tenant that holds less comes first


class AstraeaTerms(NamedTuple):
    """The parameters of a decision."""

    quota: str
    block: bool
    ahead_s: float  # what a grant counts for on paper
    lend: float
    exempt_above: float  # accelerators of a gang whose lease does not end


@dataclass(slots=True)
class DecisionBudget:
    """What is free and what tenants may hold in one decision, used up as it goes."""

    view: View
    seen: TenantOrder
    keys: Keys  # (job,) each
    starving: Bools  # (job,)
    fresh: Ints  # jobs whose leases may end early
    terms: AstraeaTerms
    placed: dict[int, int] = field(default_factory=dict)  # job -> type
    stopped: list[int] = field(default_factory=list)

    def decide(self) -> None:
        """Fill `placed` and `stopped`."""
        seen, terms = self.seen, self.terms
        line = self._line(seen.competes & ~self._renew_exempt() & ~self._place_starving())
        if terms.quota == "fair":
            first = self._firsts(line)
            left, size = int(seen.free.sum()), self.view.scale_factor[line]
            budget = budgets(size, first, left, seen.held, seen.quota, seen.used, seen.entitled, terms.ahead_s)
            self._serve(line, budget, self.fresh)
            return
        budget = self._at_least_the_admitted()
        if terms.quota == "dynamic":
            self._reclaim(line, budget)
        self._serve(line, budget, NO_INTS)
        if terms.quota == "dynamic":
            self._lend(line)

    def _renew_exempt(self) -> Bools:
        """Let gangs wider than `exempt_above` run on where they are; return which, (job,)."""
        view, seen = self.view, self.seen
        wide = seen.over & (view.scale_factor > self.terms.exempt_above)
        for job in np.flatnonzero(wide).tolist():
            self.placed[job] = int(view.on_type[job])
            seen.held[seen.tenant[job]] += view.scale_factor[job]
            seen.free[view.on_type[job]] -= view.scale_factor[job]
        return wide

    def _place_starving(self) -> Bools:
        """Place the gang that starved longest, or set accelerators aside; return the jobs that leaves out, (job,)."""
        view, seen = self.view, self.seen
        out = np.zeros(view.jobs, dtype=bool)
        if not self.starving.any():
            return out
        room = seen.quota if self.terms.quota == "fair" else seen.quota - seen.held
        waits = np.flatnonzero(self.starving & (view.scale_factor <= room[seen.tenant]))
        capacity = np.bincount(view.topology.type[view.holder != LOST], minlength=len(view.types))
        for job in waits[np.argsort(-view.waiting_time[waits], kind="stable")].tolist():
            able = (view.throughput[job] > 0) & (view.scale_factor[job] <= capacity)
            if able.any():
                break
        else:
            return out
        type = int(np.argmax(np.where(able, seen.free, -1)))
        size, tenant = int(view.scale_factor[job]), seen.tenant[job]
        if size <= seen.free[type]:
            self.placed[job], out[job] = type, True
            seen.held[tenant] += size
        else:
            out |= seen.tenant == tenant
        seen.free[type] = max(seen.free[type] - size, 0)
        return out

    def _line(self, competes: Bools) -> Ints:
        """Return the jobs that compete, tenant by tenant, the next one first."""
        rows = np.flatnonzero(competes)
        keys = tuple(key[rows] for key in self.keys)
        return rows[line_up(keys, self.view.submitted[rows], self.starving[rows], self.seen.tenant[rows])]

    def _firsts(self, line: Ints) -> Ints:
        """Return where the jobs of each tenant begin in jobs that stand tenant by tenant, (tenant + 1,)."""
        return np.searchsorted(self.seen.tenant[line], np.arange(len(self.seen.quota) + 1))

    def _serve(self, line: Ints, budget: Ints, fresh: Ints) -> None:
        view, seen = self.view, self.seen
        if len(fresh):
            worst = ranked(tuple(-key[fresh] for key in self.keys))
            fresh = fresh[worst][np.argsort(seen.tenant[fresh[worst]], kind="stable")]
        fresh_first = self._firsts(fresh)
        hungry = np.bincount(seen.tenant[line[self.starving[line]]], minlength=len(seen.quota))
        types, ended = serve(
            view.scale_factor[line],
            self._firsts(line),
            wishes(view, line),
            seen.never_ran[line],
            hungry,
            seen.free,
            seen.held,
            budget,
            view.scale_factor[fresh],
            view.on_type[fresh],
            fresh_first,
            self.terms.block,
        )
        for first, n in zip(fresh_first[:-1].tolist(), ended.tolist(), strict=True):
            self.stopped += fresh[first : first + n].tolist()
        starts = np.flatnonzero(types >= 0)
        self.placed |= dict(zip(line[starts].tolist(), types[starts].tolist(), strict=True))

    def _at_least_the_admitted(self) -> Ints:
        """Return quotas, of which none is narrower than a job that was admitted when it was wider."""
        budget = self.seen.quota.copy()
        rows = np.flatnonzero(~self.seen.too_wide)
        np.maximum.at(budget, self.seen.tenant[rows], self.view.scale_factor[rows])
        return budget

    def _reclaim(self, line: Ints, budget: Ints) -> None:
        """Take back what was lent where tenants claim it within their quotas."""
        view, seen = self.view, self.seen
        claims = np.zeros(len(seen.quota), dtype=np.int64)
        size, tenant = view.scale_factor[line], seen.tenant[line]
        np.add.at(claims, tenant, size)
        within = np.minimum(claims, np.maximum(budget - seen.held, 0))
        stop = self._newest_above_quota(int(within.sum() - seen.free.sum()))
        np.subtract.at(seen.held, seen.tenant[stop], view.scale_factor[stop])
        np.add.at(seen.free, view.on_type[stop], view.scale_factor[stop])
        self.stopped += stop.tolist()

    def _newest_above_quota(self, short: int) -> Ints:
        """Return jobs to stop so that `short` accelerators come free, as far as tenants are above their quotas."""
        view, seen = self.view, self.seen
        going_on = np.flatnonzero((view.on_type >= 0) & ~seen.over)
        line = going_on[np.lexsort((view.submitted[going_on], seen.tenant[going_on]))]
        size, tenant = view.scale_factor[line], seen.tenant[line]
        before = np.cumsum(size) - size
        first = np.searchsorted(tenant, tenant)
        held = before - before[first] + size if len(line) else size  # by the tenant up to and with this job
        above = line[held > seen.quota[tenant]]
        newest = above[np.argsort(-view.submitted[above], kind="stable")]
        gives = np.cumsum(view.scale_factor[newest])
        return newest[: int(np.searchsorted(gives, short) + 1)] if short > 0 else newest[:0]

    def _lend(self, line: Ints) -> None:
        """Give unused quota to jobs that found none, in drawn order."""
        seen = self.seen
        waiting = line[~np.isin(line, list(self.placed))]
        drawn = waiting[self.view.rng().permutation(len(waiting))]
        drawn = drawn[np.argsort(seen.tenant[drawn], kind="stable")]
        unused = int(np.maximum(seen.quota - seen.held, 0).sum())
        budget: Ints = np.floor(seen.quota * self.terms.lend).astype(np.int64)
        seen.free[:] = np.diff(np.minimum(np.cumsum(seen.free), unused), prepend=0)
        self._serve(drawn, budget, NO_INTS)


@kernel()
def _least(value: Floats, there: Bools) -> int:
    best = -1
    for u in range(len(value)):
        if there[u] and (best < 0 or value[u] < value[best]):
            best = u
    return best


@kernel()
def budgets(
    size: Ints, first: Ints, free: int, held: Ints, quota: Ints, used: Floats, entitled: Floats, lease: float
) -> Ints:
    """Return n, (tenant,). Jobs first[u] … first[u + 1] - 1 of `size` are those of tenant u, the next one first."""
    budget, spent = held.copy(), used.copy()
    there = np.empty(len(quota), dtype=np.bool_)
    part, owed = np.empty(len(quota)), np.empty(len(quota))
    for u in range(len(quota)):
        there[u] = first[u] < first[u + 1] and quota[u] > 0
        part[u] = held[u] / max(quota[u], 1)
        owed[u] = used[u] / entitled[u] if entitled[u] > 0 else 1.0
    next_job, left, u = first.copy(), free, _least(part, there)
    while left > 0 and u >= 0:
        if part[u] >= MINIMUM_PART:
            u = _least(owed, there)
        while next_job[u] < first[u + 1]:
            z = size[next_job[u]]
            next_job[u] += 1
            if z <= left:
                left -= z
                budget[u] += z
                spent[u] += z * lease
                part[u] = budget[u] / quota[u]
                owed[u] = spent[u] / (entitled[u] + quota[u] * lease)
                break
        there[u] = next_job[u] < first[u + 1]
        u = _least(part, there)
    return budget


@kernel()
def serve(
    size: Ints,
    first: Ints,
    wishes: Ints,
    never_ran: Bools,
    starving: Ints,
    free: Ints,
    held: Ints,
    budget: Ints,
    fresh_size: Ints,
    fresh_type: Ints,
    fresh_first: Ints,
    block: bool,
) -> tuple[Ints, Ints]:
    """Return the type on which each job starts, -1 = it waits, and by tenant how many fresh leases end.

    `wishes` (job, rank) are types, the best first, -1 = no more. `free` (type,) and `held` (tenant,) are used up. Fresh
    leases fresh_first[u] … are those of tenant u, the first to end first.
    """
    placed = np.full(len(size), -1)
    ended = np.zeros(len(held), dtype=np.int64)
    for u in range(len(held)):
        hungry, fresh = starving[u], fresh_first[u]
        for m in range(first[u], first[u + 1]):
            while never_ran[m] and held[u] + size[m] > budget[u] and fresh < fresh_first[u + 1]:
                held[u] -= fresh_size[fresh]
                free[fresh_type[fresh]] += fresh_size[fresh]
                fresh += 1
            if held[u] + size[m] <= budget[u]:
                for j in wishes[m]:
                    if j >= 0 and size[m] <= free[j]:
                        free[j] -= size[m]
                        held[u] += size[m]
                        placed[m] = j
                        break
            if placed[m] >= 0:
                hungry = max(hungry - 1, 0)
            elif hungry > 0 or block:
                break
        ended[u] = fresh - fresh_first[u]
    return placed, ended
