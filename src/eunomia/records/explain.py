"""Explains why a job waited: replays its record and diagnoses the reason at every moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.events import Event, JobFailed, JobPaused, JobSubmitted, Moment
from eunomia.model.job_lifecycle import Stage
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.wait_reason import Reason
from eunomia.records.learnt_rates import PairEstimateSummary, describe_throughput
from eunomia.records.preemptions import Preemption, PreemptionLog
from eunomia.records.queue_position import SHOWN
from eunomia.records.record import Record
from eunomia.records.replay import walk
from eunomia.records.wait_diagnosis import Wait, diagnose, free_by_type

ENDED = (Stage.FINISHED, Stage.FAILED, Stage.CANCELLED, Stage.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All waits of one job, and how it ended."""

    job_id: str
    scale_factor: int
    submitted_s: float
    first_started_s: float | None
    status: str
    refused: str | None  # reason, if it was refused
    waits: tuple[Wait, ...]
    estimate: str | None = None  # what the belief about its run time rests on, where it is estimated
    ended_s: float | None = None  # None = it had not ended when the record did
    starts: int = 0
    failures: int = 0  # attempts that failed
    last_failure: str | None = None  # why
    end_s: float = 0.0  # of the record
    began: str | None = None  # local date and time at 0 s, if the trace has it
    preemptions: tuple[Preemption, ...] = ()  # in order of time
    policy: str = ""  # that decided

    def lasted_s(self, wait: Wait) -> float:
        """Return how long a wait lasted, until the end of the record if it was not over."""
        return (self.end_s if wait.to_s is None else wait.to_s) - wait.from_s

    def parts(self) -> list[tuple[str, float]]:
        """Return the seconds of waiting by reason, the longest first."""
        seconds: dict[str, float] = {}
        for wait in self.waits:
            seconds[wait.reason] = seconds.get(wait.reason, 0.0) + self.lasted_s(wait)
        return sorted(seconds.items(), key=lambda pair: -pair[1])

    def decisive(self) -> list[Wait]:
        """Return the longest waits, at most `SHOWN`, in order of time."""
        longest = sorted(self.waits, key=lambda wait: -self.lasted_s(wait))[:SHOWN]
        return sorted(longest, key=lambda wait: wait.from_s)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        written = asdict(replace(self, waits=())) | {"waits": [wait.as_dict() for wait in self.waits]}
        if self.estimate is None:
            del written["estimate"]
        return written


def explain(record: Record, job_id: str, at: float | None = None) -> Explanation:
    """Explain the waits of a job; with `at` only the wait at that time.

    Raises InvalidInput for an unknown job, and for a time that is nan.
    """
    if at is not None and math.isnan(at):
        rule, fix = "a time is a number of seconds", "give one within the run, or leave it out"
        raise InvalidInput([Problem(file="command line", column="--at", value="nan", rule=rule, fix=fix)])
    history, scheduler, end_s = _History(job_id), None, 0.0
    for moment, scheduler in walk(record):
        end_s = moment.at
        history.note(moment, scheduler)
    if scheduler is None or job_id not in scheduler.state.row_of:
        known = scheduler.state.row_of if scheduler else ()
        rule, fix = "the record holds no such job", nearest(job_id, known)
        raise InvalidInput([Problem(file=str(record.path), column="job_id", value=job_id, rule=rule, fix=fix)])
    row = scheduler.state.row_of[job_id]
    job = scheduler.state.submitted[row]
    status = Stage(int(scheduler.state.jobs.stage[row])).name.lower()
    selected = tuple(wait for wait in history.waits if wait.to_s is None or wait.to_s > wait.from_s)
    if at is not None:
        selected = tuple(
            wait for wait in selected if wait.from_s <= at < (math.inf if wait.to_s is None else wait.to_s)
        )
    return Explanation(
        job_id=job_id,
        scale_factor=job.scale_factor,
        submitted_s=job.submitted,
        first_started_s=history.first_started,
        status=status,
        refused=_refusal(record, job_id) if scheduler.state.jobs.stage[row] == Stage.REJECTED else None,
        waits=selected,
        estimate=_describe_estimate(record, scheduler, row),
        ended_s=history.ended,
        starts=history.starts,
        failures=history.failures,
        last_failure=history.last_failure,
        end_s=end_s,
        began=record.header.get("began"),
        preemptions=tuple(history.preemptions.found),
        policy=scheduler.info.name,
    )


class _History:
    """What became of one job, moment by moment."""

    def __init__(self, job_id: str) -> None:
        self.waits: list[Wait] = []
        self.preemptions = PreemptionLog()
        self.first_started: float | None = None
        self.ended: float | None = None
        self.starts = self.failures = 0
        self.last_failure: str | None = None
        self._job_id, self._before, self._hold = job_id, -1, Reason("held")
        self._preempted: Preemption | None = None  # for what it waits, since it ran last

    def note(self, moment: Moment, scheduler: Scheduler) -> None:
        """Note what became of the job in one moment; nothing before its submission."""
        row = scheduler.state.row_of.get(self._job_id)
        if row is None:
            return
        if self.waits and self.waits[-1].to_s is None:
            self.waits[-1] = replace(self.waits[-1], to_s=moment.at)
        stage = scheduler.state.jobs.stage[row]
        failed = [one for one in moment.events if isinstance(one, JobFailed) and one.job_id == self._job_id]
        self.failures += len(failed)
        self.last_failure = failed[-1].reason if failed else self.last_failure
        self.starts += int(stage == Stage.RUNNING and self._before != Stage.RUNNING)
        self._before = int(stage)
        self._note_preemption(moment, scheduler, row)
        if stage == Stage.RUNNING and self.first_started is None:
            self.first_started = moment.at
        if stage in ENDED and self.ended is None:
            self.ended = moment.at
        if stage == Stage.WAITING:
            last = self._preempted
            preempted = None if last is None else last.reason(scheduler.info.name, last.by[:SHOWN])
            _append(self.waits, diagnose(scheduler, row, moment.at, preempted=preempted))
        if stage == Stage.PAUSED:
            self._hold = _hold(moment.events, self._job_id) or self._hold
            wait = Wait(from_s=moment.at, to_s=None, why=(self._hold,), free=free_by_type(scheduler))
            _append(self.waits, wait)  # not for the cluster

    def _note_preemption(self, moment: Moment, scheduler: Scheduler, row: int) -> None:
        known = len(self.preemptions.found)
        self.preemptions.note(moment, scheduler, row)
        if scheduler.state.jobs.stage[row] == Stage.RUNNING:
            self._preempted = None
        elif len(self.preemptions.found) > known:
            self._preempted = self.preemptions.found[-1]


def _describe_estimate(record: Record, scheduler: Scheduler, row: int) -> str | None:
    """Return what is estimated of a job, and from what: run time, speeds beside partners; None where nothing is."""
    belief, said = scheduler.belief, []
    if (found := belief.estimates.get(row)) is not None:
        said.append(f"its run time {found.describe()}")
    before = record.header.get("pair_estimates", {}).get(scheduler.state.submitted[row].job_type)
    if before is not None:
        said.append(f"it {PairEstimateSummary(*before).describe()}")
    job = scheduler.state.submitted[row]
    if (speed := describe_throughput(belief, job.job_type, job.scale_factor)) is not None:
        said.append(f"it runs at {speed}")
    if belief.pairs_measured:
        count = f"{belief.pairs_measured:,} pair{'s' * (belief.pairs_measured != 1)} measured during the run"
        said.append(f"its speeds beside other jobs are estimated, by {count} among others")
    return "; ".join(said) or None


def _refusal(record: Record, job_id: str) -> str | None:
    """Return the policy's reason for refusing the job."""
    for _, _, decisions in record.steps():
        for decision in decisions:
            if decision.get("is") == "Refuse" and decision.get("job_id") == job_id:
                return str(decision.get("why"))
    return None


def _append(waits: list[Wait], now: Wait) -> None:
    """Append a wait, or extend the last one if it has the same reason and the same text or the same first job ahead."""
    if waits and waits[-1].to_s == now.from_s:
        before, same = waits[-1], (waits[-1].text == now.text or waits[-1].behind[:1] == now.behind[:1])
        if before.from_s == now.from_s:  # a second decision at the same instant
            waits[-1] = now
            return
        if before.reason == now.reason and same:
            waits[-1] = replace(before, to_s=None)
            return
    waits.append(now)


def _hold(events: Sequence[Event], job_id: str) -> Reason | None:
    """Return why a job is paused in this moment, as its other events tell; None if it is not."""
    mine = [event for event in events if getattr(event, "job_id", None) == job_id]
    if not any(isinstance(event, JobPaused) for event in mine):
        return None
    if failed := [event.reason for event in mine if isinstance(event, JobFailed)]:
        return Reason("backoff", text=failed[-1])
    is_new = any(isinstance(event, JobSubmitted) and event.job.job_id == job_id for event in events)
    return Reason("after" if is_new else "held")
