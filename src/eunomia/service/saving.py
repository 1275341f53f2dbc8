"""Whether jobs can save: how that is learnt, what a stop costs those that cannot, and jobs that never advance.

A job can save if its document says so, or if it has shown it: it opened a lease (`eunomia.lease`), or reported steps in
a checkpoint. A job of which nothing is known cannot. The core does not preempt what cannot save.
"""

from __future__ import annotations

import json

from eunomia.model.events import Event, JobUpdated, Progressed
from eunomia.service.controller import Controller
from eunomia.service.job_row import JobRow, iso
from eunomia.verdict.number_format import duration

MOST_IDLE_STARTS = 3  # in a row without progress, before the job is named
FIX = "let it save with eunomia.lease, or submit it with interruptible where it saves by itself"


def note_saved(controller: Controller, row: JobRow, steps: float) -> None:
    """Take in that a job has opened a lease, or has so many steps in a checkpoint."""
    if row.saves and steps == row.steps:
        return
    knew, events, is_progress = row.can_save, list[Event](), steps != row.steps
    row.saves = True
    if row.can_save and not knew:
        events.append(JobUpdated(row.id, can_save=True))
    if is_progress:
        row.saved_at = controller.at if steps > row.steps else row.saved_at
        row.steps = steps
        events.append(Progressed((row.id,), (steps,)))
    if events and not row.is_over:
        controller.emit(row.id, *events)
    controller.changed(row, "progress" if is_progress else "")


def note_stopped(controller: Controller, row: JobRow) -> tuple[Event, ...]:
    """Count what the end of a gang has cost that has not finished its job; return what the scheduler is to believe."""
    if row.can_save and row.steps == 0:  # it may save without saying so
        return ()
    if row.launched_epoch == row.epoch:
        lost_s = controller.at - max(row.started, row.saved_at)
        row.lost_s += lost_s
        controller.usage.loses(row, lost_s, controller.at)
        row.idle_starts = 0 if row.steps > row.start_steps else row.idle_starts + 1
        if row.idle_starts >= MOST_IDLE_STARTS:
            reason = f"{row.idle_starts} starts in a row made no progress; {FIX}"
            detail = json.dumps({"reason": reason, "epoch": row.epoch})
            controller.turn.news.append((row.id, row.tenant, "no_progress", detail))
    return (Progressed((row.id,), (row.steps,)),)


def describe_saving(row: JobRow, origin: float) -> str:
    """Return what a job has lost by stops, and what one would cost now; "" for nothing.

    `origin` is the wall-clock time of second 0.
    """
    texts = []
    if row.idle_starts >= MOST_IDLE_STARTS:
        texts.append(f"its last {row.idle_starts} starts made no progress: {FIX}")
    if row.lost_s > 0:
        texts.append(f"{duration(row.lost_s)} of its time on accelerators were lost by stops")
    if row.state in ("running", "unknown") and not row.can_save:
        since = f"all that it did since {iso(origin + row.started)}"
        texts.append(f"nothing shows that it can save, so it is not preempted; a stop would lose {since}")
    return "; ".join(texts)
