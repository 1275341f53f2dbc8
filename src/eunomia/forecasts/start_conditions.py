"""What would let a waiting job start: each change is played on a copy of the scheduler, and counts if the job starts.

A play handles the change and all that follows from it at once, with the scheduler's own code and the policy itself.
No job ends in it. Where leases end by themselves, it goes on for one lease more: a round may have to end first.
A change is kept only if the job starts with it and does not start without it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from eunomia.core.ranked_pass import rank_of
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.changed_state import handle_at_once
from eunomia.forecasts.futures import PresentState
from eunomia.model.arrays import Bools, Ints
from eunomia.model.decisions import Decision
from eunomia.model.events import (
    AskAbandoned,
    Estimated,
    Event,
    JobCancelled,
    JobFinished,
    JobResumed,
    JobSubmitted,
    Moment,
    NodeJoined,
    TenantChanged,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.rank import BY_SUBMISSION
from eunomia.model.tenants import INNER, Tenant
from eunomia.records.policy_call import ask_policy
from eunomia.records.queue_position import jobs_ahead, seat_holders
from eunomia.records.run import InlinePolicyRunner

Kind: TypeAlias = Literal["ended", "all_ended", "fewer", "node", "quota", "cancelled"]
# Plays of each kind, and after how many successes no more of it are played.
MOST_PLAYS: dict[Kind, int] = {"ended": 8, "all_ended": 3, "fewer": 3, "node": 3, "quota": 2, "cancelled": 4}
ENOUGH: dict[Kind, int] = {"ended": 3, "all_ended": 1, "fewer": 1, "node": 1, "quota": 1, "cancelled": 1}
MOST_TOGETHER = 3  # jobs of `all_ended`; they end one after the other, in any order
MOST_TIMERS = 16  # of one play
LATER_S = 1e-3  # than the present moment a change happens where leases end together
BUDGET_S = 1.0  # CPU time of all plays of one job, beyond which no further one begins


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCondition:
    """A change with which the job starts."""

    kind: Kind
    starts: float  # when, in seconds of the scheduler's time
    jobs: tuple[str, ...] = ()  # that end, or are cancelled
    accelerators: float = 0.0  # of the smaller gang, or of the larger quota
    node: int = -1  # that is back in service
    tenant: str = ""  # whose quota is larger


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConditions:
    """When a job starts if nothing changes, inf = not at once nor within a lease; else what would let it start.

    `ahead` are the rows of waiting jobs before it in the order that the policy makes now; None = it makes none now.
    """

    unchanged: float
    conditions: tuple[StartCondition, ...] = ()
    ahead: Ints | None = None
    changes: int = 0  # that were tried
    plays: int = 0


@dataclass(frozen=True, slots=True)
class _Change:
    """A change that is to be played: events of moments that follow each other at once, in each of several orders."""

    kind: Kind
    orders: tuple[tuple[tuple[Event, ...], ...], ...]
    jobs: tuple[str, ...] = ()
    accelerators: float = 0.0
    node: int = -1
    tenant: str = ""
    starts: str = ""  # the job that has to start, where it is another one


def start_conditions(
    present: PresentState,
    job_id: str,
    *,
    smaller: Sequence[tuple[Job, Estimated | None]] = (),
    first: Callable[[str], bool] = lambda tenant: True,
    budget_s: float = BUDGET_S,
) -> StartConditions:
    """Return what would let a waiting job start, each played; nothing for a job that does not wait.

    `smaller` are the jobs as which it could be submitted again, the largest first, with the estimates of their run
    times. Jobs whose tenant is `first` are tried before others. Nothing of `present` changes.
    """
    state = present.scheduler.state
    row = state.row_of.get(job_id)
    if row is None or state.jobs.stage[row] != Stage.WAITING:
        return StartConditions(unchanged=math.inf)
    begun = time.process_time()
    unchanged = start_of(present, job_id, ((),))
    ahead = rows_ahead_now(present, row)
    if unchanged < math.inf:
        return StartConditions(unchanged=unchanged, ahead=ahead, plays=1)
    found: list[StartCondition] = []
    tried, plays = dict.fromkeys(MOST_PLAYS, 0), 1
    for change in _changes(present, row, smaller, ahead, first):
        kind = change.kind
        successes = sum(one.kind == kind for one in found)
        is_needless = kind == "all_ended" and any(one.kind == "ended" for one in found)
        if is_needless or tried[kind] >= MOST_PLAYS[kind] or successes >= ENOUGH[kind]:
            continue
        if time.process_time() - begun > budget_s:
            break
        tried[kind] += 1
        plays += len(change.orders)
        starts = max(start_of(present, change.starts or job_id, moments) for moments in change.orders)
        if starts < math.inf:
            found.append(StartCondition(
                kind=kind, starts=starts, jobs=change.jobs, accelerators=change.accelerators, node=change.node,
                tenant=change.tenant,
            ))  # fmt: skip
    return StartConditions(
        unchanged=math.inf, conditions=tuple(found), ahead=ahead, changes=sum(tried.values()), plays=plays
    )


def start_of(present: PresentState, job_id: str, moments: Sequence[Sequence[Event]]) -> float:
    """Return when a job starts after these moments now, while nothing else happens but timers; inf = it does not."""
    scheduler, runner, wake, at = present.scheduler.copy(), InlinePolicyRunner(present.policy), present.wake, present.at
    pending, lease_s = scheduler.asks.pending, scheduler.state.lease
    if lease_s < math.inf and wake > at:
        at = min(at + LATER_S, (at + wake) / 2)  # not in the instant in which leases ended: that is over
    now = at
    for number, events in enumerate(moments):
        anew = [AskAbandoned(pending.asked, at)] if number == 0 and pending is not None else []
        wake = handle_at_once(scheduler, runner, Moment.of(at, [*events, *anew]), wake)
    until = at + (lease_s if lease_s < math.inf else 0.0)
    row = scheduler.state.row_of[job_id]
    for fired in range(MOST_TIMERS + 1):
        if scheduler.state.jobs.stage[row] == Stage.RUNNING:
            return present.at if at == now else at
        if wake > until or fired == MOST_TIMERS:
            break
        at = max(wake, at)
        wake = handle_at_once(scheduler, runner, Moment(at, (TimerFired(),)), math.inf)
    return math.inf


def rows_ahead_now(present: PresentState, row: int) -> Ints | None:
    """Return the waiting jobs before a job in the order that the policy makes now; None where it makes none now.

    A policy of shares is only asked when a round begins, and then ranks jobs by what they are owed: its last order
    counts. One that gives seats itself makes no order.
    """
    scheduler = present.scheduler
    if scheduler.info.answer_type == "order" and rank_of(scheduler.info) != BY_SUBMISSION:
        scheduler = _asked_now(present)
    return None if scheduler.info.answer_type == "grants" else jobs_ahead(scheduler, row)


def _asked_now(present: PresentState) -> Scheduler:
    """Return a scheduler in the present state with the order that the policy makes now, by which it gives no seats."""
    scheduler, at = present.scheduler.copy(), present.at
    asks, mechanism, decisions = scheduler.asks, scheduler.mechanism, list[Decision]()
    scheduler._sched.advance_to(at)
    rows = mechanism.shown()
    ask = asks.ask(at, rows, mechanism.columns(at, rows))
    answer = ask_policy(present.policy, ask.view)
    if asks.pending is not None:
        asks.check(answer, asks.pending, at, at)
    mechanism.order(answer, asks.accept(answer, at, decisions), at)
    return scheduler


# ---- changes to try --------------------------------------------------------------------------------------------------


def _changes(
    present: PresentState,
    row: int,
    smaller: Sequence[tuple[Job, Estimated | None]],
    ahead: Ints | None,
    first: Callable[[str], bool],
) -> Iterator[_Change]:
    scheduler = present.scheduler
    state, name = scheduler.state, scheduler.state.ids[row]
    runs = scheduler.belief.throughput[row] > 0
    holders = _most_likely_first(scheduler, row, seat_holders(scheduler, runs), first)
    for one in holders[: MOST_PLAYS["ended"]]:
        yield _Change("ended", (_ends(present, [one]),), (state.ids[one],))
    for several in _together(scheduler, row, runs, holders):
        orders = tuple(_ends(present, order) for order in permutations(several))
        yield _Change("all_ended", orders, tuple(state.ids[one] for one in several))
    for job, estimate in smaller:
        again = (JobSubmitted(job), *(() if estimate is None else (estimate,)))
        moments = ((JobCancelled(name),), again)
        yield _Change("fewer", (moments,), accelerators=job.scale_factor, starts=job.job_id)
    for node in np.flatnonzero(~state.floor.up).tolist():
        if runs[state.topology.node_type[node]]:
            yield _Change("node", (((NodeJoined(node),),),), node=node)
    yield from _larger_quotas(scheduler, row)
    if ahead is None:
        earlier = state.active[: np.searchsorted(state.active, row)]
        ahead = earlier[state.jobs.stage[earlier] == Stage.WAITING]
    first_ahead = ahead[: 4 * MOST_PLAYS["cancelled"]].tolist()
    for one in sorted(first_ahead, key=lambda other: not first(state.submitted[other].tenant)):
        yield _Change("cancelled", (((JobCancelled(state.ids[one]),),),), (state.ids[one],))


def _ends(present: PresentState, rows: Sequence[int]) -> tuple[tuple[Event, ...], ...]:
    """Return a moment for the end of each job, in turn, with the jobs that waited only for those that have ended."""
    state, moments = present.scheduler.state, list[tuple[Event, ...]]()
    for number, row in enumerate(rows):
        over = set(rows[: number + 1])
        released = [one for one, waits_for in present.follows.items() if row in waits_for and waits_for <= over]
        end = JobFinished(state.ids[row], int(state.jobs.epoch[row]))
        moments.append((end, *(JobResumed(state.ids[one]) for one in released)))
    return tuple(moments)


def _most_likely_first(
    scheduler: Scheduler, row: int, holders: Sequence[int], first: Callable[[str], bool]
) -> list[int]:
    """Return running jobs, those first that the asker knows, and of these the ones whose seats are enough."""
    state, jobs = scheduler.state, scheduler.state.jobs
    size, free = int(jobs.scale_factor[row]), state.floor.free

    def key(one: int) -> tuple[bool, bool]:
        is_enough = free[jobs.on_type[one]] + jobs.lease_size[one] >= size
        return not first(state.submitted[one].tenant), not is_enough

    return sorted(holders, key=key)


def _together(scheduler: Scheduler, row: int, runs: Bools, holders: Sequence[int]) -> Iterator[list[int]]:
    """Yield for each type the fewest running jobs whose seats there, with the free ones, are enough."""
    state, jobs = scheduler.state, scheduler.state.jobs
    size = int(jobs.scale_factor[row])
    for j in np.flatnonzero(runs & (state.capacity >= size)).tolist():
        here = sorted((one for one in holders if jobs.on_type[one] == j), key=lambda one: -int(jobs.lease_size[one]))
        room = int(state.floor.free[j]) + np.cumsum([0, *(int(jobs.lease_size[one]) for one in here)])
        enough = np.flatnonzero(room >= size)
        if len(enough) and 2 <= enough[0] <= MOST_TOGETHER:
            yield here[: int(enough[0])]


def _larger_quotas(scheduler: Scheduler, row: int) -> Iterator[_Change]:
    """Yield for its tenant, and those above it, a quota that is larger by the size of the job."""
    state, tree = scheduler.state, scheduler.state.owners.tree
    size, tenant = int(state.jobs.scale_factor[row]), int(state.jobs.owner[row])
    while tenant >= 0:
        quota = float(tree.said_quota[tenant])
        if not math.isnan(quota):
            more = Tenant(
                float(tree.weight[tenant]), INNER[tree.inner[tenant]], quota + size, bool(tree.borrows[tenant])
            )
            event = TenantChanged(tree.names[tenant], more)
            yield _Change("quota", (((event,),),), accelerators=more.quota, tenant=tree.names[tenant])
        tenant = int(tree.parent[tenant])
