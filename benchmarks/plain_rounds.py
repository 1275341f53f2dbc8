"""The obvious loop over rounds that share time: every job looked at in Python, every round. The rules are ours.

Each candidate, a job on a type, is owed its share of the round and has received what it sat through; who would be owed
most when the coming round ends is seated first; what is left over goes to anybody, the earliest first.
"""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.model.job import Job


class Run:
    """One job: what it is owed and has received on each type, and where it sits."""

    __slots__ = ("done", "job", "owed", "prefer", "rate", "received", "row", "seats", "share", "type")

    def __init__(self, row: int, job: Job, share: Sequence[float], rate: Sequence[float]):
        self.row, self.job, self.share, self.rate = row, job, share, rate
        self.prefer = sorted(range(len(rate)), key=lambda j: -rate[j])
        self.owed, self.received = [0.0] * len(rate), [0.0] * len(rate)
        self.done = 0.0
        self.type = -1  # of its seats, -1 = it has none
        self.seats: list[tuple[int, int]] = []  # (node, accelerators)


class PlainRounds:
    """Rounds of `length` seconds on nodes of `size` accelerators each, `nodes` of them of each type."""

    def __init__(
        self,
        jobs: Sequence[Job],
        shares: Sequence[Sequence[float]],
        rates: Sequence[Sequence[float]],
        *,
        nodes: int,
        size: int,
        length: float,
    ):
        self.runs = [Run(row, job, shares[row], rates[row]) for row, job in enumerate(jobs)]
        self.length, self.types = length, len(rates[0])
        self.free = [[size] * nodes for _ in range(self.types)]

    def round(self, *, first: bool = False) -> None:
        """Let a round pass, unless it is the first, and seat everybody anew."""
        if not first:
            for run in self.runs:
                self._pass_time(run)
        chosen = self._choose()
        for run in self.runs:
            if run.type >= 0 and chosen.get(run.row) != run.type:
                self._unseat(run)
        starting = [row for row in chosen if self.runs[row].type < 0]
        for row in sorted(starting, key=lambda row: -self.runs[row].job.scale_factor):
            self._seat(self.runs[row], chosen[row])

    def _pass_time(self, run: Run) -> None:
        for j, share in enumerate(run.share):
            if share > 0:
                run.owed[j] += share * self.length
        if run.type >= 0:
            run.owed[run.type] -= self.length
            run.received[run.type] += self.length
            run.done += self.length * run.rate[run.type]

    def _choose(self) -> dict[int, int]:
        """Return the type of each job that is to sit, best first."""
        line = [
            (-(run.owed[j] + share * self.length), run.row, j)
            for run in self.runs
            for j, share in enumerate(run.share)
            if share > 0
        ]
        line.sort()
        spare = ((run.row, j) for run in self.runs for j in run.prefer)
        free = [sum(nodes) for nodes in self.free]
        for run in self.runs:
            if run.type >= 0:
                free[run.type] += run.job.scale_factor
        chosen: dict[int, int] = {}
        for row, j in (*((row, j) for _, row, j in line), *spare):
            size = self.runs[row].job.scale_factor
            if row not in chosen and size <= free[j]:
                free[j] -= size
                chosen[row] = j
        return chosen

    def _seat(self, run: Run, type: int) -> None:
        """Give seats: the smallest hole that holds the gang, else the biggest holes."""
        free, left = self.free[type], run.job.scale_factor
        while left:
            node = -1
            for n, room in enumerate(free):
                if room >= left and (node < 0 or room < free[node]):
                    node = n
            if node < 0:
                node = free.index(max(free))
            here = min(left, free[node])
            free[node] -= here
            run.seats.append((node, here))
            left -= here
        run.type = type

    def _unseat(self, run: Run) -> None:
        for node, here in run.seats:
            self.free[run.type][node] += here
        run.seats, run.type = [], -1
