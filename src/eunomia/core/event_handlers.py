"""Handlers of events other than answers: each updates the scheduler state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eunomia.core.scheduler_state import SchedulerState
from eunomia.model.decisions import Decision, GiveUp, Refuse, Start, Stop
from eunomia.model.events import (
    AcceleratorsTaken,
    Answered,
    AppFinished,
    AskAbandoned,
    Estimated,
    Event,
    GangAdopted,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
    Measured,
    NodeJoined,
    NodeLost,
    PairsEstimated,
    Progressed,
    TenantChanged,
    ThroughputsLearnt,
    TimerFired,
)
from eunomia.model.job_lifecycle import Cause, Stage

_WAITS, _RUNS, _PAUSED, _OVER = int(Stage.WAITING), int(Stage.RUNNING), int(Stage.PAUSED), int(Stage.FINISHED)


class UnknownEvent(AssertionError):
    """An event that a mechanism cannot account for: a mistake of a world or of its setup, never of a user."""

    def __init__(self, event: object, mechanism: str = "the core") -> None:
        super().__init__(f"{mechanism} does not know the event {event!r}")


def apply_event(event: Event, at: float, sched: SchedulerState) -> list[Decision]:
    """Write one event into the state; return what follows from it whatever the policy says.

    Raises `UnknownEvent` for an event that it does not know.
    """
    handler = HANDLERS.get(type(event))
    if handler is None:
        raise UnknownEvent(event)
    return handler(event, at, sched) or []


def _running(name: str, epoch: int, sched: SchedulerState) -> int | None:
    """Return the row of a job in that run; None if the run is over: reports of earlier runs are ignored."""
    row, jobs = sched.state.row(name), sched.state.jobs
    return row if row is not None and jobs.stage[row] == _RUNS and jobs.epoch[row] == epoch else None


def _present(name: str, sched: SchedulerState) -> tuple[int, int]:
    """Return row and stage of a job; one that has ended and was forgotten has row -1 and stage FINISHED."""
    row = sched.state.row(name)
    return (-1, _OVER) if row is None else (row, int(sched.state.jobs.stage[row]))


def _submit(event: JobSubmitted, at: float, sched: SchedulerState) -> None:
    sched.submit(event.job)


def _finish(event: JobFinished, at: float, sched: SchedulerState) -> None:
    row = _running(event.job_id, event.epoch, sched)
    if row is not None:
        sched.leave(row, at, Cause.FINISHED)


def _resume(event: JobResumed, at: float, sched: SchedulerState) -> None:
    row, stage = _present(event.job_id, sched)
    if stage == _PAUSED:
        sched.resume(row, at)


def _update(event: JobUpdated, at: float, sched: SchedulerState) -> None:
    row = sched.state.row(event.job_id)
    sched.update(row, event.weight, event.total_steps, event.deadline)
    if event.can_save and row is not None:
        sched.state.let_be_stopped(row)
    if event.keeps_seats and row is not None:
        sched.state.let_keep_seats([row])


def _estimate(event: Estimated, at: float, sched: SchedulerState) -> None:
    sched.estimate(sched.state.row(event.job_id), event)


def _estimate_pairs(event: PairsEstimated, at: float, sched: SchedulerState) -> None:
    sched.estimate_pairs(event)


def _learn_throughputs(event: ThroughputsLearnt, at: float, sched: SchedulerState) -> None:
    sched.learn_throughputs(event, at)


def _measure(event: Measured, at: float, sched: SchedulerState) -> None:
    row = sched.state.row(event.job_id)
    if row is not None:
        sched.state.record_loss(row, event.steps, event.loss)


def _progress(event: Progressed, at: float, sched: SchedulerState) -> None:
    state, steps = sched.state, np.asarray(event.steps, dtype=float)
    if state.forgotten:
        found = np.array([-1 if row is None else row for row in map(state.row, event.job_ids)], dtype=np.int64)
        rows, steps = found[found >= 0], steps[found >= 0]
    else:
        rows = state.register.rows(event.job_ids)
    sched.belief.record_progress(rows, steps, at)


def _join(event: NodeJoined, at: float, sched: SchedulerState) -> None:
    if not sched.state.floor.up[event.node]:
        sched.restore(event.node)


def _change_tenant(event: TenantChanged, at: float, sched: SchedulerState) -> None:
    sched.change_tenant(event.name, event.tenant)


def _take_accelerators(event: AcceleratorsTaken, at: float, sched: SchedulerState) -> None:
    sched.set_taken(event.devices)


def _adopt(event: GangAdopted, at: float, sched: SchedulerState) -> list[Decision]:
    """Let a waiting job hold the seats on which its gang was found."""
    state, jobs = sched.state, sched.state.jobs
    (row, stage), seats = _present(event.job_id, sched), np.array(event.devices, dtype=np.int64)
    kinds = state.topology.type[seats]
    waits = stage == _WAITS and jobs.epoch[row] < event.epoch
    if not waits or len(seats) != jobs.scale_factor[row] or len(set(kinds)) != 1 or not state.floor.is_free(seats):
        return []
    jobs.epoch[row] = event.epoch - 1
    sched.start(row, at, int(kinds[0]), 0, seats, event.until, -1)
    sched.changes += 1
    return [Start(event.job_id, event.epoch, event.devices, float(jobs.until[row]))]


def _change_nothing(event: Event, at: float, sched: SchedulerState) -> None:
    """Answers are matched with asks by the scheduler; the others change nothing that the core keeps."""


def _fail(event: JobFailed, at: float, sched: SchedulerState) -> list[Decision]:
    """Requeue a failed job while it may be retried; else give it up or refuse it."""
    name, reason = event.job_id, event.reason
    row, failures = _running(name, event.epoch, sched), sched.state.jobs.failures
    if row is None:
        return []
    job, hopeless = sched.state.submitted[row], sched.comes_again(sched.state.submitted[row].tenant, reason)
    failures[row] += 1
    left = job.may_retry(int(failures[row]))
    sched.leave(row, at, Cause.FAILED if left and not hopeless else Cause.FAILED_AGAIN)
    if not left:
        return [GiveUp(name)]
    return [Refuse(name, f"it failed for a reason that comes again: {reason}")] if hopeless else []


def _cancel(event: JobCancelled, at: float, sched: SchedulerState) -> list[Decision]:
    name = event.job_id
    row, stage = _present(name, sched)
    epoch = int(sched.state.jobs.epoch[row])
    if stage in (_RUNS, _WAITS, _PAUSED):
        sched.leave(row, at, Cause.CANCELLED)
    return [Stop((name,), (epoch,), save=False)] if stage == _RUNS else []


def _pause(event: JobPaused, at: float, sched: SchedulerState) -> list[Decision]:
    """Pause a job unless it has ended or is paused already."""
    name = event.job_id
    row, stage = _present(name, sched)
    epoch = int(sched.state.jobs.epoch[row])
    if stage in (_RUNS, _WAITS):
        sched.pause(row, at)
    return [Stop((name,), (epoch,))] if stage == _RUNS else []


def _lose(event: NodeLost, at: float, sched: SchedulerState) -> list[Decision]:
    """Release all seats of the node's gangs, including those on other nodes."""
    state, node = sched.state, event.node
    if not state.floor.up[node]:
        return []
    first, size = state.topology.first[node], state.topology.size[node]
    leads = np.unique(state.holder[first : first + size])
    leads = leads[leads >= 0]
    mates = state.jobs.partner[leads]
    hit = np.sort(np.concatenate((leads, mates[mates >= 0])))
    stop = Stop(state.names(hit), state.jobs.epoch[hit], save=False)
    for row in hit.tolist():
        sched.leave(row, at, Cause.NODE_LOST)
    sched.lose(node)
    return [stop] if len(hit) else []


HANDLERS: dict[type[Event], Callable[[Any, float, SchedulerState], list[Decision] | None]] = {
    JobSubmitted: _submit,
    JobFinished: _finish,
    JobFailed: _fail,
    JobCancelled: _cancel,
    JobPaused: _pause,
    JobResumed: _resume,
    JobUpdated: _update,
    Estimated: _estimate,
    PairsEstimated: _estimate_pairs,
    ThroughputsLearnt: _learn_throughputs,
    Measured: _measure,
    Progressed: _progress,
    NodeLost: _lose,
    NodeJoined: _join,
    TenantChanged: _change_tenant,
    AcceleratorsTaken: _take_accelerators,
    GangAdopted: _adopt,
    Answered: _change_nothing,
    AskAbandoned: _change_nothing,
    AppFinished: _change_nothing,
    TimerFired: _change_nothing,
}
