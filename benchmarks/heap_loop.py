"""The least that an order costs: one accelerator a job, two heaps, plain Python. Time grows as n log n.

The reference of `benchmarks.growth`. Jobs are (job,) lists of submission and duration in order of submission; no two
events happen at one time.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def fifo(submitted_s: Sequence[float], duration_s: Sequence[float], accelerators: int) -> list[float]:
    """Return the end of each job, first in, first out."""
    free = [0.0] * accelerators  # when each accelerator is free
    ends = []
    for at, duration in zip(submitted_s, duration_s, strict=True):
        ends.append(max(at, heapq.heappop(free)) + duration)
        heapq.heappush(free, ends[-1])
    return ends


def srtf(submitted_s: Sequence[float], duration_s: Sequence[float], accelerators: int) -> list[float]:
    """Return the end of each job, shortest remaining time first, preemptive."""
    ends = [0.0] * len(submitted_s)
    waiting: list[tuple[float, int]] = []  # (remaining, job)
    soonest: list[tuple[float, int]] = []  # (end, job) of running jobs, and of runs that are over
    latest: list[tuple[float, int]] = []  # the same by falling end
    end_of: dict[int, float] = {}  # of running jobs

    def start(job: int, at: float, left: float) -> None:
        end_of[job] = at + left
        heapq.heappush(soonest, (at + left, job))
        heapq.heappush(latest, (-at - left, job))

    def finish_until(at: float) -> None:
        while soonest and soonest[0][0] <= at:
            end, job = heapq.heappop(soonest)
            if end_of.get(job) == end:
                ends[job] = end
                del end_of[job]
                if waiting:
                    left, following = heapq.heappop(waiting)
                    start(following, end, left)

    for job, (at, duration) in enumerate(zip(submitted_s, duration_s, strict=True)):
        finish_until(at)
        if len(end_of) < accelerators:
            start(job, at, duration)
            continue
        while end_of.get(latest[0][1]) != -latest[0][0]:
            heapq.heappop(latest)
        end, longest = -latest[0][0], latest[0][1]
        if duration < end - at:
            del end_of[longest]
            heapq.heappush(waiting, (end - at, longest))
            start(job, at, duration)
        else:
            heapq.heappush(waiting, (duration, job))
    finish_until(float("inf"))
    return ends
