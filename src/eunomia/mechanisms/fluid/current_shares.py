"""Current shares of time, and the service received by them."""

from __future__ import annotations

import numpy as np

from eunomia.core.answer_rows import PendingAsk
from eunomia.core.invariants import BrokenInvariant, check_lives
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.decisions import SetShares
from eunomia.model.job_lifecycle import Cause, Stage
from eunomia.model.tolerance import SOLVED

_NO_FLOATS: Floats = np.empty(0)


class FluidShares:
    """The shares that hold, one entry a job on a type; of a pair each has an entry of its own."""

    def __init__(self, sched: SchedulerState) -> None:
        self._sched = sched
        self.job = self.type = self.size = self.partner = NO_INTS  # (entry,)
        self.x = self._rate = _NO_FLOATS  # (entry,) share of time; believed steps/s
        self._at = 0.0

    def flow_to(self, at: float) -> None:
        """Advance time: every entry receives its share of it."""
        elapsed, self._at = at - self._at, at
        if elapsed <= 0 or not len(self.job):
            return
        ledger, received = self._sched.ledger, self.x * elapsed
        np.add.at(ledger.received, (self.job, self.type), received)
        np.add.at(ledger.service, self.job, received * self.size)
        np.add.at(self._sched.belief.done, self.job, received * self._rate)
        ledger.since[self.job] = at

    def turn(self, rows: PendingAsk, size: Ints) -> None:
        """Apply the shares of a checked answer from now on."""
        given = rows.x > 0
        job, type, partner, x = rows.job[given], rows.type[given], rows.partner[given], rows.x[given]
        two = partner >= 0
        self.job, self.partner = np.concatenate((job, partner[two])), np.concatenate((partner, job[two]))
        self.type, self.x = np.concatenate((type, type[two])), np.concatenate((x, x[two]))
        self.size = np.concatenate((size[given], size[given][two]))
        self._rate = self._believed()
        self._mark_running()

    def remove(self, ended: Bools) -> None:
        """End entries; a partner keeps running alone."""
        mates = np.isin(self.partner, self.job[ended])
        self.partner[mates] = -1
        kept = ~ended
        self.job, self.type, self.size = self.job[kept], self.type[kept], self.size[kept]
        self.partner, self.x = self.partner[kept], self.x[kept]
        self._rate = self._believed()

    def ended(self) -> Bools:
        """Return the entries whose jobs have ended, (entry,)."""
        return np.asarray(self._sched.state.jobs.stage[self.job] > Stage.RUNNING)

    def used(self) -> Floats:
        """Return the accelerators that are in use, (type,); those of a pair count once."""
        held = self.x * self.size * np.where(self.partner >= 0, 0.5, 1.0)
        return np.asarray(np.bincount(self.type, held, minlength=len(self._sched.state.capacity)), dtype=float)

    def order(self) -> SetShares:
        """Return the decision for the backend."""
        names = self._sched.state.names
        return SetShares(names(self.job), self.type, self.x, self.size, names(self.partner))

    def check(self) -> None:
        """Raise `BrokenInvariant` unless jobs and shares agree. The cost grows with jobs."""
        state = self._sched.state
        check_lives(state)
        time = np.bincount(self.job, self.x, minlength=1)
        if time.max() > 1 + SOLVED:
            raise BrokenInvariant(f"job row {int(time.argmax())} is given {time.max():.6g} of its time")
        used = self.used()
        if (used > state.capacity * (1 + SOLVED) + SOLVED).any():
            raise BrokenInvariant(f"shares take {used.tolist()} accelerators of {state.capacity.tolist()}, by type")

    def _believed(self) -> Floats:
        """Return believed steps/s of each entry while it has its accelerators, (entry,)."""
        belief, submitted = self._sched.belief, self._sched.state.submitted
        rate = belief.throughput[self.job, self.type]
        two = self.partner >= 0
        if two.any():
            table = belief.paired()
            rate[two] = table[belief.kind[self.job[two]], belief.kind[self.partner[two]], self.type[two]]
        odd = np.flatnonzero(~two & (self.size != self._sched.state.jobs.scale_factor[self.job]))
        for entry in odd.tolist():
            job = submitted[int(self.job[entry])]
            rate[entry] = belief.speeds.solo_throughput(job.job_type, int(self.size[entry]))[self.type[entry]]
        return np.asarray(rate)

    def _mark_running(self) -> None:
        """Mark jobs with a share as running, on the type of their largest share."""
        sched, jobs = self._sched, self._sched.state.jobs
        before, now = sched.state.running(), np.unique(self.job)
        stopped, started = np.setdiff1d(before, now, True), np.setdiff1d(now, before, True)
        sched.step_all(stopped, Cause.STOPPED)
        sched.step_all(started, Cause.STARTED)
        jobs.on_type[before] = -1
        order = np.argsort(self.x, kind="stable")
        jobs.on_type[self.job[order]] = self.type[order]  # the largest is written last
        fresh = now[~jobs.ran[now]]
        jobs.ran[fresh], jobs.first_started[fresh] = True, self._at
        sched.ledger.since[stopped] = sched.ledger.since[started] = self._at
