"""Taking in what happened: every event but answers, written into the books."""

from __future__ import annotations

import numpy as np

from eunomia.core.books import Books
from eunomia.model.decisions import Decision, GiveUp, Refuse, Stop
from eunomia.model.events import (
    Answered,
    AppFinished,
    Event,
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
    Progressed,
    Woken,
)
from eunomia.model.life import Cause, Stage

_WAITS, _RUNS, _PAUSED = int(Stage.WAITING), int(Stage.RUNNING), int(Stage.PAUSED)


class UnknownEvent(AssertionError):
    """An event that a mechanism cannot account for: a mistake of a world or of its setup, never of a user."""

    def __init__(self, event: object, mechanism: str = "the core") -> None:
        super().__init__(f"{mechanism} does not know the event {event!r}")


def take(event: Event, at: float, books: Books) -> list[Decision]:
    """Write one event into the state; return what follows from it whatever the policy says.

    Raises `UnknownEvent` for an event that it does not know.
    """
    match event:
        case JobSubmitted(job):
            books.submit(job)
        case JobFinished(name, epoch):
            if _runs(name, epoch, books):
                books.leave(books.state.row_of[name], at, Cause.FINISHED)
        case JobFailed(name, epoch, reason):
            if _runs(name, epoch, books):
                return _fail(name, reason, at, books)
        case JobCancelled(name):
            return _cancel(name, at, books)
        case JobPaused(name):
            return _pause(name, at, books)
        case JobResumed(name):
            if books.state.jobs.stage[books.state.row_of[name]] == _PAUSED:
                books.resume(books.state.row_of[name], at)
        case JobUpdated(name, weight, total_steps):
            books.update(books.state.row_of[name], weight, total_steps)
        case Measured(name, steps, loss):
            books.state.hear_loss(books.state.row_of[name], steps, loss)
        case Progressed(names, steps):
            books.belief.hear_progress(books.state.register.rows(names), np.asarray(steps, dtype=float), at)
        case NodeLost(node):
            return _lose(node, at, books) if books.state.floor.up[node] else []
        case NodeJoined(node):
            if not books.state.floor.up[node]:
                books.restore(node)
        case Answered() | AppFinished() | Woken():
            pass  # answers are matched with asks by the scheduler; the others change nothing that it keeps
        case _:
            raise UnknownEvent(event)
    return []


def _runs(name: str, epoch: int, books: Books) -> bool:
    """Say whether the event speaks of the run that is going on; word of an earlier one comes too late."""
    row, jobs = books.state.row_of[name], books.state.jobs
    return bool(jobs.stage[row] == _RUNS and jobs.epoch[row] == epoch)


def _fail(name: str, reason: str, at: float, books: Books) -> list[Decision]:
    """Let a job wait again while it may be tried again; else say that it is over."""
    row, failures = books.state.row_of[name], books.state.jobs.failures
    job, hopeless = books.state.submitted[row], books.comes_again(books.state.submitted[row].tenant, reason)
    failures[row] += 1
    left = job.may_retry(int(failures[row]))
    books.leave(row, at, Cause.FAILED if left and not hopeless else Cause.FAILED_AGAIN)
    if not left:
        return [GiveUp(name)]
    return [Refuse(name, f"it failed for a reason that comes again: {reason}")] if hopeless else []


def _cancel(name: str, at: float, books: Books) -> list[Decision]:
    row, jobs = books.state.row_of[name], books.state.jobs
    stage, epoch = jobs.stage[row], int(jobs.epoch[row])
    if stage in (_RUNS, _WAITS, _PAUSED):
        books.leave(row, at, Cause.CANCELLED)
    return [Stop((name,), (epoch,), save=False)] if stage == _RUNS else []


def _pause(name: str, at: float, books: Books) -> list[Decision]:
    """Take a job out of the running; one that has ended, or rests already, is left as it is."""
    row, jobs = books.state.row_of[name], books.state.jobs
    stage, epoch = jobs.stage[row], int(jobs.epoch[row])
    if stage in (_RUNS, _WAITS):
        books.pause(row, at)
    return [Stop((name,), (epoch,))] if stage == _RUNS else []


def _lose(node: int, at: float, books: Books) -> list[Decision]:
    """Take the node's gangs off all their seats; what is left of a gang is stopped too."""
    state = books.state
    first, size = state.topology.first[node], state.topology.size[node]
    leads = np.unique(state.holder[first : first + size])
    leads = leads[leads >= 0]
    mates = state.jobs.partner[leads]
    hit = np.sort(np.concatenate((leads, mates[mates >= 0])))
    stop = Stop(state.names(hit), state.jobs.epoch[hit], save=False)
    for row in hit.tolist():
        books.leave(row, at, Cause.NODE_LOST)
    books.lose(node)
    return [stop] if len(hit) else []
