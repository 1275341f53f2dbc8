"""The fast simulation: true throughputs, overheads, chance failures and lost machines, in arrays.

A decision that names jobs by rows is carried out without reading an id, and in one compiled call however many jobs it
concerns. Predicted ends of gangs have a heap of their own (`completion_heap`). Placement, neighbours and late reports
are in `detailed_simulation`, which is slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from eunomia.backends.simulated import gang_kernels as kernels
from eunomia.backends.simulated.completion_heap import no_ends
from eunomia.backends.simulated.gang_kernels import ENDED, FAILED, FINE, FINISHED, GANG
from eunomia.backends.simulated.implied_moments import ImpliedMoments
from eunomia.backends.simulated.loss_accounting import CANCELLED, GAVE_UP, total_held_time
from eunomia.backends.simulated.rates import Rates
from eunomia.backends.simulated.stall_detection import running_epochs
from eunomia.backends.simulated.virtual_clock import OUTAGES, GangSettings, GangSimulation
from eunomia.core.scheduler import Scheduler
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.decisions import Renew, Starts, Stop
from eunomia.model.events import Event, JobFailed, JobFinished, NodeJoined, NodeLost, Progressed
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.moment_batch import Instant, MomentBatch
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Topology

_AT_ONCE = 1024  # ends taken from the heap by one call
_NO_FLOATS: Floats = np.empty(0)


class Simulation(GangSimulation):
    """Gangs progress at their true `speeds`, whatever the scheduler believes."""

    def __init__(self, jobs: Sequence[Job], topology: Topology, speeds: Speeds, **settings: Unpack[GangSettings]):
        super().__init__(jobs, topology, **settings)
        self._outages = np.random.default_rng(self._streams[OUTAGES])
        can_save = job_array(self._jobs, "interruptible", np.bool_)
        self._cannot_save: Bools | None = None if can_save.all() else ~can_save
        self._rates = Rates(speeds, self._jobs)
        self._gangs = waiting_gangs(self._jobs, self._rates.model)
        costs, sizes = self._overheads, range(self._rates.widest + 1)
        self._start_s = float(costs.of(first=True))
        later_s = [[costs.of(first=False, size=n, saved=s) for n in sizes] for s in (False, True)]
        self._later_s = np.array(later_s, dtype=float)
        self._next_end = np.full(1, np.inf)  # of a gang
        self._ends = (self._gangs, *no_ends(len(self._jobs)), self._next_end)
        self._room = tuple(np.empty(_AT_ONCE, dtype=np.int64) for _ in range(3))
        self._implied: ImpliedMoments | None = None
        self._limited = False  # some lease had a limit of steps
        self._reports: list[tuple[Ints, Floats]] = []  # rows and safe steps of jobs that just stopped
        self._away = 0  # machines that are out of service
        for node in range(topology.nodes):
            self._schedule_outage(node)

    def losses(self, until: float) -> HeldTime:
        """Return what held seats were used for up to the end of the run, `until`."""
        kernels.settle(self._gangs, until, self._rates.alone)
        return total_held_time(self._gangs)

    def implied(self, scheduler: Scheduler, ranked: bool, instant: Instant) -> Iterator[MomentBatch]:
        """Play the next moments as far as the scheduler's decisions are implied by what its policy promises.

        `ranked`: also those that follow from what it ranks by. `instant` is brought up to date.
        """
        if self._faults.job_failures_per_hour > 0 or self._reports or not self._preempted_save:
            return
        if self._implied is None:
            ending = {"failed", "cancelled"} if self._replay_status else set()
            finishes = np.array([each not in ending for each in job_values(self._jobs, "status")], dtype=bool)
            world = self._topology.type, self._rates.kind_of, self._rates.alone, self._start_s, self._later_s
            arrivals = np.frombuffer(self._arrivals)
            self._implied = ImpliedMoments(scheduler, self._jobs, arrivals, finishes, (*self._ends, *world))
        if not self._register.agrees(scheduler.state.ids):
            return
        horizon = self._future[0][0] if self._future else math.inf
        played, stalls, is_over = self._implied, self._stalls, False
        played.forget_order()
        while not is_over:
            most_starts = stalls.starts_left(self._starts)
            now = self._at, self._timer, instant
            for batch in played.play(self._arrived, *now, horizon, most_starts, ranked=ranked):
                self._arrived += len(batch.submitted)
                self._unfinished -= batch.finished
                self._starts += len(batch.started)
                yield batch
            self._at, self._timer = played.at, played.wake
            is_over = self._arrived < len(self._jobs) or stalls.starts_left(self._starts) > 0
            is_over = is_over or stalls.is_stalled(self._starts, self._unfinished, self._progress)

    # ---- what happens ----------------------------------------------------------------------------------------

    def _next_time(self) -> float:
        return self._at if self._reports else self._next_end.item()

    def _happen_now(self) -> list[Event]:
        events = self._reported() if self._reports else []
        return events + self._ending() if self._next_end.item() == self._at else events

    def _happen(self, event: Any) -> list[Event]:
        match event:
            case NodeLost(node):
                self._away += 1
                self._schedule(*self._faults.repair(self._at, node))
            case NodeJoined(node):
                self._away -= 1
                self._schedule_outage(node)
        return super()._happen(event)

    def _schedule_outage(self, node: int) -> None:
        outage = self._faults.next_outage(self._at, node, self._outages)
        if outage is not None:
            self._schedule(*outage)

    def _steps_of(self, row: int, epoch: int) -> float | None:
        if self._gangs["epoch"][row] != epoch or not self._gangs["rate"][row] > 0:
            return None
        return float(kernels.steps_done(self._gangs, row, self._at))

    def _has_running(self) -> bool:
        # A gang that has done all steps that its lease allows has no predicted end.
        return self._next_time() < np.inf or bool(self._gangs["rate"].any())

    def _nodes_away(self) -> int:
        return self._away

    def _progress(self) -> tuple[Floats, Ints]:
        gangs = self._gangs
        return gangs["safe"].copy(), running_epochs(gangs["rate"], gangs["epoch"])

    def _reported(self) -> list[Event]:
        """Report the checkpoints of gangs that stopped at this instant."""
        rows, steps = self._reports[0]
        if len(self._reports) > 1:
            rows, steps = (np.concatenate(parts) for parts in zip(*self._reports, strict=True))
        self._reports.clear()
        return [Progressed(self._register.names(rows), steps)]

    def _ending(self) -> list[Event]:
        """End the gangs whose predicted end is now."""
        events: list[Event] = []
        while self._next_end.item() == self._at:
            count = kernels.end_due(*self._ends, self._at, self._checkpoint_every_s, self._rates.alone, *self._room)
            for row, epoch, how in zip(*(column[:count].tolist() for column in self._room), strict=True):
                events += self._outcome(row, epoch, how)
        return events

    def _outcome(self, row: int, epoch: int, how: int) -> list[Event]:
        """Return how a gang ended: it failed, for good or with retries left, or completed its job."""
        name = self._register.ids[row]
        if how == FAILED:
            safe = self._gangs["safe"][row : row + 1]
            return [JobFailed(name, epoch, "chance"), Progressed((name,), safe.copy())]
        self._unfinished -= 1
        if how != FINISHED:
            return [JobFailed(name, epoch, "chance")]
        event = self._completed(row, epoch)
        if not isinstance(event, JobFinished):
            self._gangs["outcome"][row] = GAVE_UP if isinstance(event, JobFailed) else CANCELLED
        return [event]

    # ---- what is ordered -------------------------------------------------------------------------------------

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
            raise RuntimeError(f"job {self._register.ids[stuck]!r} was started on {type}, where it cannot run")
        if self._report_after_s:
            for row in (*rows.tolist(), *mates[mates >= 0].tolist()):
                self._report_steps(row, int(self._gangs["epoch"][row]), float(self._gangs["since"][row]))

    def _kinds_of_pairs(self, rows: Ints, mates: Ints, first: Ints) -> tuple[Ints, Ints]:
        """Return the kinds of gangs that share seats, (pair,) each."""
        paired, model = mates >= 0, self._gangs["model"]
        sizes = np.diff(first)[paired]
        kind_of = self._rates.kind_of
        return kind_of[model[rows[paired]], sizes], kind_of[model[mates[paired]], sizes]

    def _time_to_failure(self, rows: Ints, mates: Ints) -> Floats:
        """Return after how many seconds on its seats each gang fails, a partner after its gang; empty = none."""
        if self._faults.job_failures_per_hour == 0:
            return _NO_FLOATS
        return self._faults.times_to_failure(len(rows) + int((mates >= 0).sum()), self._failures)

    def _stop(self, order: Stop) -> None:
        rows, epochs = self._register.rows(order.job_ids), np.asarray(order.epochs, dtype=np.int64)
        if order.save and self._cannot_save is not None:
            start_over = self._cannot_save[rows]
            lost = self._stop_gangs(rows[start_over], epochs[start_over], save=False, every_s=math.inf)
            self._gangs["ran"][lost] = False  # their next start costs what a first one does
            rows, epochs = rows[~start_over], epochs[~start_over]
        every_s = self._preempted_every_s if order.save else self._checkpoint_every_s
        save = order.save and self._preempted_save
        stopped = self._stop_gangs(rows, epochs, save=save, every_s=every_s)
        if order.save and not save:  # the next start costs what it does after a preemption, not after a failure
            self._gangs["saved"][stopped] = True

    def _stop_gangs(self, rows: Ints, epochs: Ints, *, save: bool, every_s: float) -> Ints:
        """Stop the gangs that run in these epochs; they report what they saved. Return their rows."""
        stopped, safe = np.empty_like(rows), np.empty(len(rows))
        count = kernels.stop(*self._ends, self._at, rows, epochs, save, every_s, self._rates.alone, stopped, safe)
        if count:
            self._reports.append((stopped[:count], safe[:count]))
        return stopped[:count]

    def _renew(self, order: Renew) -> None:
        """Apply the new limits of steps; nothing else changes for gangs that keep their seats."""
        limits = order.max_steps
        self._limited |= limits is not None
        if self._limited:
            rows = self._register.rows(order.job_ids)
            kernels.allow(*self._ends, self._at, rows, _NO_FLOATS if limits is None else limits, np.inf)

    def _cancel(self, row: int) -> None:
        kernels.drop(*self._ends, self._at, row, self._rates.alone)
        self._unfinished -= 1

    _refuse = _cancel

    def _has_ended(self, row: int) -> bool:
        return bool(self._gangs["epoch"][row] == ENDED)


def waiting_gangs(jobs: Sequence[Job], model: Ints) -> Array:
    """Return the rows of jobs that were not started."""
    gangs = np.zeros(len(jobs), dtype=GANG)
    gangs["total"] = job_array(jobs, "total_steps")
    gangs["retries"] = job_array(jobs, "retries")
    gangs["model"] = model
    gangs["mate"] = -1
    gangs["limit"] = gangs["fails_at"] = np.inf
    gangs["saved"] = True
    return gangs
