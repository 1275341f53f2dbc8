"""Rows of ended jobs go, and nothing that is decided depends on whether or when they went."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.core.conftest import Sit

from eunomia.core import ended_jobs
from eunomia.core.belief import Belief
from eunomia.core.entitlements import Entitlements
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.decisions import Ask, SetTimer, Start
from eunomia.model.events import (
    Answered,
    AskAbandoned,
    Estimated,
    Event,
    GangAdopted,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobPaused,
    JobResumed,
    JobSubmitted,
    JobUpdated,
    Measured,
    Moment,
    NodeJoined,
    NodeLost,
    Progressed,
    TimerFired,
)
from eunomia.model.job import Job
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.records.packed_objects import capture, restore
from eunomia.records.record import step_lines
from eunomia.records.scheduler_digest import MARK, digest
from eunomia.testing.small_worlds import one_type

POLICIES = (
    "fifo", "srtf", "las?quantum=50", "tiresias?index=gittins", "slurm_fair_share", "kueue_fair_share",
    "max_min_fairness", "max_min_fairness?space_sharing=true", "themis", "astraea", "quincy",
)  # fmt: skip
NODES = (4, 2, 2)


def scheduler_of(text: str) -> Scheduler:
    policy = build(text)
    topology = Topology.of([Node(type="v100", accelerators=size) for size in NODES])
    cut = policy.info.mechanism
    mechanism = Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall)
    tenants = {name: Tenant(quota=3) for name in "ab"}
    return Scheduler(topology, policy.info, mechanism, Belief(one_type()), checked=True, tenants=tenants)


@dataclass
class Story:
    """What happens to a cluster, drawn from a seed and from the state of one scheduler that keeps every row."""

    rng: random.Random
    text: str
    keeps: Scheduler
    at: float = 0.0
    jobs: int = 0
    wake: float = np.inf
    answers: list[tuple[Ask, float]] = field(default_factory=list)  # asks that are open, and when the answer comes

    def moments(self, count: int) -> Iterator[Moment]:
        """Yield moments; each was handled by `keeps` before the next is drawn."""
        policy = build(self.text)
        for _ in range(count):
            self.at += self.rng.choice([0.5, 5.0, 40.0])
            if self.wake <= self.at:
                self.at, self.wake = self.wake, np.inf
                yield Moment.of(self.at, [TimerFired()])
                continue
            if self.answers and self.answers[0][1] <= self.at:
                ask, _ = self.answers.pop(0)
                answer = policy.decide(ask.view)
                late = answer.again_at <= self.at or self.rng.random() < 0.05
                yield Moment.of(
                    self.at, [AskAbandoned(ask.asked, self.at + 1.0) if late else Answered(ask.asked, answer)]
                )
                continue
            yield Moment.of(self.at, [self._event()])

    def decided(self, decisions: list[object]) -> None:
        """Take in what was decided."""
        for one in decisions:
            if isinstance(one, Ask):
                self.answers.append((one, self.at + self.rng.choice([0.0, 0.0, 30.0])))
            elif isinstance(one, SetTimer):
                self.wake = one.at

    def _event(self) -> Event:
        rng, state = self.rng, self.keeps.state
        draw = rng.random()
        if draw < 0.3 or not self.jobs:
            return self._submission()
        row = (
            rng.randrange(self.jobs)
            if rng.random() < 0.2
            else int(rng.choice(range(max(0, self.jobs - 12), self.jobs)))
        )
        name, epoch = state.ids[row], int(state.jobs.epoch[row])
        if draw < 0.34:
            node = rng.randrange(len(NODES))
            return NodeJoined(node) if not state.floor.up[node] else NodeLost(node)
        events: list[Event] = [
            JobFinished(name, epoch), JobFinished(name, epoch), JobFinished(name, epoch), JobFailed(name, epoch, "why"),
            JobCancelled(name), JobPaused(name), JobResumed(name), JobResumed(name), JobUpdated(name, weight=2.0),
            Progressed((name, state.ids[-1]), (1.0, 0.5)), Measured(name, 5.0, 0.5),
            Estimated(name, 50.0, 10.0, 90.0, 3), GangAdopted(name, epoch + 1, (0,), np.inf),
        ]  # fmt: skip
        return rng.choice(events)

    def _submission(self) -> Event:
        rng, number = self.rng, self.jobs
        self.jobs += 1
        return JobSubmitted(
            Job(
                job_id=f"job-{number}", total_steps=rng.choice([20.0, 100.0, 900.0]), submitted=self.at,
                sequence=number,
                scale_factor=rng.choice([1, 1, 2]), tenant=rng.choice("abc"), app=rng.choice(["", "", "x", "y"]),
                weight=rng.choice([1.0, 3.0]), retries=rng.choice([0, 2]), interruptible=rng.random() < 0.95,
            )
        )  # fmt: skip


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go at once, however few they are."""
    monkeypatch.setattr(ended_jobs, "SPARE", -(10**9))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("text", POLICIES)
def test_a_scheduler_that_forgets_decides_as_one_that_never_does(text: str) -> None:
    for seed in range(2):
        keeps, forgets, rng = scheduler_of(text), scheduler_of(text), random.Random(seed)
        sometimes, story = scheduler_of(text), Story(random.Random(seed + 100), text, keeps)
        for moment in story.moments(200):
            decisions = keeps.handle(moment)
            story.decided(list(decisions))
            lines = "".join(step_lines(moment, decisions))
            for other in (forgets, sometimes):
                assert "".join(step_lines(moment, other.handle(moment))) == lines, (seed, moment)
                assert digest(other) == digest(keeps), (seed, moment)
                if other is forgets or rng.random() < 0.05:
                    other.forget_ended()
                    other.mechanism.check()
                    assert digest(other) == digest(keeps)
            if rng.random() < 0.05:  # a restart from a snapshot
                fresh = scheduler_of(text)
                restore(fresh, capture(forgets).content())
                forgets = fresh
        assert keeps.state.forgotten == 0 < forgets.state.forgotten
        total = keeps.ledger.service[: len(keeps.state.jobs)].sum()
        left = forgets.ledger.service[: len(forgets.state.jobs)].sum() + forgets.state.forgotten_service.sum()
        assert left == pytest.approx(total)


@pytest.mark.parametrize("text", ["fifo", "max_min_fairness", "themis", "kueue_fair_share"])
def test_rows_and_snapshots_are_as_large_as_what_is_alive_however_many_jobs_have_ended(sit: Sit, text: str) -> None:
    desk = sit(build(text), sizes=(4,))
    desk.scheduler._checked = False
    rows, sizes = [], []
    desk.submit(0.0, *(f"long-{n}" for n in range(8)), total_steps=1e9)
    for n in range(4000):
        running = desk.scheduler.state.running()
        name, at = f"short-{n}", 10.0 + n
        desk.submit(at, name, total_steps=1.0)
        desk.tell(at + 0.5, JobCancelled(name))
        assert len(running) <= 4
        desk.scheduler.forget_ended()
        rows.append(len(desk.scheduler.state.jobs))
        if n % 1000 == 999:
            sizes.append(len(capture(desk.scheduler).content()))
    assert max(rows) <= 2 * 300 + ended_jobs.SPARE
    assert max(sizes) < 2 * min(sizes)
    state = desk.scheduler.state
    assert len(state.ids) == len(state.submitted) == len(state.row_of) == len(desk.scheduler.belief) == rows[-1]
    assert state.jobs.room < 4 * max(rows) and state.forgotten + rows[-1] == 4008


@pytest.mark.usefixtures("always")
def test_rows_that_an_open_ask_names_stay_until_it_is_answered(sit: Sit) -> None:
    desk = sit(build("max_min_fairness"), sizes=(1,))
    jobs = [Job(job_id=name, total_steps=900.0, submitted=360.0, sequence=n) for n, name in enumerate("abc")]
    desk.observe(360.0, *map(JobSubmitted, jobs))
    (start,) = [one for one in desk.observe(370.0, JobCancelled("a")) if isinstance(one, Start)]
    assert start.job_id == "b"  # no answer is needed for seats that would be idle
    desk.scheduler.forget_ended()
    assert desk.scheduler.state.ids == ["a", "b", "c"]
    desk.answer(380.0, desk.policy.decide(desk.asks[0].view))
    desk.submit(720.0, "d")
    desk.scheduler.forget_ended()
    state = desk.scheduler.state
    assert state.ids == ["b", "c", "d"] and [state.ids[row] for row in state.running()] == ["c"]
    assert state.holder.tolist() == state.running().tolist()


@pytest.mark.usefixtures("always")
def test_an_order_that_was_shown_keeps_no_row_once_there_is_a_newer_one(sit: Sit) -> None:
    desk = sit(build("max_min_fairness"), sizes=(1,))
    desk.submit(360.0, "a", "b", "c")
    assert desk.scheduler.mechanism.candidates is not None  # what an explanation reads
    desk.tell(720.0, JobCancelled("a"))
    desk.scheduler.forget_ended()
    assert desk.scheduler.state.ids == ["b", "c"]


@pytest.mark.usefixtures("always")
def test_the_reason_of_a_job_that_was_forgotten_is_never_told_of_another(sit: Sit) -> None:
    desk = sit(build("themis"), sizes=(1,))
    desk.submit(1.0, "a", "b", "c")
    asks, state = desk.scheduler.asks, desk.scheduler.state
    gone = state.ids[next(row for row in range(3) if asks.why_of(row) is not None)]
    late = [JobSubmitted(Job(job_id=name, total_steps=9.0, submitted=2.0, sequence=9)) for name in "de"]
    for at, event in ((2.0, JobCancelled(gone)), (3.0, late[0]), (4.0, late[1]), (5.0, JobCancelled("d"))):
        desk.observe(at, event)  # the next ask stays open
        desk.scheduler.forget_ended()
    assert state.forgotten == 2 and asks.pending is not None
    assert asks.why_of(state.row_of["e"]) is None


@pytest.mark.usefixtures("always")
def test_an_event_about_a_job_that_never_was_is_a_mistake_of_its_world_while_every_job_is_known(sit: Sit) -> None:
    desk = sit(build("fifo"))
    with pytest.raises(KeyError):
        desk.tell(1.0, JobCancelled("unknown"))


def test_a_digest_of_before_has_all_rows_and_one_of_now_only_those_of_jobs_that_have_not_ended(sit: Sit) -> None:
    one, other = sit(build("fifo")), sit(build("fifo"))
    for desk, weight in ((one, 1.0), (other, 1.0)):
        desk.submit(1.0, "a", "b", weight=weight)
        desk.tell(2.0, JobFinished("a", 1))
    assert digest(one.scheduler) == digest(other.scheduler) and digest(one.scheduler).startswith(MARK)
    other.scheduler.state.jobs.weight[0] = 7.0  # of the one that has ended
    assert digest(one.scheduler) == digest(other.scheduler)
    assert digest(one.scheduler, "ab12") != digest(other.scheduler, "ab12")
    other.scheduler.state.jobs.weight[1] = 7.0
    assert digest(one.scheduler) != digest(other.scheduler)


def test_an_app_of_one_job_goes_with_it_and_a_named_app_keeps_what_it_received() -> None:
    found = Entitlements()
    for name, app in (("a", ""), ("b", "x"), ("c", "x")):
        found.submit(Job(job_id=name, total_steps=1.0, app=app))
    found.end(0, 5.0, finished=True, job_id="a")
    found.end(1, 7.0, finished=True, job_id="b")
    found.forget(np.array([False, False, True]))
    assert (found._names, found._row_of_app, found.app[:1].tolist()) == (["x"], {"x": 0}, [0])
    found.end(0, 1.0, finished=True, job_id="c")
    found.forget(np.array([False]))
    found.submit(Job(job_id="d", total_steps=1.0, app="x"))
    assert found._apps.service[found.app[0]] == 8.0
    assert found.past_service().tolist() == [5.0, 7.0, 1.0]
