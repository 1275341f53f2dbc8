"""Makes forecasts while a recorded run is played again, and scores them: only what had happened by then is known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.core.believed_speeds import believed_speeds
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.futures import FUTURES, PresentState, play_futures
from eunomia.forecasts.intervals import IntervalCorrection, TimeInterval, quantiles
from eunomia.forecasts.scoring import ForecastOutcome, score
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.decisions import SetTimer
from eunomia.model.events import JobCancelled, JobFailed, JobFinished, JobSubmitted, Moment, TimerFired
from eunomia.model.job_lifecycle import Stage
from eunomia.model.policy import Policy
from eunomia.records.record import Record
from eunomia.records.replay import new_scheduler
from eunomia.setup.policy_lookup import find_policy

CHANGED_PART = 0.25  # of the active jobs that came or went: then jobs with a forecast are asked about again
BUDGET_S = 20.0  # CPU time of one forecast


def score_record(path: Path, *, jobs: int = 500, futures: int = FUTURES, correct: bool = True) -> dict[str, Any]:
    """Return the score of the forecasts of jobs that had to wait, at most `jobs` of them, spread evenly over the run.

    A forecast is made when such a job is submitted, and its median again each time a quarter of the active jobs has
    changed. With `correct` intervals are corrected by the outcomes of earlier forecasts. Raises InvalidInput for a
    record that is damaged, or whose policy is not known here.
    """
    record = Record(path)
    return _Replay(record, jobs, futures, correct).score()


class _Replay:
    """One pass over a record."""

    def __init__(self, record: Record, jobs: int, futures: int, correct: bool) -> None:
        self._record, self._futures, self._correct = record, futures, correct
        self._policy = _policy_of(record)
        waited = [name for name, wait in _waits(record) if wait > 0]
        step = max(len(waited) / jobs, 1.0)
        self._chosen = {waited[int(k * step)] for k in range(min(jobs, len(waited)))}
        self._waited = len(waited)
        self._said: dict[str, tuple[ForecastOutcome, TimeInterval, TimeInterval]] = {}  # …, raw start and finish
        self._start, self._finish = IntervalCorrection(), IntervalCorrection()
        self._open: set[str] = set()  # with a forecast, not started yet
        self._changes = 0
        self._wake = math.inf
        self._asked: list[str] = []  # jobs whose forecasts wait for the answer of the policy

    def score(self) -> dict[str, Any]:
        """Play the record and return the score."""
        scheduler = new_scheduler(self._record, self._policy.info)
        for _, moment, _ in self._record.steps():
            self._handle(scheduler, moment)
        found = score(one for one, _, _ in self._said.values())
        return {**found, "jobs_that_waited": self._waited, "forecasts": len(self._said), "futures": self._futures}

    def _handle(self, scheduler: Scheduler, moment: Moment) -> None:
        if any(isinstance(event, TimerFired) for event in moment.events):
            self._wake = math.inf
        decisions = scheduler.handle(moment)
        for decision in decisions:
            if isinstance(decision, SetTimer):
                self._wake = decision.at
        new = [event.job.job_id for event in moment.events if isinstance(event, JobSubmitted)]
        self._note_outcomes(scheduler, moment)
        self._changes += sum(isinstance(event, JobSubmitted | JobFinished) for event in moment.events)
        is_moved = bool(self._open) and self._changes > CHANGED_PART * max(scheduler.state.alive, 4)
        asked = [name for name in new if name in self._chosen]
        if scheduler.asks.pending is not None:  # its answer comes in the next moment, which is at the same time
            self._asked += asked
            return
        asked, self._asked = [*self._asked, *asked], []
        if asked or is_moved:
            self._changes = 0
            self._forecast(scheduler, moment.at, asked)

    def _forecast(self, scheduler: Scheduler, at: float, new: list[str]) -> None:
        """Make forecasts of new jobs, and see whether the medians of the others have moved."""
        state = scheduler.state
        names = [*new, *sorted(self._open)]
        rows = np.array([state.row_of[name] for name in names], dtype=np.int64)
        present = PresentState(
            scheduler=scheduler, policy=self._policy, speeds=believed_speeds(scheduler.belief), at=at,
            wake=max(self._wake, at), overheads=scheduler.belief._overheads,
        )  # fmt: skip
        played = play_futures(present, futures=self._futures, seed=len(state.jobs), budget_s=BUDGET_S, only=rows)
        points = np.stack((quantiles(played.start[:, rows]), quantiles(played.finish[:, rows])))
        for place, name in enumerate(names):
            row = int(rows[place])
            if state.jobs.stage[row] != Stage.WAITING or math.isfinite(state.jobs.first_started[row]):
                continue
            start, finish = (TimeInterval(*(float(value) for value in points[what, :, place])) for what in (0, 1))
            if name in self._open:
                one, first, last = self._said[name]
                self._said[name] = replace(one, latest_start=max(one.latest_start, start.p50)), first, last
            elif math.isfinite(start.p90):
                job = state.submitted[row]
                shown = (
                    (self._start.apply(at, start), self._finish.apply(at, finish)) if self._correct else (start, finish)
                )
                one = ForecastOutcome(
                    tenant=job.tenant, size=job.scale_factor, said_at=at, start=shown[0], finish=shown[1],
                    latest_start=start.p50, started=None, finished=None,
                )  # fmt: skip
                self._said[name] = one, start, finish
                self._open.add(name)

    def _note_outcomes(self, scheduler: Scheduler, moment: Moment) -> None:
        for name in sorted(self._open):
            row = scheduler.state.row_of[name]
            started = float(scheduler.state.jobs.first_started[row])
            if math.isfinite(started):
                one, start, finish = self._said[name]
                self._said[name] = replace(one, started=started), start, finish
                self._start.learn(one.said_at, start, started)
                self._open.discard(name)
            elif scheduler.state.jobs.stage[row] not in (Stage.WAITING, Stage.PAUSED):
                self._open.discard(name)
        for event in moment.events:
            if isinstance(event, JobFinished) and event.job_id in self._said:
                one, start, finish = self._said[event.job_id]
                self._said[event.job_id] = replace(one, finished=moment.at), start, finish
                self._finish.learn(one.said_at, finish, moment.at)


def _waits(record: Record) -> Iterator[tuple[str, float]]:
    """Yield each job that started, and how long it waited for that."""
    submitted: dict[str, float] = {}
    for _, moment, decisions in record.steps():
        for event in moment.events:
            if isinstance(event, JobSubmitted):
                submitted[event.job.job_id] = event.job.submitted
            elif isinstance(event, JobCancelled | JobFailed):
                submitted.pop(event.job_id, None)
        for decision in decisions:
            if decision["is"] == "Start":
                for name in (decision["job_id"], decision.get("partner_id")):
                    if name in submitted:
                        yield name, moment.at - submitted.pop(name)


def _policy_of(record: Record) -> Policy:
    """Return the policy of a record. Raises InvalidInput if its header does not say it."""
    try:
        given = record.header["scenario"]["policy"]
        name, parameters = given["name"], {key: value for key, value in given.items() if key != "name"}
    except (KeyError, TypeError, AttributeError) as error:
        rule = f"the header does not say how to ask the policy ({error})"
        fix = "give a record of `eunomia run --record`"
        raise InvalidInput([Problem(file=str(record.path), row=1, rule=rule, fix=fix)]) from error
    return find_policy(name, parameters, record.path.parent)
