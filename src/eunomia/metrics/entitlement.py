"""The accelerators that tenants' jobs asked for and were entitled to over time, and the service that jobs deserved.

deserved_m = ∫ min(z_m, w_m / Σ w of the tenant's jobs · O) dt        accelerator-seconds, as `model.fair_share` has it

What tenants own follows their demand and the accelerators in service: `model.fair_share` S and O.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.step_functions import Steps, at_times, combined, summed
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_table import job_array
from eunomia.model.tenants import Tenants
from eunomia.model.tolerance import RELATIVE

_NOTHING: Steps = np.zeros(1), np.zeros(1)


def demand_of(collector: MetricsCollector, owner: Ints, ended: Floats, tenants: int) -> list[Steps]:
    """Return the accelerators that each tenant's jobs asked for while they waited or ran; paused jobs ask for none.

    `owner` (job,) is a job's tenant, `ended` (job,) the end of its presence, s.
    """
    submitted = job_array(collector.jobs, "submitted", float)
    size = job_array(collector.jobs, "scale_factor", float)
    pauses = collector.pauses.intervals(collector.end_s)
    submitted, ended = np.concatenate((submitted, pauses.begin)), np.concatenate((ended, pauses.end))
    size, owner = np.concatenate((size, -size[pauses.job])), np.concatenate((owner, owner[pauses.job]))
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(tenants + 1))
    every = (order[bounds[u] : bounds[u + 1]] for u in range(tenants))
    return [_present_size(submitted[rows], ended[rows], size[rows]) for rows in every]


def _present_size(begin: Floats, end: Floats, size: Floats) -> Steps:
    """Return the sum of the sizes present from `begin` to `end`."""
    times, place = np.unique(np.concatenate(([0.0], begin, end)), return_inverse=True)
    change = np.bincount(place.reshape(-1), np.concatenate(([0.0], size, -size)), len(times))
    return times, np.cumsum(change)


class WeightIntervals(NamedTuple):
    """Intervals in which a job was present with the same weight."""

    job: Ints  # (interval,) row
    begin: Floats  # (interval,)
    end: Floats  # (interval,)
    weight: Floats  # (interval,)


def weight_intervals(jobs: Sequence[Job], end: Floats, updates: Sequence[tuple[int, float, float]]) -> WeightIntervals:
    """Return the intervals of jobs that were present until `end`, (job,); `updates` are row, time and new weight."""
    count, room = len(jobs), len(jobs) + len(updates)
    job, begin, last, weight = np.arange(room), np.empty(room), np.empty(room), np.empty(room)
    begin[:count], weight[:count] = job_array(jobs, "submitted"), job_array(jobs, "weight")
    last[:count] = end
    latest: dict[int, int] = {}  # interval of each job whose weight changed
    for row, at, new in updates:
        now = latest.get(row, row)
        if at < last[now]:
            job[count], begin[count], last[count], weight[count] = row, at, last[now], new
            last[now], latest[row] = at, count
            count += 1
    return WeightIntervals(job[:count], begin[:count], last[:count], weight[:count])


def deserved_service(intervals: WeightIntervals, size: Floats, owner: Ints, owned: OwnedShares) -> Floats:
    """Return the accelerator-seconds that each job deserved, (job,).

    `size` (job,) are scale factors, `owner` (job,) tenants.
    """
    total = np.zeros(len(size))
    tenant = owner[intervals.job]
    order = np.argsort(tenant, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(tenant[order])) + 1) if len(order) else ():
        job, begin, end, weight = intervals
        if len(rows) < len(order):
            job, begin, end, weight = job[rows], begin[rows], end[rows], weight[rows]
        part = WeightIntervals(job, begin, end, weight)
        np.add.at(total, part.job, _deserved_in_tenant(part, size[part.job], owned.owned(int(tenant[rows[0]]))))
    return total


def _deserved_in_tenant(intervals: WeightIntervals, size: Floats, own: Steps) -> Floats:
    """Return what the jobs of one tenant deserved in each interval, (interval,)."""
    begin, end, weight = intervals.begin, intervals.end, intervals.weight
    kinds, kind = np.unique(np.stack((size, weight)), axis=1, return_inverse=True)
    order = np.argsort(kind.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(kind.reshape(-1), minlength=kinds.shape[1]))
    del kind
    times = np.unique(np.concatenate((begin, end, own[0])))
    first, last = (np.searchsorted(times, at) for at in (begin, end))
    change = np.bincount(first, weight, len(times))
    change -= np.bincount(last, weight, len(times))
    total_weight = np.cumsum(change, out=change)[:-1]
    owned, deserved = at_times(own, times[:-1]), np.zeros(len(size))
    for (z, w), rows in zip(kinds.T.tolist(), np.split(order, ends[:-1]), strict=True):
        low, high = first[rows].min(), last[rows].max()
        total = np.zeros(high - low + 1)
        amount = total[1:]  # changed in place, as there may be millions of times
        with np.errstate(divide="ignore", invalid="ignore"):
            amount[:] = fair_share.of_jobs(z, w, total_weight[low:high], owned[low:high])
            amount *= np.diff(times[low : high + 1])
        amount[~(total_weight[low:high] > w / 2)] = 0.0  # rounding leaves a small total where no job is present
        np.cumsum(amount, out=amount)
        deserved[rows] = total[last[rows] - low] - total[first[rows] - low]
    return deserved


class OwnedShares:
    """Shares S and O of each tenant, in accelerators.

    A share changes with the demand of each sibling, so the step functions are made one at a time, for the time in which
    the tenant has demand, and those of tenants without children are not kept.
    """

    def __init__(self, tree: Tenants, capacity: Steps, demand: Sequence[Steps]) -> None:
        """Prepare for `capacity` accelerators in service, of which each tenant's own jobs ask for `demand` (tenant)."""
        self._tree, self._demand = tree, demand
        below = fair_share.rows_below(tree.parent)
        self._present = [
            _presence(summed([demand[u], *(demand[v] for v in below[u].tolist())]) if u in below else demand[u])
            for u in range(len(tree.names))
        ]
        self._per_weight: dict[int, Steps] = {}  # accelerators per weight, by parent
        for parent in np.unique(tree.parent).tolist():  # parents precede their children
            self._per_weight[parent] = self._divide(parent, capacity if parent < 0 else self.share(parent))
        self._of_parents: dict[int, Steps] = {}  # O
        for u, rows in below.items():
            owed = summed([self.deserved(v) for v in rows.tolist()])
            self._of_parents[u] = combined(fair_share.left, self.share(u), owed)

    def _divide(self, parent: int, whole: Steps) -> Steps:
        """Return what a unit of weight gets of the parent's share, among children with demand and without a quota."""
        children = self._tree.parent == parent
        declared = ~np.isnan(self._tree.said_quota)
        reserved = float(self._tree.said_quota[children & declared].sum())
        rows = [u for u in np.flatnonzero(children & ~declared).tolist() if len(self._present[u][0])]
        if not rows:
            return _NOTHING
        count = summed([self._present[u] for u in rows])
        weight = summed([(self._present[u][0], self._present[u][1] * self._tree.weight[u]) for u in rows])[1]
        weight[count[1] < 0.5] = np.inf  # not the rounding error that a sum of weights leaves

        def per_weight(of: Floats, weights: Floats) -> Floats:
            amount = np.maximum(of - reserved, 0.0)
            return np.divide(amount, weights, out=np.zeros_like(amount), where=weights > 0)

        return combined(per_weight, whole, (count[0], weight))

    def share(self, u: int) -> Steps:
        """Return S of a tenant."""
        parent, quota = int(self._tree.parent[u]), self._tree.said_quota[[u]]
        if not np.isnan(quota[0]):
            declared = np.zeros(1), quota
            return declared if parent < 0 else combined(np.minimum, declared, self.share(parent))
        if not len(self._present[u][0]):
            return _NOTHING
        times, amount = self._per_weight[parent]
        place, is_last = _places(times, self._present[u])
        return times[place], np.where(is_last, 0.0, amount[place] * self._tree.weight[u])

    def owned(self, u: int) -> Steps:
        """Return O of a tenant."""
        return self._of_parents[u] if u in self._of_parents else self.share(u)

    def deserved(self, u: int) -> Steps:
        """Return the part of O that the tenant's own jobs ask for."""
        return combined(fair_share.of_tenants, self._demand[u], self.owned(u))


def _presence(demand: Steps) -> Steps:
    """Return 1 while there is demand, else 0; only the changes, so 1 is first."""
    times, value = demand
    there = value > RELATIVE * value.max(initial=0.0)
    changes = np.flatnonzero(np.diff(there, prepend=False))
    return times[changes], there[changes].astype(float)


def _places(times: Floats, presence: Steps) -> tuple[Ints, np.ndarray]:
    """Return which of the times lie in spans of presence, both ends included, and which of these end a span."""
    at = np.searchsorted(times, presence[0])
    begin, end = at[0::2], at[1::2]
    if len(end) < len(begin):  # present for ever
        end = np.append(end, len(times))
    count = end - begin + 1
    place = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
    is_last = np.zeros(len(place), dtype=bool)
    is_last[np.cumsum(count) - 1] = True
    inside = place < len(times)
    return place[inside], is_last[inside]
