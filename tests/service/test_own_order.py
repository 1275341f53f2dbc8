"""The order that users give their own waiting jobs by `priority`: it holds under every policy, and for them alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, Bench

from eunomia.backends.reports import GangEnded, Launched
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state, own_order
from eunomia.service.job_row import WAITING
from eunomia.service.messages import Action, Cancel, ChangeJob, Hold, Release, Request

SITE = """\
check = true
[service]
listen = "127.0.0.1:0"
[cluster]
accelerators = { v100 = 1 }
[policy]
name = "fifo"
"""
POLICIES = ("fifo", "srtf", "las", "slurm_fair_share", "max_min_fairness")


def started(bench: Bench) -> str:
    (found,) = [row.id for row in bench.controller.rows.values() if row.seats]
    return found


def end(bench: Bench) -> None:
    job = started(bench)
    bench.do(Launched(job, 1))
    bench.do(GangEnded(job, 1, "finished"))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("restarts", [False, True], ids=["on", "restarted"])
def test_the_higher_of_a_user_s_jobs_starts_first_under_every_policy(
    tmp_path: Path, policy: str, restarts: bool
) -> None:
    bench = Bench(tmp_path, SITE.replace("fifo", policy))
    ids = {
        level: bench.submit(ANN, duration_s=60, priority=level, interruptible=False).body["id"]
        for level in (1000, 0, -1000, 7, 3)
    }
    assert started(bench) == ids[1000]
    (reason,) = living_state.why(bench.controller, bench.controller.rows[ids[3]], 0.0)["reasons"]
    assert (reason["code"], reason["text"]) == ("behind", f"its user gave job {ids[7]} a higher priority")
    for level in (7, 3, 0, -1000):
        if restarts:
            seen = digest(bench.controller.scheduler)
            bench.restart()
            assert digest(bench.controller.scheduler) == seen
        end(bench)
        assert started(bench) == ids[level]
        bench.controller.check()


def test_a_priority_gains_nothing_before_other_users(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    first, second = (bench.submit(who).body["id"] for who in (ANN, BOB))
    bench.submit(ANN, priority=1000)
    assert started(bench) == first
    end(bench)
    assert started(bench) == second


def test_a_job_that_asks_for_nothing_precedes_none_and_a_changed_priority_holds_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    _, plain, high = (bench.submit(ANN, priority=level).body["id"] for level in (0, 0, 5))
    assert bench.controller.rows[plain].holds == ["priority"]
    bench.do(Request(Hold(high), ANN))
    assert not bench.controller.rows[plain].holds
    bench.do(Request(Release(high), ANN))
    assert bench.controller.rows[plain].holds == ["priority"]
    bench.do(Request(ChangeJob(plain, {"priority": 6}), ANN))
    assert (bench.controller.rows[plain].holds, bench.controller.rows[high].holds) == ([], ["priority"])
    end(bench)
    assert started(bench) == plain


def test_a_turn_holds_a_bounded_part_of_the_jobs_and_the_next_ones_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_order, "PART", 4)
    monkeypatch.setattr(own_order, "WINDOW", 3)
    bench = Bench(tmp_path, SITE)
    ids = [bench.submit(ANN).body["id"] for _ in range(11)]
    high = bench.submit(ANN, priority=1).body["id"]

    def held() -> list[str]:
        return [job for job in ids if bench.controller.rows[job].holds]

    assert held() == ids[1:5] and bench.controller.due() <= bench.controller.at
    bench.do()
    assert held() == ids[1:9]
    bench.do()
    assert held() == ids[1:] and bench.controller.due() > bench.controller.at
    bench.do(Request(Cancel(high), ANN))
    assert held() == ids[4:], "of one priority no more than the window ask"
    (reason,) = living_state.why(bench.controller, bench.controller.rows[ids[9]], 0.0)["reasons"]
    assert reason["text"] == "3 jobs of its user with the same priority ask for accelerators already"
    for job in ids:
        assert started(bench) == job
        end(bench)


@pytest.mark.parametrize("value", [-1001, 1001, 1.5, "high", None])
def test_a_priority_outside_its_range_is_refused(tmp_path: Path, value: object) -> None:
    from eunomia.service.job_document import InvalidRequest, parse_job

    with pytest.raises(InvalidRequest) as found:
        parse_job({"command": ["x"], "priority": value})
    assert [one.field for one in found.value.problems] == ["priority"]


def test_limits_let_in_the_higher_of_a_user_s_jobs_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE.replace("v100 = 1", "v100 = 4") + "[limits.default]\nrunning_jobs = 1\n")
    first, low, high = (bench.submit(ANN, priority=level).body["id"] for level in (0, 0, 5))
    later = bench.submit(ANN).body["id"]
    bench.do(Request(ChangeJob(later, {"priority": 9}), ANN))
    for job in (first, later, high, low):
        assert started(bench) == job
        end(bench)


@pytest.mark.parametrize("seed", range(6))
def test_at_no_moment_a_lower_job_asks_beside_a_higher_one_and_everything_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Random users, priorities, limits, holds and kills against the rule itself, read off all rows."""
    rng, window = random.Random(seed), 2 if seed % 2 else own_order.WINDOW
    monkeypatch.setattr(own_order, "WINDOW", window)
    limits = rng.choice(["", "[limits.default]\nrunning_jobs = 2\n", "[limits.tenants.vision]\naccelerators = 2\n"])
    site = SITE.replace("fifo", rng.choice(POLICIES)).replace("v100 = 1", "v100 = 3") + limits
    bench = Bench(tmp_path, site, numbered=True)

    def check() -> None:
        for who in ("ann", "bob"):
            rows = [row for row in bench.controller.rows.values() if row.owner == who and not row.is_over]
            asking = {row.spec.get("priority", 0) for row in rows if not row.holds and row.state in WAITING}
            assert len(asking) <= 1
            count = sum(not row.holds and row.state in WAITING for row in rows)
            held = [row.spec.get("priority", 0) for row in rows if row.holds == ["priority"]]
            assert all(level < max(asking, default=-9999) or count >= window for level in held)
        bench.controller.check()

    for _ in range(120):
        bench.clock.at += rng.uniform(0, 20)
        rows, draw = list(bench.controller.rows.values()), rng.random()
        if draw < 0.4:
            level = rng.choice([0, 0, 1, -3])
            bench.submit(rng.choice([ANN, BOB]), duration_s=30, priority=level, accelerators=rng.choice([1, 1, 2]))
        elif draw < 0.6 and rows:
            row = rng.choice(rows)
            change = ChangeJob(row.id, {"priority": rng.randint(-2, 2)})
            action: Action = rng.choice([Hold(row.id), Release(row.id), Cancel(row.id), change])
            bench.do(Request(action, OPERATOR))
        elif draw < 0.65:
            seen = digest(bench.controller.scheduler)
            bench.restart()
            assert digest(bench.controller.scheduler) == seen
        elif rows and (row := rng.choice(rows)).epoch > row.ended_epoch:
            if row.launched_epoch < row.epoch:
                bench.do(Launched(row.id, row.epoch))
            else:
                bench.do(GangEnded(row.id, row.epoch, "stopped" if row.state == "stopping" else "finished"))
        bench.do()
        check()
    for _ in range(400):
        if not bench.controller.rows:
            break
        bench.clock.at += 400
        for row in list(bench.controller.rows.values()):
            if "user" in row.holds:
                bench.do(Request(Release(row.id), OPERATOR))
            elif row.epoch > row.ended_epoch:
                bench.do(Launched(row.id, row.epoch))
                bench.do(GangEnded(row.id, row.epoch, "stopped" if row.state == "stopping" else "finished"))
        bench.do()
        check()
    assert not bench.controller.rows, "everything ends"
