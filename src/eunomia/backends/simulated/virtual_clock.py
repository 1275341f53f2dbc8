"""Virtual time: what every simulated backend shares.

Future events wait in one heap. All events of one instant are reported as one moment, in an order drawn by seed: the
core sorts them, and no decision may depend on the order in which a backend reports them.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np

from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.stall_detection import StallDetector
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Refuse, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.job_table import in_order, job_values
from eunomia.model.overheads import Overheads
from eunomia.model.row_index import RowIndex
from eunomia.model.topology import Topology

SHUFFLES, CANCELLATIONS, FAILURES, OUTAGES, OUTCOMES, REPORTS = range(6)  # random streams of a simulation


class VirtualClock:
    """A backend whose time jumps to the next event: submissions, cancellations, timers, and a subclass's own events.

    A subclass schedules events with `_schedule` and applies them in `_happen`; what it predicts elsewhere it announces
    with `_next_time` and applies in `_happen_now`. Jobs have rows in order of (submitted, sequence, id).
    """

    def __init__(self, jobs: Sequence[Job], *, faults: FaultModel | None = None, seed: int = 0):
        self.given_up = ""  # why the run was ended before its jobs were done, if it was
        self._jobs = in_order(jobs)
        self._register = RowIndex(job_values(self._jobs, "job_id"))
        self._unfinished = len(self._jobs)
        self._at = 0.0
        self._arrivals = array("d", (*job_values(self._jobs, "submitted"), math.inf))
        self._arrived = 0
        self._timer = math.inf
        self._future: list[tuple[float, int, bool, Any]] = []
        self._scheduled = self._awaited = 0  # events so far; those in `_future` that concern jobs
        self._streams = np.random.SeedSequence(seed).spawn(6)
        self._shuffles = np.random.default_rng(self._streams[SHUFFLES])
        self._faults = faults or FaultModel()
        cancellations = self._faults.cancellations(self._jobs, np.random.default_rng(self._streams[CANCELLATIONS]))
        for when, event in cancellations:
            self._schedule(when, event, awaited=True)

    def moments(self) -> Iterator[Moment]:
        """Yield moments until every job has ended or nothing more can happen to pending jobs."""
        arrivals, future = self._arrivals, self._future
        while self._unfinished:
            arrival = arrivals[self._arrived]
            at = min(arrival, self._timer, self._next_time())
            if future and future[0][0] < at:
                at = future[0][0]
            if arrival == math.inf and self._is_over(at):
                return
            self._at = at
            events: list[Event] = []
            while arrivals[self._arrived] == at:
                events.append(JobSubmitted(self._jobs[self._arrived]))
                self._arrived += 1
            while future and future[0][0] == at:
                _, _, awaited, event = heapq.heappop(future)
                self._awaited -= awaited
                events += self._happen(event)
            events += self._happen_now()
            if self._timer <= at:
                self._timer = math.inf
                events.append(TimerFired())
            if len(events) > 1:
                self._shuffles.shuffle(events)
            if events:
                yield Moment.of(at, events)

    def carry_out(self, decision: Decision) -> None:
        """Apply a decision at once."""
        match decision:
            case Starts():
                self._start(decision)
            case Start():
                self._start(Starts.of(decision))
            case Stop():
                self._stop(decision)
            case SetTimer(at):
                self._timer = at
            case Renew():
                self._renew(decision)
            case Refuse(name):
                self._refuse(self._register.row(name))

    def accept(self, wish: Event) -> bool:
        """Apply a user's request; False when the job has ended. Requests that concern no single job are accepted."""
        if not isinstance(wish, JobCancelled | JobPaused | JobResumed):
            return True
        row = self._register.row(wish.job_id)
        if self._has_ended(row):
            return False
        if isinstance(wish, JobCancelled):
            self._cancel(row)
        return True

    def _schedule(self, when: float, event: Any, *, awaited: bool = False) -> None:
        """Schedule an event; `awaited`: it changes a job's state, so the run cannot be over before."""
        self._scheduled += 1
        self._awaited += awaited
        heapq.heappush(self._future, (float(when), self._scheduled, awaited, event))

    def _happen(self, event: Any) -> list[Event]:
        """Apply a scheduled event; return what is reported, which is nothing where the event no longer applies."""
        return [event] if not isinstance(event, JobCancelled) or self.accept(event) else []

    def _next_time(self) -> float:
        """Return when `_happen_now` has something to do next; inf = it has not."""
        return math.inf

    def _happen_now(self) -> list[Event]:
        """Apply what was predicted for this instant outside of the heap; return what is reported."""
        return []

    def _is_over(self, at: float) -> bool:
        """Return whether the run ends though jobs are left; `at` is the next event. Asked once all jobs have come."""
        return at == math.inf

    def _start(self, order: Starts) -> None:
        for one in order.each():
            self._start_gang(one)

    def _start_gang(self, order: Start) -> None:
        """Start a gang, with its partner if it has one."""

    def _stop(self, order: Stop) -> None:
        """Stop gangs that run in these epochs."""

    def _renew(self, order: Renew) -> None:
        """Extend leases."""

    def _refuse(self, row: int) -> None:
        """End a job that the scheduler refuses."""

    def _cancel(self, row: int) -> None:
        """End a job that its user cancels."""

    def _has_ended(self, row: int) -> bool:
        """Return whether a job has ended for good."""
        return False


@dataclass(frozen=True, slots=True)
class _StepsDue:
    """A gang is to report its steps, if it still runs in this epoch."""

    row: int
    epoch: int


class GangSettings(TypedDict, total=False):
    """Settings of a `GangSimulation`.

    With `report_after_s` above 0 a gang reports its steps when it has started, as one does that has loaded its
    checkpoint, and once it has made progress for so long. With `checkpoint_every_s` above 0 a gang whose machine is
    lost, or that fails, falls back to its last checkpoint; with 0 it loses nothing. What a preempted gang goes on from
    is `overheads.saves`. With `replay_status` jobs end as their trace says.
    """

    overheads: Overheads | None
    faults: FaultModel | None
    checkpoint_every_s: float
    replay_status: bool
    report_after_s: float
    seed: int


class GangSimulation(VirtualClock):
    """Jobs run as gangs on seats; a run in which no job advances any more is ended."""

    def __init__(self, jobs: Sequence[Job], topology: Topology, **settings: Unpack[GangSettings]):
        super().__init__(jobs, faults=settings.get("faults"), seed=settings.get("seed", 0))
        self._topology, self._overheads = topology, settings.get("overheads") or Overheads()
        self._checkpoint_every_s = settings.get("checkpoint_every_s", 0.0)
        self._preempted_save = self._overheads.saves == "checkpoint"
        every_s = self._checkpoint_every_s if self._overheads.saves == "periodic" else math.inf
        self._preempted_every_s = every_s or math.inf  # seconds between the checkpoints that a preemption leaves
        self._replay_status = settings.get("replay_status", False)
        self._report_after_s = settings.get("report_after_s", 0.0)
        self._failures = np.random.default_rng(self._streams[FAILURES])
        self._starts = 0  # gangs that were started
        self._stalls = StallDetector()

    def _is_over(self, at: float) -> bool:
        if at == math.inf:
            return True
        is_idle = not self._awaited and not self._has_running()
        nodes_away = self._nodes_away() if is_idle else 0
        over = self._stalls.is_final(self._at, is_idle, nodes_away, self._timer < math.inf)
        over = over or self._stalls.is_stalled(self._starts, self._unfinished, self._progress)
        self.given_up = self._stalls.reason
        return over

    def _happen(self, event: Any) -> list[Event]:
        if not isinstance(event, _StepsDue):
            return super()._happen(event)
        steps = self._steps_of(event.row, event.epoch)
        return [] if steps is None else [Progressed((self._register.ids[event.row],), (steps,))]

    def _report_steps(self, row: int, epoch: int, since: float) -> None:
        """Let a gang report its steps that makes progress in this epoch since a time: when that begins, and later."""
        if self._report_after_s:
            for when in (since, since + self._report_after_s):
                self._schedule(when, _StepsDue(row, epoch))

    def _steps_of(self, row: int, epoch: int) -> float | None:
        """Return the steps that a gang has done; None if it does not run in this epoch."""
        raise NotImplementedError

    def _has_running(self) -> bool:
        """Return whether any gang makes progress, or reports of gangs are still to come."""
        raise NotImplementedError

    def _nodes_away(self) -> int:
        """Return how many machines are out of service."""
        raise NotImplementedError

    def _progress(self) -> tuple[Floats, Ints]:
        """Return of each job its steps that no loss can take and the epoch in which it runs, 0 = not, (job,) each."""
        raise NotImplementedError

    def _completed(self, row: int, epoch: int) -> JobFinished | JobFailed | JobCancelled:
        """Return how a job ends that has done its steps."""
        name, status = self._register.ids[row], self._jobs[row].status if self._replay_status else ""
        if status == "failed":
            return JobFailed(name, epoch, "as in the trace")
        return JobCancelled(name) if status == "cancelled" else JobFinished(name, epoch)
