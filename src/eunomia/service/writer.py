"""The one writer: takes what has arrived, lets the controller decide, commits, and only then replies and orders leave.

What cannot be handled is refused or set aside by itself: the state is read anew from the store, where nothing of it is,
and all else that had arrived is handled.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from eunomia.backends.reports import GangEnded, GangFaulty
from eunomia.backends.world import ProcessWorld
from eunomia.records.long_lists import WrittenParts
from eunomia.records.packed_objects import CannotSnapshot, Captured, capture
from eunomia.records.run import InlinePolicyRunner
from eunomia.records.scheduler_digest import digest
from eunomia.service.clock import ServiceClock
from eunomia.service.controller import Controller
from eunomia.service.core_job import core_job
from eunomia.service.draining import restore_drains
from eunomia.service.fault_points import faultpoint
from eunomia.service.inbox import Inbox
from eunomia.service.job_row import JobRow
from eunomia.service.json_lines import REQUEST
from eunomia.service.latency_histogram import LatencyHistogram
from eunomia.service.messages import (
    AT_ONCE,
    JOB_ROLE,
    Cancel,
    Input,
    LongSubmission,
    PolicyAnswered,
    PolicyOverran,
    Principal,
    Reply,
    Request,
    Submit,
)
from eunomia.service.recovery import begin_era, new_scheduler, reload, setup_text
from eunomia.service.replay_cost import ReplayCost
from eunomia.service.set_aside import keep_seats
from eunomia.service.site import Site
from eunomia.service.store import ServiceStore, StoreLost
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.tenant_fairness import STORE_EVERY_S
from eunomia.service.turn import ServicePolicyRunner, Turn
from eunomia.service.user_requests import step

BATCH = AT_ONCE  # jobs that a turn takes in, or as many other inputs
FAILED = "the service failed; its log says why"
_log = logging.getLogger(__name__)


class ReplyTarget(Protocol):
    """Where what comes of a request is put, such as a `Future`."""

    def cancelled(self) -> bool:
        """Say whether no request waits for it any more."""
        ...

    def done(self) -> bool:
        """Say whether it is there."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Put it there."""
        ...

    def set_exception(self, error: BaseException, /) -> None:
        """Say why there will be none."""
        ...


def _named(message: Input | None, subject: str) -> str:
    """Return what could not be handled, for the log."""
    if isinstance(message, LongSubmission):
        message = message.request
    if isinstance(message, Request):
        REQUEST.set(message.request_id)
        return f"the request {type(message.action).__name__} of {message.who.user!r}"
    return f"{'a timer' if message is None else type(message).__name__}{subject and f' about job {subject}'}"


def _failed(message: Request | LongSubmission, why: str) -> Reply | LongSubmission:
    """Return what comes of a request that failed: of an accepted submission, the job that fails is found by halves."""
    if isinstance(message, LongSubmission) and message.entered and not message.fault:
        return replace(message, most=message.most // 2) if message.most > 1 else replace(message, fault=why)
    request = message.request if isinstance(message, LongSubmission) else message
    return Reply(500, {"title": FAILED, "code": "failed", "request": request.request_id})


@dataclass(frozen=True, slots=True)
class _Work:
    """One thing in the queue: an input of the controller, or an administrator's change of the store."""

    message: Input | Callable[[Writer], Any]
    answer: ReplyTarget | None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The state after a moment, its digest, and when the scheduler wants to be woken."""

    seq: int
    digest: str
    wake: float
    state: Captured


class CommittedTurnFailed(RuntimeError):
    """An error after a commit: to undo the turn and handle its inputs again would do them twice."""


class Writer:
    """Takes requests and reports from any thread; one thread runs `run`, which alone changes controller and store."""

    def __init__(self, controller: Controller, store: ServiceStore, clock: ServiceClock) -> None:
        self.controller, self.store, self.clock = controller, store, clock
        controller.fairness.resume(controller.scheduler, clock.now())
        self.world: ProcessWorld | None = None
        self.make_runner: Callable[[Site], ServicePolicyRunner] = lambda site: InlinePolicyRunner(site.setup.policy)
        last = store.clock()
        self.origin = store.number("origin", 0.0 if last is None else last.wall - last.at)  # wall clock at second 0
        controller.origin = self.origin
        self.lock = threading.Lock()  # held while the state changes; readers of the state take it
        self._in_turn = threading.Lock()  # held until what changed in a turn is in the store
        self.on_commit: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None
        self.faults = 0  # inputs that could not be handled
        self.turn_s: list[float] = []  # of the last turns
        self.decision_times, self.commit_times = LatencyHistogram(), LatencyHistogram()
        self._asked_at: float | None = None  # when the turn began whose ask is not answered yet
        self._inbox: Inbox[_Work] = Inbox()
        self.replay_cost = ReplayCost(*store.since_snapshot())
        self._can_snapshot = True
        self._parts = WrittenParts()
        self._writing: threading.Thread | None = None  # of a snapshot
        self._era = 0  # changes of what snapshots must agree with
        for long in store.unfinished():  # before all that its tenant asks for now
            self._put_back(_Work(long, None), long)

    @contextmanager
    def between_turns(self, within_s: float = 0.2) -> Iterator[None]:
        """Let no turn begin in the block, so that the state and the store agree; unless a turn takes too long."""
        is_held = self._in_turn.acquire(timeout=within_s)
        try:
            yield
        finally:
            if is_held:
                self._in_turn.release()

    def put(self, message: Input) -> None:
        """Hand over a report."""
        self._inbox.put(_Work(message, None), "", is_urgent=True)

    def ask(self, request: Request) -> Future[Reply]:
        """Hand over a request; its reply comes after the commit."""
        answer: Future[Reply] = Future()
        self.hand_over(request, answer)
        return answer

    def hand_over(self, request: Request, answer: ReplyTarget) -> None:
        """Hand over a request whose reply is put into `answer` after the commit."""
        who, action = request.who, request.action
        size = action.count if isinstance(action, Submit) else 1
        is_urgent = who.is_operator or who.role == JOB_ROLE or isinstance(action, Cancel)
        self._inbox.put(_Work(request, answer), who.tenant, size=size, is_urgent=is_urgent and size == 1)

    def _put_back(self, work: _Work, long: LongSubmission) -> None:
        """Let a submission go on in its tenant's next turn, before what the tenant asked for after it."""
        self._inbox.put_back(_Work(long, work.answer), long.request.who.tenant, long.ends[-1])

    def change(self, change: Callable[[Writer], Any], who: Principal | None = None) -> Future[Any]:
        """Run a change of the store in the writer's thread; one that a user asked for waits in its tenant's turn."""
        answer: Future[Any] = Future()
        is_urgent = who is None or who.is_operator
        self._inbox.put(_Work(change, answer), "" if who is None else who.tenant, is_urgent=is_urgent)
        return answer

    def stop(self) -> None:
        """End `run` after what has arrived until now."""
        self._inbox.stop()

    @property
    def waiting(self) -> int:
        """How much waits in the queue."""
        return len(self._inbox)

    def run(self) -> None:
        """Turn after turn, until `stop`."""
        works: list[_Work] = []
        try:
            while True:
                works, goes_on = self._collect()
                self.handle(works)
                if not goes_on and not self.waiting:
                    self.controller.fairness.store_now()
                    self.turn([])
                    self.snapshot()
                    return
                if self.replay_cost.is_snapshot_due(is_busy=self.waiting > 0):
                    self._begin_snapshot()
        except BaseException as error:
            self.failure = error
            for work in works:
                if work.answer is not None and not work.answer.done():
                    work.answer.set_exception(RuntimeError("the service has failed; see its log"))
            raise

    def _collect(self) -> tuple[list[_Work], bool]:
        """Wait for work or a timer; return what a turn takes of what has arrived, and whether to go on."""
        wait_s = max(self.controller.due() - self.clock.now(), 0.0)
        return self._inbox.take(min(wait_s, STORE_EVERY_S), BATCH)

    def handle(self, works: Sequence[_Work]) -> None:
        """Do one turn and what administrators asked for."""
        inputs = [(work, work.message) for work in works if not callable(work.message)]
        turn = self.turn([message for _, message in inputs])
        for (work, _), reply in zip(inputs, turn.replies, strict=True):
            if isinstance(reply, LongSubmission):
                self._put_back(work, reply)
            elif work.answer is not None and not work.answer.cancelled():
                work.answer.set_result(reply)
        faultpoint("reply.sent")
        for work in works:
            if callable(work.message) and work.answer is not None:
                self._make(work.message, work.answer)

    def _make(self, change: Callable[[Writer], Any], answer: ReplyTarget) -> None:
        """Make a change of the store; of one that fails unexpectedly nothing stays."""
        site, runner = self.controller.site, self.controller.runner
        try:
            answer.set_result(change(self))
        except Exception as error:
            if isinstance(error, ValueError) and not isinstance(error, DiskFull):  # a refusal
                answer.set_exception(error)
                return
            if self._must_end(error) and not isinstance(error, DiskFull):
                raise
            is_other = self.controller.runner is not runner  # the one before has ended
            self._undo(site, self.make_runner(site) if is_other else runner, error, "a change of site or store")
            if is_other and (pending := self.controller.scheduler.asks.pending) is not None:
                self.put(PolicyOverran(pending.asked, "it was asked before the site was changed"))
            answer.set_exception(error)

    def turn(self, inputs: Sequence[Input]) -> Turn:
        """Decide, commit, let orders leave; replies are in what is returned.

        If that fails, each input has a turn of its own, and what fails again is refused or set aside.
        """
        memory = self.controller.memory()
        try:
            with self._in_turn:
                return self._turn(inputs)
        except Exception as error:
            if self._must_end(error):
                raise
            self._undo(self.controller.site, self.controller.runner, error, "a turn", memory)
            return self._each_alone(inputs)

    def _must_end(self, error: Exception) -> bool:
        """Say whether an error is not about what was handled, but about the store or, under `check`, about us."""
        is_of_store = isinstance(error, self.store.errors) and not isinstance(error, self.store.refusals)
        is_ours = self.controller.site.setup.scenario.check and isinstance(error, AssertionError)
        return is_of_store or is_ours or isinstance(error, StoreLost | DiskFull | CommittedTurnFailed | OSError)

    def _undo(
        self, site: Site, runner: ServicePolicyRunner, error: Exception, what: str,
        memory: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Read the state anew, as it was at the last commit."""
        self.faults += 1
        _log.error("%s failed, and is undone", what, exc_info=error)
        with self.lock:
            self.controller.recall(memory or {})
            self.controller = reload(self.store, self.controller, site, runner)
        self._era += 1  # a snapshot that is being written may be of the state that was undone

    def _each_alone(self, inputs: Sequence[Input]) -> Turn:
        """Handle what falls due, then one input after the other."""
        whole = Turn(self.controller.at)
        for message in (None, *inputs):
            memory = self.controller.memory()
            given = [] if message is None else [message]
            try:
                turn = self._turn(given)
            except Exception as error:
                subject = self.controller.subject
                if self._must_end(error) or (message is None and not subject):
                    raise
                self._undo(self.controller.site, self.controller.runner, error, _named(message, subject), memory)
                turn = self._without(message, subject, error)
            whole.orders += turn.orders
            whole.replies += turn.replies
        return whole

    def _without(self, message: Input | None, subject: str, error: Exception) -> Turn:
        """Return the turn that goes on after an input that failed: it is refused, or its job is set aside."""
        reason = f"what it reported could not be handled ({type(error).__name__}: {str(error)[:200]})"
        match message:
            case Request() | LongSubmission():
                turn = Turn(self.controller.at)
                turn.replies.append(_failed(message, f"{type(error).__name__}: {str(error)[:200]}"))
                return turn
            case PolicyAnswered(asked, _, runner):
                turn = self._turn([PolicyOverran(asked, "its answer could not be handled", runner)])
            case _:
                row = self.controller.rows.get(subject)
                self.controller.forget_timers(subject)
                inputs: list[Input] = [] if row is None else [GangFaulty(row.id, row.epoch, reason)]
                if isinstance(message, GangEnded):
                    inputs.append(GangEnded(message.job_id, message.epoch, "lost"))
                turn = self._turn(inputs)
        turn.replies = [] if message is None else [None]
        return turn

    def _turn(self, inputs: Sequence[Input]) -> Turn:
        begun, used = time.perf_counter(), time.thread_time()
        with self.lock:
            turn = step(self.controller, self.clock.now(), inputs)
            for reply in turn.replies:
                if isinstance(reply, Reply) and isinstance(row := reply.body.pop("row", None), JobRow):
                    reply.body["job"] = row.shown(self.origin, self.controller.device_types)
            if self.controller.site.setup.scenario.check:
                self.controller.check()
        used = time.thread_time() - used
        faultpoint("turn.decided")
        if not turn.is_empty:
            before = time.perf_counter()
            self.store.commit(turn, self.clock.stored(turn.at))
            self.replay_cost.add(turn.moments, used)
            self.commit_times.add(time.perf_counter() - before)
        faultpoint("turn.committed")
        if not self.store.leads():
            raise StoreLost.of(self.store.folder, "another service has taken over", "start this one again")
        try:
            if turn.orders and self.world is not None:
                self.world.carry_out(turn.orders)
            faultpoint("orders.sent")
            self.turn_s = [*self.turn_s[-999:], time.perf_counter() - begun]
            self._count_decision(turn, begun)
            if not turn.is_empty:
                self.on_commit()
        except Exception as error:
            raise CommittedTurnFailed("what was committed could not be carried out; the next start does") from error
        return turn

    def _count_decision(self, turn: Turn, begun: float) -> None:
        """Count how long a decision took, from what asked for it until its orders have left.

        That is one turn, or where the policy answers later, from the turn that asked to the one that has the answer.
        """
        if self.controller.scheduler.asks.pending is not None:
            self._asked_at = begun if self._asked_at is None else self._asked_at
        elif turn.moments:
            self.decision_times.add(time.perf_counter() - (begun if self._asked_at is None else self._asked_at))
            self._asked_at = None

    # ---- changes of the site, in the writer's thread -----------------------------------------------------------

    def begin_era(self, site: Site, meta: Mapping[str, str], *, cluster_changed: bool = False) -> None:
        """Go on with another site: gangs that still fit run on, and all live jobs are scheduled anew.

        Changes nothing where it raises: CannotSnapshot for a policy whose state cannot be stored, and InvalidInput for
        a live job whose throughputs the site lacks.
        """
        controller = self.controller
        for row in controller.rows.values():
            if not row.is_over:
                job = core_job(row)
                site.setup.believed.solo_throughput(job.job_type, job.scale_factor)
        capture(new_scheduler(site))  # raises for what a restart could not take up, before anything changes
        self._era += 1
        with self.lock:
            rows = list(controller.rows.values())
            controller.fairness.advance(controller.scheduler, self.clock.now())
            controller.scheduler._sched.advance_to(controller.at)  # what tenants used since the last moment
            before = controller.scheduler.state
            scheduler, runner = new_scheduler(site), self.make_runner(site)
            if site.setup.learnt is not None:
                scheduler.belief.take_over(controller.scheduler.belief)
            controller.use_site(site, scheduler, runner, forget_seats=cluster_changed)
            begin_era(self.store, controller, rows, setup_text(site), is_first=False, more=meta, before=before)
            restore_drains(controller, self.store.drains())
            for row in rows:
                if row.state == "stopping":
                    controller.end_soon(row, row.since)
            keep_seats(controller)
            controller.go_on_learning()
            self.replay_cost = ReplayCost()
            orders = controller.resend(rows)
        if self.world is not None:
            if cluster_changed:
                self.world.use_topology(site.setup.topology)
            self.world.carry_out(orders)

    def keep_setup(self, site: Site, meta: Mapping[str, str], *, decides: bool) -> None:
        """Store what the next start compares the site with. `decides`: replay needs a snapshot after the change."""
        values = dict(meta)
        self._era += 1
        if not decides or self.snapshot():
            values["setup"] = setup_text(site)
        if decides and "setup" in values:
            values |= {"era": str(self.store.last_seq()), "era_jobs": str(len(self.controller.rows))}
        with self.store.transaction() as db:
            if "era" in values:
                db.execute("DELETE FROM snapshots WHERE seq < ?", (int(values["era"]),))
            for key, value in values.items():
                self.store.set_meta(db, key, value)

    def note(self, who: Principal, source: str, kind: str, lines: Sequence[str]) -> None:
        """Write a change of the site into the events and the audit log."""
        turn = Turn(self.controller.at)
        turn.news.append(("", "", kind, json.dumps({"reason": "; ".join(lines)[:1000], "epoch": 0})))
        turn.audit.append((who.user, who.role, source, "change site", "; ".join(lines)[:200]))
        self.store.commit(turn, self.clock.stored(turn.at))
        self.on_commit()

    def snapshot(self) -> bool:
        """Store a snapshot of the state now; False where the mechanism or the policy does not allow one."""
        if self._writing is not None:
            self._writing.join()
        taken = self._capture()
        return taken is not None and self._store_snapshot(taken, taken.state.content(self._parts))

    def _begin_snapshot(self) -> None:
        """Capture the state; a thread of its own writes it out while turns go on, and hands it back to be stored."""
        if self._writing is not None and self._writing.is_alive():
            return
        taken, era = self._capture(), self._era
        if taken is None:
            return

        def store(content: bytes) -> None:
            if self._era == era:
                self._store_snapshot(taken, content)

        def write() -> None:
            content = taken.state.content(self._parts)
            self.change(lambda _: store(content))

        self._writing = threading.Thread(target=write, name="snapshot", daemon=True)
        self._writing.start()

    def _capture(self) -> _Snapshot | None:
        """Return the state after the last moment; None where it cannot be written."""
        if not self._can_snapshot:
            return None
        scheduler = self.controller.scheduler
        try:
            state = capture(scheduler)
        except CannotSnapshot as error:
            self._can_snapshot = False
            _log.warning("no snapshots, so restarts replay the whole log: %s", error)
            return None
        self.replay_cost = ReplayCost()
        self.controller.log.begin()
        return _Snapshot(self.store.last_seq(), digest(scheduler), self.controller.wake, state)

    def _store_snapshot(self, taken: _Snapshot, content: bytes) -> bool:
        """Store a snapshot; False where there is no room for it."""
        try:
            self.store.add_snapshot(taken.seq, taken.digest, taken.wake, content)
        except DiskFull as error:  # the log is replayed from an earlier one
            _log.warning("no snapshot is stored: %s", error)
            return False
        return True
