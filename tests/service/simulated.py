"""Controller, store, world and clients in one thread and virtual time, with faults drawn from one seed.

The world keeps its own books: which gang held which accelerator from when to when, and how far each job came. They
share no code with the service, and the checks read them and the store.
"""

from __future__ import annotations

import heapq
import json
import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.service.bench import OPERATOR, Bench

from eunomia.backends.reports import GangEnded, Launched, OrderTaken, SeatsTaken, StepsSaved
from eunomia.service import submitted_jobs
from eunomia.service.draining import NOW, drained_seats
from eunomia.service.job_document import parse_job
from eunomia.service.messages import (
    Cancel,
    ChangeJob,
    ChangeNode,
    Hold,
    Launch,
    LongSubmission,
    PlanMaintenance,
    Principal,
    Release,
    Request,
    Submit,
)
from eunomia.service.out_of_service import NODE
from eunomia.service.store.sqlite import SqliteStore

SITE = """\
check = true
[service]
made_up = true
[cluster]
accelerators = { v100 = 4, k80 = 2 }
accelerators_per_node = 2
[policy]
name = "POLICY"
"""
POLICIES = ("las?quantum=200", "fifo", "srtf", "max_min_fairness", "kueue_fair_share")
USERS = tuple(Principal(user, tenant, "submitter") for user, tenant in (("ann", "a"), ("bob", "b"), ("cat", "c")))
LEASE_S = 120.0


class Crash(BaseException):
    """The service dies here."""


class Violation(AssertionError):
    """A promise that was broken."""


def demand(holds: object, text: str) -> None:
    """Raise Violation unless it holds."""
    if not holds:
        raise Violation(text)


@dataclass(slots=True)
class Gang:
    """The processes of one start, with their supervisor."""

    job: str
    epoch: int
    seats: tuple[int, ...]
    wants: float  # seconds from its checkpoint to its end
    fails: bool
    began: float = -1.0
    stop_at: float = -1.0
    halted: bool = False  # it was ordered to stop, perhaps too late
    outcome: str = ""  # how it ended


@dataclass
class World:
    """Gangs on seats, as they really are."""

    rng: random.Random
    at: float = 0.0
    lengths: dict[str, float] = field(default_factory=dict)  # by job
    saved: dict[str, float] = field(default_factory=dict)  # seconds of work in a checkpoint
    gangs: dict[tuple[str, int], Gang] = field(default_factory=dict)
    used: list[tuple[int, float, float, str, int]] = field(default_factory=list)  # seat, from, to, job, epoch
    renewed: float = 0.0  # when a service last renewed leases
    strangers: set[int] = field(default_factory=set)  # seats that others use

    def live(self) -> list[Gang]:
        return [gang for gang in self.gangs.values() if not gang.outcome]

    def take(self, order: Any) -> list[Any]:
        """Carry out an order; return what is reported at once."""
        reports: list[Any] = [OrderTaken(order.number)]
        key = order.job_id, order.epoch
        if not isinstance(order, Launch):
            gang = self.gangs.get(key)
            if gang is not None:
                gang.halted = True
            if gang is not None and not gang.outcome and gang.stop_at < 0:
                gang.stop_at = self.at + self.rng.uniform(0.0, 5.0)
            return reports
        gang = self.gangs.get(key)
        if gang is None:
            demand(not order.adopt_only, f"{key} was reported as launched, but never was")
            length = self.lengths.setdefault(
                order.job_id, self.rng.choice([5.0, 50.0, 500.0]) * self.rng.uniform(0.5, 2)
            )
            fails = self.rng.random() < 0.25
            self.gangs[key] = Gang(
                order.job_id, order.epoch, order.seats, length - self.saved.get(order.job_id, 0.0), fails
            )
        elif gang.outcome:
            reports.append(GangEnded(*key, gang.outcome, "x"))
        elif gang.began >= 0:
            reports.append(Launched(*key))
        return reports

    def advance(self, to: float, is_up: bool) -> list[Any]:
        """Let time pass, in which gangs start and end; return the reports."""
        reports: list[Any] = []
        self.at = to
        if is_up:
            self.renewed = to
        for gang in sorted(self.live(), key=lambda gang: (gang.began < 0, gang.job, gang.epoch)):
            if gang.began >= 0 and to >= gang.began + gang.wants:
                self._end(gang, gang.began + gang.wants, "failed" if gang.fails else "finished", reports)
            elif gang.began < 0 and any(one.job == gang.job and one.began >= 0 for one in self.live()):
                continue  # its supervisor waits for the earlier gang of the job, whatever it was ordered
            elif 0 <= gang.stop_at <= to:
                self._end(gang, gang.stop_at, "stopped", reports)
            elif to > self.renewed + LEASE_S:
                self._end(gang, self.renewed + LEASE_S, "stopped", reports)
            elif gang.began < 0:
                self._begin(gang, to, reports)
            elif self.rng.random() < 0.05:
                self._save(gang, to)
                reports.append(StepsSaved(gang.job, gang.epoch, self.saved[gang.job]))
        return reports

    def kill_supervisor(self) -> list[Any]:
        reports: list[Any] = []
        running = [gang for gang in self.live() if gang.began >= 0]
        if running:
            self._end(self.rng.choice(running), self.at, "lost", reports)
        return reports

    def _begin(self, gang: Gang, at: float, reports: list[Any]) -> None:
        """Begin once the job's and the seats' locks are free; a gang on a seat that others use is turned away."""
        others = [one for one in self.live() if one is not gang and one.began >= 0]
        if any(one.job == gang.job or set(one.seats) & set(gang.seats) for one in others):
            return
        if self.strangers & set(gang.seats):
            self._end(gang, at, "stopped", reports)
            return
        earlier = [one for one in self.gangs.values() if one.job == gang.job and one.outcome == "finished"]
        if earlier:
            gang.outcome = "finished"
            reports.append(GangEnded(gang.job, gang.epoch, "finished"))
            return
        gang.began = at
        reports.append(Launched(gang.job, gang.epoch))

    def _save(self, gang: Gang, at: float) -> None:
        done = self.lengths[gang.job] - gang.wants + max(at - gang.began, 0.0)
        self.saved[gang.job] = max(self.saved.get(gang.job, 0.0), done)

    def _end(self, gang: Gang, at: float, outcome: str, reports: list[Any]) -> None:
        gang.outcome = outcome
        if gang.began >= 0:
            self.used += [(seat, gang.began, max(at, gang.began), gang.job, gang.epoch) for seat in gang.seats]
            if outcome == "stopped":
                self._save(gang, at)
        reports.append(GangEnded(gang.job, gang.epoch, outcome, f"{outcome} in the simulation"))

    def check(self) -> None:
        """Raise Violation if a seat had two gangs at once, or a job two."""
        for of in (lambda one: one[0], lambda one: one[3]):
            for key in {of(one) for one in self.used}:
                spans = sorted((one[1], one[2], one[3], one[4]) for one in self.used if of(one) == key)
                for (_, end, *before), (begin, _, *after) in pairwise(spans):
                    demand(begin >= end or before == after, f"{key}: {before} and {after} overlap")


class Simulation:
    """One seed: a site, its clients, and what goes wrong."""

    def __init__(
        self, folder: Path, seed: int, *, crash_at_commit: int = 0, after: bool = False, database: str = ""
    ) -> None:
        self.rng = random.Random(seed)
        self.seed, self._crash_at, self._crash_after = seed, crash_at_commit, after
        self.crashes = self.commits = 0
        rng = self.rng
        calm = crash_at_commit > 0
        self.crash_rate = 0.0 if calm else rng.choice([0.0, 0.01, 0.05])
        self.delay_s = rng.choice([0.0, 2.0, 20.0])
        self.repeat_rate = rng.choice([0.0, 0.1])
        self.kill_rate = 0.0 if calm else rng.choice([0.0, 0.02])
        self.snapshot_rate = rng.choice([0.0, 0.05])
        folder.mkdir(mode=0o700)
        site = SITE.replace("POLICY", rng.choice(POLICIES))
        if database:
            site = site.replace("[service]", f'[service]\ndatabase = "{database}"')
        self.bench = Bench(folder, site, numbered=True)
        self.world = World(random.Random(seed + 1))
        self.accepted: dict[str, list[str]] = {}  # ids by key
        self.unanswered: list[tuple[Submit, Principal]] = []
        self.tried: set[str] = set()  # jobs that a client asked to cancel, answered or not
        self.cancelled: dict[str, int] = {}  # epoch when it was acknowledged
        self.reports: list[tuple[float, int, Any]] = []
        self.taken: set[int] = set()  # seats that others use, as the service knows
        self._number = 0
        self._deliver(self.bench.orders)

    # ---- what happens ------------------------------------------------------------------------------------------

    def run(self, events: int) -> None:
        """Faults and requests, then quiet: everything accepted must come to its end."""
        for _ in range(events):
            self._pass(self.rng.expovariate(1 / 3.0))
            self._something()
        self.crash_rate = self.kill_rate = 0.0
        for action, who in self.unanswered:
            self._request(action, who)
        self.world.strangers.clear()
        for _ in range(2):  # the first may still die
            for node in self.bench.site.node_names():
                for place in (NODE, 0, 1):
                    self._request(ChangeNode(node, "resume", accelerator=place), OPERATOR)
            for job in [row.id for row in self.bench.controller.rows.values() if "user" in row.holds]:
                self._request(Release(job), OPERATOR)
        for _ in range(4000):
            if not self.bench.controller.rows and not self.reports:
                break
            self._pass(20.0)
            self._turn([])
        self.check_end()

    def _something(self) -> None:
        rng = self.rng
        draw = rng.random()
        jobs = [job for ids in self.accepted.values() for job in ids]
        who = rng.choice(USERS)
        if draw < 0.25:
            self._submit(who)
        elif draw < 0.30 and self.unanswered:
            action, owner = self.unanswered.pop()
            self._request(action, owner)
        elif draw < 0.36 and jobs:
            self._request(Cancel(rng.choice(jobs)), OPERATOR)
        elif draw < 0.40 and jobs:
            self._request(Hold(rng.choice(jobs)), OPERATOR)
        elif draw < 0.46 and jobs:
            self._request(Release(rng.choice(jobs)), OPERATOR)
        elif draw < 0.475 and jobs:
            pair = [Hold(job := rng.choice(jobs)), Release(job)]
            self._turn([Request(action, OPERATOR) for action in rng.sample(pair, 2)])
        elif draw < 0.48 and jobs:
            self._request(ChangeJob(rng.choice(jobs), {"weight": rng.choice([0.5, 2.0])}), OPERATOR)
        elif draw < 0.52:
            node = rng.choice(self.bench.site.node_names())
            until = rng.choice([NOW, math.inf, self.bench.clock.at + rng.choice([5.0, 100.0])])
            place, what = rng.choice([NODE, NODE, 0, 1]), rng.choice(["drain", "resume", "resume"])
            self._request(ChangeNode(node, what, until=until, accelerator=place), OPERATOR)
        elif draw < 0.523:
            begins = self.bench.clock.at + rng.choice([0.0, 50.0, 300.0])
            node = rng.choice(self.bench.site.node_names())
            self._request(PlanMaintenance((node,), begins, rng.choice([20.0, 200.0])), OPERATOR)
        elif draw < 0.53:
            self._restart(rng.choice([1.0, 30.0, 2 * LEASE_S]))
        elif draw < 0.53 + self.kill_rate:
            self._later(self.world.kill_supervisor())
        elif draw < 0.55 + self.snapshot_rate:
            self.bench.writer.snapshot()
        elif draw < 0.60 + self.snapshot_rate:
            self.world.strangers ^= {rng.randrange(6)}
            self._turn([])
        else:
            self._turn([])

    def _submit(self, who: Principal) -> None:
        rng, documents = self.rng, []
        for _ in range(rng.choice([1, 1, 1, 3])):
            known = [job for ids in self.accepted.values() for job in ids]
            document: dict[str, Any] = {"command": ["x"], "accelerators": rng.choice([1, 1, 2, 2])}
            if rng.random() < 0.6:
                document["duration_s"] = rng.choice([10.0, 100.0, 1000.0])
            if rng.random() < 0.2:
                document["types"] = [rng.choice(["v100", "k80"])]
            if rng.random() < 0.6:
                document["retries"] = rng.choice([1, 3, 6])
            if rng.random() < 0.1:
                document["max_run_s"] = rng.choice([20.0, 200.0])
            if rng.random() < 0.15 and known:
                document["after"] = [rng.choice(known)]
            documents.append(parse_job(document))
        self._number += 1
        key = f"key-{self._number:06}"
        self._request(Submit(tuple(documents), key, key, len(documents) > 1), who)

    def _request(self, action: Any, who: Principal) -> None:
        if isinstance(action, Submit):
            self.unanswered = [(one, owner) for one, owner in self.unanswered if one.key != action.key]
        if isinstance(action, Cancel):
            self.tried.add(action.job_id)
        try:
            replies = self._turn_or_crash([Request(action, who)])
            while isinstance(replies[0], LongSubmission):
                replies = self._turn_or_crash([replies[0]])
        except Crash:
            if isinstance(action, Submit):
                self.unanswered.append((action, who))
            return
        reply = replies[0]
        if isinstance(action, Submit) and reply.status < 300:
            ids = reply.body.get("ids") or [reply.body["id"]]
            demand(
                self.accepted.setdefault(action.key, ids) == ids,
                f"{action.key} gave {self.accepted[action.key]}, then {ids}",
            )
        if isinstance(action, Cancel) and reply.status == 200:
            row = self.bench.store.job(action.job_id)
            demand(row is not None and row.state == "cancelled", f"{action.job_id} is not cancelled")
            assert row is not None
            self.cancelled[action.job_id] = row.epoch

    # ---- time, turns and crashes -------------------------------------------------------------------------------

    def _later(self, reports: Sequence[Any]) -> None:
        for report in reports:
            for _ in range(2 if self.rng.random() < self.repeat_rate else 1):
                self._number += 1
                heapq.heappush(
                    self.reports, (self.world.at + self.rng.uniform(0.0, self.delay_s), self._number, report)
                )

    def _pass(self, seconds: float) -> None:
        clock = self.bench.clock
        end = clock.at + seconds
        while clock.at < end:
            clock.at = min(end, clock.at + 5.0, max(self.bench.controller.due(), clock.at + 0.1))
            self._later(self.world.advance(clock.at, is_up=True))
            self._turn([])

    def _turn(self, inputs: list[Any]) -> None:
        with suppress(Crash):
            self._turn_or_crash(inputs)

    def _turn_or_crash(self, inputs: list[Any]) -> list[Any]:
        """Do one turn with what has arrived; it may die before or after its commit. Raises Crash then."""
        bench, due = self.bench, list(inputs)
        while self.reports and self.reports[0][0] <= bench.clock.at:
            due.append(heapq.heappop(self.reports)[2])
        if self.taken != self.world.strangers:
            self.taken = set(self.world.strangers)
            due.append(SeatsTaken(tuple((seat, "others") for seat in sorted(self.taken))))
        bench.writer.world = None
        commits, drained = bench.store.commits, drained_seats(bench.controller)
        dies = self.rng.random() < self.crash_rate
        after = self.rng.random() < 0.5
        try:
            with self._dying(before=(dies and not after) or self._is_due(after=False)):
                turn = bench.writer.turn(due)
            self.commits += bench.store.commits - commits
            if bench.store.commits > commits and ((dies and after) or self._is_due(after=True, done=True)):
                raise Crash
        except Crash:
            self._restart(self.rng.choice([0.0, 5.0, LEASE_S, 3 * LEASE_S]))
            raise
        node = bench.site.setup.topology.node
        left = [order for order in turn.orders if not isinstance(order, Launch)]
        left += [message for message in due if isinstance(message, GangEnded)]
        freed = {seat for one in left for seat in self._seats_of(one)}
        for order in turn.orders:
            if isinstance(order, Launch):
                on = {int(node[seat]) for seat in order.seats} & set(bench.controller.drained)
                demand(not on, f"{order} is on the drained nodes {on}")
                on = drained & drained_seats(bench.controller) & set(order.seats)
                demand(not on, f"{order} is on the drained seats {on}")
                used = self.taken & set(order.seats) - freed
                demand(not used, f"{order} is on the seats {used}, which others use")
        self._deliver(turn.orders)
        self._check_now()
        return turn.replies[: len(inputs)]

    def _is_due(self, *, after: bool, done: bool = False) -> bool:
        """Say whether this is the commit at which the run is to die."""
        return self._crash_after == after and self._crash_at == self.commits + (0 if done else 1)

    def _dying(self, *, before: bool) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def dying() -> Any:
            if before:

                def commit(*_: Any) -> None:
                    raise Crash

                self.bench.store.commit = commit  # type: ignore[method-assign]
            yield

        return dying()

    def _seats_of(self, order: Any) -> tuple[int, ...]:
        gang = self.world.gangs.get((order.job_id, order.epoch))
        return () if gang is None else gang.seats

    def _deliver(self, orders: Sequence[Any]) -> None:
        for order in orders:
            self._later(self.world.take(order))

    def _restart(self, away_s: float) -> None:
        """Die, stay away, come back: what was in flight is lost, the world goes on."""
        self.crashes += 1
        self._crash_at = 0 if self._crash_at and self.commits + 1 >= self._crash_at else self._crash_at
        self.reports.clear()
        self.taken = {-1}  # the next service learns it anew
        self.bench.clock.at += away_s
        self.world.advance(self.bench.clock.at, is_up=False)
        self.bench.restart()
        self._deliver(self.bench.orders)
        for long in self.bench.store.unfinished():
            self._go_on(long)
        self._check_now()

    def _go_on(self, long: Any) -> None:
        """Enter the other jobs of an accepted submission, unless the service dies again: then the next one does."""
        with suppress(Crash):
            while isinstance(long, LongSubmission):
                (long,) = self._turn_or_crash([long])

    # ---- checks ------------------------------------------------------------------------------------------------

    def _check_now(self) -> None:
        self.bench.controller.check()
        demand(not self.bench.writer.faults, "an input could not be handled, and was refused or set aside")
        rows = self.bench.controller.rows
        for gang in self.world.live():
            if gang.began >= 0:
                ended = gang.job not in rows or rows[gang.job].ended_epoch >= gang.epoch
                demand(not ended, f"start {gang.epoch} of {gang.job} counts as ended, but it runs")
        for row in rows.values():
            if row.id in self.cancelled:
                demand(row.epoch == self.cancelled[row.id], f"{row.id} started again after its cancellation")

    def check_end(self) -> None:
        """All that was accepted is over, nothing runs, nothing is held, no job was lost or doubled."""
        store, world = self.bench.store, self.world
        world.check()
        demand(
            not self.bench.controller.rows,
            f"live at the end: {[(r.id, r.state) for r in self.bench.controller.rows.values()]}",
        )
        demand(not world.live(), f"gangs run at the end: {world.live()}")
        demand(store.problems() == [], f"{store.problems()}")
        demand(store.unsent() == {}, f"orders were never taken: {store.unsent()}")
        demand(not store._db.execute("SELECT * FROM seats").fetchall(), "seats are held at the end")
        accepted = {job for ids in self.accepted.values() for job in ids}
        stored = {job for (job,) in store._db.execute("SELECT id FROM jobs").fetchall()}
        demand(stored == accepted, f"lost {sorted(accepted - stored)}, doubled {sorted(stored - accepted)}")
        for job in sorted(accepted):
            row = store.job(job)
            assert row is not None
            mine = [gang for gang in world.gangs.values() if gang.job == job]
            finished = any(gang.outcome == "finished" and gang.began >= 0 for gang in mine)
            demand(row.is_over and row.state != "quarantined", f"{job} is {row.state}")
            news = store._db.execute("SELECT detail FROM news WHERE job = ? AND kind = 'stopping'", (job,)).fetchall()
            stops = {json.loads(detail)["epoch"] for (detail,) in news}  # also where the order came after the end
            failed = sum(gang.outcome == "failed" and not gang.halted and gang.epoch not in stops for gang in mine)
            demand(row.state != "succeeded" or failed <= row.spec.get("retries", 0), f"{job} failed {failed} times")
            demand((row.state == "succeeded") <= finished, f"{job} succeeded but never finished")
            demand(row.state != "cancelled" or job in self.tried or row.spec.get("after"), f"{job} was not cancelled")
            demand(
                max((gang.epoch for gang in mine), default=0) <= row.epoch, f"{job} ran in an epoch that is not stored"
            )
        scheduler = self.bench.controller.scheduler
        demand(int(scheduler.state.floor.free.sum()) == 6, "the scheduler has not all seats back")


def simulate(folder: Path, seed: int, events: int, **options: Any) -> Simulation:
    """Run one seed to its end; with an odd one lists of three jobs take several turns.

    Raises Violation or AssertionError with the seed.
    """
    before, submitted_jobs.AT_ONCE = submitted_jobs.AT_ONCE, 2 if seed % 2 else submitted_jobs.AT_ONCE
    simulation = Simulation(
        folder / f"seed-{seed}-{options.get('crash_at_commit', 0)}-{options.get('after', '')}", seed, **options
    )
    try:
        simulation.run(events)
    except Exception as error:
        error.add_note(f"seed {seed}, {events} events, {options}")
        raise
    finally:
        submitted_jobs.AT_ONCE = before
        simulation.bench.store.close()
    return simulation


Mutation = Callable[[Any], None]
__all__ = ["Simulation", "SqliteStore", "Violation", "simulate"]
