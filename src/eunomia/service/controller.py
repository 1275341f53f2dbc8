"""The jobs that are not over, and what decides for them: a scheduler, a driver of the world, timers, and a learner.

It reads no clock, file or random number: the time is handed in, ids come from counters and from the incarnation, a text
that is new at every start of the service. What changes has no effect until the store has committed it: see `step` in
`user_requests`.
"""

from __future__ import annotations

import heapq
import json
import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from eunomia.backends.driver import Driver
from eunomia.backends.reports import BY_ENGINE, QuarantinedSeat
from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Ask, Decision, GiveUp, Refuse, SetTimer, Start, Starts, Stop
from eunomia.model.events import (
    AcceleratorsTaken,
    Answered,
    Event,
    JobCancelled,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    Moment,
    NodeJoined,
    NodeLost,
)
from eunomia.model.job_lifecycle import Stage
from eunomia.records.moment_log import MomentLog
from eunomia.records.preemptions import preemption_of, stops_for_events
from eunomia.records.scheduler_digest import digest
from eunomia.runs.throughput_learning import ThroughputLearner, throughput_learner
from eunomia.service.core_job import core_job, estimated_event
from eunomia.service.dependencies import SINGLETON, Dependency, dependencies_of
from eunomia.service.draining import drained_seats, forget, keep_off
from eunomia.service.job_document import JobDocument
from eunomia.service.job_row import QUARANTINED, SEATED, WAITING, JobRow, ended_as
from eunomia.service.limits import LIMIT, LimitBook
from eunomia.service.maintenance import closed_seats
from eunomia.service.messages import Order
from eunomia.service.notices import ENDED, notices_of
from eunomia.service.out_of_service import NODE, Drain, DrainKey, Maintenance
from eunomia.service.own_order import PRIORITY, OwnOrder
from eunomia.service.run_time_estimate import estimate_run_time
from eunomia.service.site import Site
from eunomia.service.tenant_fairness import TenantFairness, finish_time_fairness
from eunomia.service.turn import LoggedMoment, Lookup, ServicePolicyRunner, Turn
from eunomia.service.usage import UsageCounter

DIGEST_EVERY = 256  # moments
NOTED = ("running", *ENDED)  # news that may make notices
MOST_MOMENTS = 1_000  # of one step: beyond, time is taken to have stalled
_RUNS, _PAUSED = int(Stage.RUNNING), int(Stage.PAUSED)
REMOVED = "removed: "  # begins the reason of a node that is not only drained
MOST_LOSSES = 3  # starts in a row whose supervisor died, before a job that does not advance is counted as failed
IN_MEMORY = (
    "taken_seats", "unreported", "quarantined", "kept_seats", "idle_seats", "stale_reports", "fallbacks",
    "refused_answers", "policy_problem", "origin",
)  # fmt: skip
REMEMBERED = 101  # run times per tenant and job type, of which the median is taken


class Controller:
    """Rows of live jobs, and their scheduler. Its methods change both together, and note what changed in `turn`."""

    def __init__(
        self,
        site: Site,
        scheduler: Scheduler,
        runner: ServicePolicyRunner,
        lookup: Lookup,
        *,
        incarnation: str,
        next_job: int = 1,
        next_order: int = 1,
    ) -> None:
        self.lookup = lookup
        self.incarnation, self.next_job = incarnation, next_job
        self.driver = Driver(next_order, MOST_LOSSES)
        self.rows: dict[str, JobRow] = {}  # live ones
        self.at = 0.0  # time of the last moment
        self.origin = 0.0  # wall-clock time of second 0, for what is sent
        self.wake = math.inf
        self.moments = 0  # handled so far
        self.drained: dict[int, str] = {}  # node → reason
        self.drains: dict[DrainKey, Drain] = {}  # nodes and accelerators that get no further gang
        self.maintenance: dict[int, Maintenance] = {}  # those that are not over
        self.next_maintenance = 1
        self.closed: frozenset[int] = frozenset()  # seats that a maintenance keeps free by now
        self.pinned: set[str] = set()  # jobs that can save, and keep their seats as these are drained
        self.leaving: set[str] = set()  # jobs whose gang was stopped, and may not have ended
        self.taken_seats: dict[int, str] = {}  # seat → who uses it, that is no gang of ours
        self.quarantined: dict[int, QuarantinedSeat] = {}  # those of them with processes that cannot be killed
        self.unreported: set[int] = (
            set()
        )  # seats that were taken at the last start, until the world reports who has them
        self.kept_seats: dict[int, str] = {}  # those of them that a quarantined job had, and may still use
        self.subject = ""  # the job that is being dealt with, to be named where that fails
        self.fairness, self.usage = TenantFairness(), UsageCounter()
        self.stale_reports = 0
        self.asked: Ask | None = None  # the last one
        self.fallbacks = 0  # asks that the policy's fallback has answered
        self.refused_answers = 0  # that broke a rule
        self.policy_problem = ""  # why the policy's last answer could not be used, or there was none
        self.waiting: Counter[str] = Counter()  # jobs that wait, by tenant
        self.followers: defaultdict[str, list[str]] = defaultdict(list)
        self.named: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)  # ids by tenant, owner and name
        self.timers: list[tuple[float, str, str, int]] = []  # when, what, job, epoch
        self.idle_dues: dict[str, float] = {}  # when an interactive job is looked at again
        self.run_times: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self.idle_seats: dict[int, float] = {}  # seats whose gang hardly uses them → since when
        self.memory_gib: dict[str, float] = {}  # most used on one accelerator, by job type
        self._events: list[Event] = []  # of the moment that is being collected
        self._touched: set[str] = set()  # jobs that these events are about
        self._ended: deque[str] = deque()  # jobs whose followers are to be looked at
        self.turn = Turn(0.0)
        self.use_site(site, scheduler, runner)

    def use_site(
        self, site: Site, scheduler: Scheduler, runner: ServicePolicyRunner, *, forget_seats: bool = False
    ) -> None:
        """Go on with another scheduler, which knows no job yet; `forget_seats`: the accelerators are others."""
        self.site, self.scheduler, self.runner = site, scheduler, runner
        self.log = MomentLog()
        self.device_types = tuple(site.setup.topology.types[j] for j in site.setup.topology.type.tolist())
        self.nodes, self.usage.zone = site.node_names(), site.zone
        self.drained, self.drains, self.closed, self.pinned = {}, {}, frozenset(), set()
        self.learner: ThroughputLearner | None = throughput_learner(site.setup, site.setup.believed)
        self.use_limits()
        if forget_seats:
            self.taken_seats, self.quarantined, self.kept_seats, self.unreported = {}, {}, {}, set()

    def use_limits(self) -> None:
        """Go by the limits of the site: jobs that run go on, also above them."""
        self.limits = LimitBook(self.site.limits)
        for row in self.rows.values():
            self.limits.note(row)
        for row in self.rows.values():
            if row.holds == [LIMIT]:
                self.limits.queue(row)
        self.own_order = OwnOrder(self)

    def believed_memory(self, job_type: str, declared: float | None) -> float:
        """Return the memory that a job needs on each accelerator, declared or that of like jobs; nan = not known."""
        return self.memory_gib.get(job_type, math.nan) if declared is None else float(declared)

    def memory(self) -> dict[str, Any]:
        """Return what is known of the world and of the policy, and stored nowhere."""
        return {name: getattr(self, name) for name in IN_MEMORY}

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Go on from what another controller knew."""
        for name, value in memory.items():
            setattr(self, name, value)

    def row(self, job_id: str) -> JobRow | None:
        """Return a job, also one that has ended in this turn or long ago."""
        return self.rows.get(job_id) or self.turn.rows.get(job_id) or self.lookup.job(job_id)

    def is_met(self, needed: Dependency) -> bool | None:
        """Say whether a dependency has come true; None: not yet, False: it never will."""
        try:
            row = self.row(needed.job_id)
        except InvalidInput:  # its row in the store is damaged, so nothing is known of it
            return None
        return needed.is_met(None if row is None else row.state)

    def dependencies(self, row: JobRow) -> list[Dependency]:
        """Return what a job waits for, or has waited for; of the jobs before a singleton the last that is left."""
        after, earlier = row.spec.get("after", ()), list[str]()
        if SINGLETON in after:
            alike = self.named.get((row.tenant, row.owner, row.name), [])
            before = map(alike.__getitem__, range(bisect_left(alike, row.number, key=_number_in) - 1, -1, -1))
            earlier = list(islice((one for one in before if one in self.rows and not self.rows[one].is_over), 1))
        return dependencies_of(after, earlier)

    def _wait_again(self, row: JobRow) -> None:
        """Let a job go on if all that it waits for has come true; else let it wait for what is left."""
        needed = self.dependencies(row)
        if all(map(self.is_met, needed)):
            self.unhold(row, "after")
            return
        for one in needed:
            if one.kind == SINGLETON and row.id not in self.followers[one.job_id]:
                self.followers[one.job_id].append(row.id)

    def new_row(
        self,
        job: JobDocument,
        index: int | None,
        tenant: str,
        owner: str,
        total: float,
        estimated: bool,
        shapes: tuple[int, ...],
    ) -> JobRow:
        """Return the row of a further job, which is not added yet."""
        number, spec = self.next_job, self.limited_spec(job, owner)
        self.next_job += 1
        job_id = f"{number}-{self.incarnation}"
        return JobRow(
            id=job_id, number=number, tenant=tenant, owner=owner, name=job.name or job_id, spec=spec,
            submitted=self.at, since=self.at, total_steps=total,
            memory_gib=self.believed_memory(job.job_type, job.accelerator_memory_gib),
            estimated=estimated, other_shapes=shapes, array_index=index,
            restart_within_s=0.0 if job.interactive else self.site.service.restart_within_s,
        )  # fmt: skip

    def limited_spec(self, job: JobDocument, owner: str) -> dict[str, Any]:
        """Return the document as JSON; one that names no longest time gets that which holds for its user."""
        longest_s = self.limits.of_user(owner).longest_s
        if job.interactive is not None:
            longest_s = min(math.inf if longest_s is None else longest_s, self.site.interactive.longest_s)
        return ({} if longest_s is None else {"max_run_s": longest_s}) | job.spec()

    def set_aside_unscheduled(self, row: JobRow, reason: str) -> None:
        """Note a job that the scheduler never gets: it is over, with the reason."""
        row.state, row.reason, row.ended = QUARANTINED, reason, self.at
        self.usage.ends(row, QUARANTINED, self.at)
        self.changed(row, QUARANTINED)

    def add(self, row: JobRow) -> None:
        """Let a job wait; one that follows a job that has failed by now is cancelled with it."""
        job_id = row.id
        if row.estimated:
            row.estimate = self.estimate_of(row)
        self.rows[job_id] = row
        self.waiting[row.tenant] += 1
        row.active = (0.0, 0.0)
        self._becomes_active(row)
        self.named[row.tenant, row.owner, row.name].append(job_id)
        waits_for = [one for one in self.dependencies(row) if not self.is_met(one)]
        events: list[Event] = [JobSubmitted(core_job(row))]
        if row.estimate:
            events.append(estimated_event(row))
        if waits_for:
            self.hold(row, "after")
            row.reason = f"it follows {', '.join(one.job_id for one in waits_for[:3])}"
            events.append(JobPaused(job_id))
            for one in waits_for:
                self.followers[one.job_id].append(job_id)
        elif self.limits.in_its_way(row) is not None:
            self.hold(row, LIMIT)
            row.reason = self.limits.reason(row)
            events.append(JobPaused(job_id))
            self.limits.queue(row)
        elif self.own_order.is_closed(row):
            self.hold(row, PRIORITY)
            row.reason = self.own_order.reason(row)
            events.append(JobPaused(job_id))
            self.own_order.queue(row)
        self.emit(job_id, *events)
        self.changed(row, "submitted")
        for one in waits_for:
            if self.is_met(one) is False:
                self._end_follower(row, one.job_id)
                return

    def believed_throughput(self, kind: str, size: int) -> Floats:
        """Return believed steps/s of a gang on each type, (type,), also of kinds that no job had so far."""
        if self.learner is not None:
            return self.learner.rates(kind, size)
        return self.scheduler.belief.speeds.solo_throughput(kind, size)

    def go_on_learning(self) -> None:
        """Learn on from what the scheduler believes, about the live jobs."""
        if self.learner is None:
            return
        state = self.scheduler.state
        self.learner.adopt(self.scheduler.belief.learnt.items())
        for row in sorted(self.rows.values(), key=lambda one: one.number):
            if not row.is_over:
                number = state.row_of.get(row.id)
                if number is None:  # it will be set aside
                    continue
                runs = state.jobs.stage[number] == Stage.RUNNING and state.jobs.partner[number] < 0
                start = Start(row.id, row.epoch, row.seats, math.inf) if runs and row.seats else None
                self.learner.resume(state.submitted[number], row.steps, start, self.at)

    def like_run_times(self, tenant: str, job_type: str) -> Sequence[float]:
        """Return the run times of the last jobs of that tenant and type, else of all jobs of the type."""
        return self.run_times.get((tenant, job_type)) or [
            run_s for (_, kind), times in self.run_times.items() if kind == job_type for run_s in times
        ]

    def estimate_of(self, row: JobRow) -> tuple[float, float, float, int]:
        """Return median, ends of the 80 % interval and number of like jobs: the run time on the job's fastest type."""
        middle, low, high, count = estimate_run_time(self.like_run_times(row.tenant, row.spec.get("job_type", "")))
        job = core_job(row)
        run_s = row.total_steps / float(self.believed_throughput(job.job_type, job.scale_factor).max())
        return run_s, low * run_s / middle, high * run_s / middle, count

    def _becomes_active(self, row: JobRow) -> None:
        """Note that a job waits or runs from now on."""
        self.fairness.advance(self.scheduler, self.at)
        row.active_since = tuple(self.fairness.active_time[1:])

    def _is_active_no_more(self, row: JobRow) -> None:
        """Add up for how long a job waited or ran, and beside how many."""
        self.fairness.advance(self.scheduler, self.at)
        if row.active and row.active_since:
            now, since, before = self.fairness.active_time, row.active_since, row.active
            row.active = (before[0] + now.seconds - since[0], before[1] + now.job_s - since[1])
        row.active_since = ()

    def hold(self, row: JobRow, cause: str) -> None:
        """Add a reason to ask for nothing."""
        if not row.holds:
            self._is_active_no_more(row)
        row.holds.append(cause)

    def unhold(self, row: JobRow, cause: str) -> None:
        """Remove one reason to ask for nothing; without any left the job waits for accelerators."""
        if cause in row.holds:
            row.holds.remove(cause)
            if not row.holds and cause != LIMIT and self.limits.in_its_way(row) is not None:
                row.holds.append(LIMIT)
                row.reason = self.limits.reason(row)
            if row.holds == [LIMIT]:
                self.limits.queue(row)
            if not row.holds and cause != PRIORITY and self.own_order.is_closed(row):
                row.holds.append(PRIORITY)
                row.reason = self.own_order.reason(row)
                self.own_order.queue(row)
            if not row.holds:
                self._becomes_active(row)
                self.emit(row.id, JobResumed(row.id))
            if "user" not in row.holds:
                self.move(row, "preempted" if row.steps > 0 else "pending", row.reason if row.holds else "")
            else:
                self.changed(row, "")

    def adopt(
        self,
        rows: Iterable[JobRow],
        run_times: Iterable[tuple[str, str, float]] = (),
        memory_gib: Mapping[str, float] | None = None,
    ) -> dict[str, str]:
        """Take over the live jobs of the store after a restart, and what is known of earlier ones.

        Returns the jobs whose documents cannot be used, each with why.
        """
        self.memory_gib.update(memory_gib or {})
        unusable = {}
        for row in rows:
            self.rows[row.id] = row
            self.waiting[row.tenant] += row.state in WAITING
            try:
                self._go_on_with(row)
            except (TypeError, ValueError, LookupError, OverflowError) as error:
                unusable[row.id] = f"its document in the store cannot be used ({error!r})"
        self.use_limits()
        for tenant, kind, run_s in run_times:
            self.run_times[tenant, kind].append(run_s)
        self.go_on_learning()
        return unusable

    def _go_on_with(self, row: JobRow) -> None:
        self.set_timers(row)
        if row.state == "stopping":
            self.end_soon(row, row.since)
        self.named[row.tenant, row.owner, row.name].append(row.id)
        if "after" in row.holds:
            for needed in self.dependencies(row):
                self.followers[needed.job_id].append(row.id)

    def due(self) -> float:
        """Return when a step is due though nothing arrives."""
        if self.own_order.goes_on or self.limits.goes_on:
            return self.at
        return min(self.wake, self.timers[0][0] if self.timers else math.inf)

    def set_timers(self, row: JobRow) -> None:
        if "backoff" in row.holds:
            heapq.heappush(self.timers, (row.backoff_until, "backoff", row.id, row.epoch))
        longest = row.spec.get("max_run_s")
        if longest is not None and row.state == "running":
            heapq.heappush(self.timers, (row.started + longest, "max_run", row.id, row.epoch))
        if not math.isnan(row.idle_since):
            self.idle_dues[row.id] = self.at
            heapq.heappush(self.timers, (self.at, "idle", row.id, row.epoch))

    def forget_timers(self, job_id: str) -> None:
        """Let nothing more fall due for a job."""
        self.timers = [timer for timer in self.timers if timer[2] != job_id]
        self.idle_dues.pop(job_id, None)
        heapq.heapify(self.timers)

    # ---- the core --------------------------------------------------------------------------------------------

    def emit(self, job_id: str, *events: Event) -> None:
        """Add events to the moment; a second word about the same job begins another one, as a moment has no order."""
        if job_id and job_id in self._touched:
            self.flush(self.at)
        if job_id:
            self._touched.add(job_id)
        self._events += events

    def settle_limits(self) -> None:
        """Let in the jobs that are within their limits by now, with all that follows."""
        while self.own_order.settle() or self.limits.let_in(self) or (self.turn.moments and self.limits.exchange(self)):
            self.flush(self.at)

    def is_touched(self, job_id: str) -> bool:
        """Say whether an event of the moment that is being collected is about a job."""
        return job_id in self._touched

    def flush(self, at: float) -> None:
        """Hand the collected events to the scheduler, with all that follows from its decisions."""
        for _ in range(MOST_MOMENTS):
            if not self._events:
                return
            events, self._events = self._events, []
            self._add_taken(events)
            self._touched.clear()
            self.at = max(self.at, at)
            following: Moment | None = Moment.of(self.at, events)
            while following is not None:
                following = self._handle(following)
        raise AssertionError(f"time stopped advancing at {self.at:g} s: {MOST_MOMENTS} moments followed each other")

    def _add_taken(self, events: list[Event]) -> None:
        """Take out of service, in the moment in which its gang leaves, a seat that others use by then."""
        if self.drains or self.maintenance or self.closed or self.pinned:
            keep_off(self, events)
            return
        out = self.scheduler.state.taken
        if not all(out[seat] for seat in self.taken_seats) and not any(
            isinstance(e, AcceleratorsTaken) for e in events
        ):
            events.append(AcceleratorsTaken(tuple(sorted(self.taken_seats))))

    def out_seats(self, but: Iterable[int] = ()) -> tuple[int, ...]:
        """Return the seats, but some, that get no gang: others use them, they are drained, or kept for maintenance."""
        self.closed = closed_seats(self)
        return tuple(sorted({*self.taken_seats, *self.unreported, *drained_seats(self), *self.closed}.difference(but)))

    def leave(self, row: JobRow) -> None:
        """Take its seats from a job; where its gang has them is remembered until that has ended."""
        if row.seats and row.ended_epoch < row.epoch:
            row.left_seats, row.left_epoch = row.seats, row.epoch
            self.leaving.add(row.id)
        row.seats = ()

    def _handle(self, moment: Moment) -> Moment | None:
        self.fairness.advance(self.scheduler, moment.at)
        if self.learner is not None and (more := self.learner.take(moment.at, moment.events)):
            moment = Moment.of(moment.at, (*moment.events, *more))
        pending = self.scheduler.asks.pending
        decisions = self.scheduler.handle(moment)
        self.moments += 1
        due = digest(self.scheduler) if self.moments % DIGEST_EVERY == 0 else None
        lines = self.log.lines(moment, decisions, pending)
        self.turn.moments.append(LoggedMoment(moment.at, lines, due))
        following = None
        for decision in decisions:
            if self.learner is not None:
                self.learner.order(moment.at, decision)
            if isinstance(decision, Stop):
                self._note_preemptions(decision, moment)
            if isinstance(decision, Ask):
                self.asked = decision
                answer = self.runner.answer(decision)
                if answer is not None:  # else it is reported later
                    following = Moment(moment.at, (Answered(decision.asked, answer),))
            else:
                self._apply(decision)
        return following

    def _apply(self, decision: Decision) -> None:
        match decision:
            case Start() | Starts():
                for start in decision.each():
                    self._start(start)
            case Stop(job_ids, epochs, save):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    if job_id in self.rows:  # else its gang has ended by now
                        self._stop(self.rows[job_id], int(epoch), save)
            case SetTimer(at):
                self.wake = at
            case GiveUp(job_id):
                row = self.rows[job_id]
                self.end(row, "failed", row.reason.partition(": ")[2] or row.reason)
            case Refuse(job_id, why):
                row = self.rows[job_id]
                self.end(row, "failed" if row.failures else "rejected", why)

    def forget_ended(self) -> None:
        """Let the scheduler drop the rows of jobs that have ended, at the end of a turn."""
        row = self.scheduler.forget_ended()
        if row is not None:
            self.log.renumber(row)

    def _note_preemptions(self, stop: Stop, moment: Moment) -> None:
        """Note by which jobs the policy replaces those that it stops; they still have their seats in their rows."""
        state = self.scheduler.state
        for job_id in stop.job_ids:
            row, number = self.rows.get(job_id), state.row_of[job_id]  # none is forgotten before the turn's end
            is_waiting = state.jobs.stage[number] == Stage.WAITING
            if row is not None and row.seats and is_waiting and not stops_for_events(moment.events, job_id):
                found = preemption_of(self.scheduler, number, np.array(row.seats), moment.at)
                row.preempted, row.preempted_by, row.preempted_by_rank = found.at, found.by, found.ranked

    def _start(self, start: Start) -> None:
        gangs = start.gangs()
        for job_id, epoch in gangs:
            row = self.rows[job_id]
            row.start_steps = row.steps
            is_ordered = self.driver.start(row, epoch, start.seats, shared=len(gangs) > 1)
            row.preempted, row.preempted_by, row.preempted_by_rank = math.nan, (), False
            self.move(row, "starting", "")
            if not is_ordered:
                self.emit(job_id, JobFinished(job_id, epoch))
                self.end(row, "succeeded", "")

    def _stop(self, row: JobRow, epoch: int, save: bool) -> None:
        if row.state != QUARANTINED:
            self.leave(row)
        if row.ended_epoch >= epoch:
            return
        self.driver.stop(row.id, epoch, save=save)
        if row.state in SEATED:
            self.move(row, "stopping", "")
        else:
            self.turn.rows[row.id] = row

    def resend(self, rows: Iterable[JobRow]) -> list[Order]:
        """Return the orders that a world which knows nothing needs for the processes of these jobs."""
        for row in rows:
            self.driver.resend(row.id, row, was_launched=row.launched_epoch == row.epoch)
            if row.is_over and row.seats:
                self.driver.stop(row.id, row.epoch, save=True)
        away = {**self.drained, **{one.node: one.reason for one in self.drains.values() if one.place == NODE}}
        for node, reason in away.items():
            if not reason.startswith(BY_ENGINE):  # else the engine itself reports it again
                self.order_node(node)
        return self.driver.take_orders()

    def end_soon(self, row: JobRow, since: float) -> None:
        """End the gang of a job without a checkpoint if it has not stopped when `drain_timeout_s` is over."""
        when = since + self.site.service.drain_timeout_s
        heapq.heappush(self.timers, (when, "drain", row.id, row.epoch))

    # ---- nodes -----------------------------------------------------------------------------------------------

    def take_out(self, node: int, reason: str) -> list[str]:
        """Take a node out of service; return the jobs that leave it, after they saved."""
        if node in self.drained:
            return []
        topology, moved = self.site.setup.topology, list[str]()
        first, size = topology.first[node], topology.size[node]
        events: list[Event] = []
        for row in self.rows.values():
            if row.state in SEATED and any(first <= seat < first + size for seat in row.seats):
                moved.append(row.id)
                self.end_soon(row, self.at)
                events += [JobPaused(row.id), JobResumed(row.id)]
        self.flush(self.at)
        self.emit("", *events, NodeLost(node))
        self._note_node("NodeLost", node, reason)
        self.drained[node] = self.turn.nodes[node] = reason
        return moved

    def remove(self, node: int, reason: str) -> list[str]:
        """Take a node out of service for good, until an operator resumes it; return the jobs that leave it."""
        moved = self.take_out(node, reason)
        self._note_node("NodeRemoved", node, reason)
        self.drained[node] = self.turn.nodes[node] = reason
        return moved

    def is_removed(self, node: int) -> bool:
        """Say whether a node was removed from the cluster, not only drained."""
        return self.drained.get(node, "").startswith(REMOVED)

    def capacity(self) -> Floats:
        """Return the accelerators of each type on nodes that were not removed, (type,)."""
        topology = self.site.setup.topology
        found = topology.capacity()
        for node in filter(self.is_removed, self.drained):
            found[topology.node_type[node]] -= topology.size[node]
        return found

    def bring_back(self, node: int) -> None:
        """Bring a node back into service, if it was out of it."""
        if node in self.drained:
            self.flush(self.at)
            self.emit("", NodeJoined(node))
            self._note_node("NodeJoined", node, "")
            del self.drained[node]
            self.turn.nodes[node] = ""
            forget(self, node)

    def _note_node(self, kind: str, node: int, reason: str) -> None:
        detail = {"reason": reason, "epoch": 0, "node": self.nodes[node]}
        self.turn.news.append(("", "", kind, json.dumps(detail)))

    def order_node(self, node: int) -> None:
        """Tell an engine whether a node is in service; the local world has no need to know."""
        if self.site.setup.scenario.world.backend != "local":
            one = self.drains.get((node, NODE))
            self.driver.set_node(node, self.drained.get(node, "" if one is None else one.reason))

    # ---- rows ------------------------------------------------------------------------------------------------

    def move(self, row: JobRow, state: str, reason: str) -> None:
        """Change the state of a job."""
        self.usage.moves(row, state, self.at, self.device_types)
        self.waiting[row.tenant] += (state in WAITING) - (row.state in WAITING)
        row.state, row.since, row.reason = state, self.at, reason
        if state in WAITING:
            self.leave(row)
        self.changed(row, state)

    def end(self, row: JobRow, state: str, reason: str) -> None:
        """Move a job to a final state; jobs that follow it are released, or cancelled with it."""
        row.ended, row.holds = self.at, []
        self.leave(row)
        self._is_active_no_more(row)
        if state == "succeeded" and row.active:
            active_s = max(row.active[0], row.run_s)  # its processes may have run on into a hold, while they saved
            state_now, number = self.scheduler.state, self.scheduler.state.row_of[row.id]
            size, devices = int(state_now.jobs.scale_factor[number]), float(state_now.capacity.sum())
            rho = finish_time_fairness(self._run_alone_s(row), active_s, row.active[1], size, devices)
            if rho is not None:
                self.fairness.count_success(row.tenant, rho)
        self.usage.ends(row, state, self.at)
        self.move(row, state, reason)
        self.forget(row)
        self._ended.append(row.id)
        if len(self._ended) == 1:  # else the call that is at work goes on with it: a chain may be long
            while self._ended:
                self._follow(self._ended[0])
                self._ended.popleft()

    def _follow(self, earlier: str) -> None:
        """Release the jobs that follow one that has ended, or cancel them."""
        for follower in self.followers.pop(earlier, ()):
            other = self.rows.get(follower)
            if other is None or other.is_over:
                continue
            needed = self.dependencies(other)
            if any(one.job_id == earlier and self.is_met(one) is False for one in needed):
                self._end_follower(other, earlier)
            else:
                self._wait_again(other)

    def _end_follower(self, row: JobRow, earlier: str) -> None:
        """Cancel a job that waits for one that has ended otherwise."""
        other = self.row(earlier)
        ended = "has ended otherwise" if other is None else ended_as(other.state)
        self.emit(row.id, JobCancelled(row.id))
        self.end(row, "cancelled", f"job {earlier}, which it follows, {ended}")

    def _run_alone_s(self, row: JobRow) -> float:
        """Return for how long a job that has ended would have run on its fastest type."""
        number = self.scheduler.state.row_of[row.id]
        rate = self.scheduler.belief.throughput[number]
        held = self.scheduler.ledger.received_at(self.at, np.array([number]))[0]
        known = held.sum() * rate.max()
        return row.run_s * float((held * rate).sum() / known) if known > 0 else row.run_s

    def forget(self, row: JobRow) -> None:
        self.idle_dues.pop(row.id, None)
        if not row.is_live and self.rows.pop(row.id, None) is not None:
            self._unname(row)

    def rename(self, row: JobRow, name: str) -> None:
        """Give a live job another name; singletons that waited for it by its old one may go on."""
        if name == row.name:
            return
        self._unname(row)
        row.name = name
        insort(self.named[row.tenant, row.owner, name], row.id, key=_number_in)
        for job_id in (row.id, *self.followers.get(row.id, ())):
            if (other := self.rows.get(job_id)) is not None and "after" in other.holds:
                self._wait_again(other)

    def _unname(self, row: JobRow) -> None:
        alike = self.named[row.tenant, row.owner, row.name]
        if row.id in alike:
            alike.remove(row.id)
        if not alike:
            del self.named[row.tenant, row.owner, row.name]

    def changed(self, row: JobRow, news: str) -> None:
        self.turn.rows[row.id] = row
        self.limits.note(row)
        self.own_order.note(row)
        if news in NOTED and (self.site.notify.webhooks or "notify" in row.spec):
            self.turn.notices += notices_of(self.site.notify, row, news, self.at, self.origin)
        if news:
            self.turn.news.append((row.id, row.tenant, news, _detail(row.reason, row.epoch)))

    def disagreement(self, row: JobRow) -> str:
        """Return in what a row differs from the scheduler's state; "" for nothing."""
        state = self.scheduler.state
        number = state.row_of.get(row.id)
        if number is None:
            return "" if row.is_over else "the scheduler does not know the job"
        stage = int(state.jobs.stage[number])
        if (stage == _RUNS) != (row.state in SEATED):
            return f"it is {row.state}, and the scheduler has {Stage(stage).name}"
        if (stage == _PAUSED) != bool(row.holds):
            return f"it is held for {row.holds}, and the scheduler has {Stage(stage).name}"
        if row.state in SEATED and set(row.seats) != set(state.seats_of(number).tolist()):
            return f"it has seats {row.seats}, and in the scheduler others"
        return ""

    def check(self) -> None:
        """Raise AssertionError unless rows and the scheduler's state agree."""
        holders: dict[int, str] = {}
        for row in self.rows.values():
            assert not (wrong := self.disagreement(row)), f"job {row.id}: {wrong}"
            for seat in row.seats:
                assert row.shared or seat not in holders, f"seat {seat} has two holders: {row.id}, {holders[seat]}"
                holders[seat] = row.id
        assert all(count >= 0 for count in self.waiting.values())
        timer = self.scheduler.mechanism.timer
        is_due = min(timer, self.wake) <= self.at  # the next step calls the core, which may want it no more
        assert self.wake == timer or is_due, f"the core waits for {timer:g}, not for {self.wake:g}"


@lru_cache(maxsize=256)
def _detail(reason: str, epoch: int) -> str:
    """Return what an event says besides its kind; that of many submissions is the same."""
    return json.dumps({"reason": reason, "epoch": epoch})


def _number_in(job_id: str) -> int:
    """Return the number of a job from its id."""
    return int(job_id.partition("-")[0])
