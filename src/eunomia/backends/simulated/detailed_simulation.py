"""The detailed simulation: placement, neighbours, job outcomes, lost racks and late reports.

It goes from event to event and from gang to gang, and accounts for what held seats were used for. With all of that
switched off it gives the same results as `simulation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from eunomia.backends.simulated.interference_state import Interference
from eunomia.backends.simulated.loss_accounting import LeaseSpan, LossAccount
from eunomia.backends.simulated.outages import Fault, Outages
from eunomia.backends.simulated.simulated_gang import Gang
from eunomia.backends.simulated.stall_detection import running_epochs
from eunomia.backends.simulated.virtual_clock import OUTAGES, OUTCOMES, REPORTS, GangSettings, GangSimulation
from eunomia.failures.retrying import BY_MACHINE
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Renew, Start, Stop
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    Measured,
    NodeJoined,
    NodeLost,
    Progressed,
)
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.topology import Topology
from eunomia.throughputs.interference import Neighbours
from eunomia.throughputs.placed_throughputs import PlacedThroughputs

ENDED = -1  # in place of an epoch: orders for this job are ignored


@dataclass(frozen=True, slots=True)
class _End:
    """A gang's work ends by itself, in success or not; the end is not reported yet."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Report:
    """A delayed report of a gang. It is ignored if the run it refers to has ended."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Milestone:
    """A gang has done the steps of which its user asked to be informed."""

    gang: Gang
    epoch: int


@dataclass(frozen=True, slots=True)
class _Repaired:
    """Machines that were taken out of service after a failure are in service again."""

    nodes: tuple[int, ...]


def _least_seconds(job: Job, speeds: PlacedThroughputs) -> float:
    """Return how long a job runs on its best type; inf where it can run on none."""
    best = float(speeds.solo_throughput(job.job_type, job.scale_factor).max(initial=0.0))
    return job.total_steps / best if best > 0 else math.inf


class DetailedSimulation(GangSimulation):
    """Every gang is an object; every kind of random event draws from a stream of its own."""

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        speeds: PlacedThroughputs,
        *,
        neighbours: Neighbours | None = None,
        **settings: Unpack[GangSettings],
    ):
        super().__init__(jobs, topology, **settings)
        self._speeds = speeds
        self._report_draws = np.random.default_rng(self._streams[REPORTS])
        least_s = (
            np.array([_least_seconds(job, speeds) for job in self._jobs]) if self._faults.outcomes else np.zeros(0)
        )
        outcomes = np.random.default_rng(self._streams[OUTCOMES])
        self._outcomes = self._faults.sample_outcomes(self._jobs, least_s, outcomes)
        shares, enough = self._outcomes.share.tolist(), self._outcomes.enough.tolist()
        self._gangs = [Gang(row, job, shares[row], enough[row]) for row, job in enumerate(self._jobs)]
        self._gang_of = {gang.job.job_id: gang for gang in self._gangs}
        self._around = Interference(topology, speeds, neighbours)
        self._account = LossAccount([0.0] * len(self._jobs))
        self._running = 0  # gangs that hold seats now
        self._outages = Outages(topology, self._faults.node, self._faults.rack, self._streams[OUTAGES])
        for when, fault in self._outages.first():
            self._schedule(when, fault)

    def losses(self, until: float) -> HeldTime:
        """Return what held seats were used for up to the end of the run, `until`."""
        for gang in self._gangs:
            gang.advance(until, self._account)
        return self._account.losses()

    # ---- what happens ----------------------------------------------------------------------------------------

    def _steps_of(self, row: int, epoch: int) -> float | None:
        gang = self._gangs[row]
        if gang.epoch != epoch or gang.rate == 0 or gang.pending_report is not None:
            return None
        gang.advance(self._at, self._account)
        return gang.done

    def _has_running(self) -> bool:
        return self._running > 0

    def _nodes_away(self) -> int:
        return self._outages.away

    def _progress(self) -> tuple[Floats, Ints]:
        rows = np.array([(gang.safe, gang.rate, gang.epoch) for gang in self._gangs], dtype=float)
        return rows[:, 0], running_epochs(rows[:, 1], rows[:, 2].astype(np.int64))

    def _happen(self, event: Any) -> list[Event]:
        match event:
            case _End(gang, epoch):
                if gang.epoch != epoch or gang.rate == 0 or gang.ends != self._at or gang.pending_report is not None:
                    return []
                gang.advance(self._at, self._account)
                gang.pending_report = self._outcome(gang)
                return self._deliver(gang) if isinstance(gang.pending_report, JobCancelled) else self._report(gang)
            case _Report(gang, epoch):
                return self._deliver(gang) if gang.epoch == epoch else []
            case _Milestone(gang, epoch):
                if gang.epoch != epoch or gang.rate == 0 or gang.watched_at != self._at:
                    return []
                steps, gang.watched, gang.watched_at = gang.watched, math.inf, math.inf
                return [Measured(gang.job.job_id, steps, math.nan)]
            case _Repaired(repaired):
                return [NodeJoined(node) for node in self._outages.bring_up(repaired)]
            case Fault():
                nodes, when, following = self._outages.happen(self._at, event)
                self._schedule(when, following)
                return [NodeLost(node) if event.down else NodeJoined(node) for node in nodes]
        return super()._happen(event)

    # ---- what users ask for ----------------------------------------------------------------------------------

    def watch(self, job_id: str, steps: float) -> None:
        """Report when the job has done so many steps."""
        gang = self._gang_of[job_id]
        gang.watched = steps
        if gang.rate > 0:
            gang.advance(self._at, self._account)
            self._predict_milestone(gang)

    def _cancel(self, row: int) -> None:
        self._end(self._gangs[row], "cancelled_jobs")

    def _refuse(self, row: int) -> None:
        gang = self._gangs[row]
        self._end(gang, "failed_jobs" if gang.failures else "cancelled_jobs")

    def _has_ended(self, row: int) -> bool:
        return self._gangs[row].epoch == ENDED

    def _predict_milestone(self, gang: Gang) -> None:
        steps = max(gang.watched - gang.done, 0.0)
        gang.watched_at = gang.since + steps / gang.rate if steps <= min(gang.limit, gang.left) else math.inf
        if gang.watched_at < math.inf:
            self._schedule(gang.watched_at, _Milestone(gang, gang.epoch))

    # ---- how gangs end ---------------------------------------------------------------------------------------

    def _outcome(self, gang: Gang) -> JobFinished | JobFailed | JobCancelled:
        """Return how a gang's work ended: as drawn, as its trace says, or completed."""
        if gang.ends == gang.fails_at:
            by_chance = gang.fails_at == gang.chance_at
            return JobFailed(gang.job.job_id, gang.epoch, "chance" if by_chance else self._outcomes.name(gang.row))
        event = self._completed(gang.row, gang.epoch)
        return JobCancelled(gang.job.job_id) if gang.killed and isinstance(event, JobFinished) else event

    def _report(self, gang: Gang) -> list[Event]:
        """Send the report of a gang's end; return it if it arrives at once."""
        arrives_at = self._report_time()
        if arrives_at <= self._at:
            return self._deliver(gang)
        self._schedule(arrives_at, _Report(gang, gang.epoch), awaited=True)
        return []

    def _report_time(self) -> float:
        """Draw when a report that is sent now arrives."""
        return self._faults.report_latency.arrives_at(self._at, self._report_draws)

    def _deliver(self, gang: Gang) -> list[Event]:
        """Deliver the report of a gang's end or of its checkpoint, and apply it."""
        event, name = gang.pending_report, gang.job.job_id
        match event:
            case JobFinished():
                self._end(gang)
            case JobCancelled():
                self._end(gang, "cancelled_jobs")
            case JobFailed(reason=reason):
                self._halt(gang, save=False)
                gang.failures += 1
                lost = self._take_down(gang) if reason in BY_MACHINE else []
                if gang.job.may_retry(gang.failures):
                    return [event, Progressed((name,), (gang.safe,)), *lost]
                self._forget(gang, "failed_jobs")
                return [event, *lost]
            case None:
                return [] if gang.rate else [Progressed((name,), (gang.safe,))]
        return [event]

    def _take_down(self, gang: Gang) -> list[NodeLost]:
        """Take all machines of a gang out of service for a while: which of them caused the failure is not known."""
        seconds, nodes = self._faults.blacklist_s, np.unique(self._topology.node[list(gang.seats)]).tolist()
        if not seconds:
            return []
        self._schedule(self._at + seconds, _Repaired(tuple(nodes)))
        return [NodeLost(node) for node in self._outages.take_down(nodes)]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def _start_gang(self, order: Start) -> None:
        gangs = [self._gang_of[order.job_id]]
        if order.partner_id is not None:
            gangs.append(self._gang_of[order.partner_id])
        for gang, epoch in zip(gangs, (order.epoch, order.partner_epoch), strict=False):
            gang.epoch, gang.seats, gang.type = epoch, order.seats, int(self._topology.type[order.seats[0]])
            gang.partner = gangs[1 - gangs.index(gang)] if len(gangs) == 2 else None
            gang.limit = math.inf if order.max_steps is None else order.max_steps
            self._open(gang)
        kinds = [(gang.job.job_type, len(order.seats)) for gang in gangs]
        changed = self._around.arrive(tuple(gang.row for gang in gangs), kinds, order.seats)
        for gang in gangs:
            self._settle(gang)
            self._predict_end(gang)
            self._report_steps(gang.row, gang.epoch, gang.since)
        self._running += len(gangs)
        self._starts += len(gangs)
        self._refresh(changed)

    def _open(self, gang: Gang) -> None:
        """Begin a gang's lease with the cost of its start, 0 if only the report of its end is left."""
        cost = self._overheads.of(first=not gang.ran, size=len(gang.seats), saved=gang.saved)
        if gang.ran and gang.left == 0:
            cost = 0.0
        gang.start_cause = "restore" if gang.ran else "start"
        gang.mark, gang.since, gang.ran, gang.pending_report = self._at, self._at + cost, True, None
        gang.chance_at = gang.since + float(self._faults.times_to_failure(1, self._failures)[0])

    def _renew(self, order: Renew) -> None:
        """Apply the new limits of steps; nothing else changes for gangs that keep their seats."""
        limits = [math.inf] * len(order.job_ids) if order.max_steps is None else order.max_steps.tolist()
        for name, limit in zip(order.job_ids, limits, strict=True):
            gang = self._gang_of[name]
            if gang.rate > 0 and gang.pending_report is None and (limit < math.inf or gang.limit < math.inf):
                gang.advance(self._at, self._account)
                gang.limit = limit
                self._predict_end(gang)

    def _stop(self, order: Stop) -> None:
        saved: list[Gang] = []
        for name, epoch in zip(order.job_ids, order.epochs, strict=True):
            gang = self._gang_of[name]
            if gang.epoch == epoch and gang.rate > 0:
                self._halt(gang, save=order.save, preempted=order.save)
                saved.append(gang)
        if saved and self._faults.report_latency.perfect:
            names = tuple(gang.job.job_id for gang in saved)
            self._schedule(self._at, Progressed(names, tuple(gang.safe for gang in saved)), awaited=True)
        elif saved:
            for gang in saved:
                gang.pending_report = None
                self._schedule(self._report_time(), _Report(gang, gang.epoch), awaited=True)

    # ---- what gangs truly do ---------------------------------------------------------------------------------

    def _settle(self, gang: Gang) -> None:
        """Set a gang's speed on its seats, neighbours left aside."""
        job, size, mate = gang.job, len(gang.seats), gang.partner
        gang.alone = gang.beside = float(self._speeds.solo_throughput(job.job_type, size)[gang.type])
        partner = None if mate is None else mate.job.job_type
        if partner is not None:
            gang.beside = float(self._speeds.packed_throughput(job.job_type, partner, size)[gang.type])
        if gang.beside <= 0:
            type = self._topology.types[gang.type]
            raise RuntimeError(f"job {job.job_id!r} was started on {type}, where it cannot run")
        place = self._around.by_place((job.job_type, size), gang.type, gang.seats, partner)
        gang.lease = LeaseSpan(size, size if mate is None else size / 2, gang.beside / gang.alone, place)

    def _predict_end(self, gang: Gang) -> None:
        """Set a gang's rate given its present neighbours, and schedule its end."""
        lease = gang.lease
        lease.near = self._around.by_neighbours(gang.group)
        gang.rate = gang.beside / (lease.place * lease.near)
        if math.isnan(gang.trial_s):
            gang.trial_s = self._outcomes.time_to_failure(gang.row, gang.trial, self._left_s(gang))
        ends = gang.predict_end()
        if ends < math.inf:
            self._schedule(ends, _End(gang, gang.epoch))
        if gang.watched < math.inf:
            self._predict_milestone(gang)

    def _left_s(self, gang: Gang) -> float:
        """Return the seconds of work left, in the shape that the job asked for."""
        job, rate = gang.job, gang.rate
        if len(gang.seats) != job.scale_factor:
            rate = float(self._speeds.solo_throughput(job.job_type, job.scale_factor)[gang.type]) or rate
        return gang.left / rate

    def _refresh(self, rows: list[int]) -> None:
        """Update gangs whose neighbours changed."""
        for row in rows:
            gang = self._gangs[row]
            gang.advance(self._at, self._account)
            if gang.pending_report is None:
                self._predict_end(gang)

    def _halt(self, gang: Gang, *, save: bool, preempted: bool = False) -> None:
        """Take a gang off its seats; its partner continues alone.

        What is `preempted` keeps what overheads say; a job that cannot save starts over.
        """
        if gang.rate == 0:
            return
        gang.advance(self._at, self._account)
        failed, every = isinstance(gang.pending_report, JobFailed), self._checkpoint_every_s
        gang.saved = save and not failed
        starts_over = preempted and not gang.job.interruptible
        keeps = gang.saved and not (preempted and not self._preempted_save) and not starts_over
        if gang.saved and preempted:
            every = math.inf if starts_over else self._preempted_every_s
            gang.ran = not starts_over  # its next start costs what a first one does
        if keeps or every == 0 or isinstance(gang.pending_report, JobFinished):
            gang.safe = gang.done
        else:
            step, done = every * gang.rate, gang.done
            safe = 0.0 if every == math.inf else max(gang.safe, math.floor(done / step) * step)
            gang.fall_back(safe, self._account)
            if preempted:  # the trial goes through those steps once more before it fails
                gang.trial_s += (done - safe) / gang.rate
        if failed:
            gang.trial, gang.trial_s = gang.trial + 1, math.nan
        gang.rate = 0.0
        self._running -= 1
        mate, gang.partner = gang.partner, None
        changed = self._around.leave(gang.row)
        if mate is not None:
            mate.advance(self._at, self._account)
            mate.partner = None
            self._settle(mate)
            if mate.row not in changed and mate.pending_report is None:
                self._predict_end(mate)
        self._refresh(changed)

    def _end(self, gang: Gang, lost: str = "") -> None:
        self._halt(gang, save=True)
        self._forget(gang, lost)

    def _forget(self, gang: Gang, lost: str) -> None:
        """Record that a job has ended; with `lost`, that loss takes all its useful work."""
        gang.epoch = ENDED
        self._unfinished -= 1
        if lost:
            self._account.give_up(gang.row, lost)
