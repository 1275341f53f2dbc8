"""Applies an order or grants: allocates and releases seats, the last step of every decision."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from eunomia.core.answer_rows import PendingAsk, run_times
from eunomia.core.placement_pass import (
    HEAD,
    MISPLACED,
    NO_SEATS,
    NOTHING,
    ODD,
    RENEWALS,
    SEATS,
    STARTED,
    STARTS,
    STOPS,
    follow,
    follow_implied,
)
from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.answers import Grants, Misfit
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, Renew, Starts, Stop
from eunomia.placement.selection import MISFIT

_NO_FLOATS: Floats = np.empty(0)


class PassResult(NamedTuple):
    """What a pass changed: jobs stopped and renewed, gangs started, and candidates without suitable seats."""

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
    def of(cls, result: Ints) -> PassResult:
        """Parse the output of `follow`."""
        head = result[:HEAD].tolist()
        gangs = head[STARTS]
        sizes = (
            head[STOPS], head[STOPS], head[RENEWALS], gangs, gangs + 1, head[SEATS], head[MISPLACED],
            gangs, gangs, gangs, gangs,
        )  # fmt: skip
        parts, place = [], HEAD
        for size in sizes:
            parts.append(result[place : place + size])
            place += size
        return cls._make([*parts, head[ODD]])


class AnswerPlacer:
    """One decision: opens the seats that may change hands, fills them, and adds to `decisions` what changed.

    `until` is the end of the leases that are given, `opening` which seats are reassignable, a constant of
    `core.placement_pass`. Decisions are added in the order stops, renewals, starts.
    """

    def __init__(self, sched: SchedulerState, at: float, until: float, opening: int, decisions: list[Decision]):
        self._sched, self.state, self.at = sched, sched.state, at
        self._until, self._opening, self._decisions = until, opening, decisions
        self.has_unnamed_ends = False  # a lease ended that the grants did not name

    # ---- by an order -----------------------------------------------------------------------------------------

    def follow(self, named: PendingAsk, misfit: Misfit, line: Ints, size: Ints, *, fill: bool = False) -> None:
        """Place gangs in the order of `line`; stop jobs on reassignable seats that are not chosen.

        With `fill` remaining seats go to any active job that can use them.
        """
        state = self.state
        run_time = _NO_FLOATS
        if misfit == "reserve":
            run_time = run_times(named, size, self.at, state, self._sched.belief)
        state.pass_count += 1
        opening = self._opening
        while True:
            scratch, seats, output = self._sched.kernel_scratch()
            length = follow(
                self.at, self._until, state.pass_count, MISFIT[misfit], opening, fill, line, named.job, named.type,
                size, named.partner, named.shape, named.within, run_time, scratch, seats, output, *self._sched.arrays,
            )  # fmt: skip
            if length == NOTHING:
                return
            self._sched.demand_legal()
            result = PassResult.of(output[:length].copy())
            self._append_decisions(result)
            if not len(result.misplaced):
                return
            # Seats were free but not near enough to each other: try the next candidates.
            line, opening = line[~np.isin(line, result.misplaced)], NO_SEATS

    def _append_decisions(self, result: PassResult) -> None:
        """Append the stops, renewals and starts of a pass."""
        names = self.state.names
        if len(result.stops):
            self._decisions.append(Stop(names(result.stops), result.stop_epochs))
        if len(result.renewed):
            self._decisions.append(Renew(names(result.renewed), self._until))
        if len(result.lead):
            self._decisions.append(self._starts(result))
        if result.odd:
            type = self.state.jobs.on_type[result.lead]
            self._sched.correct_rates(result.lead, type, result.shape, np.diff(result.first), result.partner)

    def _starts(self, result: PassResult) -> Starts:
        names = self.state.names
        return Starts(
            jobs=names(result.lead),
            epochs=result.epochs,
            first=result.first,
            seats=result.seats,
            until=np.where(self.state.jobs.held[result.lead], np.inf, self._until),
            shape=result.shape,
            partners=names(result.partner),
            partner_epochs=result.partner_epochs,
        )

    # ---- by grants -------------------------------------------------------------------------------------------

    def grant(self, grants: Grants, named: PendingAsk) -> None:
        """Apply checked grants. A gang of which a job or a device left since the ask is dropped whole."""
        state = self.state
        stop = named.active[grants.stop]
        granted: set[int] = set()
        kept: set[int] = set()
        gangs = self._gangs(grants, named)
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            granted |= {job, mate}
            if state.holds_just(job, seats) and state.jobs.partner[job] == mate:
                kept |= {job, mate}
        running = state.running()
        ended = running[state.jobs.until[running] <= self.at].tolist()  # recall takes no seats: `stop` does
        leaving = (granted | set(stop.tolist()) | set(ended)) - kept - {-1}
        if state.has_uninterruptible:
            leaving -= set(running[state.jobs.held[running]].tolist())
        self.has_unnamed_ends = not granted.union(stop.tolist()).issuperset(ended)
        self._clear([job for job in sorted(leaving) if state.jobs.on_type[job] >= 0])
        started: list[int] = []
        taken: list[Ints] = []
        for row, seats in gangs:
            job, mate = int(named.job[row]), int(named.partner[row])
            until = float(grants.until[_source(named, row)])
            state.own_lease_ends |= math.isfinite(until)
            until = self._until if math.isnan(until) else until
            if job in kept:
                if not state.jobs.held[job]:  # its lease has no end
                    self._prolong(job, until)
            elif state.floor.is_free(seats) and (state.jobs.on_type[[job] if mate < 0 else [job, mate]] < 0).all():
                self._sched.start(job, self.at, int(named.type[row]), int(named.shape[row]), seats, until, mate)
                started.append(job)
                taken.append(seats)
        if started:
            self._decisions.append(self._granted(np.array(started), taken))

    def _gangs(self, grants: Grants, named: PendingAsk) -> list[tuple[int, Ints]]:
        """Return each granted row with its seats, whole; leases that are over by now are left out."""
        order = np.lexsort((grants.device, grants.row))
        device, end = grants.device[order], np.searchsorted(grants.row[order], np.arange(len(grants.rows) + 1))
        gangs = []
        for row in range(len(named.job)):
            source = _source(named, row)
            if not grants.until[source] <= self.at:
                gangs.append((row, device[end[source] : end[source + 1]]))
        return gangs

    def _clear(self, rows: list[int]) -> None:
        """Stop these jobs and their partners."""
        jobs = self.state.jobs
        both = [job for row in rows for job in (row, int(jobs.partner[row])) if job >= 0]
        stops = np.array(list(dict.fromkeys(both)), dtype=np.int64)
        if len(stops):
            self._decisions.append(Stop(self.state.names(stops), jobs.epoch[stops]))
            self._sched.stop_all(stops, self.at)

    def _prolong(self, job: int, until: float) -> None:
        mate = int(self.state.jobs.partner[job])
        jobs = [job] if mate < 0 else [job, mate]
        self.state.jobs.until[jobs], self.state.jobs.lease_extended[jobs] = until, False
        self._decisions.append(Renew(self.state.names(np.array(jobs)), until))

    def _granted(self, lead: Ints, seats: list[Ints]) -> Starts:
        """Return the starts of these gangs as one decision, read off the state."""
        state, jobs = self.state, self.state.jobs
        mates = jobs.partner[lead]
        return Starts(
            jobs=state.names(lead),
            epochs=jobs.epoch[lead],
            first=np.cumsum([0, *map(len, seats)]),
            seats=np.concatenate(seats),
            until=np.where(jobs.held[lead], np.inf, jobs.until[lead]),
            shape=jobs.shape[lead],
            partners=state.names(mates),
            partner_epochs=np.where(mates >= 0, jobs.epoch[mates], 0),
        )


def apply_implied(
    sched: SchedulerState, at: float, until: float, *, alone: bool, recall: bool
) -> tuple[int, Starts | None]:
    """Apply what the policy's promises imply for the waiting jobs, if they do; see `core.placement_pass`.

    Return a constant of `core.placement_pass`, and the start if there is one.
    """
    output = sched.kernel_scratch()[2]
    implied = follow_implied(at, until, alone, recall, output, *sched.arrays)
    if implied != STARTED:
        return implied, None
    sched.demand_legal()
    result = output[: 3 + output.item(2)].copy()
    return STARTED, Starts.single(sched.state.names(result[:1]), result[1:2], result[3:], until)


def _source(named: PendingAsk, row: int) -> int:
    """Return where a row that was not dropped stands in the answer."""
    return row if named.source is None else int(named.source[row])
