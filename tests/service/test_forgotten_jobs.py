"""The scheduler forgets jobs that have ended; the store, the users and the forecasts do not notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench

from eunomia.backends.reports import GangEnded, Launched
from eunomia.core import ended_jobs
from eunomia.core.scheduler import Scheduler
from eunomia.forecasts.drawn_run_times import draw_arrivals
from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask
from eunomia.records import scheduler_digest
from eunomia.records.scheduler_digest import MARK, digest
from eunomia.service import controller as controller_module
from eunomia.service import living_state
from eunomia.service import writer as writer_module
from eunomia.service.followed_state import FollowedState
from eunomia.service.messages import Cancel, Launch, PolicyAnswered, Request

NEVER, ALWAYS = 10**9, -(10**9)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Rows go after each turn."""
    monkeypatch.setattr(ended_jobs, "SPARE", ALWAYS)
    found = Bench(tmp_path, SITE)
    yield found
    found.store.close()


def end(bench: Bench, run_s: float = 10.0) -> None:
    """Let the gangs begin that were ordered, and finish after so many seconds."""
    launched = [order for order in bench.orders if isinstance(order, Launch)]
    bench.do(*(Launched(order.job_id, order.epoch) for order in launched))
    bench.clock.at += run_s
    bench.do(*(GangEnded(order.job_id, order.epoch, "finished") for order in launched))


def rows(bench: Bench) -> list[str]:
    return bench.controller.scheduler.state.ids


def short_job(bench: Bench, **document: object) -> str:
    job = str(bench.submit(duration_s=10.0, **document).body["id"])
    end(bench)
    assert bench.state(job) == "succeeded"
    return job


def test_a_job_that_has_ended_is_known_to_the_store_alone_and_answers_as_before(bench: Bench) -> None:
    stays = bench.submit(BOB, duration_s=1e6).body["id"]
    bench.do(*(Launched(order.job_id, order.epoch) for order in bench.orders if isinstance(order, Launch)))
    job = short_job(bench)
    short_job(bench)
    assert job not in rows(bench) and stays in rows(bench)
    row = bench.controller.row(job)
    assert row is not None and row.state == "succeeded"
    why = living_state.why(bench.controller, row, 0.0)
    assert (why["state"], why["reasons"]) == ("succeeded", [])
    (reply,) = bench.do(Request(Cancel(job), OPERATOR))
    assert reply is not None and reply.status == 409
    follows = bench.submit(after=[job]).body["id"]
    held = bench.submit(BOB, after=[stays]).body["id"]
    assert bench.controller.rows[follows].holds == [] and bench.controller.rows[held].holds == ["after"]


def test_what_tenants_received_counts_jobs_that_were_forgotten(bench: Bench) -> None:
    for who in (ANN, ANN, BOB):
        bench.submit(who, duration_s=10.0)
        end(bench)
    short_job(bench)
    shown, _ = living_state.tenants(bench.controller, bench.controller.at, 1, 1)
    assert bench.controller.scheduler.state.forgotten >= 3
    received = {one["tenant"]: one["received_accelerator_s"] for one in shown}
    assert received["vision"] == pytest.approx(30.0) and received["speech"] == pytest.approx(10.0)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_restart_finds_the_state_that_was_whatever_was_forgotten_before(bench: Bench, snapshot: bool) -> None:
    waits = [bench.submit(duration_s=1e6).body["id"] for _ in range(4)]
    for _ in range(3):
        bench.do(Request(Cancel(waits.pop()), OPERATOR))
        if snapshot:
            bench.writer.snapshot()
        bench.submit()
    before = digest(bench.controller.scheduler)
    bench.restart()
    assert digest(bench.controller.scheduler) == before
    bench.submit()
    assert len(rows(bench)) < 8


def test_a_store_with_digests_of_before_is_read_and_forgets_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "DIGEST_EVERY", 2)
    with monkeypatch.context() as before:
        before.setattr(ended_jobs, "SPARE", NEVER)
        before.setattr(controller_module, "digest", lambda scheduler: scheduler_digest.digest(scheduler, ""))
        before.setattr(writer_module, "digest", lambda scheduler: scheduler_digest.digest(scheduler, ""))
        bench = Bench(tmp_path, SITE)
        for _ in range(3):
            short_job(bench)
        bench.writer.snapshot()
        for _ in range(3):
            short_job(bench)
    monkeypatch.setattr(ended_jobs, "SPARE", ALWAYS)
    stored = [text for (text,) in bench.store._db.execute("SELECT digest FROM moments WHERE digest IS NOT NULL")]
    assert stored and not any(text.startswith(MARK) for text in stored)
    bench.restart()
    assert len(rows(bench)) == 6
    for _ in range(3):
        short_job(bench)
    assert len(rows(bench)) < 3
    state = digest(bench.controller.scheduler)
    bench.restart()  # over moments with digests of both kinds
    assert digest(bench.controller.scheduler) == state
    bench.store.close()


@pytest.mark.parametrize("policy", ["kueue_fair_share", "themis", "max_min_fairness"])
def test_what_is_stored_is_the_same_whenever_rows_go(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = []
    for name, spare in (("always", ALWAYS), ("never", NEVER)):
        monkeypatch.setattr(ended_jobs, "SPARE", spare)
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name, SITE.replace('"las"\nquantum = 60', f'"{policy}"'), numbered=True)
        for number in range(16):
            bench.submit(duration_s=1000.0 + number)
            end(bench, run_s=200.0)
        assert (bench.controller.scheduler.state.forgotten > 0) == (spare == ALWAYS)
        stored.append(list(bench.store.moments()))
        bench.store.close()
    assert stored[0] == stored[1] and any('"after":' in lines for _, lines, _ in stored[0])


def test_arrivals_are_drawn_from_jobs_that_were_forgotten_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.submit(duration_s=1e9)  # earlier than those that end
    bench.do(*(Launched(order.job_id, order.epoch) for order in bench.orders if isinstance(order, Launch)))
    for day in range(3):
        bench.clock.at = 86_400.0 * day + 1.0
        short_job(bench)
        short_job(bench)
    bench.clock.at = 3 * 86_400.0
    bench.submit(duration_s=10.0)
    state = FollowedState(bench.site)
    assert state.present(bench.clock.at).ended == []
    present = state.present(bench.clock.at, arrivals=True)
    ended = {job.job_id: job.total_steps for job in present.ended}
    assert len(ended) >= 4 and all(steps == pytest.approx(10.0) for steps in ended.values())
    assert ended.keys().isdisjoint(state.scheduler.state.ids)
    come = draw_arrivals(present.scheduler, present.at, (0, 0), present.ended)
    assert len(come) >= 2 and all(job.submitted > present.at for job in come)
    assert len({job.job_id for job in come}) == len(come)
    monkeypatch.setattr(ended_jobs, "SPARE", NEVER)
    other = FollowedState(bench.site)
    present = other.present(bench.clock.at, arrivals=True)
    assert present.ended == [] and other.scheduler.state.forgotten == 0
    assert draw_arrivals(present.scheduler, present.at, (0, 0), present.ended) == come
    state.reader.close()
    other.reader.close()


class LaterRunner:
    """Keeps asks; the test answers them."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def answer(self, ask: Ask) -> Answer | None:
        self.asks.append(ask)
        return None


def test_a_late_answer_is_checked_without_a_copy_and_a_wrong_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Scheduler] = []
    monkeypatch.setattr(Scheduler, "copy", copies.append)
    monkeypatch.setattr(ended_jobs, "SPARE", ALWAYS)
    bench, later = Bench(tmp_path, SITE.replace('"las"\nquantum = 60', '"kueue_fair_share"')), LaterRunner()
    bench.controller.runner = later
    ids = [bench.submit(duration_s=1e6).body["id"] for _ in range(4)]
    ask = later.asks[0]
    good = bench.site.setup.policy.decide(ask.view)
    bench.do(Request(Cancel(ids[0]), OPERATOR))  # the only job that the ask was about
    assert rows(bench) == ids  # it stays, as an answer may name it
    before = digest(bench.controller.scheduler)
    pending = bench.controller.scheduler.asks.pending
    assert pending is not None and pending.asked == ask.asked
    wrong = type(good)(type(good.rows)(np.array([0]), np.array([5])))  # type: ignore[attr-defined,call-arg]
    with pytest.raises(ValueError, match="outside 0"):
        bench.controller.scheduler.asks.check_pending(wrong, bench.controller.at)
    assert digest(bench.controller.scheduler) == before and pending.found is None
    bench.clock.at += 1.0
    bench.do(PolicyAnswered(ask.asked, good))
    assert bench.state(ids[0]) == "cancelled" and bench.controller.refused_answers == 0
    bench.do(PolicyAnswered(later.asks[-1].asked, bench.site.setup.policy.decide(later.asks[-1].view)))
    assert [bench.state(job) for job in ids] == ["cancelled", "starting", "starting", "pending"]
    assert copies == [] and ids[0] not in rows(bench)
    bench.store.close()
