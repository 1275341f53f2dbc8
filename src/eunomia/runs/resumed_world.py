"""Resumes a real run of an earlier process: checks its inputs, replays recorded moments, continues with real ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eunomia.backends.inputs import RealBackend
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.decisions import Decision, Renew, SetTimer, Start, Starts, Stop
from eunomia.model.events import Event, JobFailed, JobFinished, JobSubmitted, Moment, Progressed, TimerFired
from eunomia.records.record import header_line
from eunomia.scenario import Scenario

RESTART = "or start again with --force or another --out"


def check_same_run(recorded: Mapping[str, Any], header: Mapping[str, Any], scenario: Scenario, out: Path) -> None:
    """Raise InvalidInput with every difference between the header of a record and that of this run."""
    now = json.loads(header_line(header))
    problems = [
        _changed_key(path, old, new, scenario, out)
        for path, old, new in _differences(recorded.get("scenario", {}), now["scenario"])
    ]
    problems += _changed_files(recorded.get("inputs", {}), now["inputs"], scenario, out)
    problems = problems or [
        _changed_otherwise(name, recorded, now, out)
        for name in now
        if name != "version" and recorded.get(name, now[name]) != now[name]
    ]
    if problems:
        raise InvalidInput(problems)


def _changed_otherwise(name: str, recorded: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> Problem:
    """Return the problem of a header field that changed although neither scenario nor files did."""
    rule = f"the run was begun with another {name}, by version {recorded.get('version')}; this is {now['version']}"
    return Problem(file=str(out), column=name, rule=rule, fix=f"use that version and the policy as it was, {RESTART}")


def _changed_key(path: tuple[str, ...], old: Any, new: Any, scenario: Scenario, out: Path) -> Problem:
    rule = f"the run in {out} was begun with {json.dumps(old)}"
    return scenario.problem(path, rule, f"undo the change, {RESTART}", json.dumps(new))


def _changed_files(old: Mapping[str, str], new: Mapping[str, str], scenario: Scenario, out: Path) -> Iterator[Problem]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            what = "is not there any more" if name not in new else "has changed"
            rule = f"the file {what} since the run in {out} was begun"
            yield Problem(file=str(scenario.resolve(name)), rule=rule, fix=f"put it back as it was, {RESTART}")


def _differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield path and both values of every difference between two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _differences(old.get(key), new.get(key), (*path, key))
    elif old != new:
        yield path, old, new


class ResumedWorld:
    """A backend that replays the moments of `past` without starting jobs, then continues with `world` at time `at`.

    Gangs that should be running then have ended, as supervisors stop them when the scheduler ends. The first moment
    after the replay reports how: finished, failed, or lost with a node that has joined again.
    """

    def __init__(self, world: RealBackend, past: Sequence[Moment], at: float):
        self._world, self._past, self._at = world, past, at
        self._is_live = False
        self._running: dict[str, Start] = {}  # by job; the start without a partner
        self._submitted: set[str] = set()
        self._finished: set[str] = set()
        self._steps: dict[str, float] = {}
        self._wake = math.inf

    def moments(self) -> Iterator[Moment]:
        """Yield recorded moments, then one with the ends of gangs since, then real moments."""
        for moment in self._past:
            for event in moment.events:
                self._repeat(event)
            yield moment
        self._is_live = True
        at = max([self._at, *(moment.at for moment in self._past[-1:])])
        recovered = self._world.resume(
            at,
            submitted=self._submitted,
            finished=self._finished,
            running=list(self._running.values()),
            steps=self._steps,
            wake=self._wake,
        )
        if recovered is not None:
            yield recovered
        yield from self._world.moments()

    def carry_out(self, decision: Decision) -> None:
        """Carry out a decision; during the replay only track the expected state."""
        if self._is_live:
            self._world.carry_out(decision)
            return
        match decision:
            case Start() | Starts():
                for start in decision.each():
                    for job_id, epoch in start.gangs():
                        self._running[job_id] = Start(job_id, epoch, start.seats, start.until, start.shape)
            case Stop(job_ids, epochs):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._end(job_id, int(epoch))
            case SetTimer(at):
                self._wake = at
            case Renew():
                pass  # ended gangs get a new lease when they start

    def watch(self, job_id: str, steps: float) -> None:
        """Forward the request to report steps of a job."""
        self._world.watch(job_id, steps)

    def accept(self, wish: Event) -> bool:
        """Return whether the backend accepts a tuner's event."""
        return self._world.accept(wish)

    def _end(self, job_id: str, epoch: int) -> None:
        if job_id in self._running and self._running[job_id].epoch == epoch:
            del self._running[job_id]

    def _repeat(self, event: Event) -> None:
        match event:
            case JobSubmitted(job):
                self._submitted.add(job.job_id)
            case JobFinished(job_id, epoch):
                self._finished.add(job_id)
                self._end(job_id, epoch)
            case JobFailed(job_id, epoch):
                self._end(job_id, epoch)
            case Progressed(job_ids, steps):
                self._steps.update(zip(job_ids, map(float, steps), strict=True))
            case TimerFired():
                self._wake = math.inf
