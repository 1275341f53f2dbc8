"""An observer that collects from moments and decisions what the figures of a run are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.metrics import job_timelines
from eunomia.metrics.app_completion import AppEnd
from eunomia.metrics.fluid_service import FluidService
from eunomia.metrics.job_timelines import (
    BUSY,
    CANCELLED,
    FAILED,
    FINISHED,
    JOB,
    NARROWEST,
    POINT,
    PRESENT,
    REJECTED,
    RUNNING,
    Timelines,
)
from eunomia.metrics.pauses import Pauses
from eunomia.metrics.step_functions import CurveBlock, Steps, steps_of
from eunomia.model.arrays import Array, Floats
from eunomia.model.decisions import Decision, Refuse, SetShares, Start, Starts, Stop, given_up
from eunomia.model.events import (
    Answered,
    AppFinished,
    AskAbandoned,
    Estimated,
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
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.job_table import SubmittedJobs, job_array, job_values
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.row_index import RowIndex
from eunomia.model.tenants import NO_TENANT
from eunomia.model.topology import Topology

STATUSES = ("unfinished", "finished", "failed", "cancelled", "rejected")
_POINTS = 9  # that a moment of one event and one start can add, or fewer
_CAPACITY = 64  # initial rows and points; when full, rows are doubled and half as many points added
_BLOCK = 1 << 16  # points; from that many on those of past instants are set aside in a block


class MetricsCollector:
    """An observer of moments and decisions. Step functions (`Steps`) are times, and the value from each on."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.jobs = SubmittedJobs()  # in order of submission
        self.end_s = 0.0  # last event of a job
        self.ended = 0  # count of jobs that ended
        self.app_ends: dict[str, AppEnd] = {}  # of apps whose user reported an end
        self.estimates: dict[int, Estimated] = {}  # by row, the first of each job whose run time is estimated
        self.weights: list[tuple[int, float, float]] = []  # row, time, new weight; 0 while the job is paused
        self.pauses = Pauses()
        self.cancelled_by_tuner: list[int] = []  # rows of jobs
        self._weight: dict[int, float] = {}  # of jobs whose user changed it
        self._owners: dict[str, int] = {}  # number of each tenant, in order of first submission
        types = len(topology.types)
        self._rows = RowIndex()
        curves = BUSY + 2 * types
        self._t = Timelines(
            jobs=_new_jobs(_CAPACITY),
            received=np.zeros((_CAPACITY, types)),
            waiting=np.zeros(_CAPACITY, dtype=np.int64),
            now=np.zeros(curves, dtype=np.int64),
            points=np.empty(_CAPACITY, dtype=POINT),
            last=np.append(np.full(curves, -1), 0),
        )
        self._away: set[int] = set()  # nodes out of service
        self._blocks: list[CurveBlock] = []  # of the points before those of `Timelines`
        self._fluid = FluidService(types)

    def follow(self, rows: RowIndex) -> None:
        """Use the index of a scheduler that receives the same moments, each before this observer."""
        self._rows = rows

    def expect(self, jobs: int) -> None:
        """Make room for so many jobs in all, where that is known; more may come."""
        self._extend_jobs(jobs - len(self._t.jobs))

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Record the events of a moment and the decisions that followed."""
        at = moment.at
        self._reserve_points()
        for event in moment.events:
            match event:
                case Answered() | AskAbandoned() | TimerFired() | Progressed():
                    continue
                case JobSubmitted(job):
                    self._submit(job, at)
                case JobFinished(name, epoch):
                    self._end(name, at, FINISHED, epoch)
                case JobFailed(name, epoch):
                    self.ended += job_timelines.fail(
                        at, self._rows.row(name), epoch, name in given_up(decisions), *self._t
                    )
                case JobCancelled(name, by_tuner):
                    if self._end(name, at, CANCELLED) and by_tuner:
                        self.cancelled_by_tuner.append(self._rows.row(name))
                case JobPaused(name):
                    self._pause(self._rows.row(name), at)
                case JobResumed(name):
                    self._resume(self._rows.row(name), at)
                case Estimated(name):
                    self.estimates.setdefault(self._rows.row(name), event)
                    continue
                case JobUpdated(name, weight) if not math.isnan(weight):
                    self._update_weight(self._rows.row(name), at, weight)
                    continue
                case AppFinished(app, best, loss):
                    self.app_ends.setdefault(app, AppEnd(at, best, loss))
                    continue
                case NodeLost(node) | NodeJoined(node):
                    self._change_capacity(node, at, joined=isinstance(event, NodeJoined))
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
                    job_timelines.stop(at, self._rows.rows(decision.job_ids), decision.save, *self._t)
                case SetShares():
                    self._set_shares(decision, at)
                case Refuse(name):
                    failed = self._t.jobs[self._rows.row(name)]["failures"] > 0
                    self._end(name, at, FAILED if failed else REJECTED)

    def observe_batch(self, batch: MomentBatch) -> None:
        """Record many moments; jobs have the rows of the batch here, too."""
        jobs, first = batch.submitted, len(self.jobs)
        sizes, tenants = job_array(jobs, "scale_factor"), job_values(jobs, "tenant")
        self._reserve_jobs(first + len(jobs), int(sizes.max(initial=0)))
        if len(self._rows) == first:
            self._rows.add_all(job_values(jobs, "job_id"))
        self.jobs.extend(jobs)
        owners = self._owners
        for name in dict.fromkeys(tenants):
            self._owner(name or NO_TENANT)
        rows = slice(first, first + len(jobs))
        self._t.jobs["size"][rows] = sizes
        self._t.jobs["owner"][rows] = [owners[name or NO_TENANT] for name in tenants]
        self._reserve_points(_POINTS * (len(batch) + len(batch.started) + len(batch.stopped)))
        job_timelines.record_batch(
            batch.at, batch.row, batch.epoch, batch.starts_end, batch.stops_end, batch.started, batch.started_epoch,
            batch.seats, batch.seats_end, batch.stopped, self.topology.type, *self._t,
        )  # fmt: skip
        self.ended += batch.finished
        of_jobs = np.flatnonzero(batch.epoch >= 0)
        self.end_s = batch.at.item(of_jobs[-1]) if len(of_jobs) else self.end_s

    # ---- results ---------------------------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """Return a column of `job_timelines.JOB`, (job,)."""
        return self._t.jobs[name][: len(self.jobs)]

    def served(self) -> tuple[Floats, Floats]:
        """Return seconds by type, (job, type), and accelerator-seconds, (job,), of a run that is over.

        A job that still runs is counted up to the last event of a job.
        """
        received, service = self._fluid.served(self.end_s, len(self.jobs))
        received += self._t.received[: len(self.jobs)]
        service += self.column("service")
        running = np.flatnonzero(self.column("held"))
        more = np.maximum(self.end_s - self.column("since")[running], 0.0)
        received[running, self.column("type")[running]] += more
        service[running] += more * self.column("held")[running]
        return received, service

    def present(self) -> Steps:
        """Return the number of waiting and running jobs."""
        return self._curve(PRESENT)

    def running(self) -> Steps:
        """Return the number of running jobs."""
        return self._curve(RUNNING)

    def narrowest(self) -> Steps:
        """Return the scale factor of the narrowest waiting gang: inf = none, 0 = any share would be of use."""
        at, value = self._curve(NARROWEST)
        return at, np.where(value > 0, 0.0 if self._fluid else value, np.inf)

    def busy(self, type: int) -> Steps:
        """Return the number of busy accelerators of a type."""
        return self._fluid.busy(type) if self._fluid else self._curve(BUSY + type)

    def capacity_change(self, type: int) -> Steps:
        """Return the accelerators of a type added to the initial capacity; negative for lost ones."""
        return self._curve(BUSY + len(self.topology.types) + type)

    def held(self) -> Iterator[tuple[str, int, Steps]]:
        """Yield tenant, type, and how many accelerators of it the tenant's jobs hold; both of a pair count."""
        types, blocks = len(self.topology.types), self._all_blocks()
        for name, owner in self._owners.items():
            for type in range(types):
                if self._fluid:
                    yield name, type, self._fluid.held(owner, type)
                    continue
                steps = steps_of(BUSY + (2 + owner) * types + type, blocks)
                if len(steps[0]):
                    yield name, type, steps

    def _curve(self, curve: int) -> Steps:
        steps = steps_of(curve, self._all_blocks())
        return steps if len(steps[0]) else (np.zeros(1), np.zeros(1))

    def _all_blocks(self) -> list[CurveBlock]:
        t = self._t
        return [*self._blocks, CurveBlock.of(t.points[: t.last[-1]], len(t.now))]

    # ---- events and decisions --------------------------------------------------------------------------------

    def _submit(self, job: Job, at: float) -> None:
        row = self._rows.add(job.job_id)
        self.jobs.append(job)
        self._reserve_jobs(row + 1, job.scale_factor)
        owner = self._owner(job.tenant or NO_TENANT)
        job_timelines.submit(at, row, job.scale_factor, owner, *self._t)

    def _owner(self, name: str) -> int:
        """Return the number of a tenant; a new one gets its curves."""
        owner = self._owners.setdefault(name, len(self._owners))
        t = self._t
        more = BUSY + (3 + owner) * len(self.topology.types) - len(t.now)
        if more > 0:
            now = np.append(t.now, np.zeros(more, dtype=np.int64))
            last = np.concatenate((t.last[:-1], np.full(more, -1), t.last[-1:]))
            self._t = t._replace(now=now, last=last)
            self._reserve_points()
        return owner

    def _reserve_jobs(self, jobs: int, widest: int) -> None:
        """Make room for so many jobs in all, the widest of that size."""
        if jobs > len(self._t.jobs):
            self._extend_jobs(max(len(self._t.jobs), jobs - len(self._t.jobs)))
        t = self._t
        if widest >= len(t.waiting):
            self._t = t._replace(waiting=np.concatenate((t.waiting, np.zeros(widest, dtype=np.int64))))

    def _extend_jobs(self, more: int) -> None:
        t = self._t
        if more > 0:
            jobs, received = _new_jobs(len(t.jobs) + more), np.zeros((len(t.jobs) + more, t.received.shape[1]))
            jobs[: len(t.jobs)], received[: len(t.jobs)] = t.jobs, t.received
            self._t = t._replace(jobs=jobs, received=received)

    def _reserve_points(self, points: int = 0) -> None:
        """Make room for so many points and for one of every curve, the most that a moment can add."""
        points += len(self._t.now)
        if self._t.last.item(-1) + points <= len(self._t.points):
            return
        block = max(_BLOCK, 4 * points)  # a block of many curves has many points
        if len(self._t.points) >= block:
            self._set_points_aside()
        t, needed = self._t, self._t.last.item(-1) + points
        if needed > len(t.points):
            room = max(min(len(t.points) * 3 // 2, block), needed)
            self._t = t._replace(points=np.concatenate((t.points, np.empty(room - len(t.points), POINT))))

    def _set_points_aside(self) -> None:
        """Move all points but those of the last instant, which may still change, to a block."""
        t, count = self._t, self._t.last.item(-1)
        at = t.points["at"][:count]
        past = int(np.searchsorted(at, at[-1])) if count else 0
        if past > 0:
            self._blocks.append(CurveBlock.of(t.points[:past], len(t.now)))
            t.points[: count - past] = t.points[past:count]
            t.last[:] = np.where(t.last >= past, t.last - past, -1)

    def _change_capacity(self, node: int, at: float, *, joined: bool) -> None:
        if joined != (node in self._away):  # a backend may repeat what is known
            return
        self._away ^= {node}
        curve = BUSY + len(self.topology.types) + int(self.topology.node_type[node])
        size = int(self.topology.size[node])
        job_timelines.change(at, curve, size if joined else -size, *self._t)

    def _start(self, order: Starts, at: float) -> None:
        rows, partners = self._rows.rows(order.jobs), self._rows.rows(order.partners)
        job_timelines.start(
            at, rows, order.epochs, order.first, order.seats, partners, order.partner_epochs, self.topology.type,
            *self._t,
        )  # fmt: skip

    def _set_shares(self, order: SetShares, at: float) -> None:
        rows = self._rows.rows(order.jobs)
        begin, cease = self._fluid.set_shares(order, at, rows, self._t.jobs["owner"][rows], len(self._owners))
        job_timelines.start_service(at, begin, *self._t)
        job_timelines.end_service(at, cease, *self._t)

    def _update_weight(self, row: int, at: float, weight: float) -> None:
        self._weight[row] = weight
        if row not in self.pauses:
            self.weights.append((row, at, weight))

    def _pause(self, row: int, at: float) -> None:
        """A paused job has no entitlement: its weight counts as 0."""
        self._end_service(row, at)
        if job_timelines.pause(at, row, *self._t):
            self.pauses.begin(row, at)
            self.weights.append((row, at, 0.0))

    def _resume(self, row: int, at: float) -> None:
        if job_timelines.resume(at, row, *self._t):
            self.pauses.end(row, at)
            self.weights.append((row, at, self._weight.get(row, self.jobs[row].weight)))

    def _end_service(self, row: int, at: float) -> bool:
        """End the job's service without seats; return whether it received any."""
        is_served = bool(self._fluid) and self._fluid.remove(row, at)
        if is_served:
            job_timelines.end_service(at, np.array([row]), *self._t)
        return is_served

    def _end(self, name: str, at: float, status: int, epoch: int = -1) -> bool:
        """End a job; return False if it has ended already, or does not run in `epoch`."""
        row = self._rows.row(name)
        if self._end_service(row, at):
            epoch = -1  # it has none without seats
        ended = bool(job_timelines.end(at, row, status, epoch, *self._t))
        if ended:
            self.ended += 1
            self.pauses.end(row, at)
        return ended


def _new_jobs(rows: int) -> Array:
    """Return rows of jobs without any event."""
    jobs = np.zeros(rows, dtype=JOB)
    jobs["first"] = jobs["ended"] = math.nan
    jobs["partner"] = -1
    return jobs
