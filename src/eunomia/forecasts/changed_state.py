"""The present state with something changed: a further job, fewer or more nodes, another policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eunomia.core.believed_speeds import believed_speeds
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.futures import PresentState
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Ask, SetTimer
from eunomia.model.events import (
    Answered,
    Estimated,
    Event,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
    NodeLost,
    Progressed,
)
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.policy import Policy
from eunomia.records.run import InlinePolicyRunner


def with_job(present: PresentState, job: Job, estimate: Estimated | None = None) -> PresentState:
    """Return the state after the submission of a job now, whose run time may be estimated."""
    return _after(present, (JobSubmitted(job), *(() if estimate is None else (estimate,))))


def without_nodes(present: PresentState, nodes: Sequence[int]) -> PresentState:
    """Return the state after these nodes were drained: their gangs have saved, or start over, and wait."""
    state = present.scheduler.state
    drained = np.isin(state.topology.node, nodes)
    rows = {int(state.holder[device]) for device in np.flatnonzero(drained) if state.holder[device] >= 0}
    rows |= {int(state.jobs.partner[row]) for row in rows if state.jobs.partner[row] >= 0}
    moved: list[Event] = []
    for row in sorted(rows):
        moved += [JobPaused(state.ids[row]), JobResumed(state.ids[row])]
        if state.jobs.uninterruptible[row] or state.ids[row] in state.restartable:
            moved.append(Progressed((state.ids[row],), (0.0,)))
    return _after(present, (*moved, *map(NodeLost, nodes)))


def _after(present: PresentState, events: Sequence[Event]) -> PresentState:
    """Return the state after a moment with these events and all that follows from it at once."""
    scheduler = present.scheduler.copy()
    runner = InlinePolicyRunner(present.policy)
    wake = handle_at_once(scheduler, runner, Moment.of(present.at, events), present.wake)
    return replace(present, scheduler=scheduler, wake=wake)


def handle_at_once(scheduler: Scheduler, runner: InlinePolicyRunner, moment: Moment, wake: float) -> float:
    """Handle a moment and all that follows from it at once; return when the scheduler wants to be called then.

    `wake` is when it wanted to be called before.
    """
    following: Moment | None = moment
    while following is not None:
        decisions, following = scheduler.handle(following), None
        for decision in decisions:
            if isinstance(decision, Ask):
                following = Moment(moment.at, (Answered(decision.asked, runner.answer(decision)),))
            elif isinstance(decision, SetTimer):
                wake = decision.at
    return wake


def moved_to(present: PresentState, fresh: Scheduler, policy: Policy) -> PresentState:
    """Return the live jobs of a state under another scheduler, which knows no job yet and is asked at once.

    Jobs keep their place in the queue, progress, service received and seats. The nodes of the new scheduler begin with
    those of the old one, in the same order; nodes that are out of service stay so. What the old policy remembers, and
    what tenants used before, is not known to the new one. Raises LookupError if a gang's type is not there.
    """
    old = present.scheduler
    state, n = old.state, len(old.state.jobs)
    stage = state.jobs.stage[:n]
    live = np.flatnonzero(np.isin(stage, (Stage.WAITING, Stage.RUNNING, Stage.PAUSED)))
    sched = fresh._sched
    fresh.belief.take_over(old.belief)
    for row in live.tolist():
        sched.submit(state.submitted[row])
    rows = np.arange(len(live))
    _copy_columns(old, fresh, live, rows)
    for node in np.flatnonzero(~state.floor.up).tolist():
        sched.lose(node)
    sched.set_taken(np.flatnonzero(state.taken).tolist())
    row_of = dict(zip(live.tolist(), rows.tolist(), strict=True))
    for row in np.flatnonzero(stage[live] == Stage.PAUSED).tolist():
        sched.pause(row, present.at)
    _seat(old, fresh, live, row_of, present.at)
    return replace(
        present,
        scheduler=fresh,
        policy=policy,
        speeds=believed_speeds(fresh.belief),
        wake=present.at,
        resumes_at={row_of[row]: when for row, when in present.resumes_at.items()},
        follows={row_of[row]: frozenset(row_of[one] for one in rows) for row, rows in present.follows.items()},
    )


def _copy_columns(old: Scheduler, fresh: Scheduler, live: Ints, rows: Ints) -> None:
    """Copy what is known of jobs that neither depends on the policy nor on the cluster."""
    jobs = "weight", "deadline", "epoch", "failures", "ran", "first_started", "no_checkpoint", "uninterruptible"
    for name in jobs:
        getattr(fresh.state.jobs, name)[rows] = getattr(old.state.jobs, name)[live]
    fresh.state.restartable = dict(old.state.restartable)
    fresh.state.has_uninterruptible = old.state.has_uninterruptible
    for name in ("total", "done", "steepness"):
        getattr(fresh.belief, name)[rows] = getattr(old.belief, name)[live]
    fresh.belief.estimates.update(
        {m: old.belief.estimates[row] for m, row in enumerate(live.tolist()) if row in old.belief.estimates}
    )
    fresh.ledger.service[rows], fresh.ledger.since[rows] = old.ledger.service[live], old.ledger.since[live]
    types = np.array([fresh.state.topology.types.index(name) for name in old.state.topology.types], dtype=np.int64)
    fresh.ledger.received[np.ix_(rows, types)] = old.ledger.received[live]
    fresh.ledger.on_type[rows] = types[old.ledger.on_type[live]]


def _seat(old: Scheduler, fresh: Scheduler, live: Ints, row_of: Mapping[int, int], at: float) -> None:
    """Give running gangs the seats that they have, as if they had held them all the time."""
    jobs, sched = old.state.jobs, fresh._sched
    leases = getattr(fresh.mechanism, "leases", None)
    until = math.inf if leases is None else leases.until(at)
    types = fresh.state.topology.types
    for row in old.state.running().tolist():
        if jobs.lease_size[row] == 0:
            continue  # the second of a pair
        seats, mate = old.state.seats_of(row), int(jobs.partner[row])
        type = types.index(old.state.topology.types[int(jobs.on_type[row])])
        one = [np.array([value], dtype=np.int64) for value in (row_of[row], row_of.get(mate, -1), type)]
        lead, partner, on = one
        sched.start_all(lead, at, on, jobs.shape[[row]].copy(), np.array([0, len(seats)]), seats, until, partner)
    running = old.state.running()
    rows = np.array([row_of[row] for row in running.tolist()], dtype=np.int64)
    fresh.state.jobs.epoch[rows] = jobs.epoch[running]
    fresh.state.jobs.first_started[rows] = jobs.first_started[running]
    for name in ("since", "rate"):
        getattr(fresh.belief, name)[rows] = getattr(old.belief, name)[running]
    fresh.ledger.since[rows] = old.ledger.since[running]


def same_totals(before: PresentState, after: PresentState, totals: Floats) -> Floats:
    """Return the total steps of the jobs of `after`, (future, row), all of which `before` has; see `draw_totals`."""
    row_of = before.scheduler.state.row_of
    return totals[:, [row_of[name] for name in after.scheduler.state.ids]]
