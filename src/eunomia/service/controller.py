"""The controller as a pure step: requests and reports in, replies and orders out, around the scheduling core.

It reads no clock, file or random number: the time is handed in, ids come from counters and from the incarnation, a text
that is new at every start of the service. What it returns has no effect until the store has committed it.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.inputs.problems import InvalidInput
from eunomia.model.decisions import Ask, Decision, GiveUp, Refuse, SetTimer, Start, Starts, Stop
from eunomia.model.events import (
    Answered,
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.job_lifecycle import Stage
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.records.record import step_lines
from eunomia.records.run import PolicyRunner
from eunomia.records.scheduler_snapshot import digest
from eunomia.service.job_document import FieldProblem, InvalidRequest, JobDocument, declared_end, parse_job
from eunomia.service.job_row import SEATED, TERMINAL, WAITING, JobRow
from eunomia.service.messages import (
    Cancel,
    Change,
    ChangeNode,
    Halt,
    Hold,
    Input,
    Launch,
    Order,
    Principal,
    Release,
    Reply,
    Request,
    Submit,
)
from eunomia.service.site import Site, kind_of

DIGEST_EVERY = 256  # moments
MOST_MOMENTS = 1_000  # of one step: beyond, time is taken to have stalled
MOST_LOSSES = 3  # starts whose supervisor died before a job is counted as failed
MOST_BACKOFF_S = 300.0
HOUR_S = 3600.0  # believed length of a job about which nothing is known
REMEMBERED = 101  # run times per tenant and job type, of which the median is taken
CHANGEABLE = ("weight", "deadline_s", "name", "labels", "max_run_s")


class Lookup(Protocol):
    """What the controller asks of the store: jobs that are over, and submissions made before."""

    def key(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        """Return body digest and job ids of an earlier submission with this idempotency key."""
        ...

    def job(self, job_id: str) -> JobRow | None:
        """Return any job; None for an unknown id."""
        ...


@dataclass(slots=True)
class LoggedMoment:
    """One moment as it is stored: lines of a record, and the digest of the state after it if it was due."""

    at: float
    lines: str
    digest: str | None


@dataclass(slots=True)
class Turn:
    """All that one step changes: written in one transaction, before replies and orders leave."""

    at: float
    moments: list[LoggedMoment] = field(default_factory=list)
    rows: dict[str, JobRow] = field(default_factory=dict)
    news: list[tuple[str, str, str, str]] = field(default_factory=list)  # job, tenant, kind, detail
    keys: list[tuple[str, str, str, list[str]]] = field(default_factory=list)  # tenant, key, digest, ids
    orders: list[Order] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)  # orders that the world has received
    audit: list[tuple[str, str, str, str, str]] = field(default_factory=list)  # user, role, source, action, object
    nodes: dict[int, str] = field(default_factory=dict)  # drained nodes and why; "" = in service
    replies: list[Reply | None] = field(default_factory=list)  # one an input; None for reports

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        return not (self.moments or self.rows or self.keys or self.taken or self.audit or self.orders)


class Controller:
    """Jobs of users, the scheduler that decides for them, and what was ordered."""

    def __init__(
        self,
        site: Site,
        scheduler: Scheduler,
        runner: PolicyRunner,
        lookup: Lookup,
        *,
        incarnation: str,
        next_job: int = 1,
        next_order: int = 1,
    ) -> None:
        self.site, self.scheduler, self.runner, self.lookup = site, scheduler, runner, lookup
        self.incarnation, self.next_job, self.next_order = incarnation, next_job, next_order
        self.rows: dict[str, JobRow] = {}  # live ones
        self.at = 0.0  # time of the last moment
        self.wake = math.inf
        self.moments = 0  # handled so far
        self.drained: dict[int, str] = {}  # node → reason
        self.device_types = tuple(site.setup.topology.types[j] for j in site.setup.topology.type.tolist())
        self.stale_reports = 0
        self._nodes = site.node_names()
        self._pending: Counter[str] = Counter()  # jobs that wait, by tenant
        self._followers: defaultdict[str, list[str]] = defaultdict(list)
        self._timers: list[tuple[float, str, str, int]] = []  # when, what, job, epoch
        self._run_times: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._events: list[Event] = []  # of the moment that is being collected
        self._touched: set[str] = set()  # jobs that these events are about
        self._turn = Turn(0.0)

    # ---- from outside ----------------------------------------------------------------------------------------

    def adopt(self, rows: Iterable[JobRow], run_times: Iterable[tuple[str, str, float]] = ()) -> None:
        """Take over the live jobs of the store after a restart."""
        for row in rows:
            self.rows[row.id] = row
            self._pending[row.tenant] += row.state in WAITING
            self._set_timers(row)
            if "after" in row.holds:
                for earlier in row.spec.get("after", ()):
                    self._followers[earlier].append(row.id)
        for tenant, kind, run_s in run_times:
            self._run_times[tenant, kind].append(run_s)

    def due(self) -> float:
        """Return when a step is due though nothing arrives."""
        return min(self.wake, self._timers[0][0] if self._timers else math.inf)

    def step(self, now: float, inputs: Sequence[Input]) -> Turn:
        """Take in what has arrived by `now`, decide, and return all that changes."""
        now = float(now)
        turn = self._turn = Turn(max(self.at, now))
        if self.wake <= now:
            at, self.wake = max(self.at, self.wake), math.inf
            self._emit("", TimerFired())
            self._flush(at)
        self.at = max(self.at, now)
        while self._timers and self._timers[0][0] <= now:
            self._expire(*heapq.heappop(self._timers)[1:])
        for message in inputs:
            turn.replies.append(self._take(message))
        self._flush(self.at)
        return turn

    def resend(self, rows: Iterable[JobRow]) -> list[Order]:
        """Return the orders that a world which knows nothing needs for the processes of these jobs."""
        orders: list[Order] = []
        for row in rows:
            if row.ended_epoch < row.epoch:
                orders.append(self._launch_order(row, adopt_only=row.launched_epoch == row.epoch))
                if row.state not in SEATED:
                    self.next_order += 1
                    orders.append(Halt(self.next_order - 1, row.id, row.epoch))
        return orders

    # ---- requests --------------------------------------------------------------------------------------------

    def _take(self, message: Input) -> Reply | None:
        if not isinstance(message, Request):
            self._report(message)
            return None
        action, who = message.action, message.who
        kind = type(action).__name__.lower()
        handler = _HANDLERS[type(action)]
        reply: Reply = handler(self, action, who)
        if reply.status < 300:
            named = getattr(action, "job_id", None) or getattr(action, "node", None) or ",".join(_ids(reply))[:200]
            self._turn.audit.append((who.user, who.role, message.source, kind, named))
        return reply

    def _submit(self, action: Submit, who: Principal) -> Reply:
        known = self.lookup.key(who.tenant, action.key) or self._key_of_this_turn(who.tenant, action.key)
        if known is not None:
            return self._repeated(action, *known)
        problems, plans = [], []
        for place, job in enumerate(action.jobs):
            prefix = f"[{place}]." if len(action.jobs) > 1 else ""
            tenant = job.tenant or who.tenant
            found, total, estimated, shapes = self._check(job, tenant, who)
            problems += [FieldProblem(prefix + one.field, one.value, one.rule, one.fix) for one in found]
            plans.append((job, tenant, total, estimated, shapes))
        if problems:
            return Reply(422, {"title": "the jobs cannot be accepted"}, tuple(problems))
        count = Counter(tenant for job, tenant, *_ in plans for _ in job.indices())
        most = self.site.service.max_pending_per_tenant
        over = [tenant for tenant, more in count.items() if self._pending[tenant] + more > most]
        if over:
            return Reply(429, {"title": f"tenant {over[0]!r} may have {most:,} jobs waiting; wait until some have run"})
        rows = [
            self._add(job, index, tenant, who.user, total, estimated, shapes)
            for job, tenant, total, estimated, shapes in plans
            for index in job.indices()
        ]
        ids = [row.id for row in rows]
        self._turn.keys.append((who.tenant, action.key, action.digest, ids))
        if action.several:
            return Reply(201, {"ids": ids})
        return Reply(201, {"id": ids[0], "row": rows[0]})

    def _key_of_this_turn(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        for owner, other, body, ids in self._turn.keys:
            if (owner, other) == (tenant, key):
                return body, ids
        return None

    def _repeated(self, action: Submit, body: str, ids: list[str]) -> Reply:
        if body != action.digest:
            row = self._row(ids[0])
            was, now = (row.spec if row else {}), action.jobs[0].spec()
            fields = [key for key in (*was, *now) if was.get(key) != now.get(key)] or ["body"]
            rule = "the same Idempotency-Key came with another body before"
            problem = FieldProblem(fields[0], str(now.get(fields[0])), rule, "send a new key, or the same body")
            return Reply(409, {"title": rule, "code": "idempotency_conflict", "ids": ids}, (problem,))
        if action.several:
            return Reply(200, {"ids": ids})
        row = self._row(ids[0])
        return Reply(200, {"id": ids[0], "row": row})

    def _check(
        self, job: JobDocument, tenant: str, who: Principal
    ) -> tuple[list[FieldProblem], float, bool, tuple[int, ...]]:
        """Return what is wrong with a job on this cluster, its steps, whether they are estimated, its other sizes."""
        found: list[FieldProblem] = []
        setup = self.site.setup
        if tenant != who.tenant and not who.is_operator:
            found.append(FieldProblem("tenant", tenant, "is not yours", f"leave it out for {who.tenant!r}"))
        elif not is_path(tenant):
            found.append(FieldProblem("tenant", tenant, EMPTY_PART, WHOLE_PATH))
        for name in job.types:
            if name not in setup.topology.types:
                known = ", ".join(setup.topology.types)
                found.append(FieldProblem("types", name, "no such type in this cluster", f"it has {known}"))
        for earlier in job.after:
            other = self._row(earlier)
            if other is None or not who.may_see(other.tenant):
                found.append(FieldProblem("after", earlier, "no such job", "name a job that was submitted before"))
            elif other.is_over and other.state != "succeeded":
                found.append(FieldProblem("after", earlier, f"it has {other.state}", "leave it out"))
        if found:
            return found, 1.0, False, ()
        kind, capacity = kind_of(job.job_type, job.types), setup.topology.capacity()
        try:
            sizes = [
                size
                for size in (job.accelerators, *job.other_sizes())
                if ((self.scheduler.belief.speeds.solo_throughput(kind, size) > 0) & (capacity >= size)).any()
            ]
            speed = self.scheduler.belief.speeds.solo_throughput(kind, job.accelerators)
        except (InvalidInput, LookupError) as error:
            text = str(error).splitlines()[0][:200]
            found.append(
                FieldProblem("job_type", job.job_type, f"its throughput is not known ({text})", "leave it out")
            )
            return found, 1.0, False, ()
        if job.accelerators not in sizes:
            most = int(max((capacity[j] for j in np.flatnonzero(speed > 0)), default=0))
            rule = f"no type that it can run on has so many accelerators (at most {most})"
            found.append(FieldProblem("accelerators", str(job.accelerators), rule, "ask for fewer, or for other types"))
            return found, 1.0, False, ()
        total, estimated = self._length(job, tenant, speed)
        return found, total, estimated, tuple(size for size in sizes if size != job.accelerators)

    def _length(self, job: JobDocument, tenant: str, speed: Any) -> tuple[float, bool]:
        """Return the steps of a job, declared or from run times of like jobs, and whether they are estimated."""
        if job.total_steps is not None:
            return job.total_steps, False
        types = self.site.setup.topology.types
        wanted = self.site.setup.scenario.throughputs.reference_type
        rate = float(speed[types.index(wanted)]) if wanted in types else 0.0
        rate = rate if rate > 0 else float(speed.max())
        if job.duration_s is not None:
            return job.duration_s * rate, False
        known = self._run_times.get((tenant, job.job_type)) or [
            run_s for (_, kind), times in self._run_times.items() if kind == job.job_type for run_s in times
        ]
        return max((median(known) if known else HOUR_S) * rate, 1e-6), True

    def _add(
        self,
        job: JobDocument,
        index: int | None,
        tenant: str,
        owner: str,
        total: float,
        estimated: bool,
        shapes: tuple[int, ...],
    ) -> JobRow:
        number, spec = self.next_job, job.spec()
        self.next_job += 1
        job_id = f"{number}-{self.incarnation}"
        row = JobRow(
            id=job_id, number=number, tenant=tenant, owner=owner, name=job.name or job_id, spec=spec, submitted=self.at,
            since=self.at, total_steps=total, estimated=estimated, other_shapes=shapes, array_index=index,
        )  # fmt: skip
        self.rows[job_id] = row
        self._pending[tenant] += 1
        waits_for = [earlier for earlier in job.after if not self._has_succeeded(earlier)]
        events: list[Event] = [JobSubmitted(core_job(row))]
        if waits_for:
            row.holds.append("after")
            row.reason = f"it follows {', '.join(waits_for[:3])}"
            events.append(JobPaused(job_id))
            for earlier in waits_for:
                self._followers[earlier].append(job_id)
        self._emit(job_id, *events)
        self._changed(row, "submitted")
        return row

    def _row(self, job_id: str) -> JobRow | None:
        """Return a job, also one that has ended in this turn or long ago."""
        return self.rows.get(job_id) or self._turn.rows.get(job_id) or self.lookup.job(job_id)

    def _has_succeeded(self, job_id: str) -> bool:
        row = self._row(job_id)
        return row is not None and row.state == "succeeded"

    def _found(self, job_id: str, who: Principal) -> JobRow | Reply:
        """Return a job that the principal may change, or the refusal: ids of others answer as unknown ones."""
        row = self._row(job_id)
        if row is None or not who.may_see(row.tenant):
            return Reply(404, {"title": "there is no such job"})
        if not who.owns(row.owner, row.tenant):
            return Reply(
                403, {"title": "only its submitter, an administrator of its tenant or an operator may do that"}
            )
        return row

    def _cancel(self, action: Cancel, who: Principal) -> Reply:
        row = self._found(action.job_id, who)
        if isinstance(row, Reply):
            return row
        if row.is_over:
            status = 200 if row.state == "cancelled" else 409
            return Reply(status, {"id": row.id, "row": row, "title": f"the job has already {row.state}"})
        self._emit(row.id, JobCancelled(row.id))
        self._end(row, "cancelled", f"cancelled by {who.user}")
        return Reply(200, {"id": row.id, "row": row})

    def _hold(self, action: Hold, who: Principal) -> Reply:
        row = self._found(action.job_id, who)
        if isinstance(row, Reply):
            return row
        if row.is_over:
            return Reply(409, {"title": f"the job has already {row.state}"})
        if "user" not in row.holds:
            if not row.holds:
                self._emit(row.id, JobPaused(row.id))
            row.holds.append("user")
            self._move(row, "held", f"held by {who.user}")
        return Reply(200, {"id": row.id, "row": row})

    def _release(self, action: Release, who: Principal) -> Reply:
        row = self._found(action.job_id, who)
        if isinstance(row, Reply):
            return row
        if "user" not in row.holds or row.is_over:
            return Reply(409, {"title": "the job is not held"})
        self._unhold(row, "user")
        return Reply(200, {"id": row.id, "row": row})

    def _unhold(self, row: JobRow, cause: str) -> None:
        """Remove one reason to ask for nothing; without any left the job waits for accelerators."""
        if cause in row.holds:
            row.holds.remove(cause)
            if not row.holds:
                self._emit(row.id, JobResumed(row.id))
            if "user" not in row.holds:
                self._move(row, "preempted" if row.steps > 0 else "pending", row.reason if row.holds else "")

    def _change(self, action: Change, who: Principal) -> Reply:
        row = self._found(action.job_id, who)
        if isinstance(row, Reply):
            return row
        if row.is_over:
            return Reply(409, {"title": f"the job has already {row.state}"})
        wrong = [key for key in action.values if key not in CHANGEABLE]
        try:
            parsed = parse_job({**row.spec, **action.values}) if not wrong else None
        except InvalidRequest as error:
            return Reply(422, {"title": "the job cannot be changed so"}, error.problems)
        if parsed is None:
            fix = f"change one of {', '.join(CHANGEABLE)}, or cancel the job and submit it again"
            problems = tuple(FieldProblem(key, None, "cannot be changed", fix) for key in wrong)
            return Reply(422, {"title": "the job cannot be changed so"}, problems)
        row.spec, row.name = parsed.spec(), parsed.name or row.name
        if "weight" in action.values:
            self._emit(row.id, JobUpdated(row.id, weight=float(parsed.weight)))
        if "max_run_s" in action.values:
            self._set_timers(row)
        self._changed(row, "changed")
        return Reply(200, {"id": row.id, "row": row})

    def _change_node(self, action: ChangeNode, who: Principal) -> Reply:
        if not who.is_operator:
            return Reply(403, {"title": "only an operator may do that"})
        if action.node not in self._nodes:
            return Reply(404, {"title": "there is no such node"})
        node = self._nodes.index(action.node)
        moved: list[str] = []
        if action.action == "drain" and node not in self.drained:
            first, size = self.site.setup.topology.first[node], self.site.setup.topology.size[node]
            events: list[Event] = []
            for row in list(self.rows.values()):
                if row.state in SEATED and any(first <= seat < first + size for seat in row.seats):
                    moved.append(row.id)
                    events += [JobPaused(row.id), JobResumed(row.id)]
            self._flush(self.at)
            self._emit("", *events, NodeLost(node))
            self.drained[node] = self._turn.nodes[node] = action.reason or f"drained by {who.user}"
        elif action.action == "resume" and node in self.drained:
            self._flush(self.at)
            self._emit("", NodeJoined(node))
            del self.drained[node]
            self._turn.nodes[node] = ""
        return Reply(200, {"name": action.node, "drained": self.drained.get(node), "moved": moved})

    # ---- reports of the world --------------------------------------------------------------------------------

    def _report(self, message: Any) -> None:
        number = getattr(message, "number", None)
        if number is not None:
            self._turn.taken.append(number)
            return
        row = self.rows.get(message.job_id)
        if row is None or message.epoch != row.epoch or row.ended_epoch >= message.epoch:
            self.stale_reports += 1
            return
        match type(message).__name__:
            case "Launched" if row.launched_epoch < row.epoch:
                row.launched_epoch, row.started = row.epoch, self.at
                row.first_started = self.at if math.isnan(row.first_started) else row.first_started
                if row.state == "starting":
                    self._move(row, "running", "")
                    self._set_timers(row)
                else:
                    self._changed(row, "")
            case "StepsSaved" if message.steps != row.steps:
                row.steps = message.steps
                if not row.is_over:
                    self._emit(row.id, Progressed((row.id,), (row.steps,)))
                self._changed(row, "progress")
            case "GangEnded":
                self._gang_ended(row, message.outcome, message.reason)

    def _gang_ended(self, row: JobRow, outcome: str, reason: str) -> None:
        row.ended_epoch = row.epoch
        if row.launched_epoch == row.epoch:
            row.run_s += self.at - row.started
        if row.is_over:
            self._changed(row, "")
            self._forget(row)
        elif row.state in SEATED and outcome == "finished":
            self._emit(row.id, JobFinished(row.id, row.epoch))
            self._run_times[row.tenant, row.spec.get("job_type", "")].append(row.run_s)
            self._end(row, "succeeded", "")
        elif row.state in SEATED:
            row.losses += outcome == "lost"
            if outcome == "failed" or row.losses > MOST_LOSSES:
                self._failed(row, reason)
            else:
                self._emit(row.id, JobPaused(row.id), JobResumed(row.id))
                self._move(row, "preempted" if row.steps > 0 else "pending", reason)
        else:  # stopping or held: the scheduler has already taken its seats
            row.finished_early = outcome == "finished"
            if row.state == "stopping":
                self._move(row, "preempted" if row.steps > 0 else "pending", "" if outcome == "stopped" else reason)
            else:
                self._changed(row, "")

    def _failed(self, row: JobRow, reason: str) -> None:
        row.failures += 1
        wait = min(2.0 ** (row.failures - 1), MOST_BACKOFF_S)
        row.backoff_until = self.at + wait
        row.holds.append("backoff")
        self._emit(row.id, JobFailed(row.id, row.epoch, reason), JobPaused(row.id))
        self._move(row, "pending", f"it failed, and is tried again in {wait:g} s: {reason}")
        heapq.heappush(self._timers, (row.backoff_until, "backoff", row.id, row.epoch))

    # ---- timers ----------------------------------------------------------------------------------------------

    def _set_timers(self, row: JobRow) -> None:
        if "backoff" in row.holds:
            heapq.heappush(self._timers, (row.backoff_until, "backoff", row.id, row.epoch))
        longest = row.spec.get("max_run_s")
        if longest is not None and row.state == "running":
            heapq.heappush(self._timers, (row.started + longest, "max_run", row.id, row.epoch))

    def _expire(self, what: str, job_id: str, epoch: int) -> None:
        row = self.rows.get(job_id)
        if row is None or row.is_over or row.epoch != epoch:
            return
        longest = row.spec.get("max_run_s")
        if what == "backoff" and row.backoff_until <= self.at:
            self._unhold(row, "backoff")
        runs = what == "max_run" and row.state == "running"
        if runs and longest is not None and row.started + longest <= self.at:
            self._emit(row.id, JobCancelled(row.id))
            self._end(row, "failed", f"it ran longer than its max_run_s of {longest:g} s")

    # ---- the core --------------------------------------------------------------------------------------------

    def _emit(self, job_id: str, *events: Event) -> None:
        """Add events to the moment; a second word about the same job begins another one, as a moment has no order."""
        if job_id and job_id in self._touched:
            self._flush(self.at)
        if job_id:
            self._touched.add(job_id)
        self._events += events

    def _flush(self, at: float) -> None:
        """Hand the collected events to the scheduler, with all that follows from its decisions."""
        for _ in range(MOST_MOMENTS):
            if not self._events:
                return
            events, self._events = self._events, []
            self._touched.clear()
            self.at = max(self.at, at)
            following: Moment | None = Moment.of(self.at, events)
            while following is not None:
                following = self._handle(following)
        raise AssertionError(f"time stopped advancing at {self.at:g} s: {MOST_MOMENTS} moments followed each other")

    def _handle(self, moment: Moment) -> Moment | None:
        decisions = self.scheduler.handle(moment)
        self.moments += 1
        due = digest(self.scheduler) if self.moments % DIGEST_EVERY == 0 else None
        self._turn.moments.append(LoggedMoment(moment.at, "".join(step_lines(moment, decisions)), due))
        following = None
        for decision in decisions:
            if isinstance(decision, Ask):
                following = Moment(moment.at, (Answered(decision.asked, self.runner.answer(decision)),))
            else:
                self._apply(decision)
        return following

    def _apply(self, decision: Decision) -> None:
        match decision:
            case Start():
                self._start(decision)
            case Starts():
                for start in decision.each():
                    self._start(start)
            case Stop(job_ids, epochs, save):
                for job_id, epoch in zip(job_ids, epochs, strict=True):
                    self._stop(self.rows[job_id], int(epoch), save)
            case SetTimer(at):
                self.wake = at
            case GiveUp(job_id):
                row = self.rows[job_id]
                self._end(row, "failed", row.reason.partition(": ")[2] or row.reason)
            case Refuse(job_id, why):
                row = self.rows[job_id]
                self._end(row, "failed" if row.failures else "rejected", why)

    def _start(self, start: Start) -> None:
        pairs = [(start.job_id, start.epoch)]
        if start.partner_id is not None:
            pairs.append((start.partner_id, start.partner_epoch))
        for job_id, epoch in pairs:
            row = self.rows[job_id]
            row.epoch, row.seats, row.shared = epoch, start.seats, len(pairs) > 1
            self._move(row, "starting", "")
            if row.finished_early:
                row.ended_epoch = epoch
                self._emit(job_id, JobFinished(job_id, epoch))
                self._end(row, "succeeded", "")
            else:
                self._turn.orders.append(self._launch_order(row))

    def _launch_order(self, row: JobRow, adopt_only: bool = False) -> Launch:
        self.next_order += 1
        return Launch(
            self.next_order - 1, row.id, row.epoch, row.seats, row.spec,
            0.0 if row.estimated else row.total_steps, row.array_index, row.shared, adopt_only,
        )  # fmt: skip

    def _stop(self, row: JobRow, epoch: int, save: bool) -> None:
        row.seats = ()
        if row.ended_epoch >= epoch:
            return
        self._turn.orders.append(Halt(self.next_order, row.id, epoch, save))
        self.next_order += 1
        if row.state in SEATED:
            self._move(row, "stopping", "")
        else:
            self._turn.rows[row.id] = row

    # ---- rows ------------------------------------------------------------------------------------------------

    def _move(self, row: JobRow, state: str, reason: str) -> None:
        """Change the state of a job."""
        self._pending[row.tenant] += (state in WAITING) - (row.state in WAITING)
        row.state, row.since, row.reason = state, self.at, reason
        if state in WAITING:
            row.seats = ()
        self._changed(row, state)

    def _end(self, row: JobRow, state: str, reason: str) -> None:
        """Move a job to a final state; jobs that follow it are released, or cancelled with it."""
        row.ended, row.seats, row.holds = self.at, (), []
        self._move(row, state, reason)
        self._forget(row)
        for follower in self._followers.pop(row.id, ()):
            other = self.rows.get(follower)
            if other is None or other.is_over:
                continue
            if state != "succeeded":
                self._emit(other.id, JobCancelled(other.id))
                self._end(other, "cancelled", f"job {row.id}, which it follows, has {state}")
            elif all(self._has_succeeded(earlier) for earlier in other.spec.get("after", ())):
                self._unhold(other, "after")

    def _forget(self, row: JobRow) -> None:
        if not row.is_live:
            self.rows.pop(row.id, None)

    def _changed(self, row: JobRow, news: str) -> None:
        self._turn.rows[row.id] = row
        if news:
            self._turn.news.append((row.id, row.tenant, news, json.dumps({"reason": row.reason, "epoch": row.epoch})))

    def check(self) -> None:
        """Raise AssertionError unless rows and the scheduler's state agree."""
        state = self.scheduler.state
        holders: dict[int, str] = {}
        for row in self.rows.values():
            stage = Stage(int(state.jobs.stage[state.row_of[row.id]]))
            assert (stage == Stage.RUNNING) == (row.state in SEATED), (
                f"job {row.id} is {row.state}, the core has {stage.name}"
            )
            assert (stage == Stage.PAUSED) == bool(row.holds), (
                f"job {row.id} has holds {row.holds}, the core {stage.name}"
            )
            for seat in row.seats:
                assert row.shared or seat not in holders, f"seat {seat} has two holders: {row.id}, {holders[seat]}"
                holders[seat] = row.id
        assert all(count >= 0 for count in self._pending.values())


def core_job(row: JobRow) -> Job:
    """Return the job of a row as the core knows it."""
    spec = row.spec
    return Job(
        job_id=row.id,
        total_steps=row.total_steps,
        submitted=row.submitted,
        sequence=row.number,
        scale_factor=spec.get("accelerators", 1),
        job_type=kind_of(spec.get("job_type", ""), spec.get("types", ())),
        other_shapes=row.other_shapes,
        tenant=row.tenant,
        app=spec.get("app", ""),
        weight=spec.get("weight", 1.0),
        deadline=declared_end(spec, row.submitted),
        cpus=spec.get("cpus", 0.0),
        memory_gib=spec.get("memory_gib", 0.0),
        retries=spec.get("retries", 0),
    )


def _ids(reply: Reply) -> list[str]:
    return list(reply.body.get("ids") or [reply.body.get("id", "")])


_HANDLERS: dict[type, Callable[..., Reply]] = {
    Submit: Controller._submit,
    Cancel: Controller._cancel,
    Hold: Controller._hold,
    Release: Controller._release,
    Change: Controller._change,
    ChangeNode: Controller._change_node,
}
assert TERMINAL.isdisjoint(WAITING | SEATED)
