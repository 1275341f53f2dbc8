"""What an observer hears of a run, kept so that figures can be made of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eunomia.model.decisions import Decision, Refuse, Start, Starts, Stop
from eunomia.model.events import JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.topology import Topology

STATUSES = ("unfinished", "finished", "failed", "cancelled", "rejected")
UNFINISHED, FINISHED, FAILED, CANCELLED, REJECTED = range(5)


class Life:
    """What was heard of one job."""

    __slots__ = (
        "ended",
        "epoch",
        "failures",
        "first",
        "job",
        "preemptions",
        "received",
        "seats",
        "service",
        "since",
        "status",
    )

    def __init__(self, job: Job, types: int):
        self.job = job
        self.first = self.ended = math.nan
        self.status, self.preemptions, self.failures, self.epoch = UNFINISHED, 0, 0, 0
        self.received = [0.0] * types  # seconds
        self.seats: tuple[int, ...] = ()  # held now
        self.since = self.service = 0.0


class Heard:
    """An observer that keeps what the figures need. It knows no world, only what happened and what was decided."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.lives: dict[str, Life] = {}
        self._type_of = topology.type.tolist()
        self.busy: list[tuple[float, int, int]] = []  # (at, type, accelerators more or fewer)
        self.service: list[tuple[float, int, int]] = []  # the same for those in service
        self.present: list[tuple[float, int]] = []  # (at, jobs more or fewer)
        self.running: list[tuple[float, int]] = []
        self._used: dict[tuple[int, ...], int] = {}  # seats in use: how many share them
        self.end_s = 0.0  # last event of a job
        self.ended = 0  # jobs that ended

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note what happened and what was decided."""
        at = moment.at
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self.lives[job.job_id] = Life(job, len(self.topology.types))
                    self.present.append((at, 1))
                case JobFinished(name, epoch):
                    self._end(name, at, FINISHED, epoch)
                case JobFailed(name, epoch):
                    self._fail(name, at, epoch)
                case JobCancelled(name):
                    self._end(name, at, CANCELLED, None)
                case NodeLost(node) | NodeJoined(node):
                    sign = -1 if isinstance(event, NodeLost) else 1
                    size = int(self.topology.size[node])
                    self.service.append((at, int(self.topology.node_type[node]), sign * size))
                    continue
                case _:
                    continue
            self.end_s = at
        for decision in decisions:
            match decision:
                case Stop():
                    self._stop(decision, at)
                case Start():
                    self._start(decision, at)
                case Starts():
                    for order in decision.each():
                        self._start(order, at)
                case Refuse(name):
                    self._end(name, at, REJECTED, None)

    def _start(self, order: Start, at: float) -> None:
        for name, epoch in ((order.job_id, order.epoch), (order.partner_id, order.partner_epoch)):
            if name is None:
                continue
            life = self.lives[name]
            if math.isnan(life.first):
                life.first = at
            life.seats, life.since, life.epoch = order.seats, at, epoch
            self.running.append((at, 1))
            if self._used.setdefault(order.seats, 0) == 0:
                self.busy.append((at, self._type_of[order.seats[0]], len(order.seats)))
            self._used[order.seats] += 1

    def _stop(self, order: Stop, at: float) -> None:
        for name in order.job_ids:
            life = self.lives[name]
            if life.seats:
                self._unseat(life, at)
                life.preemptions += order.save

    def _unseat(self, life: Life, at: float) -> None:
        seats, type = life.seats, self._type_of[life.seats[0]]
        life.received[type] += at - life.since
        life.service += (at - life.since) * len(seats)
        life.seats = ()
        self.running.append((at, -1))
        self._used[seats] -= 1
        if self._used[seats] == 0:
            del self._used[seats]
            self.busy.append((at, type, -len(seats)))

    def _fail(self, name: str, at: float, epoch: int) -> None:
        life = self.lives[name]
        if life.seats and life.epoch == epoch:
            life.failures += 1
            if life.failures > life.job.retries:
                self._end(name, at, FAILED, epoch)
            else:
                self._unseat(life, at)

    def _end(self, name: str, at: float, status: int, epoch: int | None) -> None:
        life = self.lives[name]
        if life.status != UNFINISHED or (epoch is not None and (epoch != life.epoch or not life.seats)):
            return
        if life.seats:
            self._unseat(life, at)
        life.status, life.ended = status, at
        self.present.append((at, -1))
        self.ended += 1

    def settle(self) -> None:
        """Count what still runs up to the last event, and take it off its seats: the run is over."""
        for life in self.lives.values():
            if life.seats:
                self._unseat(life, self.end_s)
