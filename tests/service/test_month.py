"""A lab's month on a clock that is set: no script is restarted by what others or an operator do, and the books agree.

Fifteen users submit to two boxes. What really runs, and for how long, is kept by the test; it shares no code with the
service.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import OPERATOR, Bench

import eunomia.setup.run_objects
from eunomia.backends.reports import GangEnded, Launched, OrderTaken, StepsSaved
from eunomia.service.draining import NOW
from eunomia.service.messages import ChangeNode, Launch, Principal, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site
from eunomia.service.starter_site import STARTER

DAY_S, HOUR_S, SAVE_S = 86400.0, 3600.0, 600.0
BOXES = 'nodes = [{{ type = "a100", count = {}, accelerators = 4 }}]'
LIMITS = "[limits.default]\nrunning_jobs = 5\naccelerators = 6\n"
SEAT = 2  # the accelerator a100-0/2, which is out of service for a third of the month
KINDS = ("plain",) * 12 + ("saving",) * 7 + ("notebook",)


@dataclass(slots=True)
class Work:
    """What a job would do if it ran alone, and what has become of it."""

    user: str
    kind: str
    run_s: float
    fails: bool
    seats: int
    submitted: float
    done_s: float = 0.0  # in its last checkpoint
    starts: list[float] = field(default_factory=list)
    stops: list[tuple[float, str]] = field(default_factory=list)  # when a gang of it ended otherwise than by itself
    ended: float = math.nan


class Month:
    """Users, boxes and an operator around the controller, the store and the starter policy."""

    def __init__(self, folder: Path, seed: int, days: int, jobs: int) -> None:
        self.rng = random.Random(seed)
        self.bench = Bench(folder, self.site(2))
        self.days = days
        self.work: dict[str, Work] = {}
        self.gangs: dict[tuple[str, int], float] = {}  # since when it runs
        self.halted: set[tuple[str, int]] = set()  # were ordered to stop
        self.held: dict[str, float] = defaultdict(float)  # accelerator-seconds by user
        self.given: dict[tuple[str, int], float] = {}  # since when it has its accelerators
        self.booked: dict[str, float] = defaultdict(float)  # the same, with the time of starts
        self.used: list[tuple[float, int]] = []  # when a gang was launched on which seat
        self.why = ""  # what the operator is doing, or what has happened to a box
        self.queue: list[tuple[float, int, Any]] = []
        self._number = 0
        for _ in range(jobs):  # by day more than by night
            day = self.rng.randrange(days)
            self.at(DAY_S * day + HOUR_S * min(23.99, max(0.0, self.rng.gauss(14.0, 4.0))), self.submit)
        self._act(self.bench.orders)

    @staticmethod
    def site(boxes: int) -> str:
        """Return the site file that a new site begins with, on so many boxes."""
        text = "check = true\n" + STARTER.format_map({"cluster": BOXES.format(boxes)})
        return text.replace("[service]", "[service]\nmade_up = true", 1) + LIMITS

    def at(self, when: float, what: Any) -> None:
        """Let something happen: a report, or a call."""
        self._number += 1
        heapq.heappush(self.queue, (when, self._number, what))

    def run(self) -> None:
        """Let the month pass, and all jobs come to their ends."""
        clock = self.bench.clock
        while self.queue or self.bench.controller.rows:
            due = self.bench.controller.due()
            assert self.queue or due < math.inf, "jobs wait, and nothing is to happen any more"
            clock.at = max(clock.at, min(self.queue[0][0] if self.queue else math.inf, due))
            reports = []
            while self.queue and self.queue[0][0] <= clock.at:
                _, _, what = heapq.heappop(self.queue)
                if callable(what):
                    self.turn(*reports)
                    reports = []
                    what()
                else:
                    reports += self.happened(what)
            self.turn(*reports)

    # ---- users ---------------------------------------------------------------------------------------------------

    def submit(self) -> None:
        """A user submits a job: mostly a plain script, of which nothing is known but its limit."""
        rng, user = self.rng, self.rng.randrange(15)
        kind = rng.choice(KINDS)
        run_s = min(rng.lognormvariate(math.log(2400.0), 1.2), 2 * DAY_S)
        work = Work(
            f"user-{user}", kind, run_s, rng.random() < 0.1, rng.choice([1, 1, 1, 1, 2, 4]), self.bench.clock.at
        )
        document: dict[str, Any] = {"accelerators": work.seats, "interruptible": True if kind == "saving" else None}
        if kind == "notebook":
            work.run_s, work.fails = 4 * HOUR_S, False
            document |= {"max_run_s": 8 * HOUR_S, "interactive": "notebook"}
        elif rng.random() < 0.5:
            document["max_run_s"] = 2 * DAY_S
        mine = [job for job, one in self.work.items() if one.user == work.user]
        if mine and rng.random() < 0.1:
            document["after"] = [f"afterany:{mine[-1]}"]
        if rng.random() < 0.1:
            document["priority"] = rng.choice([-5, 5])
        reply = self.bench.submit(Principal(work.user, f"group-{user % 4}", "submitter"), **document)
        self.work[reply.body["id"]] = work
        self._act(self.bench.orders)

    # ---- boxes ---------------------------------------------------------------------------------------------------

    def turn(self, *inputs: Any) -> None:
        """Let the service take in what has happened, and carry out what it orders."""
        self.bench.do(*inputs)
        self._act(self.bench.orders)

    def _act(self, orders: list[Any]) -> None:
        """Carry out orders: a gang starts five seconds later, and saves for two when it is stopped."""
        at = self.bench.clock.at
        if orders:
            self.bench.do(*(OrderTaken(order.number) for order in orders))
        for order in orders:
            key = order.job_id, order.epoch
            if isinstance(order, Launch):
                self.used += [(at, seat) for seat in order.seats if not order.adopt_only]
                self.given.setdefault(key, at)
                if key not in self.gangs and not order.adopt_only:
                    self.at(at + 5.0, Launched(*key))
                elif key in self.gangs:
                    self.at(at, Launched(*key))
            else:
                self._take_back(key)
                self.halted.add(key)
                self.at(at + 2.0, GangEnded(*key, "stopped", self.why))

    def _take_back(self, key: tuple[str, int]) -> None:
        """Book the time for which a gang had its accelerators, up to the decision that takes them back."""
        if (since := self.given.pop(key, None)) is not None:
            work = self.work[key[0]]
            self.booked[work.user] += work.seats * (self.bench.clock.at - since)

    def happened(self, report: Any) -> list[Any]:
        """Keep the books of what is reported; return it, if it is so."""
        key, at = (report.job_id, report.epoch), self.bench.clock.at
        work = self.work[report.job_id]
        if isinstance(report, Launched):
            if key in self.halted:
                return []
            if key not in self.gangs:
                self.gangs[key] = at
                work.starts.append(at)
                left = work.run_s - work.done_s
                self.at(at + left, GangEnded(*key, "failed" if work.fails else "finished"))
                if work.kind == "saving":
                    self.at(at + 1.0, StepsSaved(*key, work.done_s))
            return [report]
        if isinstance(report, GangEnded):
            self._take_back(key)
        if key not in self.gangs:
            return [report] if isinstance(report, GangEnded) and report.outcome == "stopped" else []
        if isinstance(report, StepsSaved):
            self.at(at + SAVE_S, StepsSaved(*key, work.done_s + (at + SAVE_S - self.gangs[key])))
            return [report]
        begun = self.gangs.pop(key)
        self.held[work.user] += work.seats * (at - begun)
        if report.outcome in ("finished", "failed"):
            work.ended = at
        else:
            work.stops.append((at, report.reason))
            if work.kind == "saving" and report.outcome == "stopped":
                work.done_s += at - begun
        return [report]

    # ---- what happens to the site ---------------------------------------------------------------------------------

    def restart(self) -> None:
        """The service is killed, or upgraded, and starts again."""
        self.bench.restart()
        self._act(self.bench.orders)

    def change(self, text: str) -> None:
        """The operator applies another site file."""
        bench, sent = self.bench, list[Any]()

        class World:
            """Keeps what it is to do."""

            def carry_out(self, orders: Any) -> None:
                sent.extend(orders)

            def use_topology(self, topology: Any) -> None:
                """Take it in."""

        bench.path.write_text(text)
        bench.writer.world = World()  # type: ignore[assignment]
        apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
        bench.writer.world = None
        self._act(sent)
        self.turn()

    def lose(self, box: str) -> None:
        """A box loses power: what runs there ends, and the operator takes it out until it is repaired, a day later."""
        node = self.bench.site.node_names().index(box)
        on = self.bench.controller.scheduler.state.topology.node
        rows = [row for row in self.bench.controller.rows.values() if row.seats and on[row.seats[0]] == node]
        self.why = f"{box} lost"
        lost = [GangEnded(row.id, row.epoch, "lost", self.why) for row in rows if (row.id, row.epoch) in self.gangs]
        self.turn(
            Request(ChangeNode(box, "drain", until=NOW), OPERATOR),
            *[one for report in lost for one in self.happened(report)],
        )
        self.why = ""
        self.at(self.bench.clock.at + DAY_S, lambda: self.turn(Request(ChangeNode(box, "resume"), OPERATOR)))


@pytest.mark.parametrize(("days", "jobs"), [(6, 400), pytest.param(30, 2000, marks=pytest.mark.slow)])
def test_a_month_of_a_lab_restarts_no_plain_script_but_those_of_a_lost_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, jobs: int
) -> None:
    month = Month(tmp_path, seed=1, days=days, jobs=jobs)

    def upgrade(version: str) -> None:
        monkeypatch.setattr(eunomia.setup.run_objects, "__version__", version)
        month.bench.site = load_site(month.bench.path)
        month.restart()

    day = DAY_S * month.days / 30
    month.at(4.4 * day, month.restart)
    month.at(7.5 * day, lambda: month.change(month.site(3)))
    month.at(9.5 * day, lambda: month.turn(Request(ChangeNode("a100-0", "drain", accelerator=SEAT), OPERATOR)))
    month.at(11.5 * day, lambda: month.turn(Request(ChangeNode("a100-2", "drain"), OPERATOR)))
    month.at(12.5 * day, lambda: month.turn(Request(ChangeNode("a100-2", "resume"), OPERATOR)))
    month.at(19.5 * day, lambda: month.turn(Request(ChangeNode("a100-0", "resume", accelerator=SEAT), OPERATOR)))
    month.at(13.6 * day, lambda: upgrade("0.2"))
    month.at(17.5 * day, lambda: month.lose("a100-1"))
    month.at(24.6 * day, lambda: upgrade("0.3"))
    month.run()
    for job, work in month.work.items():
        if work.kind == "notebook" and work.stops:
            assert [why for _, why in work.stops] == ["a100-1 lost"] and month.bench.state(job) == "failed", job
            continue
        assert work.ended == work.ended, f"{job} did not come to its end"
        if work.kind != "saving":
            assert {why for _, why in work.stops} <= {"a100-1 lost"}, job
            assert work.ended - work.starts[-1] == pytest.approx(work.run_s)
        assert month.bench.state(job) == ("failed" if work.fails else "succeeded"), job
    assert not [at for at, seat in month.used if seat == SEAT and 9.5 * day < at < 19.5 * day]
    for table, expected in {"ended_hours": month.held, "usage_hours": month.booked}.items():
        text = f'SELECT "user", sum(accelerator_s) FROM {table} GROUP BY "user"'
        rows = month.bench.store._db.execute(text).fetchall()
        assert {user: round(s) for user, s in rows} == {user: round(s) for user, s in expected.items()}, table
