"""The one writer: takes what has arrived, lets the controller decide, commits, and only then replies and orders leave.

`recover` rebuilds the controller from the store: the newest snapshot, then the moments after it through the same
scheduler. Every replayed moment must give the stored decisions, and every stored digest the same state.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from eunomia.backends.world import ProcessWorld
from eunomia.core.kernel_arrays import FLAGS, FLOATS, INTS
from eunomia.core.scheduler import Scheduler
from eunomia.model.decisions import SetTimer
from eunomia.model.events import JobSubmitted, Moment, TimerFired
from eunomia.records.long_lists import WrittenParts
from eunomia.records.packed_objects import CannotSnapshot, Captured, capture, restore
from eunomia.records.record import from_json, step_lines
from eunomia.records.run import InlinePolicyRunner
from eunomia.records.scheduler_digest import digest
from eunomia.service.controller import Controller
from eunomia.service.core_job import core_job, estimated_event
from eunomia.service.fault_points import faultpoint
from eunomia.service.inbox import Inbox
from eunomia.service.job_row import SEATED, JobRow
from eunomia.service.latency_histogram import LatencyHistogram
from eunomia.service.messages import JOB_ROLE, Cancel, Input, Order, Principal, Reply, Request, Submit
from eunomia.service.site import Site
from eunomia.service.store import ServiceStore, StoreProblem
from eunomia.service.store.disk_room import DiskFull
from eunomia.service.store.schema import StoredClock
from eunomia.service.tenant_fairness import HOUR_S, STORE_EVERY_S
from eunomia.service.turn import ServicePolicyRunner, Turn
from eunomia.service.user_requests import step

BATCH = 500  # jobs that a turn takes in, or as many other inputs
SNAPSHOT_EVERY = 4096  # moments
_log = logging.getLogger(__name__)


class ServiceClock(Protocol):
    """Where the writer gets the time from."""

    def now(self) -> float:
        """Return seconds of the service's time, which never go back."""
        ...

    def stored(self, at: float) -> StoredClock:
        """Return what lets the next service go on from this time."""
        ...


class MonotonicClock:
    """The service's time: it goes on with the machine's monotonic clock, over a reboot with the wall clock."""

    def __init__(self, last: StoredClock | None) -> None:
        self._boot = _boot_id()
        mono, wall = time.monotonic(), time.time()
        if last is None:
            begin = 0.0
        elif last.boot == self._boot and self._boot:
            begin = last.at + max(mono - last.monotonic, 0.0)
        else:
            begin = last.at + max(wall - last.wall, 0.0)
        self._origin = mono - begin

    def now(self) -> float:
        """Return seconds of the service's time."""
        return time.monotonic() - self._origin

    def stored(self, at: float) -> StoredClock:
        """Return the clocks of this machine at time `at`."""
        return StoredClock(at, self._boot, time.monotonic(), time.time())


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


# ---- restart ---------------------------------------------------------------------------------------------------------


def new_scheduler(site: Site) -> Scheduler:
    """Return a scheduler of the site that knows no job."""
    return site.setup.scheduler()


def setup_text(site: Site) -> str:
    """Return what decisions depend on besides the moments, as text: with another one, a new era begins."""
    header = site.setup.record_header()
    kept = {key: header[key] for key in ("seed", "nodes", "policy", "mechanism", "overheads", "version")}
    kept["throughputs"] = header["scenario"]["throughputs"]
    kept["belief"] = header["scenario"]["belief"]
    kept["parameters"] = header["scenario"]["policy"]
    kept["tenants"] = header["scenario"]["tenants"]
    kept["inputs"] = header["inputs"]
    kept["columns"] = [*INTS, *FLOATS, *FLAGS]  # a snapshot with others would be read as these
    if site.service.debug_lane:
        kept["debug_lane"] = site.service.debug_lane
    if site.service.accelerator_memory_gib:
        kept["accelerator_memory_gib"] = site.service.accelerator_memory_gib
    return json.dumps(kept, sort_keys=True)


def recover(
    store: ServiceStore, site: Site, runner: ServicePolicyRunner, incarnation: str = ""
) -> tuple[Controller, list[Order]]:
    """Rebuild the controller, and return the orders that a world which knows nothing needs.

    `incarnation` ends the ids of new jobs; left out, it is drawn. Raises StoreProblem if the replayed decisions or a
    digest differ from the stored ones.
    """
    _, incarnation = store.begin_generation(incarnation)
    text = setup_text(site)
    before = store.meta("setup")
    rows = store.live_jobs()
    clock = store.clock()
    at = 0.0 if clock is None else clock.at
    is_same = before == text
    scheduler, moments, wake = _replay(store, site) if is_same else (new_scheduler(site), 0, float("inf"))
    unsent = store.unsent()
    controller = Controller(
        site, scheduler, runner, store,
        incarnation=incarnation, next_job=store.next_job(), next_order=max(unsent, default=0) + 1,
    )  # fmt: skip
    controller.at, controller.wake, controller.moments = at, wake, moments
    faultpoint("recover.half")
    if not is_same:
        _begin_era(store, controller, rows, text, is_first=before is None)
    controller.fairness.restore(store.active_time(at), store.tenant_hours(int(at // HOUR_S)))
    controller.adopt(rows, store.run_times(), store.memory_used())
    if is_same:
        controller.drained = store.drained()
    store.clear_outbox()
    return controller, controller.resend(rows)


def _replay(store: ServiceStore, site: Site) -> tuple[Scheduler, int, float]:
    """Return a scheduler at the last stored moment, the number of that, and when the scheduler wants to be woken.

    It begins with the newest snapshot that is whole.
    """
    scheduler, last, wake, problems = new_scheduler(site), 0, float("inf"), list[str]()
    for seq, stored, stored_wake, content in store.snapshots():
        scheduler = new_scheduler(site)  # an attempt may have filled a part of the one before
        try:
            restore(scheduler, content)
            found = digest(scheduler)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            problems.append(f"snapshot {seq} cannot be read ({error})")
            continue
        if found != stored:
            problems.append(f"the state of snapshot {seq} has digest {found}, and {stored} was stored")
            continue
        last, wake = seq, float("inf") if stored_wake is None else stored_wake
        break
    else:
        if problems:
            raise _differs(store, "; ".join(problems))
    if problems:
        _log.warning("%s; the state is replayed from snapshot %d instead", "; ".join(problems), last)
    for seq, lines, stored_digest in store.moments(last):
        try:
            moment = logged_moment(lines)
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise _differs(store, f"moment {seq} cannot be read ({error})") from None
        if any(isinstance(event, TimerFired) for event in moment.events):
            wake = float("inf")
        decisions = scheduler.handle(moment)
        if "".join(step_lines(moment, decisions)) != lines:
            raise _differs(store, f"moment {seq} gives other decisions than those that were stored")
        if stored_digest is not None and (found := digest(scheduler)) != stored_digest:
            raise _differs(store, f"the state after moment {seq} has digest {found}, and {stored_digest} was stored")
        for decision in decisions:
            if isinstance(decision, SetTimer):
                wake = decision.at
        last = seq
    return scheduler, last, wake


def logged_moment(lines: str) -> Moment:
    """Return the moment of stored lines."""
    line = json.loads(lines.partition("\n")[0])
    return Moment(float(line["at"]), from_json(line["events"]))


def _differs(store: ServiceStore, rule: str) -> StoreProblem:
    fix = (
        "start the version of Eunomia that wrote the store, restore a backup, or change the site file, such as a "
        "parameter of the policy: live jobs are then scheduled anew, from their rows and without the log"
    )
    return StoreProblem.of(store.folder, f"the replay differs from the store: {rule}", fix)


def _begin_era(
    store: ServiceStore, controller: Controller, rows: list[JobRow], text: str, *, is_first: bool,
    more: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Begin with a scheduler that has decided nothing yet, for the live jobs; their gangs save and stop.

    This is what a changed policy or cluster means at a restart. Jobs keep their place in the queue, their progress,
    failures and epochs; what they received so far is not counted any more.
    """
    sched, state = controller.scheduler._sched, controller.scheduler.state
    turn = Turn(controller.at)
    for row in rows:
        if row.is_over:
            continue
        sched.submit(core_job(row))
        number = state.row_of[row.id]
        state.jobs.epoch[number], state.jobs.failures[number] = row.epoch, row.failures
        state.jobs.ran[number] = row.epoch > 0
        if row.estimate:
            sched.estimate(number, estimated_event(row))
        if row.steps > 0:
            controller.scheduler.belief.done[number] = row.steps
        if row.holds:
            sched.pause(number, controller.at)
        if row.state in SEATED:
            row.state, row.reason = "stopping", "the site was changed"
        row.seats = ()
        turn.rows[row.id] = row
    turn.nodes = dict.fromkeys(store.drained(), "")
    controller.wake = controller.at  # ask at once
    snapshot = capture(controller.scheduler).content()
    seq = store.last_seq()
    with store.transaction() as db:
        store.write(db, turn, store.clock() or StoredClock(controller.at, "", 0.0, time.time()))
        db.execute("DELETE FROM snapshots")
        values = (seq, digest(controller.scheduler), controller.wake, snapshot)
        db.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", values)
        for key, value in (
            ("setup", text),
            ("era", str(seq)),
            ("era_jobs", str(sum(not row.is_over for row in rows))),
            *(more or {}).items(),
        ):
            store.set_meta(db, key, value)
    controller.moments = seq
    if not is_first:
        _log.warning("the site was changed: %d live jobs are scheduled anew, running ones save and stop", len(rows))


def record_header(store: ServiceStore, site: Site) -> tuple[dict[str, Any], int]:
    """Return the header of a record of all moments since the site was last changed, and the number before the first.

    Raises StoreProblem if the site is another one now, or if jobs were live when it was changed.
    """
    if store.meta("setup") != setup_text(site):
        raise StoreProblem.of(site.path, "the store was written with another site", "give the site as it was")
    if store.meta("era_jobs") != "0":
        rule = "jobs were live when the site was last changed, so a record could not begin there"
        raise StoreProblem.of(store.folder, rule, "replay the store itself: eunomia serve does at each start")
    first = int(store.meta("era") or 0)
    events = (event for _, lines, _ in store.moments(first) for event in logged_moment(lines).events)
    jobs = [event.job for event in events if isinstance(event, JobSubmitted)]
    setup = replace(site.setup, jobs=tuple(jobs))
    return setup.record_header(), first


# ---- the writer ------------------------------------------------------------------------------------------------------


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


class Writer:
    """Takes requests and reports from any thread; one thread runs `run`, which alone changes controller and store."""

    def __init__(self, controller: Controller, store: ServiceStore, clock: ServiceClock) -> None:
        self.controller, self.store, self.clock = controller, store, clock
        controller.fairness.resume(controller.scheduler, clock.now())
        self.world: ProcessWorld | None = None
        self.make_runner: Callable[[Site], ServicePolicyRunner] = lambda site: InlinePolicyRunner(site.setup.policy)
        self.origin = float(store.meta("origin") or 0.0)  # wall-clock time of second 0
        self.lock = threading.Lock()  # held while the state changes; readers of the state take it
        self.on_commit: Callable[[], None] = lambda: None
        self.failure: BaseException | None = None
        self.turn_s: list[float] = []  # of the last turns
        self.decision_times, self.commit_times = LatencyHistogram(), LatencyHistogram()
        self._asked_at: float | None = None  # when the turn began whose ask is not answered yet
        self._inbox: Inbox[_Work] = Inbox()
        self._snapshot_seq = controller.moments
        self._can_snapshot = True
        self._parts = WrittenParts()
        self._writing: threading.Thread | None = None  # of a snapshot
        self._era = 0  # changes of what snapshots must agree with

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
        size = sum(job.count for job in action.jobs) if isinstance(action, Submit) else 1
        is_urgent = who.is_operator or who.role == JOB_ROLE or isinstance(action, Cancel)
        self._inbox.put(_Work(request, answer), who.tenant, size=size, is_urgent=is_urgent and size == 1)

    def change(self, change: Callable[[Writer], Any]) -> Future[Any]:
        """Run a change of the store in the writer's thread."""
        answer: Future[Any] = Future()
        self._inbox.put(_Work(change, answer), "", is_urgent=True)
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
                if not goes_on:
                    self.controller.fairness.store_now()
                    self.turn([])
                    self.snapshot()
                    return
                late = self.controller.moments - self._snapshot_seq
                if late >= SNAPSHOT_EVERY and (not self.waiting or late >= 2 * SNAPSHOT_EVERY):
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
        inputs = [(work.message, work.answer) for work in works if not callable(work.message)]
        turn = self.turn([message for message, _ in inputs])
        for (_, answer), reply in zip(inputs, turn.replies, strict=True):
            if answer is not None and not answer.cancelled():
                answer.set_result(reply)
        faultpoint("reply.sent")
        for work in works:
            if callable(work.message) and work.answer is not None:
                try:
                    work.answer.set_result(work.message(self))
                except ValueError as error:
                    work.answer.set_exception(error)

    def turn(self, inputs: Sequence[Input]) -> Turn:
        """Decide, commit, let orders leave; replies are in what is returned."""
        begun = time.perf_counter()
        with self.lock:
            turn = step(self.controller, self.clock.now(), inputs)
            for reply in turn.replies:
                if reply is not None and isinstance(row := reply.body.pop("row", None), JobRow):
                    reply.body["job"] = row.shown(self.origin, self.controller.device_types)
            if self.controller.site.setup.scenario.check:
                self.controller.check()
        faultpoint("turn.decided")
        if not turn.is_empty:
            before = time.perf_counter()
            self.store.commit(turn, self.clock.stored(turn.at))
            self.commit_times.add(time.perf_counter() - before)
        faultpoint("turn.committed")
        if not self.store.leads():
            raise StoreProblem.of(self.store.folder, "another service has taken over", "start this one again")
        if turn.orders and self.world is not None:
            self.world.carry_out(turn.orders)
        faultpoint("orders.sent")
        self.turn_s = [*self.turn_s[-999:], time.perf_counter() - begun]
        self._count_decision(turn, begun)
        if not turn.is_empty:
            self.on_commit()
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

    def begin_era(
        self, site: Site, runner: ServicePolicyRunner, meta: Mapping[str, str], *, cluster_changed: bool = False
    ) -> None:
        """Go on with another site: running jobs save and stop, and all live ones are scheduled anew.

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
            scheduler = new_scheduler(site)
            if site.setup.learnt is not None:
                scheduler.belief.take_over(controller.scheduler.belief)
            controller.use_site(site, scheduler, runner, forget_seats=cluster_changed)
            _begin_era(self.store, controller, rows, setup_text(site), is_first=False, more=meta)
            controller.go_on_learning()
            self._snapshot_seq = controller.moments
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
        if taken is not None:
            self._store_snapshot(taken, taken.state.content(self._parts))
        return taken is not None

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
        self._snapshot_seq = self.controller.moments
        return _Snapshot(self.store.last_seq(), digest(scheduler), self.controller.wake, state)

    def _store_snapshot(self, taken: _Snapshot, content: bytes) -> None:
        try:
            self.store.add_snapshot(taken.seq, taken.digest, taken.wake, content)
        except DiskFull as error:  # the log is replayed from an earlier one
            _log.warning("no snapshot is stored: %s", error)
