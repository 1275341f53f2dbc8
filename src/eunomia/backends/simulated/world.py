"""A world in virtual time: a heap of what will happen, and what every running gang truly does."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.backends.simulated.mishaps import Mishaps
from eunomia.model.decisions import Ask, Decision, Refuse, Renew, Start, Starts, Stop, WakeAt
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobSubmitted,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    Woken,
)
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

ENDED = -1  # in the place of an epoch: no order concerns this job any more


class _Gang:
    """The truth about one job."""

    __slots__ = (
        "done",
        "epoch",
        "fails_at",
        "failures",
        "job",
        "partner",
        "ran",
        "rate",
        "safe",
        "since",
        "size",
        "type",
    )  # fmt: skip

    def __init__(self, job: Job):
        self.job = job
        self.epoch = 0
        self.failures = 0
        self.ran = False
        self.rate = 0.0  # steps/s, 0 = not running
        self.since = 0.0  # from when on it makes progress at this rate
        self.done = 0.0  # steps up to `since`
        self.safe = 0.0  # steps that a loss of the machine cannot take
        self.partner: _Gang | None = None
        self.type, self.size = 0, 0
        self.fails_at = math.inf

    def advance(self, at: float) -> None:
        if at > self.since:
            self.done += (at - self.since) * self.rate
            self.since = at


class SimulatedWorld:
    """Virtual time, true throughputs, seeded mishaps; events of one instant come in a seeded random order.

    `speeds` is the truth, whatever the scheduler believes. With `checkpoint_every_s` above 0 a gang whose machine
    is lost, or that fails, falls back to its last checkpoint; with 0 it loses nothing.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        speeds: Speeds,
        *,
        overheads: Overheads | None = None,
        mishaps: Mishaps | None = None,
        checkpoint_every_s: float = 0.0,
        replay_status: bool = False,
        seed: int = 0,
    ):
        self._jobs = sorted(jobs, key=lambda job: (job.submitted, job.sequence))
        self._topology, self._speeds = topology, speeds
        self._overheads, self._mishaps = overheads or Overheads(), mishaps or Mishaps()
        self._checkpoint_every_s, self._replay_status = checkpoint_every_s, replay_status
        shuffles, cancels, failures, outages = np.random.default_rng(seed).spawn(4)
        self._shuffles, self._failures, self._outages = shuffles, failures, outages
        self._gangs = {job.job_id: _Gang(job) for job in self._jobs}
        self._heap: list[tuple[float, int, Event]] = []
        self._pushed = 0
        self._wake = math.inf
        self._at = 0.0
        self._left = len(self._jobs)  # jobs that have not ended
        for when, event in self._mishaps.cancellations(self._jobs, cancels):
            self._push(when, event)
        for node in range(topology.nodes):
            self._schedule(self._mishaps.next_outage(0.0, node, self._outages))

    # ---- what happens ----------------------------------------------------------------------------------------

    def moments(self) -> Iterator[Moment]:
        """Yield moments until every job has ended or nothing more can happen to those that wait."""
        arrived = 0
        while self._left:
            arrival = self._jobs[arrived].submitted if arrived < len(self._jobs) else math.inf
            at = min(arrival, self._heap[0][0] if self._heap else math.inf, self._wake)
            if math.isinf(at):
                return
            self._at = at
            events: list[Event] = []
            while arrived < len(self._jobs) and self._jobs[arrived].submitted == at:
                events.append(JobSubmitted(self._jobs[arrived]))
                arrived += 1
            while self._heap and self._heap[0][0] == at:
                events += self._true(heapq.heappop(self._heap)[2])
            if self._wake <= at:
                self._wake = math.inf
                events.append(Woken())
            if len(events) > 1:
                events = [events[i] for i in self._shuffles.permutation(len(events))]
            if events:
                yield Moment.of(at, events)

    def _true(self, event: Event) -> list[Event]:
        """Return what of a foreseen event is true when its time comes, and let it happen."""
        match event:
            case JobFinished(name, epoch):
                gang = self._gangs[name]
                if gang.epoch != epoch or gang.rate == 0:
                    return []
                self._end(gang)
                return [self._outcome(gang, event)]
            case JobFailed(name, epoch):
                gang = self._gangs[name]
                return self._fail(gang, event) if gang.epoch == epoch and gang.rate > 0 else []
            case JobCancelled(name):
                gang = self._gangs[name]
                if gang.epoch == ENDED:
                    return []
                self._end(gang)
            case NodeLost(node):
                self._schedule(self._mishaps.repair(self._at, node))
            case NodeJoined(node):
                self._schedule(self._mishaps.next_outage(self._at, node, self._outages))
        return [event]

    def _outcome(self, gang: _Gang, event: JobFinished) -> Event:
        """Return how a job that has done all its steps ends: finished, or as its trace says."""
        if self._replay_status and gang.job.status == "failed":
            return JobFailed(event.job_id, event.epoch, "as in the trace")
        if self._replay_status and gang.job.status == "cancelled":
            return JobCancelled(event.job_id)
        return event

    def _fail(self, gang: _Gang, event: JobFailed) -> list[Event]:
        """A gang fails and falls back to what is safe; it is tried again while it has retries."""
        self._halt(gang, save=False)
        gang.failures += 1
        if gang.failures > gang.job.retries:
            self._forget(gang)
            return [event]
        return [event, Progressed((gang.job.job_id,), (gang.safe,))]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Start():
                self._start(decision)
            case Starts():
                for order in decision.each():
                    self._start(order)
            case Stop():
                self._stop(decision)
            case WakeAt(at):
                self._wake = at
            case Refuse(name):
                self._forget(self._gangs[name])
            case Renew() | Ask():
                pass  # seats that are kept change nothing here

    def _start(self, order: Start) -> None:
        type = int(self._topology.type[order.seats[0]])
        gangs = [self._gangs[order.job_id]]
        if order.partner_id is not None:
            gangs.append(self._gangs[order.partner_id])
        for gang, epoch in zip(gangs, (order.epoch, order.partner_epoch), strict=False):
            gang.epoch, gang.type, gang.size = epoch, type, len(order.seats)
            gang.partner = gangs[1 - gangs.index(gang)] if len(gangs) == 2 else None
            gang.since = self._at + self._overheads.of(first=not gang.ran)
            gang.ran = True
            gang.fails_at = gang.since + self._mishaps.time_to_failure(self._failures)
            self._foresee(gang)

    def _stop(self, order: Stop) -> None:
        saved: list[_Gang] = []
        for name, epoch in zip(order.job_ids, order.epochs, strict=True):
            gang = self._gangs[name]
            if gang.epoch == epoch and gang.rate > 0:
                self._halt(gang, save=order.save)
                saved.append(gang)
        if saved:
            names = tuple(gang.job.job_id for gang in saved)
            self._push(self._at, Progressed(names, tuple(gang.safe for gang in saved)))

    # ---- what gangs truly do ---------------------------------------------------------------------------------

    def _foresee(self, gang: _Gang) -> None:
        """Set a gang's rate and foresee its end."""
        job, mate = gang.job, gang.partner
        if mate is None:
            rate = self._speeds.alone(job.job_type, gang.size)[gang.type]
        else:
            rate = self._speeds.beside(job.job_type, mate.job.job_type, gang.size)[gang.type]
        gang.rate = float(rate)
        if gang.rate <= 0:
            raise RuntimeError(
                f"job {job.job_id!r} was started on {self._topology.types[gang.type]}, where it cannot run"
            )
        ends = gang.since + max(job.total_steps - gang.done, 0.0) / gang.rate
        if gang.fails_at < ends:
            self._push(gang.fails_at, JobFailed(job.job_id, gang.epoch, "chance"))
        else:
            self._push(ends, JobFinished(job.job_id, gang.epoch))

    def _halt(self, gang: _Gang, *, save: bool) -> None:
        """Take a gang off its seats; its partner goes on alone."""
        gang.advance(self._at)
        every = self._checkpoint_every_s
        if save or every == 0:
            gang.safe = gang.done
        else:
            step = every * gang.rate
            gang.safe = max(gang.safe, math.floor(gang.done / step) * step)
        gang.done = gang.safe
        gang.rate = 0.0
        mate, gang.partner = gang.partner, None
        if mate is not None:
            mate.partner = None
            self._go_alone(mate)

    def _go_alone(self, gang: _Gang) -> None:
        if gang.since < self._at:
            gang.advance(self._at)
        gang.since = max(gang.since, self._at)
        self._heap = [entry for entry in self._heap if not self._is_end_of(entry[2], gang)]
        heapq.heapify(self._heap)
        self._foresee(gang)

    def _is_end_of(self, event: Event, gang: _Gang) -> bool:
        return isinstance(event, JobFinished | JobFailed) and event.job_id == gang.job.job_id

    def _end(self, gang: _Gang) -> None:
        self._halt(gang, save=True)
        self._forget(gang)

    def _forget(self, gang: _Gang) -> None:
        gang.epoch = ENDED
        self._left -= 1

    def _schedule(self, foreseen: tuple[float, Event] | None) -> None:
        if foreseen is not None:
            self._push(*foreseen)

    def _push(self, when: float, event: Event) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (when, self._pushed, event))
