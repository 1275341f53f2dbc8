"""Nodes and single accelerators leave service: nothing starts there, and what runs there goes on as long as it may."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra service")
from tests.service.bench import ANN, BOB, OPERATOR, Bench

from eunomia.backends.reports import GangEnded, Launched, NodeState, SeatsTaken
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.draining import NOW
from eunomia.service.http.node_routes import drain_assumptions
from eunomia.service.living_state import why
from eunomia.service.messages import Cancel, ChangeNode, DrainNode, Halt, Launch, Request
from eunomia.service.node_states import drain_preview
from eunomia.service.out_of_service import NODE
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site

SITE = """\
check = true
[service]
made_up = true
listen = "127.0.0.1:0"
drain_timeout_s = 60
forecast_every_s = 0
[cluster]
nodes = [{ type = "a100", count = 2, accelerators = 2 }]
[policy]
name = "fifo"
backfill = "skip"
"""
ROUNDS = SITE.replace('name = "fifo"\nbackfill = "skip"', 'name = "max_min_fairness"')
TAKES_TURNS = SITE.replace('name = "fifo"\nbackfill = "skip"', 'name = "las"\nquantum = 60')


def change(bench: Bench, name: str, action: str = "drain", until: float = math.inf, reason: str = "fans") -> Any:
    """Change a node, or the accelerator of a name such as a100-0/1; return the reply."""
    node, _, place = name.partition("/")
    asked = ChangeNode(node, action, reason, until, int(place) if place else NODE)
    (reply,) = bench.do(Request(asked, OPERATOR))
    assert reply is not None
    return reply


def begun(bench: Bench, **document: Any) -> str:
    """Submit a job and let it run; return its id."""
    job = str(bench.submit(**{"duration_s": 1000, **document}).body["id"])
    bench.do(Launched(job, bench.controller.rows[job].epoch))
    return job


def seats(bench: Bench, job: str) -> tuple[int, ...]:
    return bench.controller.rows[job].seats


def at(bench: Bench, when: float) -> list[Any]:
    """Let time pass; return the orders."""
    bench.clock.at = when
    bench.do()
    return list(bench.orders)


def halts(bench: Bench) -> list[tuple[str, bool]]:
    return [(one.job_id, one.save) for one in bench.orders if isinstance(one, Halt)]


def state(bench: Bench, node: int = 0) -> dict[str, Any]:
    return living_state.nodes(bench.controller)[node]


def news(bench: Bench) -> list[str]:
    found = bench.store._db.execute("SELECT kind FROM news WHERE job = '' ORDER BY seq").fetchall()
    return [kind for (kind,) in found]


def test_a_drained_node_gets_no_job_and_those_that_run_there_run_until_they_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    first, second = (begun(bench, accelerators=2) for _ in range(2))
    reply = change(bench, "a100-0")
    assert (reply.body["state"], reply.body["moved"], reply.body["jobs_left"]) == ("draining", [], [first])
    assert bench.orders == []
    assert (state(bench)["state"], state(bench)["reason"], state(bench)["drain"]["jobs_left"]) == (
        "draining", "fans", 1
    )  # fmt: skip
    waiting = bench.submit(accelerators=1, duration_s=10).body["id"]
    reasons = why(bench.controller, bench.controller.rows[waiting], 0.0)["reasons"]
    assert "a100-0 is draining: fans" in [one["text"] for one in reasons]
    bench.do(GangEnded(second, 1, "finished"))
    assert seats(bench, waiting) == (2,), "it starts on the other node"
    bench.do(GangEnded(first, 1, "finished"))
    assert bench.orders == []
    assert state(bench)["state"] == "drained"
    assert news(bench)[-3:] == ["NodeDraining", "NodeLost", "NodeDrained"]
    audit = bench.store._db.execute("SELECT action, object FROM audit ORDER BY seq").fetchall()
    assert ("drained", "a100-0") in audit
    bench.submit(accelerators=2)
    assert bench.orders == []
    assert change(bench, "a100-0", "resume").body["state"] == "in service"
    assert [one.seats for one in bench.orders if isinstance(one, Launch)] == [(0, 1)]


def test_a_drain_with_a_time_lets_jobs_run_until_then_and_then_they_save(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2)
    change(bench, "a100-0", until=300.0)
    assert state(bench)["drain"]["until"] == "1970-01-01T00:05:00.000Z"
    assert bench.controller.due() == 300.0
    assert at(bench, 299.0) == []
    at(bench, 300.0)
    assert halts(bench) == [(job, True)]
    assert state(bench)["state"] == "draining", "its processes save"
    assert seats(bench, job) == (2, 3), "it goes on elsewhere"
    at(bench, 361.0)
    assert halts(bench) == [(job, False)], "drain_timeout_s is over"


def test_a_node_is_empty_once_the_processes_of_stopped_jobs_have_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2)
    bench.submit(accelerators=2)  # the other node is full
    change(bench, "a100-0", until=NOW)
    assert state(bench)["state"] == "draining"
    assert state(bench)["drain"]["jobs"] == [job]
    bench.restart()
    assert state(bench)["drain"]["jobs"] == [job]
    bench.do(GangEnded(job, 1, "stopped"))
    assert state(bench)["state"] == "drained"
    bench.restart()
    assert state(bench)["state"] == "drained"
    assert news(bench).count("NodeDrained") == 1


def test_a_cancelled_job_is_there_until_its_processes_have_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench)
    change(bench, "a100-0")
    bench.do(Request(Cancel(job), ANN))
    assert state(bench)["state"] == "draining"
    bench.do(GangEnded(job, 1, "stopped"))
    assert state(bench)["state"] == "drained"


def test_one_accelerator_leaves_service_and_the_others_of_its_node_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2)
    reply = change(bench, "a100-0/1")
    assert (reply.body["name"], reply.body["state"], reply.body["jobs_left"]) == ("a100-0/1", "draining", [job])
    assert state(bench)["state"] == "up"
    assert state(bench)["drained_accelerators"]["1"]["state"] == "draining"
    assert living_state.cluster(bench.controller)["types"]["a100"]["draining"] == 1
    bench.do(GangEnded(job, 1, "finished"))
    assert state(bench)["drained_accelerators"]["1"]["state"] == "drained"
    shown = living_state.cluster(bench.controller)["types"]["a100"]
    assert (shown["free"], shown["drained"], shown["taken"], shown["in_service"]) == (3, 1, 0, 3)
    bench.restart()
    assert state(bench)["drained_accelerators"]["1"]["reason"] == "fans"
    small = begun(bench)
    wide = bench.submit(accelerators=2).body["id"]
    assert (seats(bench, small), seats(bench, wide)) == ((0,), (2, 3))
    assert bench.state(bench.submit().body["id"]) == "pending"
    assert change(bench, "a100-0/1", "resume").body["state"] == "in service"
    assert [one.seats for one in bench.orders if isinstance(one, Launch)] == [(1,)]
    assert news(bench)[-1] == "AcceleratorResumed"


def test_only_gangs_that_hold_a_drained_accelerator_are_stopped_when_its_time_has_come(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    left, right = begun(bench), begun(bench)
    (place,) = seats(bench, right)
    change(bench, f"a100-0/{place}", until=100.0)
    at(bench, 100.0)
    assert halts(bench) == [(right, True)]
    assert bench.state(left) == "running"
    assert change(bench, f"a100-0/{seats(bench, left)[0]}", until=NOW).body["moved"] == [left]


@pytest.mark.parametrize("site", [ROUNDS, TAKES_TURNS], ids=["rounds", "turns"])
@pytest.mark.parametrize("name", ["a100-0", "a100-0/0"])
def test_a_policy_that_takes_turns_neither_stops_what_runs_there_nor_starts_another(
    tmp_path: Path, site: str, name: str
) -> None:
    bench = Bench(tmp_path, site)
    first = [begun(bench, duration_s=5000) for _ in range(4)]
    there = [job for job in first if seats(bench, job)[0] < (2 if name == "a100-0" else 1)]
    change(bench, name)
    mine = {job: seats(bench, job) for job in there}
    for _ in range(3):
        bench.submit(BOB, duration_s=5000)
    for when in range(100, 4000, 300):
        orders = at(bench, float(when))
        assert not [one for one in orders if isinstance(one, Halt) and one.job_id in there]
        assert not [one for one in orders if isinstance(one, Launch) and set(one.seats) & {0}]
        bench.do(*(GangEnded(one.job_id, one.epoch, "stopped") for one in orders if isinstance(one, Halt)))
        if when == 1900:
            bench.restart()
    assert {job: seats(bench, job) for job in there} == mine
    change(bench, name, "resume")
    stopped: set[str] = set()
    for when in range(4000, 9000, 300):
        stopped |= {one.job_id for one in at(bench, float(when)) if isinstance(one, Halt)}
        bench.do(*(GangEnded(one.job_id, one.epoch, "stopped") for one in bench.orders if isinstance(one, Halt)))
    assert stopped & set(there), "they may be preempted again"


def test_a_job_that_lost_its_gang_on_a_drained_node_may_be_preempted_where_it_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TAKES_TURNS)
    job = begun(bench)
    change(bench, "a100-0")
    state_now = bench.controller.scheduler.state
    assert state_now.jobs.uninterruptible[state_now.row_of[job]]
    bench.do(GangEnded(job, 1, "lost"))
    bench.do()
    assert seats(bench, job)[0] >= 2
    assert not state_now.jobs.uninterruptible[state_now.row_of[job]]


def test_a_drain_is_as_it_was_after_a_restart_in_between(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2)
    change(bench, "a100-0", until=500.0)
    change(bench, "a100-1/1")
    before, seen = living_state.nodes(bench.controller), digest(bench.controller.scheduler)
    bench.restart()
    assert living_state.nodes(bench.controller) == before
    assert digest(bench.controller.scheduler) == seen
    at(bench, 500.0)
    assert halts(bench) == [(job, True)]


def test_a_longer_time_or_a_resumption_ends_the_shorter_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    begun(bench, accelerators=2)
    change(bench, "a100-0", until=100.0)
    change(bench, "a100-0", until=math.inf, reason="")
    assert state(bench)["reason"] == "fans"
    at(bench, 200.0)
    assert halts(bench) == []
    change(bench, "a100-0", "resume")
    bench.restart()
    assert state(bench)["state"] == "up"
    assert state(bench)["drain"] is None


@pytest.mark.parametrize("at_restart", [False, True], ids=["running", "restarted"])
def test_what_is_drained_stays_so_under_a_changed_site(tmp_path: Path, at_restart: bool) -> None:
    bench = Bench(tmp_path, SITE)
    job = begun(bench, accelerators=2)
    change(bench, "a100-0", until=5000.0)
    change(bench, "a100-1/1")
    text = SITE.replace("count = 2", "count = 3")
    if at_restart:
        bench.restart(text)
    else:
        bench.path.write_text(text)
        apply_site(bench.writer, load_site(bench.path), OPERATOR, "test")
    bench.do()
    assert bench.state(job) == "running"
    assert state(bench)["state"] == "draining"
    assert state(bench)["drain"]["until"] is not None
    assert state(bench, 1)["drained_accelerators"]["1"]["state"] == "drained"
    wide = bench.submit(accelerators=2).body["id"]
    assert seats(bench, wide) == (4, 5)
    bench.restart(text)
    assert state(bench, 1)["drained_accelerators"]["1"]["state"] == "drained"


def test_an_engine_that_says_the_node_is_drained_stops_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    begun(bench, accelerators=2)
    change(bench, "a100-0")
    bench.do(NodeState(0, "reported by slurm: DRAIN"))
    assert halts(bench) == []
    bench.do(NodeState(0, ""))
    assert state(bench)["state"] == "draining"


def test_what_others_use_and_what_is_drained_are_shown_apart(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    change(bench, "a100-0/0")
    bench.restart()
    bench.do(SeatsTaken(((1, "eve"),)))
    assert (state(bench)["taken"], list(state(bench)["drained_accelerators"])) == ({"1": "eve"}, ["0"])
    bench.do(SeatsTaken(()))
    assert "seat_free" in news(bench)
    shown = living_state.cluster(bench.controller)["types"]["a100"]
    assert (shown["taken"], shown["drained"], shown["free"]) == (0, 1, 3)


def test_a_dry_run_says_who_would_lose_what(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    saves = begun(bench)
    plain = begun(bench, interruptible=None, duration_s=4000)
    short = begun(bench, interruptible=None, max_run_s=700, duration_s=4000, accelerators=2)
    bench.clock.at = 600.0
    bench.do()

    def shown(node: int, until: float) -> dict[str, tuple[bool, bool, float]]:
        found = drain_preview(bench.controller, node, NODE, until, 600.0, 0.0)
        return {one["id"]: (one["can_save"], one["stopped"], one["lost_s"]) for one in found}

    assert shown(0, NOW) == {saves: (True, True, 0.0), plain: (False, True, 600.0)}
    assert shown(0, 2000.0) == {saves: (True, False, 0.0), plain: (False, True, 2000.0)}
    assert shown(0, math.inf) == {saves: (True, False, 0.0), plain: (False, False, 0.0)}
    (one,) = drain_preview(bench.controller, 1, NODE, 710.0, 600.0, 0.0)
    assert (one["id"], one["believed_end"], one["stopped"]) == (short, "1970-01-01T00:11:40.000Z", False)
    assert (one["user"], one["running_s"]) == ("ann", 600.0)


def test_an_accelerator_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    reply = change(Bench(tmp_path, SITE), "a100-0/2")
    assert reply.status == 422
    assert reply.problems[0].fix == "name one of a100-0/0 to a100-0/1"


@pytest.mark.parametrize("backend", ["slurm", "ray", "kubernetes"])
def test_an_engine_that_chooses_accelerators_itself_refuses_to_drain_one(tmp_path: Path, backend: str) -> None:
    bench = Bench(tmp_path, f'{SITE}[world]\nbackend = "{backend}"\n')
    reply = change(bench, "a100-0/1")
    assert reply.status == 422
    assert "drain the node (a100-0)" in reply.problems[0].fix
    assert change(bench, "a100-0").status == 200
    assert [type(one) for one in bench.orders] == [DrainNode] * 2, "the engine is asked, when it begins and is empty"


def test_a_gang_that_an_engine_has_not_begun_goes_elsewhere(tmp_path: Path) -> None:
    bench = Bench(tmp_path, f'{SITE}[world]\nbackend = "slurm"\n')
    job = bench.submit(accelerators=2).body["id"]
    change(bench, "a100-0")
    assert seats(bench, job) == (2, 3)


def test_what_a_forecast_does_not_know_is_said(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    begun(bench, accelerators=2)
    assert drain_assumptions(bench.controller) == []
    change(bench, "a100-0")
    assert "a100-0" in drain_assumptions(bench.controller)[0]


def test_the_events_of_an_accelerator_name_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    change(bench, "a100-0/1")
    found = bench.store._db.execute("SELECT detail FROM news WHERE kind = 'AcceleratorDrained'").fetchone()[0]
    assert (json.loads(found)["node"], json.loads(found)["accelerator"]) == ("a100-0", 1)
