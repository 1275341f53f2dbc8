"""What an observer hears of a run, kept so that figures can be made of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.metrics import job_timelines
from eunomia.metrics.apps import AppEnd
from eunomia.metrics.fluid_service import FluidService
from eunomia.metrics.job_timelines import (
    BUSY,
    CANCELLED,
    FAILED,
    FINISHED,
    LIFE,
    NARROWEST,
    POINT,
    PRESENT,
    REJECTED,
    RUNNING,
)
from eunomia.metrics.pauses import Pauses
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.decisions import Decision, Flow, Refuse, Start, Starts, Stop
from eunomia.model.events import (
    AppFinished,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
    Moment,
    NodeJoined,
    NodeLost,
)
from eunomia.model.job import Job
from eunomia.model.row_index import RowIndex
from eunomia.model.tenants import NO_TENANT
from eunomia.model.topology import Topology

STATUSES = ("unfinished", "finished", "failed", "cancelled", "rejected")
_FIRST = 64  # rows and points that there is room for; doubled when they are full


class MetricsCollector:
    """An observer that keeps what the figures need. It knows no world, only what happened and what was decided."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.jobs: list[Job] = []  # in order of submission
        self.end_s = 0.0  # last event of a job
        self.ended = 0  # jobs that ended
        self.app_ends: dict[str, AppEnd] = {}  # of those whose user said so
        self.weights: list[tuple[int, float, float]] = []  # row, time, new weight; 0 while it is paused
        self.pauses = Pauses()
        self.given_up: list[int] = []  # rows of jobs that their tuners cancelled
        self._weight: dict[int, float] = {}  # of jobs whose user thought again
        self._owners: dict[str, int] = {}  # number of each tenant, in order of first submission
        types = len(topology.types)
        self._register = RowIndex()
        self._lives = _blank(_FIRST)
        self._received = np.zeros((_FIRST, types))
        self._waiting = np.zeros(_FIRST, dtype=np.int64)
        self._now = np.zeros(BUSY + 2 * types, dtype=np.int64)
        self._points = np.empty(_FIRST, dtype=POINT)
        self._last = np.append(np.full(len(self._now), -1), 0)
        self._flows = FluidService(types)

    def hear(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Note what happened and what was decided."""
        at = moment.at
        self._make_room()
        for event in moment.events:
            match event:
                case JobSubmitted(job):
                    self._submit(job, at)
                case JobFinished(name, epoch):
                    self._end(name, at, FINISHED, epoch)
                case JobFailed(name, epoch):
                    self.ended += job_timelines.fail(*self._books(), at, self._register.row(name), epoch)
                case JobCancelled(name, by_tuner):
                    if self._end(name, at, CANCELLED) and by_tuner:
                        self.given_up.append(self._register.row(name))
                case JobPaused(name) | JobResumed(name):
                    self._rest(self._register.row(name), at, paused=isinstance(event, JobPaused))
                case JobUpdated(name, weight) if not math.isnan(weight):
                    self._weigh(self._register.row(name), at, weight)
                    continue
                case AppFinished(app, best, loss):
                    self.app_ends.setdefault(app, AppEnd(at, best, loss))
                    continue
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
                    job_timelines.stop(*self._books(), at, self._register.rows(decision.job_ids), decision.save)
                case Flow():
                    self._turn(decision, at)
                case Refuse(name):
                    failed = self._lives[self._register.row(name)]["failures"] > 0
                    self._end(name, at, FAILED if failed else REJECTED)

    # ---- what was heard --------------------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """Return a column of `LIFE`, (job,)."""
        return self._lives[name][: len(self.jobs)]

    def served(self) -> tuple[Floats, Floats]:
        """Return seconds by type, (job, type), and accelerator-seconds, (job,), of a run that is over.

        What still runs is counted up to the last event of a job.
        """
        received, service = self._flows.served(self.end_s, len(self.jobs))
        received += self._received[: len(self.jobs)]
        service += self.column("service")
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
        """Return the scale factor of the narrowest gang that waited: times, and the value from each on.

        inf = nobody waited; 0 = without seats any part of an accelerator would have been of use.
        """
        at, value = self._curve(NARROWEST)
        return at, np.where(value > 0, 0.0 if self._flows else value, np.inf)

    def busy(self, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type were busy: times, and the number from each on."""
        return self._flows.busy(type) if self._flows else self._curve(BUSY + type)

    def gone(self, type: int) -> tuple[Floats, Floats]:
        """Return how many accelerators of a type were added to its capacity, below 0 for lost ones, from when on."""
        return self._curve(BUSY + len(self.topology.types) + type)

    def held(self) -> Iterator[tuple[str, int, tuple[Floats, Floats]]]:
        """Yield tenant, type, and how many accelerators its jobs held of it: times, and the number from each on.

        Two jobs that share an accelerator hold it both.
        """
        types = len(self.topology.types)
        points = self._points[: self._last[-1]]
        order = np.argsort(points["curve"], kind="stable")
        first = np.searchsorted(points["curve"][order], np.arange(len(self._now) + 1))
        for name, owner in self._owners.items():
            for type in range(types):
                curve = BUSY + (2 + owner) * types + type
                mine = points[order[first[curve] : first[curve + 1]]]
                if self._flows:
                    yield name, type, self._flows.held(owner, type)
                elif len(mine):
                    yield name, type, (mine["at"].copy(), mine["value"].astype(float))

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
        owner = self._owner(job.tenant or NO_TENANT)
        job_timelines.submit(*self._books(), at, row, job.scale_factor, job.retries, owner)

    def _owner(self, name: str) -> int:
        """Return the number of a tenant; a new one gets its curves."""
        owner = self._owners.setdefault(name, len(self._owners))
        curves = BUSY + (3 + owner) * len(self.topology.types)
        if curves > len(self._now):
            more = curves - len(self._now)
            self._now = np.append(self._now, np.zeros(more, dtype=np.int64))
            self._last = np.concatenate((self._last[:-1], np.full(more, -1), self._last[-1:]))
            self._make_room()
        return owner

    def _make_room(self) -> None:
        """Let there be room for a point of every curve, which is what a moment can need."""
        if self._last.item(-1) + len(self._now) > len(self._points):
            self._points = np.concatenate((self._points, np.empty(max(len(self._points), len(self._now)), POINT)))

    def _count(self, node: int, at: float, *, joined: bool) -> None:
        curve = BUSY + len(self.topology.types) + int(self.topology.node_type[node])
        size = int(self.topology.size[node])
        job_timelines.change(self._points, self._last, self._now, at, curve, size if joined else -size)

    def _start(self, order: Starts, at: float) -> None:
        job_timelines.start(
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

    def _turn(self, order: Flow, at: float) -> None:
        rows = self._register.rows(order.jobs)
        begins, ceases = self._flows.turn(order, at, rows, self._lives["owner"][rows], len(self._owners))
        job_timelines.add_service(*self._books(), at, begins)
        job_timelines.end_run(*self._books(), at, ceases)

    def _weigh(self, row: int, at: float, weight: float) -> None:
        self._weight[row] = weight
        if row not in self.pauses:
            self.weights.append((row, at, weight))

    def _rest(self, row: int, at: float, *, paused: bool) -> None:
        """A job is paused, or resumed; while it rests it lays claim to nothing, as if it weighed nothing."""
        if paused:
            self._dry_up(row, at)
            if job_timelines.pause(*self._books(), at, row):
                self.pauses.begin(row, at)
                self.weights.append((row, at, 0.0))
        elif job_timelines.resume(*self._books(), at, row):
            self.pauses.end(row, at)
            self.weights.append((row, at, self._weight.get(row, self.jobs[row].weight)))

    def _dry_up(self, row: int, at: float) -> bool:
        """Let a job receive no more of what flows; say whether it did."""
        flowed = bool(self._flows) and self._flows.leave_out(row, at)
        if flowed:
            job_timelines.end_run(*self._books(), at, np.array([row]))
        return flowed

    def _end(self, name: str, at: float, status: int, epoch: int = -1) -> bool:
        """Let a job be over; say whether it was not before and is now."""
        row = self._register.row(name)
        if self._dry_up(row, at):
            epoch = -1  # it has none, as it never sat
        over = bool(job_timelines.end(*self._books(), at, row, status, epoch))
        if over:
            self.ended += 1
            self.pauses.end(row, at)
        return over


def _blank(rows: int) -> Array:
    """Return rows of jobs that nothing was heard of."""
    lives = np.zeros(rows, dtype=LIFE)
    lives["first"] = lives["ended"] = math.nan
    lives["mate"] = -1
    return lives
