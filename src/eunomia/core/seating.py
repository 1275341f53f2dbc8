"""From an order or from grants to who sits where: the last step of every decision."""

from __future__ import annotations

import math

import numpy as np

from eunomia.core.adoption import Question, sizes_of
from eunomia.core.books import Books
from eunomia.core.mechanisms.leases import Leases
from eunomia.model.answers import ONE_MACHINE, Grants, InvalidAnswer, Misfit
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop
from eunomia.model.life import Cause
from eunomia.placing.choose import MISFIT, Candidates, choose, with_open


def _source(named: Question, row: int) -> int:
    """Return where a row that was not dropped stands in the answer."""
    return row if named.source is None else int(named.source[row])


class Seating:
    """One decision: opens the seats that may change hands, fills them, and says what changed."""

    def __init__(self, books: Books, mechanism: Leases, at: float):
        self._books, self.state, self.at = books, books.state, at
        self._until = mechanism.until(at)
        self._open = mechanism.open(books.state, at)
        self._stops: list[int] = []
        self._stop_epochs: list[int] = []
        self._starts: list[int] = []  # jobs that lead the gangs
        self._renewed: list[int] = []
        self._prolonged: list[Renew] = []
        self.put_out = False  # a lease ended that the grants did not speak of

    def decisions(self) -> list[Decision]:
        """Return what changed: first who stops, then who goes on, then who starts."""
        orders: list[Decision] = []
        if self._stops:
            orders.append(Stop(self.state.names(np.array(self._stops)), np.array(self._stop_epochs)))
        if self._renewed:
            orders.append(Renew(self.state.names(np.array(self._renewed)), self._until))
        orders += self._prolonged
        return [*orders, self._started()] if self._starts else orders

    def _started(self) -> Starts:
        """Return the starts as one decision, read off the state."""
        state, jobs, lead = self.state, self.state.jobs, np.array(self._starts)
        seats = [state.seats[row] for row in self._starts]
        mates = jobs.partner[lead]
        return Starts(
            jobs=state.names(lead),
            epochs=jobs.epoch[lead],
            first=np.cumsum([0, *map(len, seats)]),
            seats=np.concatenate(seats),
            until=jobs.until[lead],
            shape=jobs.shape[lead],
            partners=state.names(mates),
            partner_epochs=np.where(mates >= 0, jobs.epoch[mates], 0),
        )

    # ---- by an order -----------------------------------------------------------------------------------------

    def follow(self, rows: Candidates, misfit: Misfit, within: Ints) -> None:
        """Seat gangs in that order; whoever sits on an open seat and is not chosen stops."""
        jobs, opened = self.state.jobs, self._open
        self.state.passes += 1
        free = with_open(self.state.floor.free, self.state.seated(), opened)
        chosen, kept = self._choose(rows, free, misfit)
        self._clear(opened[jobs.taken[opened] != self.state.passes])
        self._renew(rows, chosen[kept])
        misplaced = self._place(rows, chosen[~kept], within)
        while len(misplaced):  # seats were free but not near enough to each other: the next in line may have them
            jobs.taken[rows.job[misplaced]] = 0
            jobs.taken[rows.partner[misplaced][rows.partner[misplaced] >= 0]] = 0
            rest = np.setdiff1d(np.arange(len(rows.job)), misplaced)
            rows, within = rows.take(rest), within[rest]
            jobs.open[: len(jobs)] = False
            chosen, kept = self._choose(rows, self.state.floor.free.copy(), misfit)
            misplaced = self._place(rows, chosen[~kept], within)

    def _choose(self, rows: Candidates, free: Ints, misfit: Misfit) -> tuple[Ints, Bools]:
        state = self.state
        busy = state.running() if misfit == "reserve" else NO_INTS
        return choose(rows, state.seated(), free, busy, state.jobs.taken, state.passes, MISFIT[misfit], self.at)

    def _renew(self, rows: Candidates, kept: Ints) -> None:
        if len(kept) == 0 or math.isinf(self._until):
            return
        job = np.concatenate((rows.job[kept], rows.partner[kept]))
        job = np.sort(job[job >= 0])
        self.state.jobs.until[job], self.state.jobs.resting[job] = self._until, False
        self._renewed += job.tolist()

    def _place(self, rows: Candidates, chosen: Ints, within: Ints) -> Ints:
        """Seat the chosen gangs, the largest first so that they sit close; return those that found no place."""
        if len(chosen) == 0:
            return chosen
        moving = np.concatenate((rows.job[chosen], rows.partner[chosen]))
        moving = moving[moving >= 0]
        self._clear(moving[self.state.jobs.on_type[moving] >= 0])
        if len(chosen) > 1:
            chosen = chosen[np.argsort(-rows.size[chosen], kind="stable")]
        misplaced = []
        for row in chosen.tolist():
            type, size = int(rows.type[row]), int(rows.size[row])
            seats = self.state.floor.place(type, size, one_machine=within[row] == ONE_MACHINE)
            if seats is None:
                misplaced.append(row)
            else:
                self._start(int(rows.job[row]), type, int(rows.shape[row]), seats, self._until, int(rows.partner[row]))
        return np.array(misplaced, dtype=np.int64)

    # ---- by grants -------------------------------------------------------------------------------------------

    def grant(self, grants: Grants, named: Question, question: Question) -> None:
        """Carry out grants. A gang of which a job or a device went since the ask is dropped whole.

        Raises InvalidAnswer for a gang of the wrong size, a seat of another type, or a seat given twice.
        """
        state = self.state
        stop = question.active[grants.stop]
        granted: set[int] = set()
        going_on: set[int] = set()
        gangs = self._gangs(grants, named)
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            granted |= {job, mate}
            if np.array_equal(np.sort(state.seats[job]), seats) and state.jobs.partner[job] == mate:
                going_on |= {job, mate}
        ended = self._open[state.jobs.until[self._open] <= self.at]  # recall takes no seats: `stop` does
        leaving = (granted | set(stop.tolist()) | set(ended.tolist())) - going_on - {-1}
        rows = [j for j in sorted(leaving) if state.jobs.on_type[j] >= 0]
        self.put_out = not granted.union(stop.tolist()).issuperset(ended.tolist())
        self._clear(np.array(rows, dtype=np.int64))
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            until = float(grants.until[_source(named, row)])
            state.ends_apart |= math.isfinite(until)
            until = self._until if math.isnan(until) else until
            if job in going_on:
                self._prolong(job, until)
            elif state.floor.is_free(seats) and (state.jobs.on_type[[job] if mate < 0 else [job, mate]] < 0).all():
                state.floor.take(seats)
                self._start(job, int(named.type[row]), int(named.shape[row]), seats, until, mate)

    def _gangs(self, grants: Grants, named: Question) -> list[tuple[int, Ints]]:
        """Return each granted row with its seats, whole."""
        topology = self.state.topology
        if len(grants.device) and not 0 <= grants.device.min() <= grants.device.max() < topology.devices:
            raise InvalidAnswer(f"a seat names a device outside 0 … {topology.devices - 1}")
        if len(np.unique(grants.device)) < len(grants.device):
            raise InvalidAnswer("grants give one device twice")
        if (grants.until <= self.at).any():
            raise InvalidAnswer(f"a lease is granted until {grants.until.min()}, but it is {self.at}")
        size = sizes_of(named.job, named.shape, self.state)
        gangs = []
        for row in range(len(named.job)):
            seats = np.sort(grants.device[grants.row == _source(named, row)])
            if len(seats) != size[row]:
                name = self.state.submitted[int(named.job[row])].job_id
                raise InvalidAnswer(f"job {name!r} is granted {len(seats)} seats; its gang is {size[row]}")
            if (topology.type[seats] != named.type[row]).any():
                raise InvalidAnswer(f"row {row} is granted seats of another type than it names")
            gangs.append((row, seats))
        return gangs

    def _prolong(self, job: int, until: float) -> None:
        mate = int(self.state.jobs.partner[job])
        jobs = [job] if mate < 0 else [job, mate]
        self.state.jobs.until[jobs], self.state.jobs.resting[jobs] = until, False
        self._prolonged.append(Renew(self.state.names(np.array(jobs)), until))

    # ---- single steps ----------------------------------------------------------------------------------------

    def _clear(self, rows: Ints) -> None:
        """Stop these jobs, and whoever shares with them."""
        jobs = self.state.jobs
        for row in rows.tolist():
            mate = int(jobs.partner[row])
            for job in (row, mate) if mate >= 0 else (row,):
                if jobs.on_type[job] < 0:
                    continue
                self._stops.append(job)
                self._stop_epochs.append(int(jobs.epoch[job]))
                self._books.leave(job, self.at, Cause.STOPPED)

    def _start(self, row: int, type: int, shape: int, seats: Ints, until: float, partner: int) -> None:
        self._books.start(row, self.at, type, shape, seats, until, partner)
        self._starts.append(row)
