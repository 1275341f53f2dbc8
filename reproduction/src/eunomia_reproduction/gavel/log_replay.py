"""A logged run beside our rounds: allocations come from the log, and the placement is compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from eunomia.mechanisms.gavel_rounds.mechanism import GavelMechanism
from eunomia.model.answers import Answer, Rows, Shares
from eunomia.model.decisions import Ask, Decision, Start, Stop, one_by_one
from eunomia.model.events import JobFinished, Moment
from eunomia.model.view import View
from eunomia_reproduction.gavel.ends import ends_of, no_jobs
from eunomia_reproduction.gavel.objectives import VALUES, Objective
from eunomia_reproduction.gavel.reference import LOGS, Reference, Run
from eunomia_reproduction.gavel.simulate import play, set_up_run
from eunomia_reproduction.table import FigureRow

Members = tuple[str, ...]  # a job, or two that share
GangDevices = dict[Members, tuple[int, ...]]  # accelerators, numbered by type in alphabetical order
WORSE = 1e-4  # largest relative shortfall of an objective


class Diverged(Exception):
    """The log asks its policy at another time, or about other jobs, than we do."""


class FromLog:
    """An adviser that answers what the log says; with `objective` it also asks the policy, and compares the two.

    An allocation without jobs answers no question, as when the last job has ended.
    """

    def __init__(self, events: Sequence[Mapping[str, Any]], objective: Objective | None = None):
        self._allocations = [event for event in events if "allocation" in event]
        self._objective = objective
        self._next = 0
        self.cpu_s = 0.0
        self.shortfall = 0.0  # the most that one of our answers is worse than the log's, relative

    def answer(self, ask: Ask) -> Answer:
        """Return the next allocation of the log. Raises Diverged when it is of another time or of other jobs."""
        view = ask.view
        self._skip_empty(view.at)
        if self._next == len(self._allocations):
            raise Diverged(f"the log holds {self._next} allocations, and one more is asked for at {view.at:.3f} s")
        event = self._allocations[self._next]
        self._next += 1
        if abs(event["t"] - view.at) > 1e-6:
            raise Diverged(f"allocation {self._next} is of {event['t']:.6f} s there, of {view.at:.6f} s here")
        shares = _shares(event["allocation"], view)
        if self._objective is not None:
            shortfall, memory = self._objective.judge(view, shares)
            self.shortfall = max(self.shortfall, shortfall)
            shares = replace(shares, memory=memory)
        return shares

    @property
    def left(self) -> int:
        """Return how many allocations of the log were never asked for, except those without jobs."""
        return sum(bool(event["allocation"]) for event in self._allocations[self._next :])

    def _skip_empty(self, at: float) -> None:
        """Pass over allocations without jobs from before the next one, or from before `at`."""
        while self._next < len(self._allocations) and not self._allocations[self._next]["allocation"]:
            following = self._allocations[self._next + 1 : self._next + 2]
            due = bool(following) and following[0]["t"] <= at + 1e-6
            if not due and self._allocations[self._next]["t"] >= at - 1e-6:
                return
            self._next += 1


def _members(key: str) -> Members:
    return tuple(part.strip() for part in key.strip("()").split(","))


def _shares(allocation: Mapping[str, Mapping[str, float]], view: View) -> Shares:
    """Return an allocation as shares; its jobs in order of their ids are the rows of the view."""
    names = sorted((key for key in allocation if "," not in key), key=int)
    if len(names) != view.jobs:
        raise Diverged(f"the allocation of {view.at:.3f} s is of {len(names)} jobs there, of {view.jobs} here")
    row = {name: m for m, name in enumerate(names)}
    found = [
        (row[members[0]], row[members[1]] if len(members) > 1 else -1, view.types.index(kind), x)
        for members, shares in ((_members(key), shares) for key, shares in allocation.items())
        for kind, x in shares.items()
        if kind in view.types
    ]
    first, second, kind = np.array([places for *places, _ in found], dtype=np.int64).reshape(-1, 3).T
    x = np.array([share for *_, share in found], dtype=float)
    return Shares(x, Rows(first, kind, partner=second))


@dataclass(slots=True)
class RoundDifference:
    """The first round that differs."""

    round: int
    at: float
    text: str


class LoggedRounds:
    """An observer that compares every round with the log, from the decisions that reach the world."""

    def __init__(self, rounds: GavelMechanism, events: Sequence[Mapping[str, Any]]):
        self._mechanism = rounds
        self._logged = [event for event in events if "assign" in event]
        self._running: GangDevices = {}
        self.compared = self.equal = 0
        self.rounds = sum(bool(event["assign"]) for event in self._logged)  # in which any job runs, there or here
        self.first: RoundDifference | None = None

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Record the placement; at a new round, compare."""
        for event in moment.events:
            if isinstance(event, JobFinished):
                self._part(event.job_id)
        for decision in one_by_one(decisions):
            match decision:
                case Stop():
                    for name in decision.job_ids:
                        self._part(name)
                case Start():
                    members = (decision.job_id,) + ((decision.partner_id,) if decision.partner_id else ())
                    self._running[tuple(sorted(members, key=int))] = decision.seats
        if self._mechanism.clock.opened > self.compared:
            self.compared = self._mechanism.clock.opened
            self._compare(moment.at)

    def _part(self, name: str) -> None:
        for members in [members for members in self._running if name in members]:
            del self._running[members]

    def close(self, stopped: str = "") -> None:
        """The run is over, or it `stopped` for this reason: what the log has beyond our last round differs."""
        for event in self._logged[self.compared :]:
            self.compared += 1
            if there := _seated(event["assign"]):
                members = _first(there)
                text = f"{_describe(members, there)} there, and there is no such round here"
                self._differ(event["t"], stopped or text, there)
        if stopped and self.first is None:
            self.compared += 1
            self._differ(self._mechanism.clock.ended_at, stopped)

    def _compare(self, at: float) -> None:
        here: GangDevices = {members: tuple(sorted(seats)) for members, seats in self._running.items()}
        if self.compared > len(self._logged):
            if here:
                self._differ(at, f"the log has no such round, and {_describe(_first(here), here)} here")
            return
        event = self._logged[self.compared - 1]
        there = _seated(event["assign"])
        if abs(event["t"] - at) > 1e-6:
            self._differ(at, f"it begins at {event['t']:.6f} s there", there)
        elif here != there:
            members = _first({m for m in here.keys() | there.keys() if here.get(m) != there.get(m)})
            self._differ(at, f"{_describe(members, there)} there, {here.get(members)} here", there)
        else:
            self.equal += bool(there)

    def _differ(self, at: float, text: str, there: GangDevices | None = None) -> None:
        self.rounds += not there
        if self.first is None:
            self.first = RoundDifference(self.compared, at, text)


def _seated(assign: Mapping[str, Sequence[int]]) -> GangDevices:
    return {_members(key): tuple(sorted(seats)) for key, seats in assign.items()}


def _first(some: Iterable[Members]) -> Members:
    """Return the oldest job of some, or pair with the oldest job."""
    return min(some, key=lambda members: [int(name) for name in members])


def _describe(members: Members, devices: GangDevices) -> str:
    return f"{' and '.join(members)} on {devices.get(members)}"


def of_log(one: Run, reference: Reference) -> list[FigureRow]:
    """Return the rows of one log: rounds with the same assignment, jobs with the same JCT, and objectives.

    Raises InvalidInput for a run that cannot be played.
    """
    setup, events = set_up_run(one, reference), reference.logs[one.id]
    adviser = FromLog(events, Objective.of(one.family, setup.policy))
    collectors: list[LoggedRounds] = []

    def watch(rounds: GavelMechanism) -> LoggedRounds:
        collectors.append(LoggedRounds(rounds, events))
        return collectors[0]

    stopped, ended, equal, first = "", len(one.jct), 0, ""
    try:
        ended, equal, first = ends_of(one, play(setup, adviser, watch))
        if adviser.left:
            stopped = f"the log holds {adviser.left} allocations more than are asked for"
    except Diverged as error:
        stopped = first = str(error)
    collectors[0].close(stopped)
    series = f"{one.id} log"
    rows = [_of_rounds(series, collectors[0]), no_jobs(series, LOGS)]
    if one.jct:
        rows[1] = FigureRow(
            series=series, quantity="jobs with the same JCT", unit="jobs", published=ended, measured=equal,
            tolerance=0.0, source=LOGS, note=first,
        )  # fmt: skip
    return rows + ([_of_objective(series, adviser.shortfall)] if one.family in VALUES else [])


def _of_rounds(series: str, rounds: LoggedRounds) -> FigureRow:
    first = rounds.first
    return FigureRow(
        series=series, quantity="rounds with the same assignment", unit="rounds", published=rounds.rounds,
        measured=rounds.equal, tolerance=0.0, source=LOGS,
        note=f"first to differ: round {first.round} at {first.at:.3f} s: {first.text}" if first else "",
    )  # fmt: skip


def _of_objective(series: str, shortfall: float) -> FigureRow:
    return FigureRow(
        series=series, quantity="how much worse our answer to a logged question is, at most", unit="", published=0.0,
        measured=shortfall if shortfall < inf else None, tolerance=WORSE, source=LOGS,
    )  # fmt: skip
