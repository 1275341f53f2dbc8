"""What the world reports of gangs, and what falls due by time."""

from __future__ import annotations

import heapq
import json
import logging
import math
from dataclasses import replace
from typing import cast

from eunomia.backends.reports import (
    EnergyUsed,
    GangEnded,
    GangFaulty,
    GangFound,
    GangUnknown,
    LaunchDelayed,
    Launched,
    MemoryUsed,
    NodeState,
    OrderTaken,
    QuarantinedSeat,
    Report,
    SeatsIdle,
    SeatsTaken,
    SessionIdle,
    StepsSaved,
)
from eunomia.inputs.bounds import MOST_DEMAND, MOST_J, MOST_S, MOST_STEPS
from eunomia.mechanisms.leases.config import Leases
from eunomia.model.events import (
    AcceleratorsTaken,
    GangAdopted,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
)
from eunomia.service.controller import Controller
from eunomia.service.draining import drained_seats
from eunomia.service.interactive import expire_idle, take_idle
from eunomia.service.job_row import WAITING, JobRow
from eunomia.service.out_of_service import NODE
from eunomia.service.saving import note_saved, note_stopped
from eunomia.service.set_aside import give_back_seats, quarantine, with_kept

MOST_BACKOFF_S = 300.0
MOST_REASON = 1000  # characters
_log = logging.getLogger(__name__)


def take_report(controller: Controller, message: Report) -> None:
    """Take in what a world reports; a report of an earlier start changes nothing and is counted."""
    if isinstance(message, OrderTaken):
        controller.turn.taken.append(message.number)
        return
    if isinstance(message, SeatsIdle):
        _seats_idle(controller, message)
        return
    if isinstance(message, SeatsTaken):
        _seats_taken(controller, message)
        return
    if isinstance(message, NodeState):
        _check_place(message.node, len(controller.nodes), "node")
        is_draining = (message.node, NODE) in controller.drains and message.node not in controller.drained
        if is_draining:  # by us: gangs that are there run on
            return
        if message.reason:
            controller.take_out(message.node, _plain(message.reason))
        elif not controller.is_removed(message.node):
            controller.bring_back(message.node)
        return
    controller.subject = message.job_id
    if isinstance(message, GangFound):
        _gang_found(controller, message)
        return
    row = controller.rows.get(message.job_id)
    if row is None or message.epoch != row.epoch or row.ended_epoch >= message.epoch:
        controller.stale_reports += 1
        if row is not None and isinstance(message, GangEnded) and message.epoch == row.left_epoch:
            row.left_seats = ()
            controller.changed(row, "")
        return
    match message:
        case Launched() if row.launched_epoch < row.epoch:
            row.launched_epoch, row.started, row.left_seats = row.epoch, controller.at, ()
            if math.isnan(row.first_started):
                row.first_started = controller.at
                controller.usage.starts(row, controller.at)
            if row.state == "starting":
                controller.move(row, "running", "")
                controller.set_timers(row)
            else:
                controller.changed(row, "")
        case Launched() if row.state == "unknown":
            controller.move(row, "running", "")
            controller.set_timers(row)
        case LaunchDelayed() if row.state == "starting":
            controller.move(row, "starting", message.reason)
        case GangUnknown() if row.state == "running":
            controller.move(row, "unknown", _plain(message.reason))
        case StepsSaved():
            if not 0 <= message.steps <= MOST_STEPS:
                raise ValueError(f"steps are {message.steps:g}, and a job has at most {MOST_STEPS:g}")
            note_saved(controller, row, message.steps)
        case MemoryUsed() if message.gib > row.used_memory_gib:
            if message.gib > MOST_DEMAND:
                raise ValueError(f"it used {message.gib:g} GiB, and no accelerator has more than {MOST_DEMAND:g}")
            row.used_memory_gib = message.gib
            kind = row.spec.get("job_type", "")
            controller.memory_gib[kind] = max(message.gib, controller.memory_gib.get(kind, 0.0))
            controller.changed(row, "")
        case EnergyUsed():
            if not (0 <= message.energy_j <= MOST_J and 0 <= message.metered_s <= MOST_S):
                raise ValueError(f"it used {message.energy_j:g} J in {message.metered_s:g} s")
            controller.usage.consumes(row, message.energy_j, message.metered_s, controller.at)
        case SessionIdle():
            take_idle(controller, row, message)
        case GangFaulty():
            quarantine(controller, row, _plain(message.reason))
        case GangEnded():
            _gang_ended(controller, row, replace(message, reason=_plain(message.reason)))


def _check_place(place: int, count: int, what: str) -> None:
    """Raise ValueError for a node or a seat that there is not."""
    if place not in range(count):
        raise ValueError(f"there is no {what} {str(place)[:40]}")


def _plain(text: str) -> str:
    """Return words of a world as every store takes them: an engine, or the log of a job, may have any."""
    return str(text)[:MOST_REASON].replace("\0", "").encode(errors="replace").decode()


def _seats_idle(controller: Controller, message: SeatsIdle) -> None:
    """Flag accelerators that their gangs hardly use."""
    for seat, _ in message.idle_s:
        _check_place(seat, len(controller.device_types), "seat")
    controller.idle_seats = {seat: controller.at - idle_s for seat, idle_s in message.idle_s}
    for row in controller.rows.values():
        if found := [seat for seat in row.seats if seat in controller.idle_seats]:
            reason = f"accelerators {', '.join(map(str, found))} are hardly used"
            detail = json.dumps({"reason": reason, "epoch": row.epoch})
            controller.turn.news.append((row.id, row.tenant, "seat_idle", detail))


def _seats_taken(controller: Controller, message: SeatsTaken) -> None:
    """Take seats that others use out of service, and put back those that they have left."""
    for seat, _ in message.holders:
        _check_place(seat, len(controller.device_types), "seat")
    holders, quarantined = (
        with_kept(controller, {seat: _plain(who) for seat, who in message.holders}),
        dict(message.quarantined),
    )
    out = controller.scheduler.state.taken
    ours = drained_seats(controller) | controller.closed
    # From the store, without who uses them.
    known = {seat: "" for seat in range(len(out)) if out[seat] and seat not in ours}
    before, controller.unreported = {**known, **controller.taken_seats}, set()
    changed = {seat for seat in {*holders, *before} if holders.get(seat) != before.get(seat)}
    if not changed:
        return
    for seat in sorted(changed):
        _note_seat(controller, seat, holders.get(seat), quarantined.get(seat))
    # Before what has arrived with it is decided: a gang may just have left such a seat.
    controller.taken_seats = holders
    controller.quarantined = quarantined
    controller.flush(controller.at)
    controller.emit("", AcceleratorsTaken(controller.out_seats()))


def _note_seat(controller: Controller, seat: int, holder: str | None, remains: QuarantinedSeat | None) -> None:
    """Add an event: the seat is taken by others, quarantined for the processes of a job, or free again."""
    kind = "seat_free" if holder is None else "seat_taken" if remains is None else "seat_quarantined"
    last = remains or controller.quarantined.get(seat)
    mine = "" if last is None else last.job_id
    row = controller.row(mine) if mine else None
    detail = {"seat": seat, "holder": holder, "epoch": 0, "reason": holder or "free again"}
    if remains is not None:
        detail |= {"since": remains.since, "why": remains.why}
    controller.turn.news.append((mine, "" if row is None else row.tenant, kind, json.dumps(detail)))


def _gang_found(controller: Controller, found: GangFound) -> None:
    """Take back a gang of a job that waits, as in an older copy of the store; say why if that cannot be."""
    for seat in found.seats:
        _check_place(seat, len(controller.device_types), "seat")
    row = controller.rows.get(found.job_id)
    if row is None:
        why = "the store has no such job that is live"
    elif row.holds or row.state not in WAITING:
        why = f"the job is {row.state} there"
    elif found.epoch <= row.epoch:
        why = f"that start is over: it is at start {row.epoch}"
    else:
        controller.flush(controller.at)
        controller.taken_seats = {seat: who for seat, who in controller.taken_seats.items() if seat not in found.seats}
        controller.unreported -= set(found.seats)
        leases = cast("Leases", controller.site.setup.mechanism)  # a service has no others
        known = set(map(int, controller.scheduler.state.taken.nonzero()[0]))  # from the store, until the world reports
        others = (known | set(controller.out_seats())) - set(found.seats)
        controller.emit("", AcceleratorsTaken(tuple(sorted(others))))
        controller.emit(row.id, GangAdopted(row.id, found.epoch, found.seats, leases.until(controller.at)))
        controller.flush(controller.at)
        if row.epoch == found.epoch:
            _log.warning("start %d of job %s goes on, though the store did not know it", found.epoch, row.id)
            return
        why = "it does not fit what the job asks for, or its accelerators are not free"
    _log.warning("start %d of job %s is not taken back: %s", found.epoch, found.job_id, why)


def _gang_ended(controller: Controller, row: JobRow, report: GangEnded) -> None:
    if controller.is_touched(row.id):  # what it saved at its end may let the policy stop it first
        controller.flush(controller.at)
    row.left_seats = ()
    row.idle_since = math.nan
    if row.launched_epoch == row.epoch:
        row.run_s += controller.at - row.started
    if row.is_over:
        row.ended_epoch = row.epoch
        give_back_seats(controller, row)
        controller.changed(row, "")
        controller.forget(row)
        return
    waits = "preempted" if row.steps > 0 else "pending"
    match controller.driver.end(row, report):
        case "finished":
            controller.emit(row.id, JobFinished(row.id, row.epoch))
            controller.run_times[row.tenant, row.spec.get("job_type", "")].append(row.run_s)
            controller.end(row, "succeeded", "")
        case "failed" if report.outcome == "lost":
            _failed(controller, row, f"{report.reason}, {row.losses} times in a row without progress")
        case "failed":
            _failed(controller, row, report.reason)
        case "lost" if "interactive" in row.spec:  # what was in its terminal is gone
            _failed(controller, row, report.reason)
        case "lost":
            controller.emit(row.id, *note_stopped(controller, row), JobPaused(row.id), JobResumed(row.id))
            controller.move(row, waits, report.reason)
        case "stopped" if "interactive" in row.spec and row.launched_epoch == row.epoch and not row.finished_early:
            controller.emit(row.id, JobCancelled(row.id))
            controller.end(row, "cancelled", "it was stopped, and what was in its terminal is gone")
        case "stopped":
            if not row.finished_early and (believed := note_stopped(controller, row)):
                controller.emit(row.id, *believed)
            if row.state == "stopping":
                controller.move(row, waits, "" if report.outcome == "stopped" else report.reason)
            else:  # held: the scheduler has already taken its seats
                controller.changed(row, "")


def _failed(controller: Controller, row: JobRow, reason: str) -> None:
    row.failures += 1
    controller.usage.fails(row, controller.at)
    wait = min(2.0 ** (row.failures - 1), MOST_BACKOFF_S)
    row.backoff_until = controller.at + wait
    controller.hold(row, "backoff")
    controller.emit(row.id, *note_stopped(controller, row), JobFailed(row.id, row.epoch, reason), JobPaused(row.id))
    again = f", and is tried again in {wait:g} s" * (row.failures <= int(row.spec.get("retries", 0)))
    controller.move(row, "pending", f"it failed{again}: {reason}")
    heapq.heappush(controller.timers, (row.backoff_until, "backoff", row.id, row.epoch))


def expire(controller: Controller, what: str, job_id: str, epoch: int) -> None:
    controller.subject = job_id
    row = controller.rows.get(job_id)
    if what == "drain" and row is not None and row.ended_epoch < epoch:
        controller.driver.stop(row.id, epoch, save=False)
    if row is None or row.is_over or row.epoch != epoch:
        return
    longest = row.spec.get("max_run_s")
    if what == "backoff" and row.backoff_until <= controller.at:
        controller.unhold(row, "backoff")
    if what == "idle":
        expire_idle(controller, row)
    runs = what == "max_run" and row.state == "running"
    if runs and longest is not None and row.started + longest <= controller.at:
        controller.emit(row.id, JobCancelled(row.id))
        controller.end(row, "failed", f"it ran longer than its max_run_s of {longest:g} s")
