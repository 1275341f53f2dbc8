"""A world in virtual time: what will happen, and what every running gang truly does.

Jobs have rows in order of (submitted, sequence, id), which is the order in which a core takes them in: a decision
that names jobs by rows is carried out without reading an id, and in one compiled call however many jobs it concerns.
Ends of gangs are foreseen in a heap of their own (`ends`); all else that is to come lies in `_later`, until `_true`
lets it happen. A world with places, neighbours and late word, at a price in speed, is in `physical`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.backends.simulated import gang_kernels as kernels
from eunomia.backends.simulated.completion_heap import no_ends
from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.gang_kernels import ENDED, FAILED, FINE, FINISHED, GANG
from eunomia.backends.simulated.loss_accounting import CANCELLED, GAVE_UP, total_losses
from eunomia.backends.simulated.rates import Rates
from eunomia.backends.simulated.stall_detection import StallDetector, sitting
from eunomia.model.arrays import Array, Floats, Ints
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
from eunomia.model.losses import Losses
from eunomia.model.overheads import Overheads
from eunomia.model.register import Register
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

_AT_ONCE = 1024  # ends taken from the heap by one call
_NO_FLOATS: Floats = np.empty(0)


class Simulation:
    """Virtual time, true throughputs, seeded faults.

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
        faults: FaultModel | None = None,
        checkpoint_every_s: float = 0.0,
        replay_status: bool = False,
        seed: int = 0,
    ):
        self._jobs = sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id))
        self._topology, self._faults = topology, faults or FaultModel()
        self._checkpoint_every_s, self._replay_status = checkpoint_every_s, replay_status
        _, cancels, failures, outages = np.random.default_rng(seed).spawn(4)
        self._failures, self._outages = failures, outages
        self._register = Register(job.job_id for job in self._jobs)
        self._rates = Rates(speeds, self._jobs)
        self._gangs = _waiting(self._jobs, self._rates.model)
        costs = overheads or Overheads()
        self._start_s = costs.of(first=True)
        sizes = range(self._rates.widest + 1)
        self._later_s = np.array([[costs.of(first=False, size=n, saved=s) for n in sizes] for s in (False, True)])
        self._next_end = np.full(1, np.inf)  # of a gang
        self._ends = (self._gangs, *no_ends(len(self._jobs)), self._next_end)
        self._room = tuple(np.empty(_AT_ONCE, dtype=np.int64) for _ in range(3))
        self._limited = False  # somebody was told how many steps to do
        self._reports: list[tuple[Ints, Floats]] = []  # rows and safe steps of those that just stopped
        self._later: list[tuple[float, int, Event]] = []
        self._pushed = 0
        self._wake = math.inf
        self._at = 0.0
        self._left = len(self._jobs)  # jobs that have not ended
        self._away, self._starts = 0, 0  # machines that are away now; gangs that were started
        self._stalls = StallDetector()
        for when, event in self._faults.cancellations(self._jobs, cancels):
            self._push(when, event)
        self._cancels = len(self._later)  # still to come
        for node in range(topology.nodes):
            self._schedule(self._faults.next_outage(0.0, node, self._outages))

    def losses(self, until: float) -> Losses:
        """Return what held seats were good for up to the end of the run, which is over."""
        kernels.settle(self._gangs, until, self._rates.alone)
        return total_losses(self._gangs)

    # ---- what happens ----------------------------------------------------------------------------------------

    def moments(self) -> Iterator[Moment]:
        """Yield moments until every job has ended or nothing more can happen to those that wait."""
        jobs, next_end, later = self._jobs, self._next_end, self._later
        arrivals = [*(job.submitted for job in jobs), math.inf]
        arrived = 0
        while self._left:
            arrival, ending = arrivals[arrived], next_end.item()
            at = self._at if self._reports else min(arrival, ending, self._wake)
            still = arrival == ending == math.inf and not (self._reports or self._cancels)
            # Who has done all that it may sits on, with no end foreseen.
            still = still and not self._gangs["rate"].any()
            if self._stalls.is_final(self._at, still, self._away, self._wake < math.inf):
                return
            if arrival == math.inf and self._stalls.is_stalled(self._starts, self._left, self._look):
                return
            if later and later[0][0] < at:
                at = later[0][0]
            if at == math.inf:
                return
            self._at = at
            events: list[Event] = self._reported()
            while arrivals[arrived] == at:
                events.append(JobSubmitted(jobs[arrived]))
                arrived += 1
            while later and later[0][0] == at:
                events += self._true(heapq.heappop(later)[2])
            if next_end.item() == at:
                events += self._ending()
            if self._wake <= at:
                self._wake = math.inf
                events.append(Woken())
            if events:
                yield Moment.of(at, events)

    @property
    def given_up(self) -> str:
        """Why the run was ended before its jobs were done, if it was."""
        return self._stalls.reason

    def _look(self) -> tuple[Floats, Ints]:
        gangs = self._gangs
        return gangs["safe"].copy(), sitting(gangs["rate"], gangs["epoch"])

    def _reported(self) -> list[Event]:
        """Return what those that stopped at this instant wrote into their checkpoints."""
        if not self._reports:
            return []
        rows, steps = self._reports[0]
        if len(self._reports) > 1:
            rows, steps = (np.concatenate(parts) for parts in zip(*self._reports, strict=True))
        self._reports.clear()
        return [Progressed(self._register.names(rows), steps)]

    def _ending(self) -> list[Event]:
        """Let gangs end whose time has come."""
        events: list[Event] = []
        while self._next_end.item() == self._at:
            count = kernels.end_due(*self._ends, self._at, self._checkpoint_every_s, self._rates.alone, *self._room)
            for row, epoch, how in zip(*(column[:count].tolist() for column in self._room), strict=True):
                events += self._outcome(row, epoch, how)
        return events

    def _outcome(self, row: int, epoch: int, how: int) -> list[Event]:
        """Return how a gang ended: it failed and is tried again while it has retries, or finished, or ended as its
        trace says.
        """
        job = self._jobs[row]
        if how == FAILED:
            safe = self._gangs["safe"][row : row + 1]
            return [JobFailed(job.job_id, epoch, "chance"), Progressed((job.job_id,), safe.copy())]
        self._left -= 1
        if how != FINISHED:
            return [JobFailed(job.job_id, epoch, "chance")]
        if self._replay_status and job.status == "failed":
            self._gangs["outcome"][row] = GAVE_UP
            return [JobFailed(job.job_id, epoch, "as in the trace")]
        if self._replay_status and job.status == "cancelled":
            self._gangs["outcome"][row] = CANCELLED
            return [JobCancelled(job.job_id)]
        return [JobFinished(job.job_id, epoch)]

    def _true(self, event: Event) -> list[Event]:
        """Return what of a foreseen event is true when its time comes, and let it happen."""
        match event:
            case JobCancelled(name):
                self._cancels -= 1
                row = self._register.row(name)
                if self._gangs["epoch"][row] == ENDED:
                    return []
                self._drop(row)
            case NodeLost(node):
                self._away += 1
                self._schedule(self._faults.repair(self._at, node))
            case NodeJoined(node):
                self._away -= 1
                self._schedule(self._faults.next_outage(self._at, node, self._outages))
        return [event]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Starts():
                self._start(decision)
            case Start():
                self._start(Starts.of(decision))
            case Stop():
                self._stop(decision)
            case WakeAt(at):
                self._wake = at
            case Renew():
                self._renew(decision)
            case Refuse(name):
                self._drop(self._register.row(name))
            case Ask():
                pass

    def _start(self, order: Starts) -> None:
        self._starts += len(order.jobs)
        rows, mates = self._register.rows(order.jobs), self._register.rows(order.partners)
        rates, limits = self._rates, order.max_steps
        self._limited |= limits is not None
        if kernels.strangers(self._gangs, rows, mates, order.first, rates.kind_of, rates.pair_of):
            rates.look_up_pairs(*self._kinds_of_pairs(rows, mates, order.first))
        stuck = kernels.start(
            *self._ends,
            self._at,
            rows,
            order.epochs,
            order.first,
            order.seats,
            mates,
            order.partner_epochs,
            _NO_FLOATS if limits is None else limits,
            self._time_to_failure(rows, mates),
            self._topology.type,
            rates.kind_of,
            rates.alone,
            rates.pair_of,
            rates.beside,
            self._start_s,
            self._later_s,
        )
        if stuck != FINE:
            type = self._topology.types[self._gangs["type"][stuck]]
            raise RuntimeError(f"job {self._jobs[stuck].job_id!r} was started on {type}, where it cannot run")

    def _kinds_of_pairs(self, rows: Ints, mates: Ints, first: Ints) -> tuple[Ints, Ints]:
        """Return the kinds of those that share seats, (pair,) each."""
        paired, model = mates >= 0, self._gangs["model"]
        sizes = np.diff(first)[paired]
        kind_of = self._rates.kind_of
        return kind_of[model[rows[paired]], sizes], kind_of[model[mates[paired]], sizes]

    def _time_to_failure(self, rows: Ints, mates: Ints) -> Floats:
        """Return after how many seconds on its seats each gang fails, a partner after its gang; empty = nobody."""
        if self._faults.job_failures_per_hour == 0:
            return _NO_FLOATS
        return self._faults.times_to_failure(len(rows) + int((mates >= 0).sum()), self._failures)

    def _stop(self, order: Stop) -> None:
        rows = self._register.rows(order.job_ids)
        stopped, safe = np.empty_like(rows), np.empty(len(rows))
        epochs = np.asarray(order.epochs, dtype=np.int64)
        count = kernels.stop(
            *self._ends, self._at, rows, epochs, order.save, self._checkpoint_every_s, self._rates.alone, stopped, safe
        )
        if count:
            self._reports.append((stopped[:count], safe[:count]))

    def _renew(self, order: Renew) -> None:
        """Seats that are kept change nothing here, unless it is said how many steps may be done on them."""
        limits = order.max_steps
        self._limited |= limits is not None
        if self._limited:
            rows = self._register.rows(order.job_ids)
            kernels.allow(*self._ends, self._at, rows, _NO_FLOATS if limits is None else limits, math.inf)

    # ---- single steps ----------------------------------------------------------------------------------------

    def _drop(self, row: int) -> None:
        """A job is over, whatever it has done."""
        kernels.drop(*self._ends, self._at, row, self._rates.alone)
        self._left -= 1

    def _schedule(self, foreseen: tuple[float, Event] | None) -> None:
        if foreseen is not None:
            self._push(*foreseen)

    def _push(self, when: float, event: Event) -> None:
        self._pushed += 1
        heapq.heappush(self._later, (when, self._pushed, event))


def _waiting(jobs: Sequence[Job], model: Ints) -> Array:
    """Return the rows of jobs that have not run."""
    gangs = np.zeros(len(jobs), dtype=GANG)
    gangs["total"] = [job.total_steps for job in jobs]
    gangs["retries"] = [job.retries for job in jobs]
    gangs["model"] = model
    gangs["mate"] = -1
    gangs["limit"] = gangs["fails_at"] = np.inf
    gangs["saved"] = True
    return gangs
