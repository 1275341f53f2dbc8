"""Jobs that are set aside: what they report, or what is stored of them, cannot be used; all others go on.

Such a job is quarantined: it is stopped and never starts again. What it had is given to no other job until its
processes have ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from eunomia.model.events import AcceleratorsTaken, JobCancelled
from eunomia.model.job_lifecycle import FINAL, Stage
from eunomia.service.controller import Controller
from eunomia.service.job_row import QUARANTINED, JobRow
from eunomia.service.store.checked_rows import DamagedRow

UNUSABLE = "its row in the store cannot be used"
_log = logging.getLogger(__name__)


def quarantine(controller: Controller, row: JobRow, reason: str) -> None:
    """Set a job aside and stop its gang; one that is over stays as it ended."""
    if row.is_over:
        return
    _log.error("job %s is quarantined: %s", row.id, reason)
    seats = row.seats
    if _is_scheduled(controller, row.id):
        controller.emit(row.id, JobCancelled(row.id))
    controller.end(row, QUARANTINED, reason)
    if row.is_live:
        row.seats = seats
        keep_seats(controller)


def _is_scheduled(controller: Controller, job_id: str) -> bool:
    """Say whether the scheduler has a job that is not over, or gets it with the events that are being collected."""
    state = controller.scheduler.state
    number = state.row_of.get(job_id)
    if number is None:
        return controller.is_touched(job_id)
    return Stage(int(state.jobs.stage[number])) not in FINAL


def keep_seats(controller: Controller) -> None:
    """Take the seats of quarantined jobs out of service, as long as their processes may run."""
    kept = {
        seat: row.id
        for row in controller.rows.values()
        if row.state == QUARANTINED
        for seat in row.seats
        if seat < len(controller.device_types)
    }
    reported = {seat: who for seat, who in controller.taken_seats.items() if seat not in controller.kept_seats}
    controller.kept_seats = kept
    controller.taken_seats = with_kept(controller, reported)


def with_kept(controller: Controller, reported: Mapping[int, str]) -> dict[int, str]:
    """Return who uses the seats that are given to no job: as a world reports it, and quarantined jobs."""
    kept = {seat: f"job {job_id}, which is quarantined" for seat, job_id in controller.kept_seats.items()}
    return {**kept, **reported}


def give_back_seats(controller: Controller, row: JobRow) -> None:
    """Put the seats of a quarantined job back into service, as its processes have ended."""
    if row.seats:
        controller.unreported -= set(row.seats)
        row.seats = ()
        keep_seats(controller)
        controller.flush(controller.at)
        controller.emit("", AcceleratorsTaken(controller.out_seats()))


def set_aside_at_start(
    controller: Controller, damaged: Iterable[DamagedRow], suspects: Mapping[str, str], *, compare: bool
) -> None:
    """Set aside the jobs of damaged rows, those that an earlier start ended with, and those of which rows and scheduler
    say different things, where the scheduler is one that has been restored (`compare`)."""
    for one in damaged:
        _quarantine_unread(controller, one)
    for job_id, reason in suspects.items():
        if (row := controller.rows.get(job_id)) is not None:
            quarantine(controller, row, reason)
    if not compare:
        return
    for row in list(controller.rows.values()):
        if wrong := controller.disagreement(row):
            quarantine(controller, row, f"its row in the store is not what the log says: {wrong}")
    state = controller.scheduler.state
    known = {*state.active.tolist(), *state.paused().tolist()}
    for job_id in [state.ids[number] for number in sorted(known) if state.ids[number] not in controller.rows]:
        first = job_id.partition("-")[0]
        tenant = state.submitted[state.row_of[job_id]].tenant
        reason = "its row is missing in the store; eunomia store restore brings back that of a backup"
        _quarantine_unread(controller, DamagedRow(int(first) if first.isdigit() else 0, job_id, tenant, reason, ""))


def _quarantine_unread(controller: Controller, damaged: DamagedRow) -> None:
    """Set aside a job of which only its place in the store is known, and what the scheduler has of its last start."""
    state = controller.scheduler.state
    number, epoch, seats = state.row_of.get(damaged.id), 0, tuple[int, ...]()
    if number is not None:
        epoch, seats = int(state.jobs.epoch[number]), tuple(state.seats_of(number).tolist())
    row = JobRow(
        id=damaged.id, number=damaged.number, tenant=damaged.tenant, owner="", name=damaged.id, spec={"command": []},
        submitted=controller.at, since=controller.at, state="unknown", epoch=epoch, launched_epoch=epoch, seats=seats,
    )  # fmt: skip
    controller.rows[row.id] = row
    quarantine(controller, row, damaged.reason)
