"""Explains why a job waited: replays its record and diagnoses the reason at every moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.events import Event, JobFailed, JobPaused, JobSubmitted
from eunomia.model.job_lifecycle import Stage
from eunomia.model.spelling_suggestions import nearest
from eunomia.records.pair_estimates import PairEstimateSummary
from eunomia.records.queue_position import (
    SHOWN,
    QueuePosition,
    jobs_ahead,
    names_of,
    position_behind,
    seat_holders,
)
from eunomia.records.record import Record
from eunomia.records.replay import walk
from eunomia.records.wait_reasons import code_of, describe_hold, listed

ENDED = (Stage.FINISHED, Stage.FAILED, Stage.CANCELLED, Stage.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An interval of waiting for one reason."""

    from_s: float
    to_s: float | None  # None = until the end of the record
    reason: str  # one of `wait_reasons.REASONS`
    text: str
    free: dict[str, int]  # accelerators, by type
    behind: tuple[str, ...] = ()  # waiting jobs ahead of it
    behind_count: int | None = 0  # None = the policy has not ranked it yet
    held_by: tuple[str, ...] = ()  # running jobs on seats that it could use, those ahead of it first
    held_by_count: int = 0


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
        written = asdict(self)
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
    waits: list[Wait] = []
    first = ended = None
    starts = failures = 0
    end_s, before, last_failure = 0.0, -1, None
    hold = ("held", "")
    scheduler: Scheduler | None = None
    for moment, scheduler in walk(record):
        end_s = moment.at
        row = scheduler.state.row_of.get(job_id)
        if row is None:
            continue
        if waits and waits[-1].to_s is None:
            waits[-1] = replace(waits[-1], to_s=moment.at)
        stage = scheduler.state.jobs.stage[row]
        failed = [event for event in moment.events if isinstance(event, JobFailed) and event.job_id == job_id]
        failures += len(failed)
        last_failure = failed[-1].reason if failed else last_failure
        starts += int(stage == Stage.RUNNING and before != Stage.RUNNING)
        before = int(stage)
        if stage == Stage.RUNNING and first is None:
            first = moment.at
        if stage in ENDED and ended is None:
            ended = moment.at
        if stage == Stage.WAITING:
            _append(waits, diagnose(scheduler, row, moment.at))
        if stage == Stage.PAUSED:
            hold = _hold(moment.events, job_id) or hold
            _append(waits, _held(scheduler, moment.at, *hold))
    if scheduler is None or job_id not in scheduler.state.row_of:
        known = scheduler.state.row_of if scheduler else ()
        rule, fix = "the record holds no such job", nearest(job_id, known)
        raise InvalidInput([Problem(file=str(record.path), column="job_id", value=job_id, rule=rule, fix=fix)])
    row = scheduler.state.row_of[job_id]
    job = scheduler.state.submitted[row]
    status = Stage(int(scheduler.state.jobs.stage[row])).name.lower()
    selected = tuple(wait for wait in waits if wait.to_s is None or wait.to_s > wait.from_s)
    if at is not None:
        selected = tuple(
            wait for wait in selected if wait.from_s <= at < (math.inf if wait.to_s is None else wait.to_s)
        )
    return Explanation(
        job_id=job_id,
        scale_factor=job.scale_factor,
        submitted_s=job.submitted,
        first_started_s=first,
        status=status,
        refused=_refusal(record, job_id) if scheduler.state.jobs.stage[row] == Stage.REJECTED else None,
        waits=selected,
        estimate=_describe_estimate(record, scheduler, row),
        ended_s=ended,
        starts=starts,
        failures=failures,
        last_failure=last_failure,
        end_s=end_s,
        began=record.header.get("began"),
    )


def _describe_estimate(record: Record, scheduler: Scheduler, row: int) -> str | None:
    """Return what is estimated of a job, and from what: run time, speeds beside partners; None where nothing is."""
    belief, said = scheduler.belief, []
    if (found := belief.estimates.get(row)) is not None:
        said.append(f"its run time {found.describe()}")
    before = record.header.get("pair_estimates", {}).get(scheduler.state.submitted[row].job_type)
    if before is not None:
        said.append(f"it {PairEstimateSummary(*before).describe()}")
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


def _free(scheduler: Scheduler) -> dict[str, int]:
    """Return the free accelerators, by type."""
    return {
        name: int(count) for name, count in zip(scheduler.state.topology.types, scheduler.mechanism.free, strict=True)
    }


def _hold(events: Sequence[Event], job_id: str) -> tuple[str, str] | None:
    """Return why a job is paused in this moment, as its other events tell, and a detail; None if it is not."""
    mine = [event for event in events if getattr(event, "job_id", None) == job_id]
    if not any(isinstance(event, JobPaused) for event in mine):
        return None
    if failed := [event.reason for event in mine if isinstance(event, JobFailed)]:
        return "backoff", failed[-1]
    is_new = any(isinstance(event, JobSubmitted) and event.job.job_id == job_id for event in events)
    return ("after" if is_new else "held"), ""


def _held(scheduler: Scheduler, at: float, code: str, detail: str) -> Wait:
    """Return the wait of a paused job, which does not wait for the cluster."""
    return Wait(from_s=at, to_s=None, reason=code, text=describe_hold(code, detail), free=_free(scheduler))


def diagnose(
    scheduler: Scheduler,
    row: int,
    at: float,
    may_see: Callable[[str], bool] = lambda tenant: True,
    position: QueuePosition | None = None,
) -> Wait:
    """Return why a waiting job waits, from the state directly after a decision.

    Other jobs are named only if the asker may see those of their tenant. `position` is that in a later order than the
    last one.
    """
    free, runs = _free(scheduler), scheduler.belief.throughput[row] > 0
    holders = seat_holders(scheduler, runs)
    held = names_of(scheduler, holders, may_see)
    if position is None and (ahead := jobs_ahead(scheduler, row)) is not None:
        position = position_behind(scheduler, ahead, may_see)
    reason, text = _reason(scheduler, row, at, runs, position)
    if reason == "no_capacity" and position is not None and position.count == 0 and holders:
        text += f"; the others are held by {listed(held, len(holders), 'job')}"
    return Wait(
        from_s=at,
        to_s=None,
        reason=reason,
        text=text,
        free=free,
        behind=() if position is None else position.names,
        behind_count=None if position is None else position.count,
        held_by=held,
        held_by_count=len(holders),
    )


def _reason(scheduler: Scheduler, row: int, at: float, runs: Any, position: QueuePosition | None) -> tuple[str, str]:
    state, types, policy = scheduler.state, scheduler.state.topology.types, scheduler.info.name
    size = int(state.jobs.scale_factor[row])
    queue = f"{policy} has not ranked it yet" if position is None else position.describe()
    behind = f", {queue}" if queue else ""
    if (said := scheduler.asks.why_of(row)) is not None:
        return code_of(said), said
    usable = runs & (state.capacity >= size)
    if not usable.any():
        return "types_absent", f"no type in service that it can run on has {size} accelerators"
    holdup = scheduler.mechanism.wait_reason(row, at)
    if holdup is not None:
        return holdup
    has_room = usable & (state.floor.free >= size)
    on = [types[j] for j in np.flatnonzero(usable)]
    if not has_room.any():
        spare = int(state.floor.free[usable].sum())
        if spare >= size:
            return (
                "fragmentation",
                f"it needs {size} of one type; {spare} are free, spread over {', '.join(on)}{behind}",
            )
        share = _describe_spent_share(scheduler, row)
        if share:
            return (
                "share_used",
                f"it has had its share for now ({share}), and no seat is spare{_describe_prices(scheduler)}",
            )
        return "no_capacity", f"it needs {size}; {spare} are free on {', '.join(on)}{behind}"
    wanted = _wanted(scheduler, row)
    if wanted and not any(has_room[j] for j in wanted):
        named = ", ".join(types[j] for j in wanted)
        return "type_drawn", f"it may only use {named}, where fewer than {size} are free{behind}"
    room = f"{int(state.floor.free[has_room].max())} are free and it needs {size}"
    if position is None:
        return "next_question", f"{room}; {queue}"
    if position.count:
        head = "" if position.first_fits else "; the first of them does not fit yet"
        return "behind", f"{room}, but it is {queue}{head}"
    return "not_chosen", f"{room}, but the last answer of {policy} gives it none of them"


def _wanted(scheduler: Scheduler, row: int) -> list[int]:
    """Return the types that the last order names for a job."""
    last = scheduler.mechanism.candidates
    return [] if last is None else sorted(set(last.type[last.job == row].tolist()))


def _describe_prices(scheduler: Scheduler) -> str:
    """Return the exchange rates of types by the prices of the last answer; "" if it has none."""
    proof = scheduler.certificate
    if proof is None or proof.price is None:
        return ""
    return f"; {proof.exchange_rates(scheduler.state.topology.types)}"


def _describe_spent_share(scheduler: Scheduler, row: int) -> str:
    """Return the shares of a job if it has received all of them for now; else ""."""
    types = scheduler.state.topology.types
    return ", ".join(f"{x:.0%} of {types[j]}" for j, x in scheduler.mechanism.spent_share(row))
