"""Why a job waited: its record walked again, and at every moment the reason that held it back."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.model.job_lifecycle import Stage
from eunomia.model.spelling_suggestions import nearest
from eunomia.records.record import Record
from eunomia.records.replay import walk

SHOWN = 3  # jobs that are named; the others are counted
REASONS = (
    *("cannot_run", "no_capacity", "fragmentation", "behind", "share_exhausted", "type_drawn", "policy"),
    *("next_round", "not_chosen"),  # of Gavel's clock
    *("next_question", "no_share"),  # of the ideal
    "paused",  # by its user
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A stretch of waiting for one reason."""

    from_s: float
    to_s: float | None  # None: it still waits at the end of the record
    reason: str  # one of REASONS
    text: str
    free: dict[str, int]  # accelerators free then, by type
    behind: tuple[str, ...] = ()  # waiting jobs that come before it
    behind_count: int = 0
    held_by: tuple[str, ...] = ()  # running jobs on the seats it could use, those that come before it first
    held_by_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All waits of one job, and how it ended."""

    job_id: str
    scale_factor: int
    submitted_s: float
    first_started_s: float | None
    status: str
    refused: str | None  # why it was, if it was
    waits: tuple[Wait, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def explain(record: Record, job_id: str, at: float | None = None) -> Explanation:
    """Walk the record; with `at` keep the wait of that time only.

    Raises InvalidInput for a job it does not hold, and for a time that is none.
    """
    if at is not None and math.isnan(at):
        rule, fix = "a time is a number of seconds", "give one within the run, or leave it out"
        raise InvalidInput([Problem(file="command line", column="--at", value="nan", rule=rule, fix=fix)])
    waits: list[Wait] = []
    first = None
    scheduler: Scheduler | None = None
    for moment, scheduler in walk(record):
        row = scheduler.state.row_of.get(job_id)
        if row is None:
            continue
        if waits and waits[-1].to_s is None:
            waits[-1] = replace(waits[-1], to_s=moment.at)
        stage = scheduler.state.jobs.stage[row]
        if stage == Stage.RUNNING and first is None:
            first = moment.at
        if stage == Stage.WAITING:
            _note(waits, diagnose(scheduler, row, moment.at))
        if stage == Stage.PAUSED:
            _note(waits, _resting(scheduler, moment.at))
    if scheduler is None or job_id not in scheduler.state.row_of:
        known = scheduler.state.row_of if scheduler else ()
        problem = Problem(
            file=str(record.path), column="job_id", value=job_id, rule="the record holds no such job",
            fix=nearest(job_id, known),
        )  # fmt: skip
        raise InvalidInput([problem])
    row = scheduler.state.row_of[job_id]
    job = scheduler.state.submitted[row]
    status = Stage(int(scheduler.state.jobs.stage[row])).name.lower()
    kept = tuple(wait for wait in waits if wait.to_s is None or wait.to_s > wait.from_s)
    if at is not None:
        kept = tuple(wait for wait in kept if wait.from_s <= at < (math.inf if wait.to_s is None else wait.to_s))
    return Explanation(
        job_id=job_id,
        scale_factor=job.scale_factor,
        submitted_s=job.submitted,
        first_started_s=first,
        status=status,
        refused=_refusal(record, job_id) if scheduler.state.jobs.stage[row] == Stage.REJECTED else None,
        waits=kept,
    )


def _refusal(record: Record, job_id: str) -> str | None:
    """Return what the policy said when it refused the job."""
    for _, _, decisions in record.steps():
        for said in decisions:
            if said.get("is") == "Refuse" and said.get("job_id") == job_id:
                return str(said.get("why"))
    return None


def _note(waits: list[Wait], now: Wait) -> None:
    """Add a stretch, or let the last one go on when its reason still holds, and who is first in line or the words."""
    if waits and waits[-1].to_s == now.from_s:
        before, same = waits[-1], (waits[-1].text == now.text or waits[-1].behind[:1] == now.behind[:1])
        if before.reason == now.reason and same:
            waits[-1] = replace(before, to_s=None)
            return
        if before.from_s == now.from_s:  # the same instant, decided anew
            waits[-1] = now
            return
    waits.append(now)


def _free(scheduler: Scheduler) -> dict[str, int]:
    """Return the accelerators of each type that nobody uses."""
    return {
        name: int(count) for name, count in zip(scheduler.state.topology.types, scheduler.mechanism.free, strict=True)
    }


def _resting(scheduler: Scheduler, at: float) -> Wait:
    """Say of a paused job that it waits for its user and not for the cluster."""
    text = "its user has paused it, and it asks for nothing until it is resumed"
    return Wait(from_s=at, to_s=None, reason="paused", text=text, free=_free(scheduler))


def diagnose(scheduler: Scheduler, row: int, at: float) -> Wait:
    """Say why a waiting job waits, from the state right after a decision."""
    state, free = scheduler.state, _free(scheduler)
    runs = scheduler.belief.throughput[row] > 0
    ahead = _ahead(scheduler, row)
    names = tuple(state.submitted[job].job_id for job in ahead[:SHOWN])
    reason, text = _reason(scheduler, row, at, runs, names, len(ahead))
    holders = _holders(scheduler, row, runs)
    held = tuple(state.submitted[job].job_id for job in holders[:SHOWN])
    if reason == "no_capacity" and not ahead:
        text += f"; the others are held by {_listed(held, len(holders))}"
    return Wait(
        from_s=at,
        to_s=None,
        reason=reason,
        text=text,
        free=free,
        behind=names,
        behind_count=len(ahead),
        held_by=held,
        held_by_count=len(holders),
    )


def _listed(names: tuple[str, ...], count: int) -> str:
    more = f" and {count - len(names):,} more" if count > len(names) else ""
    return ", ".join(names) + more


def _reason(
    scheduler: Scheduler, row: int, at: float, runs: Any, names: tuple[str, ...], ahead: int
) -> tuple[str, str]:
    state, types = scheduler.state, scheduler.state.topology.types
    size = int(state.jobs.scale_factor[row])
    queue = f", behind {ahead:,} waiting job{'s' if ahead != 1 else ''} ({_listed(names, ahead)})" if ahead else ""
    if row in scheduler.why:
        return "policy", scheduler.why[row]
    usable = runs & (state.capacity >= size)
    if not usable.any():
        return "cannot_run", f"no type in service that it can run on has {size} accelerators"
    held = scheduler.mechanism.wait_reason(row, at)
    if held is not None:
        return held
    holds = usable & (state.floor.free >= size)
    on = [types[j] for j in np.flatnonzero(usable)]
    if not holds.any():
        spare = int(state.floor.free[usable].sum())
        if spare >= size:
            text = f"it needs {size} of one type; {spare} are free, but spread over {', '.join(on)}"
            return "fragmentation", text + queue
        share = _spent_share(scheduler, row)
        if share:
            return "share_exhausted", f"it has had its share for now ({share}), and no seat is spare{_worth(scheduler)}"
        return "no_capacity", f"it needs {size}; {spare} are free on {', '.join(on)}{queue}"
    wanted = _wanted(scheduler, row)
    if wanted and not any(holds[j] for j in wanted):
        drawn = ", ".join(types[j] for j in wanted)
        return "type_drawn", f"it may only use {drawn}, where fewer than {size} are free{queue}"
    spare = int(state.floor.free[holds].max())
    if ahead:
        return (
            "behind",
            f"{spare} are free and it needs {size}, but it is{queue[1:]}; the first of them does not fit yet",
        )
    return "fragmentation", f"{spare} are free and it needs {size}, but not close enough together"


def _ahead(scheduler: Scheduler, row: int) -> list[int]:
    """Return the waiting jobs that come before it in the last order, first come first."""
    named = scheduler.mechanism.candidates
    jobs = scheduler.state.jobs
    if named is None or scheduler.info.door == "grants":
        waiting = [int(m) for m in scheduler.state.active if m < row]
        return [m for m in waiting if jobs.stage[m] == Stage.WAITING]
    order = list(dict.fromkeys(named.job.tolist()))
    before = order[: order.index(row)] if row in order else order
    return [m for m in before if jobs.stage[m] == Stage.WAITING]


def _holders(scheduler: Scheduler, row: int, runs: Any) -> list[int]:
    """Return the running jobs on types that it could use, first come in the last order first."""
    state, named = scheduler.state, scheduler.mechanism.candidates
    running = [job for job in state.running().tolist() if runs[state.jobs.on_type[job]]]
    place = {} if named is None else {job: i for i, job in reversed(list(enumerate(named.job.tolist())))}
    return sorted(running, key=lambda job: (place.get(job, len(place)), job))


def _wanted(scheduler: Scheduler, row: int) -> list[int]:
    """Return the types that the last order names for it."""
    named = scheduler.mechanism.candidates
    return [] if named is None else sorted(set(named.type[named.job == row].tolist()))


def _worth(scheduler: Scheduler) -> str:
    """Say what the types are worth to the cluster by the last answer's prices; nothing where it has none."""
    proof = scheduler.certificate
    if proof is None or proof.price is None:
        return ""
    return f"; {proof.exchange_rates(scheduler.state.topology.types)}"


def _spent_share(scheduler: Scheduler, row: int) -> str:
    """Return what it was owed and received beyond, when it is owed nothing now; else nothing."""
    types = scheduler.state.topology.types
    return ", ".join(f"{x:.0%} of {types[j]}" for j, x in scheduler.mechanism.spent_share(row))
