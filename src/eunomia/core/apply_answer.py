"""From an order or from grants to who sits where: the last step of every decision."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eunomia.core.answer_rows import PendingAsk, run_times, sizes_of
from eunomia.core.placement_pass import HEAD, MISPLACED, NOBODY, ODD, RENEWALS, SEATS, STARTS, STOPS, follow, place_one
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.answers import Grants, InvalidAnswer, Misfit
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop
from eunomia.placement.selection import MISFIT

_NO_FLOATS: Floats = np.empty(0)


class PassResult(NamedTuple):
    """What a pass changed: who stops, who goes on, which gangs start, and the candidates that found no place."""

    stops: Ints
    stop_epochs: Ints
    renewed: Ints
    lead: Ints
    first: Ints  # (gang + 1,)
    seats: Ints
    misplaced: Ints
    epochs: Ints
    shape: Ints
    partner: Ints
    partner_epochs: Ints
    odd: int  # gangs that start in pairs or in other shapes

    @classmethod
    def of(cls, told: Ints) -> PassResult:
        """Take apart what `follow` returned."""
        head = told[:HEAD].tolist()
        gangs = head[STARTS]
        sizes = (
            head[STOPS], head[STOPS], head[RENEWALS], gangs, gangs + 1, head[SEATS], head[MISPLACED],
            gangs, gangs, gangs, gangs,
        )  # fmt: skip
        parts, place = [], HEAD
        for size in sizes:
            parts.append(told[place : place + size])
            place += size
        stops, stop_epochs, renewed, lead, first, seats, misplaced, epochs, shape, partner, partner_epochs = parts
        return cls(
            stops,
            stop_epochs,
            renewed,
            lead,
            first,
            seats,
            misplaced,
            epochs,
            shape,
            partner,
            partner_epochs,
            head[ODD],
        )


class AnswerPlacer:
    """One decision: opens the seats that may change hands, fills them, and adds to `decisions` what changed.

    `until` is the end of the leases that are given, `opening` which seats may be given anew, as `core.passes` numbers
    it. Decisions are added in the order stops, renewals, starts.
    """

    def __init__(self, books: SchedulerState, at: float, until: float, opening: int, decisions: list[Decision]):
        self._books, self.state, self.at = books, books.state, at
        self._until, self._opening, self._decisions = until, opening, decisions
        self.put_out = False  # a lease ended that the grants did not name

    # ---- by an order -----------------------------------------------------------------------------------------

    def follow(self, named: PendingAsk, misfit: Misfit, line: Ints, size: Ints, *, fill: bool = False) -> None:
        """Seat gangs as they stand in `line`; whoever sits on an open seat and is not chosen stops.

        With `fill` what is then free goes to whoever can use it.
        """
        state = self.state
        run_time = _NO_FLOATS
        if misfit == "reserve":
            run_time = run_times(named, size, self.at, state, self._books.belief)
        state.passes += 1
        opening = self._opening
        while True:
            paper, seats, words = self._books.paper()
            length = follow(
                self.at, self._until, state.passes, MISFIT[misfit], opening, fill, line, named.job, named.type, size,
                named.partner, named.shape, named.within, run_time, paper, seats, words, *self._books.arrays,
            )  # fmt: skip
            self._books.demand_legal()
            told = PassResult.of(words[:length].copy())
            self._tell(told)
            if not len(told.misplaced):
                return
            # Seats were free but not near enough to each other: the next in line may have them.
            line, opening = line[~np.isin(line, told.misplaced)], NOBODY

    def _tell(self, told: PassResult) -> None:
        """Write down what a pass changed."""
        names = self.state.names
        if len(told.stops):
            self._decisions.append(Stop(names(told.stops), told.stop_epochs))
        if len(told.renewed):
            self._decisions.append(Renew(names(told.renewed), self._until))
        if len(told.lead):
            self._decisions.append(self._starts(told))
        if told.odd:
            type = self.state.jobs.on_type[told.lead]
            self._books.correct_rates(told.lead, type, told.shape, np.diff(told.first), told.partner)

    def _starts(self, told: PassResult) -> Starts:
        names = self.state.names
        return Starts(
            jobs=names(told.lead),
            epochs=told.epochs,
            first=told.first,
            seats=told.seats,
            until=np.full(len(told.lead), self._until),
            shape=told.shape,
            partners=names(told.partner),
            partner_epochs=told.partner_epochs,
        )

    # ---- by grants -------------------------------------------------------------------------------------------

    def grant(self, grants: Grants, named: PendingAsk) -> None:
        """Carry out grants. A gang of which a job or a device went since the ask is dropped whole.

        Raises InvalidAnswer for a gang of the wrong size, a seat of another type, or a seat given twice.
        """
        state = self.state
        stop = named.active[grants.stop]
        granted: set[int] = set()
        going_on: set[int] = set()
        gangs = self._gangs(grants, named)
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            granted |= {job, mate}
            if np.array_equal(np.sort(state.seats_of(job)), seats) and state.jobs.partner[job] == mate:
                going_on |= {job, mate}
        running = state.running()
        ended = running[state.jobs.until[running] <= self.at].tolist()  # recall takes no seats: `stop` does
        leaving = (granted | set(stop.tolist()) | set(ended)) - going_on - {-1}
        self.put_out = not granted.union(stop.tolist()).issuperset(ended)
        self._clear([job for job in sorted(leaving) if state.jobs.on_type[job] >= 0])
        started = []
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            until = float(grants.until[_source(named, row)])
            state.ends_apart |= math.isfinite(until)
            until = self._until if math.isnan(until) else until
            if job in going_on:
                self._prolong(job, until)
            elif state.floor.is_free(seats) and (state.jobs.on_type[[job] if mate < 0 else [job, mate]] < 0).all():
                state.floor.take(seats)
                self._books.start(job, self.at, int(named.type[row]), int(named.shape[row]), seats, until, mate)
                started.append(job)
        if started:
            self._decisions.append(self._granted(np.array(started)))

    def _gangs(self, grants: Grants, named: PendingAsk) -> list[tuple[int, Ints]]:
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
                name = self.state.ids[int(named.job[row])]
                raise InvalidAnswer(f"job {name!r} is granted {len(seats)} seats; its gang is {size[row]}")
            if (topology.type[seats] != named.type[row]).any():
                raise InvalidAnswer(f"row {row} is granted seats of another type than it names")
            gangs.append((row, seats))
        return gangs

    def _clear(self, rows: list[int]) -> None:
        """Stop these jobs, and whoever shares with them."""
        jobs = self.state.jobs
        both = [job for row in rows for job in (row, int(jobs.partner[row])) if job >= 0]
        stops = np.array(list(dict.fromkeys(both)), dtype=np.int64)
        if len(stops):
            self._decisions.append(Stop(self.state.names(stops), jobs.epoch[stops]))
            self._books.stop_all(stops, self.at)

    def _prolong(self, job: int, until: float) -> None:
        mate = int(self.state.jobs.partner[job])
        jobs = [job] if mate < 0 else [job, mate]
        self.state.jobs.until[jobs], self.state.jobs.resting[jobs] = until, False
        self._decisions.append(Renew(self.state.names(np.array(jobs)), until))

    def _granted(self, lead: Ints) -> Starts:
        """Return the starts of these gangs as one decision, read off the state."""
        state, jobs = self.state, self.state.jobs
        seats = [state.seats_of(row) for row in lead.tolist()]
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


_ZERO, _NOBODY = np.zeros(1, dtype=np.int64), np.full(1, -1)  # shared by many decisions: nobody writes to them


def place_one_gang(books: SchedulerState, at: float, until: float) -> tuple[int, Starts | None]:
    """Seat the one waiting job that fits, on its fastest type that has room.

    Return how many fit, 2 for several, and the start; nothing is done unless just one fits.
    """
    words = books.paper()[2]
    fits = place_one(at, until, words, *books.arrays)
    if fits != 1:
        return fits, None
    books.demand_legal()
    size, names = words.item(2), books.state.names
    told = words[: 3 + size].copy()
    return 1, Starts(
        jobs=names(told[:1]),
        epochs=told[1:2],
        first=np.array([0, size]),
        seats=told[3:],
        until=np.array([until]),
        shape=_ZERO,
        partners=names(_NOBODY),
        partner_epochs=_ZERO,
    )


def _source(named: PendingAsk, row: int) -> int:
    """Return where a row that was not dropped stands in the answer."""
    return row if named.source is None else int(named.source[row])
