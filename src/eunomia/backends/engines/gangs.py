"""The world whose gangs an engine runs: orders in, reports out, and a poll that compares both.

What an engine did not answer is not known, and changes nothing: a gang moves on when its exit record, the engine's list
or its accounting says so. A start is looked for by its mark before it is tried again, and its supervisor refuses to run
twice, so a call that took effect although it timed out has no second effect.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from eunomia.backends.engines.engine import (
    NOT_DONE,
    OVER,
    QUEUED,
    RUNS,
    Engine,
    EngineAway,
    EngineEnd,
    EngineGang,
    EngineRefused,
    GangRequest,
    Mark,
    SubmissionMissing,
)
from eunomia.backends.engines.gang_state import EngineTimes, GangState
from eunomia.backends.engines.job_files import SUBMISSION, cluster_id, prepare, request_of, write_lease
from eunomia.backends.engines.nodes import EngineNodes
from eunomia.backends.orders import DrainNode, Halt, Launch, Order
from eunomia.backends.processes.folder import JobFolder
from eunomia.backends.reports import (
    GangEnded,
    GangUnknown,
    Launched,
    OrderTaken,
    StepsSaved,
    SubmissionFound,
    SubmissionGone,
)
from eunomia.backends.world import NO_SAVE_GRACE_S, ProcessWorld, WorldInputs
from eunomia.inputs.problems import InvalidInput
from eunomia.model.topology import Topology

KILL_MARGIN_S = 10.0  # after the grace, for the engine to end a gang by itself
REFUSED_S = 5.0  # until a user's job that could not be placed is decided about again
RECORD_POLLS = 3  # for the exit record of a gang that is over to be seen here
_log = logging.getLogger(__name__)


class EngineGangs(ProcessWorld):
    """The gangs of an engine."""

    def __init__(self, engine: Engine, inputs: WorldInputs, times: EngineTimes | None = None) -> None:
        super().__init__(engine.name, inputs)
        self.engine, self._workdir = engine, inputs.workdir.resolve()
        self._times = times or EngineTimes(poll_s=float(inputs.options.get("poll_s", 1.0)))
        self._forked = inputs.forked
        self._workdir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.cluster = engine.cluster = cluster_id(self._workdir)
        self._nodes = EngineNodes(engine, self._workdir, inputs.topology, self._report)
        self._live: dict[tuple[str, int], GangState] = {}
        self._listed: dict[Mark, list[EngineGang]] | None = None  # ours in the last list; None = none yet
        self._listed_at = -1.0
        self._silence = ""  # why the engine does not answer; "" = it does
        self._failures = 0
        self._orphans: frozenset[Mark] = frozenset()
        self._submissions: dict[str, tuple[str, str]] = {}  # key and tenant of users' jobs, by the engine's number
        self._orders: queue.SimpleQueue[Order | Topology | Mapping[str, str] | None] = queue.SimpleQueue()
        self._poll_at = self._nodes_at = 0.0
        self._answered = threading.Event()

    def wait_until_ready(self, within_s: float) -> None:
        """Wait for the first list of the engine, but no longer than this: an engine may be away for long."""
        until = time.monotonic() + within_s
        while self._thread.is_alive() and time.monotonic() < until and not self._answered.wait(0.1):
            pass

    def carry_out(self, orders: Iterable[Order]) -> None:
        """Take orders; each is acknowledged with `OrderTaken`. An order that was taken before changes nothing."""
        for order in orders:
            self._orders.put(order)

    def use_topology(self, topology: Topology) -> None:
        """Go on with other accelerators, for gangs that are launched from now on."""
        self._orders.put(topology)

    def explain(self, why: Mapping[str, str]) -> None:
        """Show users why jobs wait that they submitted to the engine, by the engine's numbers of these."""
        if self.engine.adopts:
            self._orders.put(why)

    def close(self, *, stop_jobs: bool = False, hurry: bool = False, wait_s: float = 60.0) -> None:
        """End the thread. The engine goes on with the gangs, unless `stop_jobs` stops them."""
        super().close(stop_jobs=stop_jobs, hurry=hurry, wait_s=wait_s)
        self.engine.close()

    def _wake(self) -> None:
        self._orders.put(None)

    # ---- what it knows: read from any thread -------------------------------------------------------------------

    def orphans(self) -> list[tuple[str, int]]:
        """Return job and epoch of gangs that bear our mark and that no order is about. They are left alone."""
        return sorted((mark.job_id, mark.epoch) for mark in self._orphans)

    def taken(self, node: int) -> int:
        """Return how many accelerators of a node others hold."""
        return self._nodes.taken(node, self._seats_in_engine())

    def _seats_in_engine(self) -> list[int]:
        gangs = [gang for gang in list(self._live.values()) if gang.number and gang.state != QUEUED]
        return [seat for gang in gangs for seat in gang.order.seats]

    # ---- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing or (self._stops_jobs and self._live):
            self._take_orders()
            if self._closing and not self._stops_jobs:
                return
            if self._closing:
                for gang in self._live.values():
                    self._guard(_about(gang), self._halt, gang, not self._hurries)
            now = time.monotonic()
            if now >= self._nodes_at:
                self._nodes_at = now + self._times.nodes_s
                submitted = [gang for gang in self._live.values() if gang.number]  # any may have started since the list
                ours = [seat for gang in submitted for seat in gang.order.seats]
                self._nodes.read(ours, [seat for gang in self._live.values() for seat in gang.order.seats])
            if now >= self._poll_at:
                self._poll_at = now + self._times.poll_s
                self._poll()

    def _take_orders(self) -> None:
        """Wait for an order or for the next poll, and take all that have come."""
        wait_s = max(min(self._poll_at, self._nodes_at) - time.monotonic(), 0.0)
        try:
            order = self._orders.get(timeout=min(wait_s, self._times.poll_s) or 1e-3)
            while True:
                if isinstance(order, Topology):
                    self._nodes.use_topology(order)
                elif isinstance(order, Mapping):
                    for number, why in order.items():
                        self.engine.explain(number, why)
                elif order is not None:
                    self._take(order)
                order = self._orders.get_nowait()
        except queue.Empty:
            pass
        if self._listed is not None:
            self._submit_due()

    def _take(self, order: Order) -> None:
        match order:
            case Launch():
                about = order.job_id, order.epoch
                if not self._guard(about, self._launch, order) and about not in self._live:
                    self._report(GangEnded(*about, "failed", "it could not be started"))
            case Halt(_, job_id, epoch, save):
                if (gang := self._live.get((job_id, epoch))) is not None:
                    self._guard((job_id, epoch), self._halt, gang, save)
            case DrainNode(_, node, reason):
                self._nodes.set_node(node, reason)
        self._report(OrderTaken(order.number))

    def _launch(self, order: Launch) -> None:
        key = order.job_id, order.epoch
        if (known := self._live.get(key)) is not None:
            known.order = replace(known.order, seats=order.seats)  # its nodes may have other numbers now
            return
        folder = JobFolder.of(self._workdir, *key, order.spec.get("checkpoint_dir", ""))
        grace_s = float(order.spec.get("checkpoint", {}).get("grace_s", 10.0))
        gang = GangState(order, Mark(self.cluster, *key), folder, grace_s)
        if order.shared:
            reason = f"{self.engine.name} gives an accelerator to one job at a time, and this one would share"
            self._report(GangEnded(*key, "failed", reason))
            return
        gang.is_submission = SUBMISSION in order.spec.get("labels", {})
        gang.may_exist = order.adopt_only or (folder.path / f"supervisor-{order.epoch}.in.json").exists()
        self._live[key] = gang

    # ---- starts ----------------------------------------------------------------------------------------------------

    def _submit_due(self) -> None:
        """Start the gangs that are not known to have been started, each when no other epoch of its job is left."""
        for gang in list(self._live.values()):
            if gang.number or self._earlier_lives(gang):
                continue
            if gang.refused:
                if time.monotonic() >= gang.refused_at + REFUSED_S:
                    self._end(gang, "stopped", gang.refused)
            elif gang.stop_grace_s is not None and not gang.may_exist:
                self._end(gang, "stopped", "")
            elif self._may_try(gang) and not self._guard(_about(gang), self._submit, gang):
                self._end(gang, "failed", "it could not be started")

    def _earlier_lives(self, gang: GangState) -> bool:
        """Whether another gang of the job holds seats, also one of an epoch that no order is about any more."""
        for job_id, epoch in self._live:
            if job_id == gang.order.job_id and epoch < gang.order.epoch:
                return True
        assert self._listed is not None
        if gang.is_submission:  # it is one job of the engine, which has the mark of its last epoch
            return False
        for mark, entries in self._listed.items():
            is_earlier = mark.job_id == gang.order.job_id and mark.epoch < gang.order.epoch
            if is_earlier and any(entry.phase != OVER for entry in entries):
                return True
        return False

    def _may_try(self, gang: GangState) -> bool:
        """Whether a start cannot be the second one: none was tried, or one was and a later list does not have it."""
        if gang.order.adopt_only or self._silence:
            return False
        if not gang.may_exist:
            return True
        if gang.tried_at is None:  # perhaps by an earlier process: the first list of this one decides
            return self._listed_at >= 0
        return self._listed_at >= gang.tried_at + self._times.lost_start_s

    def _submit(self, gang: GangState) -> None:
        try:
            names = self._nodes.names()
            write = request_of if gang.is_submission else prepare
            gang.request = write(gang.order, gang.mark, gang.folder, self._nodes.topology, names, gang.grace_s)
            gang.may_exist, gang.tried_at = True, time.monotonic()
            gang.number = self.engine.submit(gang.request)
            gang.tried_at = time.monotonic()
            self._forked()
        except EngineAway as error:
            gang.tried_at = time.monotonic()
            _log.warning("the start of %s is not confirmed: %s", gang.mark, error)
        except SubmissionMissing as error:
            self._end(gang, "failed", f"{self.engine.name}: {error}")
        except (EngineRefused, InvalidInput) as error:
            if gang.is_submission:
                gang.refused, gang.refused_at = f"{self.engine.name}: {error}", time.monotonic()
            else:
                self._end(gang, "failed", f"{self.engine.name}: {error}")
        except OSError as error:
            self._end(gang, "failed", f"its files cannot be written: {error}")

    # ---- stops -----------------------------------------------------------------------------------------------------

    def _halt(self, gang: GangState, saves: bool) -> None:
        """Call a gang back, through its lease file and with a signal; a second call can only shorten the grace."""
        grace_s = gang.grace_s if saves else min(gang.grace_s, NO_SAVE_GRACE_S)
        if gang.stop_grace_s is not None and grace_s >= gang.stop_grace_s:
            return
        gang.stop_grace_s = grace_s
        if gang.folder.path.exists():
            write_lease(gang.folder, grace_s)
        if gang.number and gang.state:  # else the next list says which
            self._call_back(gang)

    def _call_back(self, gang: GangState) -> None:
        """Tell a gang that was stopped, or cancel it if it waits; what failed is tried again at the next poll."""
        try:
            request = self._request(gang)
            if gang.state == RUNS:
                self.engine.call_back(request, gang.number)
            else:
                self.engine.cancel(request, gang.number, only_waiting=True)
            gang.stop_at = time.monotonic()
        except NOT_DONE as error:
            _log.warning("%s could not be called back: %s", gang.mark, error)

    def _request(self, gang: GangState) -> GangRequest:
        if gang.request is None:
            names = self._nodes.names()
            gang.request = request_of(gang.order, gang.mark, gang.folder, self._nodes.topology, names, gang.grace_s)
        return gang.request

    def _kill_overdue(self, gang: GangState, entries: Sequence[EngineGang]) -> None:
        """Call back again what was not reached, and kill what is still there long after its grace."""
        if gang.stop_grace_s is None or not gang.number:
            return
        now = time.monotonic()
        if gang.stop_at is None:
            self._call_back(gang)
        elif now >= gang.stop_at + gang.stop_grace_s + KILL_MARGIN_S and not gang.killed:
            try:
                self.engine.cancel(self._request(gang), gang.number)
                gang.killed = True
            except NOT_DONE as error:
                _log.warning("%s could not be killed: %s", gang.mark, error)

    # ---- polls -----------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Compare the engine's list with what was ordered."""
        for gang in self._live.values():
            self._guard(_about(gang), self._read_steps, gang)
        begun = time.monotonic()
        try:
            found = self.engine.gangs()
        except (EngineAway, EngineRefused) as error:
            self._failures += 1
            if self._failures > 1 or self._listed is None:
                self._be_silent(str(error))
            return
        listed: defaultdict[Mark, list[EngineGang]] = defaultdict(list)
        for entry in found:
            if entry.mark is not None and entry.mark.cluster == self.cluster:
                listed[entry.mark].append(entry)
        if any(gang.launched for gang in self._live.values()) and not self._lists_any(listed):
            self._failures += 1
            silence = f"it lists none of {len(self._live)} gangs"
        else:
            self._failures, silence = 0, ""
        self._listed, self._listed_at, self._silence = dict(listed), begun, silence
        self._answered.set()
        for gang in list(self._live.values()):
            entries = listed.get(gang.mark, [])
            if entries:
                self._guard(_about(gang), self._compare, gang, entries)
            elif gang.may_exist:
                self._guard(_about(gang), self._miss, gang)
        self._find_orphans(listed)
        self._read_submissions(found)
        self._submit_due()

    def _lists_any(self, listed: Mapping[Mark, list[EngineGang]]) -> bool:
        """Whether a list has any of the gangs that ran: without one it is not to be relied on for new starts."""
        return any(gang.mark in listed for gang in self._live.values() if gang.launched)

    def _be_silent(self, why: str) -> None:
        if not self._silence:
            _log.warning("%s does not answer: %s", self.engine.name, why)
        self._silence = why
        for gang in self._live.values():
            self._be_unknown(gang, why)

    def _be_unknown(self, gang: GangState, why: str) -> None:
        if not gang.unknown and (gang.launched or gang.order.adopt_only):
            gang.unknown = True
            self._report(GangUnknown(gang.order.job_id, gang.order.epoch, why))

    def _compare(self, gang: GangState, entries: list[EngineGang]) -> None:
        """Take over what the engine says of a gang; of several entries with its mark one may run."""
        order = {RUNS: 0, QUEUED: 1, OVER: 2}
        first, *others = sorted(entries, key=lambda entry: (order[entry.phase], entry.number))
        gang.number, gang.state, gang.missed, gang.missing_since = first.number, first.phase, 0, None
        gang.may_exist = True
        if gang.is_submission and first.phase == QUEUED and (gang.launched or gang.stop_at is not None):
            self._requeued(gang)
            return
        if first.phase == OVER:
            gang.over_polls += 1
            self._resolve(gang, EngineEnd(first.state))
            return
        for other in others:
            if other.phase == QUEUED:  # a second start of the same gang
                _log.warning("%s was started twice; %s is cancelled", gang.mark, other.number)
                self._cancel_second(gang, other.number)
        if first.phase == RUNS and (not gang.launched or gang.unknown):
            gang.launched, gang.unknown = True, False
            self._report(Launched(gang.order.job_id, gang.order.epoch))
        self._kill_overdue(gang, entries)

    def _requeued(self, gang: GangState) -> None:
        """End a user's job that is back in the queue: it was called back, or the engine lost its node."""
        if gang.stop_grace_s is not None:
            self._end(gang, "stopped", "")
        else:
            self._cancel_second(gang, gang.number)  # hold it
            self._end(gang, "lost", f"{self.engine.name} requeued it")

    def _read_submissions(self, found: Sequence[EngineGang]) -> None:
        """Report jobs that users submitted to the engine, and those that they cancelled before their start."""
        if not self.engine.adopts:
            return
        try:
            held = self.engine.submissions(self.cluster, lambda: f"submission-{secrets.token_hex(8)}")
        except (EngineAway, EngineRefused) as error:
            _log.warning("held jobs of users could not be taken over: %s", error)
            return
        for one in held:
            if one.number not in self._submissions:
                self._submissions[one.number] = (one.key, one.tenant)
                self._report(SubmissionFound(one.key, one.tenant, one.user, one.document))
        over = {entry.number for entry in found if entry.phase == OVER}
        placed = {gang.number for gang in self._live.values()}
        for number in sorted(over & self._submissions.keys() - placed):
            self._report(SubmissionGone(*self._submissions.pop(number)))

    def _cancel_second(self, gang: GangState, number: str) -> None:
        try:
            self.engine.cancel(self._request(gang), number, only_waiting=True)
        except NOT_DONE as error:
            _log.warning("%s could not be cancelled: %s", number, error)

    def _miss(self, gang: GangState) -> None:
        """Look for a gang that is not listed: its exit record, then the engine's accounting."""
        now = time.monotonic()
        gang.missed += 1
        if gang.folder.read_exit() is not None:
            self._resolve(gang, EngineEnd(""))
            return
        if not gang.number and not gang.order.adopt_only:
            return  # a start without an answer; see `_may_try`
        if gang.missed < 2:
            return
        gang.missing_since = gang.missing_since or now
        try:
            end = self.engine.ended(self._request(gang), gang.number)
        except NOT_DONE as error:
            _log.warning("%s: how it ended could not be asked: %s", gang.mark, error)
            end = None
        if end is not None:
            gang.over_polls += 1
            self._resolve(gang, end)
        elif now >= gang.missing_since + self._times.vanished_s:
            self._end(gang, "lost", f"{self.engine.name} does not know it any more")
        else:
            self._be_unknown(gang, f"{self.engine.name} does not list it")

    def _find_orphans(self, listed: dict[Mark, list[EngineGang]]) -> None:
        known = {gang.mark for gang in self._live.values()}
        jobs = {mark.job_id for mark in known}
        found = frozenset(
            mark
            for mark, entries in listed.items()
            if mark.epoch > 0
            and mark not in known
            and mark.job_id not in jobs
            and any(
                entry.phase != OVER and not entry.is_held and entry.number not in self._submissions for entry in entries
            )
        )
        for mark in found - self._orphans:
            _log.warning("%s runs in %s, but no job is known for it; it is left alone", mark, self.engine.name)
        self._orphans = found

    # ---- ends ------------------------------------------------------------------------------------------------------

    def _read_steps(self, gang: GangState) -> None:
        steps = gang.folder.read_progress(gang.order.total_steps or float("inf"))
        if steps is not None and steps != gang.steps:
            gang.steps = steps
            self._report(StepsSaved(gang.order.job_id, gang.order.epoch, steps))

    def _resolve(self, gang: GangState, end: EngineEnd) -> None:
        """Report how a gang ended: by its own exit record, else by the engine's word."""
        self._read_steps(gang)
        record = gang.folder.read_exit()
        was_stopped = gang.stop_grace_s is not None
        state = end.state.upper()
        if gang.is_submission and state == "COMPLETED":
            self._be_launched(gang)
            self._end(gang, "finished", "")
            return
        if record is None:
            if was_stopped and not gang.launched:
                self._end(gang, "stopped", "")
            elif state in self.engine.node_lost:
                self._end(gang, "lost", f"{self.engine.name}: {state.lower().replace('_', ' ')}")
            elif was_stopped:
                self._end(gang, "stopped", "it was killed")
            elif gang.is_submission:
                self._end(gang, "failed", f"{self.engine.name} ended it as {state}")
            elif 0 < gang.over_polls < RECORD_POLLS:
                return  # its exit record may still be on its way through a shared file system
            else:
                status = "" if end.code is None else f", exit code {end.code}"
                fix = "if no user did that, see that the node shares the folder of the jobs"
                self._end(gang, "failed", f"{self.engine.name} ended it as {state or 'unknown'}{status}; {fix}")
            return
        self._be_launched(gang)
        outcome, reason = record.outcome(was_stopped=was_stopped, last_line=gang.folder.last_line())
        if outcome == "ended":
            outcome = "lost" if state in self.engine.node_lost else "failed"
            reason = f"{self.engine.name} ended it{f' as {state}' if state else ''}"
        self._end(gang, outcome, reason)

    def _be_launched(self, gang: GangState) -> None:
        """Report a start that was over before a list had it."""
        if not gang.launched:
            gang.launched = True
            self._report(Launched(gang.order.job_id, gang.order.epoch))

    def _end(self, gang: GangState, outcome: str, reason: str) -> None:
        del self._live[gang.order.job_id, gang.order.epoch]
        self._report(GangEnded(gang.order.job_id, gang.order.epoch, outcome, reason))


def _about(gang: GangState) -> tuple[str, int]:
    return gang.order.job_id, gang.order.epoch
