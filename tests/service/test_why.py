"""Why a job does not run: each published code, and the words that `explain` gives for the same state."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.bench import ANN, BOB, OPERATOR, SITE, Bench

from eunomia.backends.reports import GangEnded, GangUnknown, Launched
from eunomia.core.scheduler import Scheduler
from eunomia.model.job_lifecycle import Stage
from eunomia.model.rank import Rank
from eunomia.model.wait_reason import KINDS, PUBLISHED, published
from eunomia.records.explain import explain
from eunomia.records.queue_position import jobs_ahead, seat_holders
from eunomia.records.record import Record
from eunomia.service import living_state
from eunomia.service.draining import NOW
from eunomia.service.forecast_answers import ForecastAnswers
from eunomia.service.messages import ChangeNode, Hold, Principal, Release, Request
from eunomia.service.store.backup import export

FIFO = SITE.replace('"las"', '"fifo"').replace("quantum = 60\n", "")
SHARES = SITE.replace('"las"', '"max_min_fairness"').replace("quantum = 60\n", "")
QUOTAS = (
    SITE.replace('"las"\nquantum = 60', '"quotas"\ninner = "fifo"')
    + "[tenants.vision]\nquota = 1\nmay_borrow = false\n"
)


def reasons(bench: Bench, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = living_state.why(bench.controller, bench.controller.rows[job], 0.0)["reasons"]
    return found


def codes(bench: Bench, job: str) -> list[str]:
    return [one["code"] for one in reasons(bench, job)]


@pytest.fixture
def site(tmp_path: Path) -> Any:
    made: list[Bench] = []

    def make(text: str = SITE) -> Bench:
        made.append(Bench(tmp_path, text))
        return made[0]

    yield make
    for one in made:
        one.store.close()


def test_a_job_that_follows_others_names_those_that_have_not_succeeded(bench: Bench) -> None:
    first, second = (bench.submit(duration_s=9).body["id"] for _ in range(2))
    job = bench.submit(after=[first, second]).body["id"]
    assert reasons(bench, job) == [
        {"code": "after", "text": f"it waits for {first}, {second} to succeed", "until": None}
    ]
    bench.do(Launched(first, 1), GangEnded(first, 1, "finished"))
    for _ in range(2):
        assert [one["text"] for one in reasons(bench, job)] == [f"it waits for {second} to succeed"]
        bench.restart()


def test_a_failed_job_waits_until_it_is_tried_again(bench: Bench) -> None:
    job = bench.submit(retries=2).body["id"]
    bench.clock.at = 10.0
    bench.do(Launched(job, 1), GangEnded(job, 1, "failed", "exit code 3: no such file"))
    (found,) = reasons(bench, job)
    assert found == {
        "code": "backoff", "until": "1970-01-01T00:00:11.000Z",
        "text": "it failed, and waits before it is tried again: exit code 3: no such file",
    }  # fmt: skip
    bench.do(Request(Hold(job), ANN))
    assert codes(bench, job) == ["backoff", "held"]


def test_a_job_that_cannot_be_reached_says_so_and_so_does_who_waits_for_its_accelerators(bench: Bench) -> None:
    running, waiting = (bench.submit(accelerators=2).body["id"] for _ in range(2))
    bench.do(Launched(running, 1))
    assert codes(bench, waiting) == ["no_capacity"]
    bench.do(GangUnknown(running, 1, "Slurm does not answer"))
    assert bench.state(running) == "unknown"
    (found,) = reasons(bench, running)
    assert found["code"] == "world_unknown"
    assert "Slurm does not answer" in found["text"]
    assert codes(bench, waiting) == ["no_capacity", "world_unknown"]
    assert running in reasons(bench, waiting)[1]["text"]
    bench.do(Launched(running, 1))
    assert codes(bench, waiting) == ["no_capacity"]
    assert codes(bench, running) == []


def test_a_job_for_which_no_node_is_left_waits_for_types(site: Any) -> None:
    bench = site(FIFO.replace("accelerators = { cpu = 2 }", 'nodes = [{ type = "cpu", count = 2, accelerators = 2 }]'))
    job = bench.submit(accelerators=4).body["id"]
    bench.do(Request(ChangeNode("cpu-0", "drain", until=NOW), OPERATOR))
    assert codes(bench, job) == ["types_absent", "no_capacity"], "and what is drained"


def test_a_tenant_that_may_not_borrow_waits_for_its_quota(site: Any) -> None:
    bench = site(QUOTAS)
    _, second = (bench.submit(duration_s=60).body["id"] for _ in range(2))
    assert reasons(bench, second) == [
        {"code": "quota", "text": "quota: its tenant's is used up, and it may not borrow", "until": None}
    ]


def test_a_small_job_behind_a_wide_one_waits_behind_it(site: Any) -> None:
    bench = site(FIFO)
    bench.submit()
    wide = bench.submit(accelerators=2).body["id"]
    small = bench.submit().body["id"]
    assert codes(bench, wide) == ["no_capacity"]
    assert codes(bench, small) == ["behind"]
    assert living_state.why(bench.controller, bench.controller.rows[small], 0.0)["behind"] == [wide]


def test_a_job_that_had_its_share_waits_for_the_others(site: Any) -> None:
    bench = site(SHARES)
    jobs = [bench.submit(who, accelerators=2, duration_s=9000).body["id"] for who in (ANN, BOB)]
    bench.do(Launched(jobs[0], 1))
    seen = set()
    for _ in range(8):
        bench.clock.at = bench.controller.due()
        bench.do()
        for job in jobs:
            if bench.state(job) == "stopping":
                bench.do(GangEnded(job, bench.controller.rows[job].epoch, "stopped"))
            seen.update(codes(bench, job))
    assert "share_used" in seen


def test_every_code_is_published_and_what_only_simulations_know_is_of_the_policy() -> None:
    assert PUBLISHED == (
        "no_capacity", "fragmentation", "behind", "quota", "share_used", "held", "after", "types_absent", "policy",
        "world_unknown", "backoff", "preempted", "quarantined", "limit",
    )  # fmt: skip
    assert {published(kind) for kind in KINDS} == set(PUBLISHED)
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    rows = page.partition("## Why a job waits")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == list(PUBLISHED)


def test_jobs_that_came_after_the_last_ask_count_as_ahead_of_later_ones(bench: Bench) -> None:
    running = bench.submit(accelerators=2).body["id"]
    bench.do(Launched(running, 1))
    waiting = []
    for at in range(1, 6):
        bench.clock.at = float(at)
        waiting.append(bench.submit(BOB, accelerators=2).body["id"])
    ahead = [living_state.why(bench.controller, bench.controller.rows[job], 0.0)["ahead"] for job in waiting]
    assert ahead == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("text", [SITE, FIFO, SHARES], ids=["las", "fifo", "max_min_fairness"])
def test_explain_gives_the_same_words_for_the_recorded_day(site: Any, tmp_path: Path, text: str) -> None:
    """Every reason that `why` gave while the service ran is the one that `explain` finds in the exported record."""
    bench, said = site(text), dict[tuple[float, str], tuple[str, str]]()

    def look(at: float) -> None:
        bench.clock.at = at
        bench.do()
        for row in bench.controller.rows.values():
            found = reasons(bench, row.id)
            if found and found[0]["code"] != "after":  # the record does not know which jobs
                said[bench.controller.at, row.id] = found[0]["code"], found[0]["text"]

    jobs = [bench.submit(who, accelerators=n, duration_s=600, retries=1).body["id"]
            for who, n in ((ANN, 1), (BOB, 2), (ANN, 1), (BOB, 2))]  # fmt: skip
    bench.submit(after=[jobs[0]])
    for job in jobs:
        if bench.state(job) == "starting":
            bench.do(Launched(job, 1))
    look(0.0)
    bench.clock.at = 1.0
    bench.do(Request(Hold(jobs[3]), BOB))
    look(1.0)
    bench.clock.at = 2.0
    bench.do(Request(Release(jobs[3]), BOB))
    bench.do(GangEnded(jobs[0], 1, "failed", "exit code 1"))
    look(2.0)
    bench.store.close()
    export(bench.site, tmp_path / "day.jsonl.gz")
    bench.restart()
    record = Record(tmp_path / "day.jsonl.gz")
    assert {code for code, _ in said.values()} >= {"no_capacity", "held", "backoff"}
    whole = {job: explain(record, job).waits for job in jobs}
    for (at, job), (code, words) in said.items():
        (wait,) = (one for one in whole[job] if one.from_s <= at and (one.to_s is None or at < one.to_s))
        assert published(wait.reason) == code, (at, job)
        assert wait.text == words or wait.from_s < at, (at, job)  # an interval keeps the words of its beginning
    assert sum(any(wait.from_s == at for wait in whole[job]) for at, job in said) >= 5


def _ahead_plainly(scheduler: Scheduler, row: int) -> list[int] | None:
    last, state = scheduler.mechanism.candidates, scheduler.state
    assert last is not None
    order = list(dict.fromkeys(last.job.tolist()))
    if scheduler.info.promises.rank == Rank("submission"):
        before = [m for m in state.active.tolist() if m < row]
    elif row in order:
        before = order[: order.index(row)]
    elif scheduler.asks.is_stale or state.jobs.submitted[row] > scheduler.asks.last_at:
        return None
    else:
        before = order
    return [m for m in before if state.jobs.stage[m] == Stage.WAITING]


def _holders_plainly(scheduler: Scheduler, runs: Any) -> list[int]:
    last, state = scheduler.mechanism.candidates, scheduler.state
    assert last is not None
    running = [job for job in state.running().tolist() if runs[state.jobs.on_type[job]]]
    place = {job: i for i, job in reversed(list(enumerate(last.job.tolist())))}
    return sorted(running, key=lambda job: (place.get(job, len(place)), job))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["las", "fifo", "max_min_fairness"])
def test_the_queue_ahead_and_the_holders_are_those_of_a_plain_search(site: Any, seed: int, policy: str) -> None:
    cluster = SITE.replace("accelerators = { cpu = 2 }", "accelerators = { v100 = 3, k80 = 3 }")
    bench = site(cluster.replace('"las"', f'"{policy}"').replace("quantum = 60\n", ""))
    draw = np.random.default_rng(seed)
    looked = 0
    for at in range(40):
        bench.clock.at = float(at)
        rows = list(bench.controller.rows.values())
        running = [row for row in rows if row.seats]
        if draw.random() < 0.85 or not running:
            bench.submit(accelerators=int(draw.integers(1, 3)), types=["v100"] if draw.random() < 0.3 else [])
        else:
            row = running[int(draw.integers(len(running)))]
            bench.do(Launched(row.id, row.epoch), GangEnded(row.id, row.epoch, "finished"))
        scheduler = bench.controller.scheduler
        state = scheduler.state
        for m in state.active.tolist():
            if state.jobs.stage[m] == Stage.WAITING and scheduler.mechanism.candidates is not None:
                runs = scheduler.belief.throughput[m] > 0
                ahead = jobs_ahead(scheduler, m)
                assert (None if ahead is None else ahead.tolist()) == _ahead_plainly(scheduler, m)
                assert seat_holders(scheduler, runs) == _holders_plainly(scheduler, runs)
                looked += 1
    assert looked > 20


def played(bench: Bench, job: str, tenant: str | None = None, smaller: Sequence[str] = ()) -> dict[str, Any]:
    """Ask what would let a job start, as the forecast process does."""
    asked = {"ask": "why", "job": job, "now": bench.clock.at, "tenant": tenant, "smaller": list(smaller)}
    return ForecastAnswers(bench.site).answer(asked)


FAIR = SITE.replace('"las"\nquantum = 60', '"slurm_fair_share"').replace("cpu = 2", "cpu = 4")


@pytest.mark.parametrize("end", range(3))
def test_the_ended_job_that_is_named_lets_the_job_start_and_others_that_are_not_do_not(site: Any, end: int) -> None:
    """Under Slurm's fair share, with jobs of three users: each running job is ended in the service itself."""
    carol, bench = Principal("carol", "text", "submitter"), site(FAIR)
    running = [
        bench.submit(who, accelerators=n, duration_s=900).body["id"] for who, n in ((ANN, 2), (BOB, 1), (ANN, 1))
    ]
    bench.do(*(Launched(job, 1) for job in running))
    for at, (who, n) in enumerate(((BOB, 2), (ANN, 1), (carol, 2), (BOB, 1)), start=100):
        bench.clock.at = float(at)
        bench.submit(who, accelerators=n, duration_s=900)
    waiting = [row.id for row in bench.controller.rows.values() if not row.seats]
    said = {
        job: {one["jobs"][0] for one in played(bench, job)["conditions"] if one["kind"] == "ended"} for job in waiting
    }
    bench.do(GangEnded(running[end], 1, "finished"))
    started = [job for job in waiting if bench.state(job) == "starting"]
    assert 0 < len(started) < len(waiting)
    assert started == [job for job in waiting if running[end] in said[job]]


def test_a_smaller_job_is_said_to_start_only_where_it_does(site: Any) -> None:
    bench = site(FAIR)
    bench.submit(accelerators=3, duration_s=900)
    wide = bench.submit(BOB, accelerators=2, duration_s=900).body["id"]
    row = bench.controller.rows[wide]
    smaller = replace(row, id="9-again", number=9, spec={**row.spec, "accelerators": 1}, submitted=bench.clock.at)
    found = played(bench, wide, smaller=[smaller.body()])
    assert [(one["kind"], one["accelerators"]) for one in found["conditions"]] == [("ended", 0.0), ("fewer", 1)]


def test_jobs_of_other_tenants_are_counted_and_not_named(site: Any) -> None:
    bench = site(FIFO)
    first, second = (bench.submit(who, accelerators=2).body["id"] for who in (ANN, BOB))
    mine = bench.submit(ANN, accelerators=2).body["id"]
    row = bench.controller.rows[mine]
    found = living_state.why(bench.controller, row, 0.0, lambda tenant: tenant == ANN.tenant)
    assert found["reasons"][0]["text"] == "it needs 2; 0 are free on cpu, behind 1 waiting job that needs 2"
    assert (found["ahead"], found["behind"], found["held_by"]) == (1, [], [first])
    assert second in living_state.why(bench.controller, row, 0.0)["reasons"][0]["text"]
    position = played(bench, mine, ANN.tenant)["position"]
    assert position == {"count": 1, "accelerators": 2, "names": (), "first_fits": False, "is_old": False}


def test_ids_of_other_tenants_are_hidden_in_every_reason_also_in_words_that_others_chose(site: Any) -> None:
    bench = site(FIFO)
    other = bench.submit(BOB, accelerators=2).body["id"]
    bench.do(Launched(other, 1))
    mine = bench.submit(ANN, accelerators=2).body["id"]
    bench.do(GangUnknown(other, 1, "Slurm does not answer"))

    def texts(may_see: Any = lambda tenant: True) -> list[str]:
        found = living_state.why(bench.controller, bench.controller.rows[mine], 0.0, may_see)["reasons"]
        return [one["text"] for one in found]

    assert other in texts()[1] and other not in str(texts(lambda tenant: tenant == ANN.tenant))
    assert texts(lambda tenant: tenant == ANN.tenant)[1].endswith("cannot be reached: another tenant's job")
    bench.do(GangEnded(other, 1, "finished"))
    bench.do(Launched(mine, 1), GangUnknown(mine, 1, f"it ended beside ({other}), '7-gone' and {mine} on 2026-11-27"))
    words = "it has accelerators, but its processes cannot be reached: it ended beside"
    assert texts() == [f"{words} ({other}), '7-gone' and {mine} on 2026-11-27"]
    hidden = "another tenant's job"
    assert texts(lambda tenant: tenant == ANN.tenant) == [f"{words} ({hidden}), '{hidden}' and {mine} on 2026-11-27"]


def test_a_preempted_job_names_when_and_for_which_jobs_also_after_a_restart(site: Any, tmp_path: Path) -> None:
    bench = site(SITE)
    long = bench.submit(ANN, accelerators=2, duration_s=9000).body["id"]
    bench.do(Launched(long, 1))
    bench.clock.at = 100.0  # beyond the quantum
    new = bench.submit(BOB, accelerators=1, duration_s=50).body["id"]
    bench.do(GangEnded(long, 1, "stopped"), Launched(new, 1))
    for _ in range(2):
        found = living_state.why(bench.controller, bench.controller.rows[long], 0.0)
        assert found["preempted"] == {"at": "1970-01-01T00:01:40.000Z", "by": [new], "by_count": 1}
        (reason,) = found["reasons"]
        assert reason["code"] == "preempted"
        words = f"it was preempted by {new}, which las ranks before it; it needs 2; 1 is free on cpu"
        assert reason["text"].startswith(words)
        hidden = living_state.why(bench.controller, bench.controller.rows[long], 0.0, lambda tenant: tenant == "vision")
        assert hidden["preempted"] == {"at": "1970-01-01T00:01:40.000Z", "by": [], "by_count": 1}
        assert new not in str(hidden)
        bench.restart()
    bench.store.close()
    export(bench.site, tmp_path / "day.jsonl.gz")
    (wait,) = explain(Record(tmp_path / "day.jsonl.gz"), long).waits[-1:]
    assert (wait.reason, wait.text) == (reason["code"], reason["text"])
    bench.restart()
    bench.do(GangEnded(new, 1, "finished"), Launched(long, 2))
    assert "preempted" not in living_state.why(bench.controller, bench.controller.rows[long], 0.0)
    assert math.isnan(bench.controller.rows[long].preempted)
