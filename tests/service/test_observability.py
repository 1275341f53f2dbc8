"""Figures for Prometheus, and events about seats."""

from __future__ import annotations

import contextvars
import json
import logging
import math
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench, LiveService, until

from eunomia.backends.reports import GangEnded, Launched, QuarantinedSeat, SeatsTaken
from eunomia.service import living_state
from eunomia.service.client import Address, Client, ServiceRefusal
from eunomia.service.json_lines import REQUEST, JsonLines
from eunomia.service.latency_histogram import BOUNDS, LatencyHistogram
from eunomia.service.messages import Hold, Release, Request
from eunomia.service.site_change import apply_site, overridden

SHARES = SITE.replace("check = true\n", "") + "[tenants.vision]\nquota = 1\n[tenants.speech]\nquota = 1\n"


def test_a_line_of_the_log_names_the_request_that_was_being_answered() -> None:
    record = logging.LogRecord("eunomia.service", logging.WARNING, "", 0, "%s failed", ("it",), None)
    here = contextvars.Context()
    assert "request" not in json.loads(here.run(JsonLines().format, record))
    here.run(REQUEST.set, "a1b2c3")
    line = json.loads(here.run(JsonLines().format, record))
    assert (line["request"], line["message"], line["level"]) == ("a1b2c3", "it failed", "warning")


def test_a_histogram_counts_each_value_in_its_range_and_all_above() -> None:
    found = LatencyHistogram()
    for seconds in (0.0005, 0.001, 0.3, 99.0):
        found.add(seconds)
    assert found.buckets() == [*((str(bound), 2 if bound < 0.3 else 3) for bound in BOUNDS), ("+Inf", 4)]
    assert found.total_s == pytest.approx(99.3015)
    assert found.count == 4


def test_a_decision_is_counted_once_whether_the_policy_answers_at_once_or_later(bench: Bench) -> None:
    counted = bench.writer.decision_times
    bench.submit()
    assert counted.count == 1
    answers = []
    bench.controller.runner.answer = lambda ask: answers.append((ask.asked, ask.view))  # type: ignore[method-assign]
    from eunomia.service.messages import PolicyAnswered

    bench.submit(accelerators=2)
    bench.submit(accelerators=2)
    assert (counted.count, len(answers)) == (1, 1)  # asked, and not answered yet
    asked, view = answers.pop()
    bench.do(PolicyAnswered(asked, bench.site.setup.policy.decide(view)))
    while answers:
        asked, view = answers.pop()
        bench.do(PolicyAnswered(asked, bench.site.setup.policy.decide(view)))
    assert counted.count == 2
    bench.do()
    assert counted.count == 2  # nothing was decided


def test_ltgf_is_what_a_tenant_received_of_what_it_deserved(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SHARES.replace('"las"', '"fifo"').replace("quantum = 60\n", ""))
    try:
        first, second = (bench.submit(ANN, duration_s=9000).body["id"] for _ in range(2))
        bench.do(Launched(first, 1), Launched(second, 1))
        assert living_state.ltgf(bench.controller, 0.0) == {}
        bench.clock.at = 1000.0
        bench.submit(BOB, duration_s=9000)  # it waits for the two that hold everything
        assert living_state.ltgf(bench.controller, 1000.0) == {"vision": pytest.approx(2.0)}
        bench.clock.at = 4000.0
        bench.do(GangEnded(second, 1, "finished"))
        assert living_state.ltgf(bench.controller, 4000.0) == pytest.approx({"vision": 2.0, "speech": 0.0})
        shown, _ = living_state.tenants(bench.controller, 7000.0, width=1, count=24)
        found = {one["tenant"]: one["periods"] for one in shown}
        hours = [(one.received, one.deserved) for one in found["speech"]]
        assert [pytest.approx(pair) for pair in hours] == [*[(0, 0)] * 22, (0, 2600), (3000, 3400)]
        fair = living_state.ltgf(bench.controller, 7000.0)
        assert fair == pytest.approx({"speech": 0.5, "vision": (8000 + 3000) / 7000})
        day = 24 * 3600.0  # two days on, only the last one counts: each held and deserved one accelerator
        assert living_state.ltgf(bench.controller, 7000.0 + 2 * day) == pytest.approx({"vision": 1.0, "speech": 1.0})
        ((sums,),) = (
            one["periods"]
            for one in living_state.tenants(bench.controller, 7000.0 + 2 * day, width=24, count=1)[0]
            if one["tenant"] == "speech"
        )
        assert math.isclose(sums.deserved, 23 * 3600 + 7000 % 3600)
    finally:
        bench.store.close()


FIFO = SITE.replace('"las"', '"fifo"').replace("quantum = 60\n", "")


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Bench]:
    """A controller under fifo."""
    found = Bench(tmp_path, FIFO)
    yield found
    found.store.close()


def rho_of(bench: Bench, tenant: str) -> tuple[int, float | None, float | None]:
    """Return how many jobs of a tenant succeeded in the last day, and mean and worst ρ."""
    shown, _ = living_state.tenants(bench.controller, bench.clock.at, width=24, count=1)
    (sums,) = (one["periods"][0].shown() for one in shown if one["tenant"] == tenant)
    return sums["succeeded"], sums["rho_mean"], sums["rho_max"]


def test_rho_is_a_jobs_time_over_its_time_alone_on_an_equal_part(fifo: Bench) -> None:
    first = fifo.submit(ANN, accelerators=2, duration_s=9000).body["id"]
    second = fifo.submit(BOB, accelerators=2, duration_s=9000).body["id"]
    fifo.do(Launched(first, 1))
    fifo.clock.at = 1000.0
    fifo.do(GangEnded(first, 1, "finished"))
    assert rho_of(fifo, "vision") == (1, 0.5, 0.5)  # 1000 s among two jobs, for 1000 s alone
    fifo.do(Launched(second, 1))
    fifo.clock.at = 2000.0
    fifo.do(GangEnded(second, 1, "finished"))
    # 2000 s among 1.5 jobs on average, for 1000 s alone
    assert rho_of(fifo, "speech") == (1, pytest.approx(2000 / 1500), pytest.approx(2000 / 1500))
    failed = fifo.submit(BOB, duration_s=9).body["id"]
    fifo.do(Launched(failed, 1))
    fifo.clock.at = 3000.0
    fifo.do(GangEnded(failed, 1, "failed"))
    assert rho_of(fifo, "speech")[0] == 1  # of a job that did not finish it is not defined


def test_time_in_which_a_job_was_held_or_followed_another_does_not_count_in_its_rho(fifo: Bench) -> None:
    first = fifo.submit(ANN, duration_s=9000).body["id"]
    then = fifo.submit(ANN, duration_s=9000, after=[first]).body["id"]
    fifo.do(Launched(first, 1))
    fifo.do(Request(Hold(then), ANN))
    fifo.clock.at = 1000.0
    fifo.do(GangEnded(first, 1, "finished"))
    assert rho_of(fifo, "vision") == (1, 1.0, 1.0)  # the one that follows it asked for nothing
    fifo.clock.at = 5000.0
    fifo.do(Request(Release(then), ANN))
    fifo.clock.at = 6000.0
    fifo.do(Launched(then, 1))
    fifo.clock.at = 8000.0
    fifo.do(GangEnded(then, 1, "finished"))
    assert rho_of(fifo, "vision") == (2, 1.25, 1.5)  # 3000 s from its release on, of which it ran 2000


def test_a_job_that_finishes_while_it_is_stopped_for_a_hold_took_the_time_for_which_it_ran(fifo: Bench) -> None:
    job = fifo.submit(ANN, duration_s=9000).body["id"]
    fifo.do(Launched(job, 1))
    fifo.clock.at = 1.0
    fifo.do(Request(Hold(job), ANN))
    fifo.clock.at = 101.0
    fifo.do(GangEnded(job, 1, "finished"))
    fifo.clock.at = 102.0
    fifo.do(Request(Release(job), ANN))
    assert fifo.state(job) == "succeeded"
    assert rho_of(fifo, "vision") == (1, pytest.approx(1.0, abs=0.02), pytest.approx(1.0, abs=0.02))


def test_a_job_whose_active_time_an_earlier_version_did_not_count_has_no_rho(fifo: Bench) -> None:
    job = fifo.submit(ANN, duration_s=9000).body["id"]
    fifo.controller.rows[job].active = fifo.controller.rows[job].active_since = ()
    fifo.do(Launched(job, 1))
    fifo.clock.at = 100.0
    fifo.do(Request(Hold(job), ANN), Request(Release(job), ANN))
    fifo.do(GangEnded(job, 1, "stopped"))
    fifo.do(Launched(job, 2))
    fifo.clock.at = 200.0
    fifo.do(GangEnded(job, 2, "finished"))
    assert fifo.state(job) == "succeeded"
    assert rho_of(fifo, "vision") == (0, None, None)


def test_time_until_a_kill_and_time_without_a_service_count_in_rho_but_not_in_ltgf(fifo: Bench) -> None:
    job = fifo.submit(ANN, accelerators=2, duration_s=9000).body["id"]
    waits = fifo.submit(BOB, accelerators=2, duration_s=9000).body["id"]
    fifo.clock.at = 59.0
    fifo.do(Launched(job, 1))  # nothing is decided, and the sums are not due yet
    fifo.clock.at = 1000.0
    fifo.restart()
    assert fifo.controller.fairness.active_time == (1000.0, 1000.0, 2000.0)
    assert living_state.ltgf(fifo.controller, 1000.0) == {}
    fifo.do(GangEnded(job, 1, "finished"))
    fifo.do(Launched(waits, 1))
    fifo.clock.at = 2000.0
    fifo.do(GangEnded(waits, 1, "finished"))
    assert rho_of(fifo, "speech")[1] == pytest.approx(2000 / 1500)
    assert living_state.ltgf(fifo.controller, 2000.0) == {"speech": pytest.approx(1.0)}  # no other tenant has jobs


def test_what_was_held_until_the_policy_changed_is_counted_as_held(bench: Bench) -> None:
    job = bench.submit(ANN, accelerators=2, duration_s=9000).body["id"]
    bench.do(Launched(job, 1))
    bench.clock.at = 59.0
    bench.do()
    new, kept = overridden(bench.store, bench.controller.site, {"policy": {"name": "fifo"}})
    apply_site(bench.writer, new, OPERATOR, "test", kept=kept)
    bench.clock.at = 60.0
    shown, _ = living_state.tenants(bench.controller, 60.0, width=24, count=1)
    assert shown[0]["periods"][0].received == pytest.approx(2 * 60.0)  # it has started again at once


def test_on_a_slower_type_the_time_alone_is_that_on_the_fastest_one(tmp_path: Path) -> None:
    two = FIFO.replace("{ cpu = 2 }", "{ v100 = 1, k80 = 1 }") + '[throughputs]\nsource = "catalogue"\n'
    bench = Bench(tmp_path, two)
    try:
        speeds = bench.controller.scheduler.belief.speeds.solo_throughput("ResNet-50 (batch size 64)", 1)
        assert speeds.min() < 0.5 * speeds.max()
        jobs = [bench.submit(ANN, duration_s=9000, job_type="ResNet-50 (batch size 64)").body["id"] for _ in range(2)]
        bench.do(*(Launched(job, 1) for job in jobs))
        bench.clock.at = 1000.0
        bench.do(*(GangEnded(job, 1, "finished") for job in jobs))
        fast, slow = 1.0, speeds.max() / speeds.min()  # half of two accelerators holds a job of one
        assert rho_of(bench, "vision") == (2, pytest.approx((slow + fast) / 2), pytest.approx(slow))
    finally:
        bench.store.close()


def test_what_tenants_got_is_asked_for_by_days_and_each_sees_its_own(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path)
    service.start()
    try:
        ann = service.client("ann", "vision")
        done = ann.submit({"command": ["true"]})["id"]
        until(lambda: ann.get(f"/v1/jobs/{done}")["state"] == "succeeded")
        service.kill(signal.SIGTERM)
        db = sqlite3.connect(tmp_path / "state" / "store.db")
        with db:  # 50 hours later: `vision` had hours 0 to 40, `gone` 0 to 9
            db.execute("UPDATE clock SET at = at + 50 * 3600, monotonic = 0, boot = 'other', row_sum = NULL")
            db.execute("DELETE FROM tenant_hours")
            for tenant, last in (("vision", 40), ("gone", 9)):
                values = [(n, tenant, 36.0 * n, 72.0 * n, 1, 0.5 + n, 0.5 + n) for n in range(last + 1)]
                db.executemany("INSERT INTO tenant_hours VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", values)
        db.close()
        service.start()
        found = service.operator.get("/v1/tenants", days=3)
        assert (found["days"], found["hours_of_a_period"]) == (3, 3)
        tenants = {one["tenant"]: one for one in found["tenants"]}
        hour = 50
        for name, last in (("vision", 40), ("gone", 9)):
            periods = tenants[name]["periods"]
            assert len(periods) == 24
            for n, period in enumerate(periods):
                hours = [h for h in range(hour + 1 - 3 * (24 - n), hour + 1 - 3 * (23 - n)) if 0 <= h <= last]
                assert period["received_accelerator_s"] == sum(36.0 * h for h in hours)
                assert period["succeeded"] == len(hours)
                assert period["rho_max"] == (0.5 + max(hours) if hours else None)
            assert tenants[name]["sums"]["ltgf"] == pytest.approx(0.5)
            assert tenants[name]["sums"]["rho_mean"] == pytest.approx(0.5 + last / 2)
        day = service.operator.get("/v1/tenants")["tenants"]
        assert [len(one["periods"]) for one in day if one["tenant"] == "vision"] == [24]
        ann = Client(Address(service.url, ann.address.token))
        mine = ann.get("/v1/tenants", days=3)["tenants"]
        assert [one["tenant"] for one in mine] == ["vision"]
        assert mine[0]["periods"] == tenants["vision"]["periods"]
        for wrong in ("0", "3651", "٣", "1.5"):
            with pytest.raises(ServiceRefusal) as refused:
                ann.get("/v1/tenants", days=wrong)
            assert (refused.value.status, refused.value.problems[0]["field"]) == (400, "days")
    finally:
        service.kill()
        service.stop_jobs()


def events(bench: Bench) -> list[tuple[str, str, str, str]]:
    found = bench.store._db.execute("SELECT job, tenant, kind, detail FROM news WHERE kind LIKE 'seat_%' ORDER BY seq")
    return [(job, tenant, kind, json.loads(detail)["reason"]) for job, tenant, kind, detail in found]


def test_a_quarantined_seat_is_an_event_of_its_job_until_it_is_free_over_a_restart_too(bench: Bench) -> None:
    job = bench.submit(duration_s=9).body["id"]
    bench.do(Launched(job, 1))
    text, since = f"processes of job {job} that cannot be killed", "2026-11-27T22:00:00Z"
    remains = QuarantinedSeat(job, since, "it was killed, and some of it does not die")
    taken = SeatsTaken(((0, text), (1, "python (process 7) of user eve")), ((0, remains),))
    bench.do(taken)
    bench.do(GangEnded(job, 1, "finished"))
    assert events(bench) == [
        (job, "vision", "seat_quarantined", text), ("", "", "seat_taken", "python (process 7) of user eve")
    ]  # fmt: skip
    (node,) = {one["name"]: one for one in living_state.nodes(bench.controller)}.values()
    assert node["quarantined"] == [0]
    assert node["quarantine"] == {"0": {"job": job, "since": since, "why": remains.why}}
    bench.do(taken)
    assert len(events(bench)) == 2
    bench.do(SeatsTaken(()))
    assert events(bench)[2:] == [(job, "vision", "seat_free", "free again"), ("", "", "seat_free", "free again")]
    bench.do(taken)
    bench.restart()
    bench.do(SeatsTaken(()))  # they ended while no service ran
    assert [kind for *_, kind, _ in events(bench)][-2:] == ["seat_free"] * 2
    assert living_state.nodes(bench.controller)[0]["quarantined"] == []


def test_the_service_counts_lease_renewals_and_shows_its_histograms(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, SITE.replace("supervisor_lease_s = 30", "supervisor_lease_s = 3"))
    service.start()
    try:
        ann = service.client("ann", "vision")
        job = ann.submit({"command": ["python", "-c", "import time; time.sleep(600)"]})["id"]

        def figures() -> dict[str, float]:
            text, _ = service.operator.text("/metrics")
            lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
            return {name: float(value) for name, _, value in lines}

        until(lambda: figures()["eunomia_lease_renewals_total"] >= 2)
        found = until(lambda: figures() if 'eunomia_tenant_ltgf{tenant="vision"}' in figures() else None)
        assert found['eunomia_tenant_ltgf{tenant="vision"}'] > 0
        assert found["eunomia_decision_seconds_count"] >= 1
        assert found['eunomia_decision_seconds_bucket{le="+Inf"}'] == found["eunomia_decision_seconds_count"]
        text, _ = service.operator.text("/metrics")
        kinds = [line.split()[1:3] for line in text.splitlines() if line.startswith("#")]
        assert [name for word, name in kinds if word == "HELP"] == [name for word, name in kinds if word == "TYPE"]
        assert all(name.startswith("eunomia_") for _, name in kinds)  # none of the process
        ann.send("DELETE", f"/v1/jobs/{job}")
    finally:
        service.kill()
        service.stop_jobs()
