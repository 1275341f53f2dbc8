"""Maintenance: no job runs into it, what is left at its start saves and stops, and its nodes come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, OPERATOR, Bench
from tests.service.test_draining import ROUNDS, SITE, at, begun, change, halts, news, seats, state

from eunomia.backends.reports import GangEnded, Launched
from eunomia.service import maintenance as maintenance_module
from eunomia.service.living_state import cluster, why
from eunomia.service.messages import Cancel, CancelMaintenance, Launch, PlanMaintenance, Request
from eunomia.service.node_states import spans_shown
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site


def plan(bench: Bench, begins: float = 1000.0, span_s: float = 500.0, *nodes: str) -> Any:
    """Plan maintenance of a100-0, or of other nodes; return the reply."""
    (reply,) = bench.do(Request(PlanMaintenance(nodes or ("a100-0",), begins, span_s, "fans"), OPERATOR))
    assert reply is not None
    return reply


def full(bench: Bench) -> str:
    """Fill the other node for long."""
    job = begun(bench, accelerators=2, duration_s=90_000)
    if seats(bench, job) != (2, 3):
        other = begun(bench, accelerators=2, duration_s=90_000)
        bench.do(Request(Cancel(job), ANN))
        bench.do(GangEnded(job, 1, "stopped"))
        return other
    return job


@pytest.mark.parametrize(
    ("document", "starts"),
    [
        ({"duration_s": 5000, "max_run_s": 900}, True),  # its limit counts, not what is believed
        ({"duration_s": 100, "max_run_s": 1100}, False),
        ({"duration_s": 900}, True),  # without a limit what is believed
        ({"duration_s": 1100}, False),
    ],
)
def test_a_job_starts_before_maintenance_only_if_it_ends_before(
    tmp_path: Path, document: dict[str, Any], starts: bool
) -> None:
    bench = Bench(tmp_path, SITE)
    full(bench)
    plan(bench)
    job = bench.submit(**document).body["id"]
    assert bool(seats(bench, job)) == starts
    assert state(bench)["maintenance"]["from"] == "1970-01-01T00:16:40.000Z"
    if not starts:
        reasons = [one["text"] for one in why(bench.controller, bench.controller.rows[job], 0.0)["reasons"]]
        assert (
            "a100-0 starts no job that may run into its maintenance from 1970-01-01T00:16:40.000Z on: fans" in reasons
        )
        assert at(bench, 1400.0) == []
        assert [one.job_id for one in at(bench, 1500.0) if isinstance(one, Launch)] == [job]


def test_the_accelerators_are_free_again_for_short_jobs_once_no_long_one_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    full(bench)
    plan(bench)
    long, short = bench.submit(duration_s=3000).body["id"], bench.submit(duration_s=10).body["id"]
    assert (seats(bench, long), seats(bench, short)) == ((), ())
    assert cluster(bench.controller)["types"]["a100"]["drained"] == 2
    bench.restart()
    bench.do(Request(Cancel(long), ANN))
    assert seats(bench, short) == (0,)
    assert cluster(bench.controller)["types"]["a100"]["drained"] == 0


def test_what_is_left_at_the_start_saves_and_the_node_comes_back_at_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2, duration_s=50_000)
    plan(bench)
    at(bench, 999.0)
    assert halts(bench) == []
    bench.restart()
    at(bench, 1000.0)
    assert halts(bench) == [(job, True)]
    assert spans_shown(bench.controller, 0.0)[0]["state"] == "begun"
    bench.do(GangEnded(job, 1, "stopped"))
    assert (state(bench)["state"], state(bench)["reason"]) == ("drained", "maintenance 1: fans")
    bench.restart()
    at(bench, 1499.0)
    assert state(bench)["state"] == "drained"
    at(bench, 1500.0)
    assert state(bench)["state"] == "up"
    assert spans_shown(bench.controller, 0.0) == []
    assert [kind for kind in news(bench) if kind.startswith("Maintenance")] == [
        "MaintenancePlanned", "MaintenanceBegun", "MaintenanceEnded"
    ]  # fmt: skip


def test_a_span_that_passed_while_no_service_ran_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2, duration_s=50_000)
    plan(bench)
    bench.restart()
    at(bench, 9000.0)
    assert (halts(bench), bench.state(job), state(bench)["state"]) == ([], "running", "up")
    assert spans_shown(bench.controller, 0.0) == []


def test_a_cancelled_one_gives_its_nodes_back_and_is_listed_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    plan(bench)
    plan(bench, 100.0, 50.0, "a100-1")
    assert [one["id"] for one in spans_shown(bench.controller, 0.0)] == [2, 1]
    at(bench, 1000.0)
    assert [one["id"] for one in spans_shown(bench.controller, 0.0)] == [1]
    (reply,) = bench.do(Request(CancelMaintenance(1), OPERATOR))
    assert reply is not None
    assert reply.status == 200
    assert state(bench)["state"] == "up"
    for number, who in ((1, OPERATOR), (3, OPERATOR)):
        (reply,) = bench.do(Request(CancelMaintenance(number), who))
        assert reply is not None
        assert reply.status == 404
    bench.restart()
    assert plan(bench, 5000.0).body["id"] == "3", "numbers are not used again"


def test_a_node_that_an_operator_drained_stays_out_after_maintenance(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    change(bench, "a100-0", reason="broken")
    plan(bench)
    at(bench, 1500.0)
    at(bench, 1501.0)
    assert (state(bench)["state"], state(bench)["reason"]) == ("drained", "broken")


def test_a_drain_during_maintenance_outlasts_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    plan(bench)
    at(bench, 1000.0)
    change(bench, "a100-0", reason="a fan is missing")
    at(bench, 1500.0)
    assert (state(bench)["state"], state(bench)["reason"]) == ("drained", "a fan is missing")
    change(bench, "a100-0", "resume")
    assert state(bench)["state"] == "up"


def test_a_policy_that_takes_turns_moves_no_job_into_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ROUNDS)
    plan(bench, 4000.0)
    for _ in range(7):
        bench.submit(duration_s=20_000)
    for when in range(0, 4000, 200):
        orders = at(bench, float(when))
        assert not [one for one in orders if isinstance(one, Launch) and set(one.seats) & {0, 1}]
        bench.do(*(Launched(one.job_id, one.epoch) for one in orders if isinstance(one, Launch)))
        bench.controller.check()


def test_it_is_kept_under_a_changed_site(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    full(bench)
    plan(bench)
    text = SITE.replace("count = 2", "count = 3")
    bench.path.write_text(text)
    apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    job = bench.submit(duration_s=3000, accelerators=2).body["id"]
    assert seats(bench, job) == (4, 5)
    bench.restart(text)
    assert seats(bench, job) == (4, 5)
    assert state(bench)["maintenance"]["id"] == 1


def test_a_changed_site_in_between_does_not_keep_its_nodes_out_beyond_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    plan(bench)
    at(bench, 1000.0)
    change(bench, "a100-1", reason="broken")
    bench.path.write_text(SITE.replace("count = 2", "count = 3"))
    apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    assert (state(bench)["state"], state(bench)["reason"]) == ("drained", "maintenance 1: fans")
    at(bench, 1500.0)
    assert (state(bench)["state"], spans_shown(bench.controller, 0.0)) == ("up", [])
    assert state(bench, 1)["state"] == "drained", "an operator drained it"


def test_with_very_many_waiting_jobs_a_node_is_kept_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance_module, "MOST_READ", 3)
    bench = Bench(tmp_path, SITE)
    full(bench)
    plan(bench)
    jobs = [bench.submit(duration_s=10, accelerators=2).body["id"] for _ in range(5)]
    assert seats(bench, jobs[0]) == (0, 1)
    bench.do(GangEnded(jobs[0], 1, "finished"))
    assert seats(bench, jobs[1]) == (), "four wait"


def test_only_an_operator_plans_it_and_only_for_nodes_that_there_are(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    (reply,) = bench.do(Request(PlanMaintenance(("a100-0",), 10.0, 10.0), ANN))
    assert reply is not None
    assert reply.status == 403
    reply = plan(bench, 10.0, 10.0, "a100-0", "a100-7", "b")
    assert (reply.status, [one.value for one in reply.problems]) == (422, ["a100-7", "b"])
