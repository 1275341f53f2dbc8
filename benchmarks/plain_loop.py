"""The obvious simulator: one heap, one list of jobs, one accelerator type, plain Python. The rules are those of ours.

It knows only what it needs to know for completion times and seats: no events or decisions that could be recorded, no
views, no figures.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

from eunomia.model.job import Job

QUANTUM = 3600.0  # of LAS, accelerator-seconds


class Run:
    """One job: what it has done and where it sits."""

    __slots__ = ("done", "epoch", "job", "left_at", "row", "seats", "service", "since")

    def __init__(self, row: int, job: Job):
        self.row, self.job = row, job
        self.done = self.service = 0.0
        self.since = 0.0  # of its present seats
        self.epoch = 0
        self.seats: list[tuple[int, int]] = []  # (node, accelerators)
        self.left_at = math.nan

    def left(self, at: float) -> float:
        """Return the seconds still to do."""
        run = at - self.since if self.seats else 0.0
        return max(self.job.total_steps - self.done - run, 0.0)

    def level(self, at: float) -> float:
        """Return its level by attained service."""
        return math.floor(self.service_at(at) / QUANTUM + 1e-9)

    def service_at(self, at: float) -> float:
        """Return attained accelerator-seconds."""
        return self.service + ((at - self.since) * self.job.scale_factor if self.seats else 0.0)


Ranking = Callable[[list[Run], float], list[Run]]
Again = Callable[[list[Run], float], float]


class PlainLoop:
    """`rank` gives who is next; `recall`: seats may be taken back at any moment; `block`: a misfit stops the queue."""

    def __init__(
        self, jobs: Sequence[Job], nodes: Sequence[int], rank: Ranking, again: Again, *, recall: bool, block: bool
    ):
        self.jobs, self.rank, self.again, self.recall, self.block = jobs, rank, again, recall, block
        self.free, self.capacity = list(nodes), sum(nodes)
        self.spare = self.capacity
        self.active: list[Run] = []
        self.runs = [Run(row, job) for row, job in enumerate(jobs)]
        self.heap: list[tuple[float, int, int]] = []  # (end, row, epoch)

    def completion_times(self) -> list[float]:
        """Run to the end; return finish − submission of each job."""
        arrived, wake = 0, math.inf
        while arrived < len(self.jobs) or self.heap:
            arrival = self.jobs[arrived].submitted if arrived < len(self.jobs) else math.inf
            at = min(arrival, self.heap[0][0] if self.heap else math.inf, wake)
            changed = at == wake
            while self.heap and self.heap[0][0] == at:
                _, row, epoch = heapq.heappop(self.heap)
                if self.runs[row].epoch == epoch and self.runs[row].seats:
                    self._end(self.runs[row], at)
                    changed = True
            while arrived < len(self.jobs) and self.jobs[arrived].submitted == at:
                self.active.append(self.runs[arrived])
                arrived += 1
                changed = True
            if changed:
                self._decide(at)
                wake = self.again(self.active, at)
        return [run.left_at - run.job.submitted for run in self.runs]

    def _decide(self, at: float) -> None:
        if not self.recall and self.spare == 0:
            return
        spare = self.capacity if self.recall else self.spare
        chosen: list[Run] = []
        for run in self.rank(self.active, at):
            if run.seats and not self.recall:
                continue
            if run.job.scale_factor <= spare:
                spare -= run.job.scale_factor
                chosen.append(run)
            elif self.block:
                break
            if spare == 0:
                break
        if self.recall:
            stay = set(chosen)
            for run in self.active:
                if run.seats and run not in stay:
                    self._unseat(run, at)
        starting = [run for run in chosen if not run.seats]
        for run in sorted(starting, key=lambda run: -run.job.scale_factor):
            self._seat(run, at)

    def _seat(self, run: Run, at: float) -> None:
        """Give seats: the smallest hole that holds the gang, else the biggest holes."""
        left = run.job.scale_factor
        self.spare -= left
        while left:
            node = -1
            for n, free in enumerate(self.free):
                if free >= left and (node < 0 or free < self.free[node]):
                    node = n
            if node < 0:
                node = self.free.index(max(self.free))
            here = min(left, self.free[node])
            self.free[node] -= here
            run.seats.append((node, here))
            left -= here
        run.since, run.epoch = at, run.epoch + 1
        heapq.heappush(self.heap, (at + run.left(at), run.row, run.epoch))

    def _unseat(self, run: Run, at: float) -> None:
        run.done += at - run.since
        run.service = run.service_at(at)
        for node, here in run.seats:
            self.free[node] += here
            self.spare += here
        run.seats = []

    def _end(self, run: Run, at: float) -> None:
        self._unseat(run, at)
        run.left_at = at
        self.active.remove(run)


# ---- policies: who is next, and when to ask again though nothing happens ----------------------------------------


def by_arrival(active: list[Run], at: float) -> list[Run]:
    """First in, first out."""
    return active


def by_remaining(active: list[Run], at: float) -> list[Run]:
    """Shortest remaining time first."""
    return sorted(active, key=lambda run: run.left(at))


def by_level(active: list[Run], at: float) -> list[Run]:
    """Least attained service first, by level."""
    return sorted(active, key=lambda run: run.level(at))


def never(active: list[Run], at: float) -> float:
    """Only what happens changes the order."""
    return math.inf


def next_crossing(active: list[Run], at: float) -> float:
    """Return when a running job falls behind a waiting one."""
    key_of = {run: (run.level(at), run.row) for run in active}
    waits = sorted(key_of[run] for run in active if not run.seats)
    soonest = math.inf
    for run in active:
        if run.seats:
            rival = bisect_left(waits, key_of[run])
            if rival < len(waits):
                level, row = waits[rival]
                behind = level + (row > run.row)
                soonest = min(soonest, (behind * QUANTUM - run.service_at(at)) / run.job.scale_factor)
    return max(at + soonest, math.nextafter(at, math.inf))


def fifo(jobs: Sequence[Job], nodes: Sequence[int], *, block: bool) -> PlainLoop:
    """First in, first out to the end; a gang that does not fit blocks or is passed over."""
    return PlainLoop(jobs, nodes, by_arrival, never, recall=False, block=block)


def srtf(jobs: Sequence[Job], nodes: Sequence[int]) -> PlainLoop:
    """Shortest remaining time first, preemptive."""
    return PlainLoop(jobs, nodes, by_remaining, never, recall=True, block=False)


def las(jobs: Sequence[Job], nodes: Sequence[int]) -> PlainLoop:
    """Least attained service first, preemptive."""
    return PlainLoop(jobs, nodes, by_level, next_crossing, recall=True, block=False)
