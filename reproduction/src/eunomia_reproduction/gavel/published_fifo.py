"""The queues of the names `fifo` and `fifo_packed` as they were published.

`fifo`: a type is drawn for each job, and another one is taken.

Free types are looked at in order of their names, and the job goes to the last of them, whichever was drawn; when that
one is full, the drawn one is crossed off in its place. So a whole cluster that fills at once crowds on one type, and a
stream of jobs takes the types in turn, the last by name first. The number that is drawn decides which type is crossed
off, hence the published random stream.

`fifo_packed`: the first job that fits nowhere is taken off the queue, which ends there, and not put back, so that it
shares with no job; the jobs behind it may. That happens to gangs only: on one accelerator a job the queue ends when no
accelerator is left, before a job is taken off. A job that fits only on types on which it cannot run delays no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import ROUNDS, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.shares.fifo_packed import FifoPacked, partners


@dataclass(frozen=True)
class PublishedFifo:
    """First come, first served, for the comparison only: one object serves one run, since it keeps drawing."""

    seed: int = 0
    _random: Random = field(init=False, repr=False, compare=False)
    _running: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)  # job: type

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="fifo_published",
        answer_type="shares",
        objective="serve in order of arrival",
        technique="queue",
        paper="Narayanan et al., Gavel, OSDI 2020, its published code",
        needs=frozenset({"throughput", "scale_factor", "capacity"}),
        memory_columns={"number": -1.0},
        mechanism=ROUNDS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_random", Random(self.seed))

    def decide(self, view: View) -> Shares:
        """Return all of its time on one type for each job that has one."""
        number, count = _numbered(view)
        row = {job: m for m, job in enumerate(number.tolist())}
        free = view.capacity.copy()
        queue = [job for job in row if job not in self._running]
        self._hand_on(view, row, queue, free)
        self._seat(view, row, queue, free)
        X = np.zeros((view.jobs, len(view.types)))
        for job, kind in self._running.items():
            X[row[job], kind] = 1.0
        return Shares(X, fill=False, memory={"number": number.astype(float), "count": np.array(count)})

    def _hand_on(self, view: View, row: dict[int, int], queue: list[int], free: Floats) -> None:
        """Give the devices of a completed job to the head of the queue; count those of continuing jobs."""
        for job, kind in sorted(self._running.items()):
            if job in row:
                free[kind] -= view.scale_factor[row[job]]
                continue
            if queue and view.scale_factor[row[queue[0]]] <= free[kind] and view.throughput[row[queue[0]], kind] > 0:
                self._take(view, row, queue.pop(0), kind, free)
            del self._running[job]

    def _seat(self, view: View, row: dict[int, int], queue: list[int], free: Floats) -> None:
        """Seat the queue from its head until a job fits nowhere."""
        by_name = sorted(range(len(view.types)), key=lambda kind: view.types[kind])
        listed = [kind for kind in by_name if free[kind] > 0]
        while queue and listed:
            job = queue.pop(0)
            fits = [place for place, kind in enumerate(listed) if free[kind] >= view.scale_factor[row[job]]]
            if not fits:
                return
            drawn, kind = fits[self._random.randrange(len(fits))], listed[-1]
            if view.throughput[row[job], kind] > 0:
                self._take(view, row, job, kind, free)
                if free[kind] == 0:
                    listed.pop(drawn)

    def _take(self, view: View, row: dict[int, int], job: int, kind: int, free: Floats) -> None:
        self._running[job] = kind
        free[kind] -= view.scale_factor[row[job]]


@dataclass(frozen=True)
class PublishedFifoPacked:
    """First come, first served, two on the same accelerators where that pays; for the comparison only."""

    least_gain: float = 1.5

    info: ClassVar[PolicyInfo] = replace(FifoPacked.info, name="fifo_packed_published")

    def decide(self, view: View) -> Shares:
        """Return all of its time on one type for each gang that runs, with its partner if it has one."""
        free, waits = view.capacity.copy(), np.arange(view.jobs)
        job: list[int] = []
        type: list[int] = []
        for m in range(view.jobs):
            fits = free >= view.scale_factor[m]
            if not fits.any():
                waits = waits[m + bool((free > 0).any()) :]
                break
            speed = np.where(fits, view.throughput[m], 0.0)
            if speed.any():
                job.append(m)
                type.append(int(np.argmax(speed)))
                free[type[-1]] -= view.scale_factor[m]
        else:
            waits = waits[view.jobs :]
        rows, types = np.array(job, dtype=np.int64), np.array(type, dtype=np.int64)
        partner = partners(view, rows, types, waits, self.least_gain)
        return Shares(np.ones(len(job)), Rows(rows, types, partner=partner), fill=False)


def _numbered(view: View) -> tuple[Ints, int]:
    """Return (job,) what each job is called from its first question on, 0, 1, 2, …, and how many were called so far."""
    kept, called = view.memory["number"], int(view.memory.get("count", np.array(0)))
    new = kept < 0
    return np.where(new, called + np.cumsum(new) - 1, kept).astype(np.int64), called + int(new.sum())
