"""What the world reports of gangs, and what falls due by time."""

from __future__ import annotations

import heapq
import json
import math

from eunomia.backends.reports import (
    GangEnded,
    GangUnknown,
    Launched,
    MemoryUsed,
    NodeState,
    OrderTaken,
    Report,
    SeatsIdle,
    SeatsTaken,
    StepsSaved,
)
from eunomia.model.events import (
    AcceleratorsTaken,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    Progressed,
)
from eunomia.service.job_row import SEATED, JobRow
from eunomia.service.live_jobs import LiveJobs

MOST_LOSSES = 3  # starts whose supervisor died before a job is counted as failed
MOST_BACKOFF_S = 300.0


def take_report(jobs: LiveJobs, message: Report) -> None:
    """Take in what a world reports; a report of an earlier start changes nothing and is counted."""
    if isinstance(message, OrderTaken):
        jobs.turn.taken.append(message.number)
        return
    if isinstance(message, SeatsIdle):
        _seats_idle(jobs, message)
        return
    if isinstance(message, SeatsTaken):
        _seats_taken(jobs, message)
        return
    if isinstance(message, NodeState):
        if message.reason:
            jobs.take_out(message.node, message.reason)
        elif not jobs.is_removed(message.node):
            jobs.bring_back(message.node)
        return
    row = jobs.rows.get(message.job_id)
    if row is None or message.epoch != row.epoch or row.ended_epoch >= message.epoch:
        jobs.stale_reports += 1
        return
    match message:
        case Launched() if row.launched_epoch < row.epoch:
            row.launched_epoch, row.started = row.epoch, jobs.at
            row.first_started = jobs.at if math.isnan(row.first_started) else row.first_started
            if row.state == "starting":
                jobs.move(row, "running", "")
                jobs.set_timers(row)
            else:
                jobs.changed(row, "")
        case Launched() if row.state == "unknown":
            jobs.move(row, "running", "")
            jobs.set_timers(row)
        case GangUnknown() if row.state == "running":
            jobs.move(row, "unknown", message.reason)
        case StepsSaved() if message.steps != row.steps:
            row.steps = message.steps
            if not row.is_over:
                jobs.emit(row.id, Progressed((row.id,), (row.steps,)))
            jobs.changed(row, "progress")
        case MemoryUsed() if message.gib > row.used_memory_gib:
            row.used_memory_gib = message.gib
            kind = row.spec.get("job_type", "")
            jobs.memory_gib[kind] = max(message.gib, jobs.memory_gib.get(kind, 0.0))
            jobs.changed(row, "")
        case GangEnded():
            _gang_ended(jobs, row, message.outcome, message.reason)


def _seats_idle(jobs: LiveJobs, message: SeatsIdle) -> None:
    """Flag accelerators that their gangs hardly use."""
    jobs.idle_seats = {seat: jobs.at - idle_s for seat, idle_s in message.idle_s}
    for row in jobs.rows.values():
        if found := [seat for seat in row.seats if seat in jobs.idle_seats]:
            reason = f"accelerators {', '.join(map(str, found))} are hardly used"
            detail = json.dumps({"reason": reason, "epoch": row.epoch})
            jobs.turn.news.append((row.id, row.tenant, "seat_idle", detail))


def _seats_taken(jobs: LiveJobs, message: SeatsTaken) -> None:
    """Take seats that others use out of service, and put back those that they have left."""
    holders, quarantined = dict(message.holders), dict(message.quarantined)
    out = jobs.scheduler.state.taken
    before = {**{seat: "" for seat in range(len(out)) if out[seat]}, **jobs.taken_seats}  # "" = known from the store
    changed = {seat for seat in {*holders, *before} if holders.get(seat) != before.get(seat)}
    if not changed:
        return
    for seat in sorted(changed):
        _note_seat(jobs, seat, holders.get(seat), quarantined.get(seat))
    jobs.taken_seats = holders  # before what has arrived with it is decided: a gang may just have left such a seat
    jobs.quarantined = quarantined
    jobs.flush(jobs.at)
    jobs.emit("", AcceleratorsTaken(tuple(sorted(holders))))


def _note_seat(jobs: LiveJobs, seat: int, holder: str | None, job_id: str | None) -> None:
    """Add an event: the seat is taken by others, quarantined for the processes of a job, or free again."""
    kind = "seat_free" if holder is None else "seat_taken" if job_id is None else "seat_quarantined"
    mine = job_id or jobs.quarantined.get(seat, "")
    row = jobs.row(mine) if mine else None
    detail = {"seat": seat, "holder": holder, "epoch": 0, "reason": holder or "free again"}
    jobs.turn.news.append((mine, "" if row is None else row.tenant, kind, json.dumps(detail)))


def _gang_ended(jobs: LiveJobs, row: JobRow, outcome: str, reason: str) -> None:
    row.ended_epoch = row.epoch
    if row.launched_epoch == row.epoch:
        row.run_s += jobs.at - row.started
    if row.is_over:
        jobs.changed(row, "")
        jobs.forget(row)
    elif row.state in SEATED and outcome == "finished":
        jobs.emit(row.id, JobFinished(row.id, row.epoch))
        jobs.run_times[row.tenant, row.spec.get("job_type", "")].append(row.run_s)
        jobs.end(row, "succeeded", "")
    elif row.state in SEATED:
        row.losses += outcome == "lost"
        if outcome == "failed" or row.losses > MOST_LOSSES:
            _failed(jobs, row, reason)
        else:
            jobs.emit(row.id, JobPaused(row.id), JobResumed(row.id))
            jobs.move(row, "preempted" if row.steps > 0 else "pending", reason)
    else:  # stopping or held: the scheduler has already taken its seats
        row.finished_early = outcome == "finished"
        if row.state == "stopping":
            jobs.move(row, "preempted" if row.steps > 0 else "pending", "" if outcome == "stopped" else reason)
        else:
            jobs.changed(row, "")


def _failed(jobs: LiveJobs, row: JobRow, reason: str) -> None:
    row.failures += 1
    wait = min(2.0 ** (row.failures - 1), MOST_BACKOFF_S)
    row.backoff_until = jobs.at + wait
    jobs.hold(row, "backoff")
    jobs.emit(row.id, JobFailed(row.id, row.epoch, reason), JobPaused(row.id))
    again = f", and is tried again in {wait:g} s" * (row.failures <= int(row.spec.get("retries", 0)))
    jobs.move(row, "pending", f"it failed{again}: {reason}")
    heapq.heappush(jobs.timers, (row.backoff_until, "backoff", row.id, row.epoch))


def expire(jobs: LiveJobs, what: str, job_id: str, epoch: int) -> None:
    row = jobs.rows.get(job_id)
    if what == "drain" and row is not None and row.ended_epoch < epoch:
        jobs.halt(row, epoch, save=False)
    if row is None or row.is_over or row.epoch != epoch:
        return
    longest = row.spec.get("max_run_s")
    if what == "backoff" and row.backoff_until <= jobs.at:
        jobs.unhold(row, "backoff")
    runs = what == "max_run" and row.state == "running"
    if runs and longest is not None and row.started + longest <= jobs.at:
        jobs.emit(row.id, JobCancelled(row.id))
        jobs.end(row, "failed", f"it ran longer than its max_run_s of {longest:g} s")
