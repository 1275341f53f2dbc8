"""What an observer hears of a run, kept so that figures can be made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eunomia.metrics import lives
from eunomia.metrics.lives import BUSY, CANCELLED, FINISHED, LIFE, NARROWEST, POINT, PRESENT, REJECTED, RUNNING
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.decisions import Decision, Refuse, Start, Starts, Stop
from eunomia.model.events import JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.register import Register
from eunomia.model.topology import Topology

STATUSES = ("unfinished", "finished", "failed", "cancelled", "rejected")
_FIRST = 64  # rows and points that there is room for; doubled when they are full


class Heard:
    """An observer that keeps what the figures need. It knows no world, only what happened and what was decided."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.jobs: list[Job] = []  # in order of submission
        self.end_s = 0.0  # last event of a job
        self.ended = 0  # jobs that ended
        types = len(topology.types)
        self._register = Register()
        self._lives = _blank(_FIRST)
        self._received = np.zeros((_FIRST, types))
        self._waiting = np.zeros(_FIRST, dtype=np.int64)
        self._now = np.zeros(BUSY + 2 * types, dtype=np.int64)
        self._points = np.empty(_FIRST, dtype=POINT)
        self._last = np.append(np.full(len(self._now), -1), 0)

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note what happened and what was decided."""
        at = moment.at
        if self._last.item(-1) + len(self._now) > len(self._points):
            self._points = np.concatenate((self._points, np.empty(max(len(self._points), len(self._now)), POINT)))
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self._submit(job, at)
                case JobFinished(name, epoch):
                    self._end(name, at, FINISHED, epoch)
                case JobFailed(name, epoch):
                    self.ended += lives.fail(*self._books(), at, self._register.row(name), epoch)
                case JobCancelled(name):
                    self._end(name, at, CANCELLED)
                case NodeLost(node) | NodeJoined(node):
                    self._count(node, at, joined=isinstance(event, NodeJoined))
                    continue
                case _:
                    continue
            self.end_s = at
        for decision in decisions:
            match decision:
                case Starts():
                    self._start(decision, at)
                case Start():
                    self._start(Starts.of(decision), at)
                case Stop():
                    lives.stop(*self._books(), at, self._register.rows(decision.job_ids), decision.save)
                case Refuse(name):
                    self._end(name, at, REJECTED)

    # ---- what was heard --------------------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """Return a column of `LIFE`, (job,)."""
        return self._lives[name][: len(self.jobs)]

    def served(self) -> tuple[Floats, Floats]:
        """Return seconds by type, (job, type), and accelerator-seconds, (job,), of a run that is over.

        What still runs is counted up to the last event of a job.
        """
        received, service = self._received[: len(self.jobs)].copy(), self.column("service").copy()
        still = np.flatnonzero(self.column("held"))
        more = np.maximum(self.end_s - self.column("since")[still], 0.0)
        received[still, self.column("type")[still]] += more
        service[still] += more * self.column("held")[still]
        return received, service

    def present(self) -> tuple[Floats, Floats]:
        """Return how many jobs waited or ran: times, and the number from each on."""
        return self._curve(PRESENT)

    def running(self) -> tuple[Floats, Floats]:
        """Return how many jobs ran: times, and the number from each on."""
        return self._curve(RUNNING)

    def narrowest(self) -> tuple[Floats, Floats]:
        """Return the scale factor of the narrowest gang that waited: times, and the value from each on; inf = none."""
        at, value = self._curve(NARROWEST)
        return at, np.where(value > 0, value, np.inf)

    def busy(self, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type were busy: times, and the number from each on."""
        return self._curve(BUSY + type)

    def gone(self, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type were added to its capacity, below 0 for lost ones, from when on."""
        return self._curve(BUSY + len(self.topology.types) + type)

    def _curve(self, curve: int) -> tuple[Floats, Floats]:
        points = self._points[: self._last[-1]]
        mine = points[points["curve"] == curve]
        if len(mine) == 0:
            return np.zeros(1), np.zeros(1)
        return mine["at"].copy(), mine["value"].astype(float)

    # ---- single steps ----------------------------------------------------------------------------------------

    def _books(self) -> tuple[Array, Floats, Ints, Ints, Array, Ints]:
        return self._lives, self._received, self._waiting, self._now, self._points, self._last

    def _submit(self, job: Job, at: float) -> None:
        row = self._register.add(job.job_id)
        self.jobs.append(job)
        if row == len(self._lives):
            self._lives = np.concatenate((self._lives, _blank(row)))
            self._received = np.concatenate((self._received, np.zeros_like(self._received)))
        if job.scale_factor >= len(self._waiting):
            self._waiting = np.concatenate((self._waiting, np.zeros(job.scale_factor, dtype=np.int64)))
        lives.submit(*self._books(), at, row, job.scale_factor, job.retries)

    def _count(self, node: int, at: float, *, joined: bool) -> None:
        curve = BUSY + len(self.topology.types) + int(self.topology.node_type[node])
        size = int(self.topology.size[node])
        lives.change(self._points, self._last, self._now, at, curve, size if joined else -size)

    def _start(self, order: Starts, at: float) -> None:
        lives.start(
            *self._books(),
            at,
            self._register.rows(order.jobs),
            order.epochs,
            order.first,
            order.seats,
            self._register.rows(order.partners),
            order.partner_epochs,
            self.topology.type,
        )

    def _end(self, name: str, at: float, status: int, epoch: int = -1) -> None:
        self.ended += lives.end(*self._books(), at, self._register.row(name), status, epoch)


def _blank(rows: int) -> Array:
    """Return rows of jobs that nothing was heard of."""
    lives = np.zeros(rows, dtype=LIFE)
    lives["first"] = lives["ended"] = math.nan
    lives["mate"] = -1
    return lives
