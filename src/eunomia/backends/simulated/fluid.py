"""A world in virtual time whose accelerators can be divided at will: jobs receive shares of time, and never sit.

What it cannot know are seats, and so starts, checkpoints, machines that fail and gangs that lie apart.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence

import numpy as np

from eunomia.backends.simulated.fault_model import FaultModel
from eunomia.backends.simulated.rates import Rates
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.decisions import Decision, Flow, Refuse, WakeAt
from eunomia.model.events import Event, JobCancelled, JobFinished, JobSubmitted, Moment, Woken
from eunomia.model.job import Job
from eunomia.model.losses import HELD_FOR, Losses
from eunomia.model.register import Register
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

_DUST = 1e-12  # of all steps of a job: what rounding leaves over of them is done
_NO_FLOATS: Floats = np.empty(0)


class FluidSimulation:
    """Virtual time, true throughputs, and users who change their minds. No job is ever started: its epoch is 0."""

    given_up = ""  # why the run was ended before its jobs were done, if it was

    def __init__(
        self,
        jobs: Sequence[Job],
        topology: Topology,
        speeds: Speeds,
        *,
        faults: FaultModel | None = None,
        seed: int = 0,
    ):
        self._jobs = sorted(jobs, key=lambda job: (job.submitted, job.sequence, job.job_id))
        self._types, self._rates = topology.types, Rates(speeds, self._jobs)
        self._register = Register(job.job_id for job in self._jobs)
        self._total = np.array([job.total_steps for job in self._jobs])  # (job,) steps
        self._to_do = self._total.copy()  # (job,) steps at `_since`
        self._useful, self._sharing = np.zeros(len(self._jobs)), 0.0  # accelerator-seconds
        self._alive = np.ones(len(self._jobs), dtype=bool)
        self._unwanted = np.zeros(len(self._jobs), dtype=bool)
        self._job: Ints = NO_INTS  # (entry,) who receives
        self._x, self._rate = _NO_FLOATS, _NO_FLOATS  # (entry,) share of time; steps/s
        self._held, self._worth = _NO_FLOATS, _NO_FLOATS  # (entry,) accelerators, and those that are of use
        self._ends = _NO_FLOATS  # (entry,) when its job ends at these shares
        self._dust = _NO_FLOATS  # (entry,) seconds before that in which it does what is no work any more
        self._since = self._at = 0.0
        self._wake = math.inf
        _, cancels, *_ = np.random.default_rng(seed).spawn(4)  # the same jobs as where gangs sit
        self._cancels = [(when, n, event) for n, (when, event) in enumerate(_drawn(self._jobs, faults, cancels))]
        heapq.heapify(self._cancels)

    def losses(self, until: float) -> Losses:
        """Return what was received up to the end of the run, which is over, was good for."""
        self._flow_to(until)
        lost = dict.fromkeys(HELD_FOR, 0.0)
        lost["sharing"], lost["cancelled_jobs"] = self._sharing, float(self._useful[self._unwanted].sum())
        return Losses(float(self._useful[~self._unwanted].sum()), lost)

    # ---- what happens ----------------------------------------------------------------------------------------

    def moments(self) -> Iterator[Moment]:
        """Yield moments until every job has ended or nothing more can happen to those that wait."""
        arrived = 0
        arrivals = [*(job.submitted for job in self._jobs), math.inf]
        while self._alive.any():
            cancel = self._cancels[0][0] if self._cancels else math.inf
            at = min(arrivals[arrived], cancel, self._wake, float(self._ends.min(initial=math.inf)))
            if at == math.inf:
                self.given_up = (
                    f"given up: nothing more will happen, and the last answer gives no share of time to "
                    f"{int(self._alive.sum()):,} jobs that are not done"
                )
                return
            self._at = at
            events: list[Event] = []
            while arrivals[arrived] == at:
                events.append(JobSubmitted(self._jobs[arrived]))
                arrived += 1
            while self._cancels and self._cancels[0][0] == at:
                events += self._cancelled(heapq.heappop(self._cancels)[2])
            events += self._ending()
            if self._wake <= at:
                self._wake = math.inf
                events.append(Woken())
            if events:
                yield Moment.of(at, events)

    def _ending(self) -> list[Event]:
        """Let jobs end whose steps are done, but for dust: who reckons to end together, ends together."""
        due = (self._ends <= self._at + self._dust) & (self._ends < math.inf)
        if not due.any():
            return []
        rows = np.unique(self._job[due])
        self._drop(rows)
        return [JobFinished(self._jobs[row].job_id, 0) for row in rows.tolist()]

    def _cancelled(self, event: JobCancelled) -> list[Event]:
        row = self._register.row(event.job_id)
        if not self._alive[row]:
            return []
        self._drop(np.array([row]))
        self._unwanted[row] = True
        return [event]

    # ---- what is ordered -------------------------------------------------------------------------------------

    def carry_out(self, decision: Decision) -> None:
        """Do as decided, at once."""
        match decision:
            case Flow():
                self._turn(decision)
            case WakeAt(at):
                self._wake = at
            case Refuse(name):
                self._drop(np.array([self._register.row(name)]))

    def _turn(self, order: Flow) -> None:
        """Give everybody the shares of this order from now on."""
        self._flow_to(self._at)
        job, mate = self._register.rows(order.jobs), self._register.rows(order.partners)
        self._job, self._x = job, order.x
        self._rate, alone = self._speeds(job, mate, order)
        stuck = np.flatnonzero(self._rate <= 0)
        if len(stuck):
            name, type = self._jobs[int(job[stuck[0]])].job_id, self._types[int(order.types[stuck[0]])]
            raise RuntimeError(f"job {name!r} was given time on {type}, where it cannot run")
        self._held = np.asarray(order.sizes * np.where(mate < 0, 1.0, 0.5))
        self._worth = order.sizes * self._rate / alone
        whole = np.bincount(job, self._x * self._rate, minlength=1)[job]
        self._ends, self._dust = np.asarray(self._at + self._to_do[job] / whole), _DUST * self._total[job] / whole

    def _speeds(self, job: Ints, mate: Ints, order: Flow) -> tuple[Floats, Floats]:
        """Return steps/s of each entry, (entry,): as it goes now, and with nobody beside it."""
        rates = self._rates
        kind = rates.kind_of[rates.model[job], order.sizes]
        alone = rates.alone[kind, order.types]
        two = np.flatnonzero(mate >= 0)
        if not len(two):
            return alone, alone
        mine, other = kind[two], rates.kind_of[rates.model[mate[two]], order.sizes[two]]
        rates.look_up_pairs(mine, other)
        rate = alone.copy()
        rate[two] = rates.beside[rates.pair_of[mine, other], order.types[two]]
        return rate, alone

    # ---- single steps ----------------------------------------------------------------------------------------

    def _flow_to(self, at: float) -> None:
        """Do the steps up to `at`."""
        elapsed, self._since = at - self._since, at
        if elapsed <= 0 or not len(self._job):
            return
        received = self._x * elapsed
        np.subtract.at(self._to_do, self._job, received * self._rate)
        np.add.at(self._useful, self._job, received * self._worth)
        self._sharing += float((received * (self._held - self._worth)).sum())

    def _drop(self, rows: Ints) -> None:
        """These jobs are over; what flowed up to now stays theirs."""
        self._flow_to(self._at)
        self._alive[rows] = False
        left = np.isin(self._job, rows)
        self._x = np.where(left, 0.0, self._x)
        self._ends[left] = math.inf


def _drawn(
    jobs: Sequence[Job], faults: FaultModel | None, rng: np.random.Generator
) -> list[tuple[float, JobCancelled]]:
    """Return who is cancelled and when."""
    found = (faults or FaultModel()).cancellations(jobs, rng)
    return [(when, event) for when, event in found if isinstance(event, JobCancelled)]
