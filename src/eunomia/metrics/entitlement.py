"""The accelerators that tenants' jobs asked for and were entitled to over time, and the service that jobs deserved.

deserved_m = ∫ min(z_m, w_m / Σ w of the tenant's jobs · O) dt        accelerator-seconds, as `model.fair_share` has it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.collector import MetricsCollector
from eunomia.metrics.owned_shares import OwnedShares
from eunomia.metrics.step_functions import Steps, at_times
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_table import job_array


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
