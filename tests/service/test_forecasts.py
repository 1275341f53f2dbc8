"""`when`, what-if and recorded forecasts of the service, from what its store holds."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import OPERATOR, Bench, LiveService, until
from typer.testing import CliRunner

from eunomia.backends.reports import GangEnded, Launched
from eunomia.cli.app import app
from eunomia.inputs.problems import InvalidInput
from eunomia.records.scheduler_digest import digest
from eunomia.service import forecast_answers
from eunomia.service.client import ServiceRefusal
from eunomia.service.draining import NOW
from eunomia.service.followed_state import FollowedState, SiteChanged
from eunomia.service.forecast_answers import ForecastAnswers
from eunomia.service.forecast_log import ForecastReader, ForecastScores
from eunomia.service.forecasts import MOST_WAITING_EACH, Forecasts, NoForecast
from eunomia.service.http.fair_threads import TENANT
from eunomia.service.messages import ChangeNode, Halt, Hold, Launch, Request

FIFO = """\
check = true
[service]
made_up = true
listen = "127.0.0.1:0"
supervisor_lease_s = 30
forecast_every_s = 0
drain_timeout_s = 60
[cluster]
accelerators = { cpu = 2 }
accelerators_per_node = 1
[policy]
name = "fifo"
"""


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    found = Bench(tmp_path, FIFO)
    yield found
    found.store.close()


@pytest.fixture
def answers(bench: Bench) -> ForecastAnswers:
    return ForecastAnswers(bench.site)


def start(bench: Bench, job: str) -> None:
    bench.do(Launched(job, 1))


def test_a_declared_queue_has_one_future(bench: Bench, answers: ForecastAnswers) -> None:
    one, two, three = (bench.submit(duration_s=s, accelerators=n).body["id"] for s, n in ((100, 2), (50, 2), (30, 1)))
    start(bench, one)
    bench.clock.at = 10.0
    found = answers.answer({"ask": "when", "job": three, "now": 10.0})
    assert found["futures"] == 1 and found["at"] == 10.0
    assert found["start"][1] == pytest.approx(150.0, abs=1.0) and found["finish"][1] == pytest.approx(180.0, abs=1.0)
    assert found["start"][0] < found["start"][1] < found["start"][2]
    running = answers.answer({"ask": "when", "job": one, "now": 10.0})
    assert running["start"] == [0.0, 0.0, 0.0]
    assert answers.answer({"ask": "when", "job": two, "now": 10.0})["start"][1] == pytest.approx(100.0, abs=1.0)


def test_run_times_that_are_not_declared_give_an_interval(bench: Bench, answers: ForecastAnswers) -> None:
    bench.submit(accelerators=2)
    waiting = bench.submit(accelerators=1).body["id"]
    found = answers.answer({"ask": "when", "job": waiting, "now": 5.0})
    assert found["futures"] == 20
    low, middle, high = found["start"]
    assert 5.0 < low < middle / 2 and high > 2 * middle


def test_a_held_job_never_starts_and_one_that_follows_starts_after(bench: Bench, answers: ForecastAnswers) -> None:
    first = bench.submit(duration_s=100).body["id"]
    held = bench.submit(duration_s=100).body["id"]
    bench.do(Request(Hold(held), OPERATOR))
    after = bench.submit(duration_s=10, after=[first]).body["id"]
    assert answers.answer({"ask": "when", "job": held, "now": 1.0})["start"] == [None, None, None]
    assert answers.answer({"ask": "when", "job": after, "now": 1.0})["start"][1] == pytest.approx(100.0, abs=1.0)


def test_futures_of_one_moment_are_played_once(bench: Bench, answers: ForecastAnswers) -> None:
    job = bench.submit(duration_s=100).body["id"]
    answers.answer({"ask": "when", "job": job, "now": 1.0})
    kept = answers._played
    answers.answer({"ask": "when", "job": job, "now": 2.0})
    assert answers._played is kept
    bench.submit(duration_s=100)
    answers.answer({"ask": "when", "job": job, "now": 2.0})
    assert answers._played is not kept


def test_the_follower_has_the_state_of_the_service_after_each_moment(bench: Bench) -> None:
    follower = FollowedState(bench.site)
    for k in range(6):
        job = bench.submit(duration_s=10.0 + k).body["id"]
        start(bench, job)
        bench.do(GangEnded(job, 1, "finished"))
        if k == 3:
            bench.writer.snapshot()
        follower.present(0.0)
        assert digest(follower.scheduler) == digest(bench.controller.scheduler)
    fresh = FollowedState(bench.site)  # which begins with the snapshot
    fresh.present(0.0)
    assert digest(fresh.scheduler) == digest(bench.controller.scheduler)
    bench.restart(FIFO.replace("fifo", "las"))
    with pytest.raises(SiteChanged):
        fresh.present(0.0)


def test_what_if_says_which_jobs_a_change_moves_and_changes_nothing(bench: Bench, answers: ForecastAnswers) -> None:
    jobs = [bench.submit(duration_s=300.0, accelerators=1).body["id"] for _ in range(6)]
    before, written = digest(bench.controller.scheduler), "\n".join(bench.store._db.iterdump())
    less = answers.answer({"ask": "whatif", "nodes": {"cpu": -1}, "now": 1.0})
    assert less["changed_count"] >= 3 and all(one["id"] in jobs for one in less["changed"])
    assert less["tenants"][0]["later"] >= 3
    more = answers.answer({"ask": "whatif", "nodes": {"cpu": 1}, "now": 1.0})
    assert more["tenants"][0]["sooner"] >= 2 and more["tenants"][0]["later"] == 0
    assert answers.answer({"ask": "whatif", "policy": "las", "now": 1.0})["complete"]
    assert digest(bench.controller.scheduler) == before and "\n".join(bench.store._db.iterdump()) == written
    for wrong in ({"nodes": {"cpu": -2}}, {"nodes": {"cpu": -5}}, {"nodes": {"gpu": 1}}, {"policy": "nothing"}):
        with pytest.raises(InvalidInput):
            answers.answer({"ask": "whatif", **wrong, "now": 1.0})


class _Direct:
    """Answers in this process, as the forecast process would."""

    def __init__(self, answers: ForecastAnswers) -> None:
        self._answers = answers

    def ask(self, question: bytes, limit_s: float) -> bytes:
        return json.dumps(self._answers.answer(json.loads(question))).encode()

    def stop(self) -> None:
        pass


def test_what_was_said_is_stored_and_compared_with_what_came(bench: Bench, answers: ForecastAnswers) -> None:
    one, two = (bench.submit(duration_s=100.0, accelerators=2).body["id"] for _ in range(2))
    start(bench, one)
    forecasts = Forecasts(bench.path, bench.writer, 0.0)
    forecasts._short._process = _Direct(answers)  # type: ignore[assignment]
    bench.writer.change = _at_once(bench)  # type: ignore[method-assign]
    asyncio.run(forecasts.note())
    (said,) = ForecastScores(ForecastReader(bench.site.state)).outcomes()
    assert said.start.p50 == pytest.approx(100.0, abs=1.0) and said.started is None
    bench.clock.at = 130.0
    bench.submit()  # a moment later the start is foreseen later
    asyncio.run(forecasts.note())
    bench.do(GangEnded(one, 1, "finished"))
    start(bench, two)
    found = {one.size: one for one in ForecastScores(ForecastReader(bench.site.state)).outcomes()}[2]
    assert (found.started, found.start) == (130.0, said.start)
    assert found.latest_start >= 130.0 > found.start.p50


def test_forecasts_of_many_jobs_are_stored_in_parts_of_one_moment_while_turns_go_on(
    bench: Bench, answers: ForecastAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast_answers, "NOTED", 2)
    jobs = [bench.submit(duration_s=100.0, accelerators=2).body["id"] for _ in range(6)]
    start(bench, jobs[0])
    parts, change = list[int](), _at_once(bench)

    def between(store: Any) -> Any:
        before = len(ForecastScores(ForecastReader(bench.site.state)).outcomes())
        found = change(store)
        parts.append(len(ForecastScores(ForecastReader(bench.site.state)).outcomes()) - before)
        bench.submit(duration_s=1.0)
        return found

    forecasts = Forecasts(bench.path, bench.writer, 0.0)
    forecasts._short._process = _Direct(answers)  # type: ignore[assignment]
    bench.writer.change = between  # type: ignore[method-assign]
    asyncio.run(forecasts.note())
    assert parts == [2, 2, 1]
    said = ForecastScores(ForecastReader(bench.site.state)).outcomes()
    assert len({one.said_at for one in said}) == 1
    assert [one.start.p50 for one in said] == pytest.approx([100.0 * n for n in range(1, 6)], abs=1.0)


def test_forecasts_whose_process_starts_again_between_two_parts_are_recorded_the_next_time(
    bench: Bench, answers: ForecastAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast_answers, "NOTED", 2)
    jobs = [bench.submit(duration_s=100.0, accelerators=2).body["id"] for _ in range(6)]
    start(bench, jobs[0])
    forecasts, change = Forecasts(bench.path, bench.writer, 0.0), _at_once(bench)

    def stored(store: Any) -> Any:
        forecasts._short._process = _Direct(ForecastAnswers(bench.site))  # type: ignore[assignment]
        return change(store)

    forecasts._short._process = _Direct(answers)  # type: ignore[assignment]
    bench.writer.change = stored  # type: ignore[method-assign]
    asyncio.run(forecasts.note())
    assert len(ForecastScores(ForecastReader(bench.site.state)).outcomes()) == 2
    bench.writer.change = change  # type: ignore[method-assign]
    asyncio.run(forecasts.note())
    assert len(ForecastScores(ForecastReader(bench.site.state)).outcomes()) == 5


def _at_once(bench: Bench) -> Any:
    from concurrent.futures import Future

    def change(do: Any) -> Future[Any]:
        found: Future[Any] = Future()
        found.set_result(do(bench.writer))
        return found

    return change


class _Dead:
    """A process that ends when it is asked."""

    starts = 0

    def ask(self, question: bytes, limit_s: float) -> bytes:
        self.starts += 1
        raise ConnectionResetError("the process ended with exit code 1")

    def stop(self) -> None:
        pass


def test_a_forecast_process_that_fails_is_started_once_more_and_then_an_error(bench: Bench) -> None:
    forecasts, dead = Forecasts(bench.path, bench.writer, 0.0), _Dead()
    forecasts._short._process = dead  # type: ignore[assignment]
    with pytest.raises(NoForecast, match="failed"):
        asyncio.run(forecasts.ask({"ask": "when", "job": "x"}))
    assert dead.starts == 2


class _Slow:
    """A process that answers when it may."""

    def __init__(self) -> None:
        self.may_answer, self.asked = threading.Event(), 0

    def ask(self, question: bytes, limit_s: float) -> bytes:
        self.asked += 1
        assert self.may_answer.wait(60.0)
        return b'{"futures": 1}'

    def stop(self) -> None:
        self.may_answer.set()


def test_questions_that_were_given_up_keep_no_thread_from_other_requests(bench: Bench) -> None:
    forecasts, slow = Forecasts(bench.path, bench.writer, 0.0), _Slow()
    forecasts._short._process = slow  # type: ignore[assignment]

    async def visit_pages() -> str:
        for _ in range(50):
            asked = asyncio.create_task(forecasts.ask({"ask": "when", "job": "x"}))
            for _ in range(5):  # until it waits for the process
                await asyncio.sleep(0)
            asked.cancel()
        async with asyncio.timeout(30.0):
            return await asyncio.to_thread(lambda: "why")

    assert asyncio.run(visit_pages()) == "why"
    forecasts.close()
    assert slow.asked == 1


def test_a_long_question_delays_no_short_one_and_one_tenant_has_a_part_of_the_places(bench: Bench) -> None:
    forecasts, slow, quick = Forecasts(bench.path, bench.writer, 0.0), _Slow(), _Slow()
    forecasts._long._process, forecasts._short._process = slow, quick  # type: ignore[assignment]
    quick.may_answer.set()

    async def ask() -> None:
        TENANT.set("flood")
        waiting = [asyncio.create_task(forecasts.ask({"ask": "whatif"})) for _ in range(MOST_WAITING_EACH)]
        assert await forecasts.ask({"ask": "when", "job": "x"}) == {"futures": 1}
        with pytest.raises(NoForecast, match="too many"):
            await forecasts.ask({"ask": "whatif"})
        TENANT.set("other")
        waiting.append(asyncio.create_task(forecasts.ask({"ask": "whatif"})))
        await asyncio.sleep(0)
        slow.may_answer.set()
        assert await asyncio.gather(*waiting) == [{"futures": 1}] * (MOST_WAITING_EACH + 1)

    asyncio.run(ask())
    forecasts.close()


def test_a_gang_that_does_not_leave_a_drained_node_is_ended_without_a_checkpoint(bench: Bench) -> None:
    job = bench.submit(duration_s=100).body["id"]
    start(bench, job)
    row = bench.controller.rows[job]
    node = bench.site.node_names()[row.seats[0]]
    bench.do(Request(ChangeNode(node, "drain", until=NOW), OPERATOR))
    assert [type(order) for order in bench.orders] == [Halt, Launch] and bench.orders[0].save
    bench.clock.at = 59.0
    bench.do()
    assert not [order for order in bench.orders if isinstance(order, Halt)]
    bench.clock.at = 61.0
    bench.do()
    (halt,) = [order for order in bench.orders if isinstance(order, Halt)]
    assert (halt.job_id, halt.epoch, halt.save) == (job, 1, False)


def test_the_commands_ask_the_service_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, FIFO)
    service.start()
    try:
        client = service.operator
        first = client.submit({"command": ["sleep", "600"], "accelerators": 2, "duration_s": 600})["id"]
        until(lambda: client.get(f"/v1/jobs/{first}")["state"] == "running")
        job = client.submit({"command": ["sleep", "60"], "duration_s": 60})["id"]
        where = ["--url", service.url, "--token-file", str(tmp_path / "state" / "operator.token")]
        run = CliRunner().invoke
        found = run(app, ["when", job, *where])
        assert found.exit_code == 0 and "80 % of cases" in found.output, found.output
        shown = json.loads(run(app, ["when", job, "--arrivals", "--json", *where]).stdout)
        assert shown["start"]["p10"] < shown["start"]["p50"] < shown["finish"]["p90"] and shown["assumes"]
        found = run(app, ["whatif", "--job", '{"accelerators": 1, "duration_s": 50}', *where])
        assert found.exit_code == 0 and "the new job would start at" in found.output, found.output
        assert json.loads(run(app, ["whatif", "--nodes", "cpu=-1", "--json", *where]).stdout)["changed_count"] == 2
        assert run(app, ["whatif", "--policy", "nothing", *where]).exit_code == 2
        assert run(app, ["whatif", "--nodes", "cpu", *where]).exit_code == 2
        assert run(app, ["forecast", "score", *where]).exit_code == 0
        other = service.client("zoe", "speech")
        (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
        for name in (f"{tmp_path}/trap.py:Trap", f"quotas?inner={tmp_path}/trap.py:Trap"):
            with pytest.raises(ServiceRefusal, match="the change cannot be made"):
                other.send("POST", "/v1/whatif", {"policy": name})
        assert not (tmp_path / "ran").exists()
        assert other.send("POST", "/v1/whatif", {"nodes": {"cpu": -1}})["changed"] == []
        assert "then" in client.text("/policy", try_nodes="cpu=-1")[0]
        assert "<h2>When</h2>" in client.text(f"/jobs/{job}")[0]
        client.send("DELETE", f"/v1/jobs/{first}")
        client.send("DELETE", f"/v1/jobs/{job}")
    finally:
        service.kill(15)
        service.stop_jobs()
