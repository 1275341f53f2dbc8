"""What each job deserved while it was there: ∫ min(z, w / Σ w · O) dt, accelerator-seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.step_functions import Steps, at_times
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job


class WeightIntervals(NamedTuple):
    """Stretches of time in which a job was there and weighed the same."""

    job: Ints  # (span,) row
    begin: Floats  # (span,)
    end: Floats  # (span,)
    weight: Floats  # (span,)


def spans_of(jobs: Sequence[Job], end: Floats, updates: Sequence[tuple[int, float, float]]) -> WeightIntervals:
    """Return the spans of jobs that were there until `end`, (job,); `updates` are row, time and new weight."""
    job = list(range(len(jobs)))
    begin, weight, last = [one.submitted for one in jobs], [one.weight for one in jobs], end.tolist()
    open_ = list(job)  # the span that each job is in
    for row, at, new in updates:
        if at < last[open_[row]]:
            job.append(row)
            begin.append(at)
            last.append(last[open_[row]])
            weight.append(new)
            last[open_[row]], open_[row] = at, len(job) - 1
    return WeightIntervals(
        np.array(job, dtype=np.int64), *(np.array(column, dtype=float) for column in (begin, last, weight))
    )


def of_jobs(spans: WeightIntervals, size: Floats, owner: Ints, owned: Sequence[Steps]) -> Floats:
    """Return what each job deserved, (job,), its tenant being `owner` (job,) and its accelerators `owned` (tenant)."""
    total = np.zeros(len(size))
    whose = owner[spans.job]
    order = np.argsort(whose, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(whose[order])) + 1) if len(order) else ():
        part = WeightIntervals(spans.job[mine], spans.begin[mine], spans.end[mine], spans.weight[mine])
        np.add.at(total, part.job, _of_one(part, size[part.job], owned[whose[mine[0]]]))
    return total


def _of_one(spans: WeightIntervals, size: Floats, own: Steps) -> Floats:
    """Return what the spans of one tenant's jobs deserved, (span,)."""
    times = np.unique(np.concatenate((spans.begin, spans.end, own[0])))
    first, last = (np.searchsorted(times, at) for at in (spans.begin, spans.end))
    together = np.cumsum(np.bincount(first, spans.weight, len(times)) - np.bincount(last, spans.weight, len(times)))[
        :-1
    ]
    owned = at_times(own, times[:-1])
    width, found = np.diff(times), np.zeros(len(size))
    kinds, kind = np.unique(np.stack((size, spans.weight)), axis=1, return_inverse=True)
    order = np.argsort(kind.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(kind.reshape(-1), minlength=kinds.shape[1]))
    for (z, w), rows in zip(kinds.T.tolist(), np.split(order, ends[:-1]), strict=True):
        low, high = first[rows].min(), last[rows].max()
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = fair_share.of_jobs(z, w, together[low:high], owned[low:high])
        there = np.where(together[low:high] > w / 2, rate * width[low:high], 0.0)  # rounding leaves a little of nobody
        passed = np.concatenate(([0.0], np.cumsum(there)))
        found[rows] = passed[last[rows] - low] - passed[first[rows] - low]
    return found
