"""Limits of users, groups and tenants, throttled arrays, and jobs that follow others: what is held reserves nothing."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.service.bench import ANN, BOB, OPERATOR, Bench, LiveService, command_line, until
from tests.service.bench import SITE as LIVE
from typer.testing import CliRunner

from eunomia.backends.reports import GangEnded, Launched
from eunomia.cli.app import app
from eunomia.records.scheduler_digest import digest
from eunomia.service import living_state
from eunomia.service.client import ServiceRefusal
from eunomia.service.limits import PART
from eunomia.service.messages import Cancel, ChangeJob, Hold, Principal, Release, Reply, Request
from eunomia.service.site import load_site
from eunomia.service.site_change import apply_site

SITE = """\
check = true
[service]
listen = "127.0.0.1:0"
[cluster]
accelerators = { v100 = 4, k80 = 2 }
[policy]
name = "fifo"
"""
TWO_EACH = SITE + "[limits.default]\nrunning_jobs = 2\n"


def why(bench: Bench, job: str) -> str:
    (reason,) = living_state.why(bench.controller, bench.controller.rows[job], 0.0)["reasons"]
    return f"{reason['code']}: {reason['text']}"


def has_seats(bench: Bench) -> set[str]:
    return {row.id for row in bench.controller.rows.values() if row.seats}


def submitted(bench: Bench, who: Principal = ANN, count: int = 1, **document: Any) -> list[str]:
    return [bench.submit(who, **document).body["id"] for _ in range(count)]


def test_jobs_above_the_limit_of_a_user_wait_for_its_own_and_stop_no_other_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TWO_EACH)
    jobs = submitted(bench, ANN, 4)
    (other,) = submitted(bench, BOB)
    assert has_seats(bench) == {*jobs[:2], other}
    assert why(bench, jobs[2]) == "limit: limit: user ann may have 2 jobs at once, and has 2"
    bench.controller.check()
    bench.do(Launched(jobs[0], 1))
    bench.do(GangEnded(jobs[0], 1, "finished"))
    assert has_seats(bench) == {jobs[1], other, jobs[2]}
    bench.do(Request(Cancel(jobs[1]), ANN))
    assert has_seats(bench) == {other, jobs[2]}, "its processes may still run"
    bench.do(GangEnded(jobs[1], 1, "stopped"))
    assert has_seats(bench) == {other, jobs[2], jobs[3]}


def test_accelerators_are_counted_and_one_that_fits_goes_before_one_that_does_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + "[limits.users.ann]\naccelerators = 4\n")
    first, wide, small = (submitted(bench, accelerators=size)[0] for size in (2, 4, 2))
    assert has_seats(bench) == {first, small}
    assert why(bench, wide) == ("limit: limit: user ann may have 4 accelerators at once, has 4, and it needs 4")
    refused = bench.submit(ANN, accelerators=5)
    assert (refused.status, refused.problems[0].field) == (422, "accelerators")


def test_a_tenant_s_limit_counts_all_its_users_and_its_own_limit_holds_besides(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + "[limits.tenants.vision]\naccelerators = 3\n[limits.users.ann]\nrunning_jobs = 1\n")
    cat = Principal("cat", "vision", "submitter")
    ann, cats = submitted(bench, ANN, 2), submitted(bench, cat, 3)
    assert has_seats(bench) == {ann[0], cats[0], cats[1]}
    assert why(bench, ann[1]).endswith("user ann may have 1 job at once, and has 1")
    assert why(bench, cats[2]).endswith("tenant vision may have 3 accelerators at once, has 3, and it needs 1")
    bench.do(GangEnded(ann[0], 1, "finished"))
    assert has_seats(bench) == {cats[0], cats[1], ann[1]}


def test_the_most_generous_of_a_user_s_groups_counts_and_its_own_limit_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eunomia.service.limits.groups_of", lambda user: ["staff", "vision"] if user == "ann" else [])
    text = (
        SITE
        + """\
[limits.default]
running_jobs = 1
longest_s = 100
[limits.groups]
staff = { running_jobs = 2 }
vision = { running_jobs = 3, accelerators_per_job = 2 }
[limits.users]
eve = { running_jobs = 0 }
"""
    )
    limits = load_site(_file(tmp_path, text)).limits
    of_ann, of_bob, of_eve = map(limits.of_user, ("ann", "bob", "eve"))
    assert (of_ann.running_jobs, of_ann.accelerators_per_job, of_ann.longest_s) == (3, 2, 100.0)
    assert (of_bob.running_jobs, of_bob.accelerators_per_job) == (1, None)
    assert of_eve.running_jobs == 0


def test_the_longest_time_is_that_of_jobs_that_give_none_and_longer_ones_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + "[limits.default]\nlongest_s = 100\naccelerators_per_job = 2\n")
    (job,) = submitted(bench)
    bench.do(Launched(job, 1))
    refused = bench.submit(ANN, max_run_s=200, accelerators=3)
    assert {one.field for one in refused.problems} == {"max_run_s", "accelerators"}
    bench.clock.at = 100.0
    bench.do()
    row = bench.store.job(job)
    assert row is not None
    assert (row.state, row.reason) == ("failed", "it ran longer than its max_run_s of 100 s")


def test_a_job_whose_accelerators_are_free_is_let_in_before_one_that_waits_for_busy_ones(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TWO_EACH.replace('"fifo"', '"fifo"\nbackfill = "skip"'))
    submitted(bench, BOB, 1, types=["k80"], accelerators=2)
    waits = submitted(bench, ANN, 2, types=["k80"], accelerators=2)
    runs = submitted(bench, ANN, 3, types=["v100"])
    assert has_seats(bench) >= set(runs[:2]), "jobs that wait for busy accelerators do not use up the limit"
    assert why(bench, waits[0]).startswith("limit: ")
    bench.controller.check()


def test_of_a_throttled_array_only_so_many_run_at_once_also_after_a_restart(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    ids = bench.submit(ANN, array="0-5%2").body["ids"]
    other = bench.submit(ANN, array="0-1%1").body["ids"]
    assert has_seats(bench) == {*ids[:2], other[0]}
    assert why(bench, ids[2]) == "limit: limit: its array may have 2 jobs at once, and has 2"
    seen = digest(bench.controller.scheduler)
    bench.restart()
    assert digest(bench.controller.scheduler) == seen
    bench.do(GangEnded(ids[1], 1, "finished"))
    assert has_seats(bench) == {ids[0], other[0], ids[2]}
    for job in ids:
        bench.do(GangEnded(job, 1, "finished"))
    assert has_seats(bench) == {other[0]}


def test_arrays_of_two_tenants_with_one_idempotency_key_have_limits_of_their_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    ids = [bench.submit(who, "the-same-key", array="0-2%1").body["ids"] for who in (ANN, BOB)]
    assert has_seats(bench) == {ids[0][0], ids[1][0]}


def test_of_arrays_that_have_ended_nothing_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE + "[limits.users.ann]\nrunning_jobs = 2\n")
    ids = bench.submit(ANN, array="0-2%2").body["ids"]
    others = bench.submit(ANN, array="0-2%2").body["ids"]
    bench.do(Request(Cancel(ids[2]), ANN), *(Request(Cancel(job), ANN) for job in others))
    for job in ids[:2]:
        bench.do(Launched(job, 1))
        bench.do(GangEnded(job, 1, "finished"))
    assert not bench.controller.rows
    assert not [key for key in bench.controller.limits._holders if key[0] == "array"]


def test_a_singleton_waits_for_jobs_of_its_tenant_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    bench.submit(Principal("ann", "speech", "submitter"), name="sweep")
    (job,) = submitted(bench, ANN, name="sweep", after=["singleton"])
    assert job in has_seats(bench)


@pytest.mark.parametrize("restarts", [False, True], ids=["on", "restarted"])
def test_a_singleton_goes_on_when_the_jobs_before_it_get_other_names_or_end_in_any_order(
    tmp_path: Path, restarts: bool
) -> None:
    bench = Bench(tmp_path, SITE)
    first, second = submitted(bench, ANN, 2, name="sweep")
    (job,) = submitted(bench, ANN, name="sweep", after=["singleton"])
    bench.do(GangEnded(second, 1, "finished"))
    assert bench.controller.rows[job].holds == ["after"]
    if restarts:
        bench.restart()
    bench.do(Request(ChangeJob(first, {"name": "other"}), ANN))
    if restarts:
        bench.restart()
    assert job in has_seats(bench)


def test_many_singletons_of_one_name_cost_no_more_than_one_each(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    ids = bench.submit(ANN, name="sweep", array="0-299", after=["singleton"]).body["ids"]
    assert sum(map(len, bench.controller.followers.values())) < 2 * len(ids)
    bench.do(*(Request(Cancel(job), ANN) for job in ids[1:-1]))
    assert bench.controller.rows[ids[-1]].holds == ["after"]
    bench.do(GangEnded(ids[0], 1, "finished"))
    assert has_seats(bench) == {ids[-1]}


def test_held_released_and_failed_jobs_come_back_within_the_limit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TWO_EACH)
    jobs = submitted(bench, ANN, 3, retries=3)
    bench.do(Request(Hold(jobs[2]), ANN), Request(Hold(jobs[0]), ANN))
    bench.do(GangEnded(jobs[0], 1, "stopped"))
    bench.do(Request(Release(jobs[2]), ANN), Request(Release(jobs[0]), ANN))
    assert has_seats(bench) == {jobs[0], jobs[1]}
    assert why(bench, jobs[2]).startswith("limit: ")
    bench.do(Launched(jobs[1], 1))
    bench.do(GangEnded(jobs[1], 1, "failed", "exit code 1"))
    assert has_seats(bench) == {jobs[0], jobs[2]}, "one that waits to be tried again does not count"
    bench.clock.at = 60.0
    bench.do()
    assert bench.controller.rows[jobs[1]].holds == ["limit"]


def _file(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("at_restart", [False, True], ids=["running", "restarted"])
def test_a_lower_limit_stops_nothing_that_runs_and_none_at_all_lets_all_in(tmp_path: Path, at_restart: bool) -> None:
    bench = Bench(tmp_path, TWO_EACH)
    jobs = submitted(bench, ANN, 5)

    def change(text: str) -> None:
        if at_restart:
            bench.restart(text)
        else:
            apply_site(bench.writer, load_site(_file(tmp_path, text)), OPERATOR, "test")
        bench.do()
        bench.controller.check()

    change(SITE + "[limits.default]\nrunning_jobs = 1\n")
    assert has_seats(bench) == set(jobs[:2])
    bench.do(GangEnded(jobs[0], 1, "finished"))
    assert has_seats(bench) == {jobs[1]}
    change(SITE)
    assert has_seats(bench) == set(jobs[1:])


def test_a_limit_that_is_gone_lets_in_its_jobs_in_turns_of_bounded_size(tmp_path: Path) -> None:
    bench = Bench(tmp_path, TWO_EACH)
    bench.submit(ANN, array=f"0-{3 * PART}")
    apply_site(bench.writer, load_site(_file(tmp_path, SITE)), OPERATOR, "test")
    held = list[int]()
    while True:
        held.append(sum("limit" in row.holds for row in bench.controller.rows.values()))
        bench.controller.check()
        if not held[-1]:
            break
        assert bench.controller.due() <= bench.clock.at or len(held) == 1, "the next turn comes by itself"
        bench.do()
    assert len(held) >= 3 and max(b - a for a, b in zip(held[1:], held, strict=False)) <= PART


@pytest.mark.parametrize(
    ("text", "column", "line"),
    [
        ("[limits.default]\nrunning = 2\n", "limits.default.running", 9),
        ("[limits.users.ann]\naccelerators = -1\n", "limits.users.ann.accelerators", 9),
        ("[limits.users]\nann = 3\n", "limits.users.ann", 9),
        ("[limits.someone]\n", "limits.someone", 8),
        ('[limits.default]\nlongest_s = "2h"\n', "limits.default.longest_s", 9),
    ],
)
def test_a_wrong_limit_is_named_with_its_line(tmp_path: Path, text: str, column: str, line: int) -> None:
    from eunomia.inputs.problems import InvalidInput

    with pytest.raises(InvalidInput) as found:
        load_site(_file(tmp_path, SITE + text))
    (problem,) = found.value.problems
    assert (problem.column, problem.row) == (column, line)


# ---- what jobs wait for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "outcome", "state"),
    [
        ("{}", "finished", "starting"),
        ("{}", "failed", "cancelled"),
        ("afterok:{}", "finished", "starting"),
        ("afterok:{}", "failed", "cancelled"),
        ("afterany:{}", "finished", "starting"),
        ("afterany:{}", "failed", "starting"),
        ("afternotok:{}", "finished", "cancelled"),
        ("afternotok:{}", "failed", "starting"),
    ],
)
@pytest.mark.parametrize("restarts", [False, True], ids=["on", "restarted"])
def test_a_job_follows_another_by_how_that_ends(
    tmp_path: Path, word: str, outcome: str, state: str, restarts: bool
) -> None:
    bench = Bench(tmp_path, SITE)
    (first,) = submitted(bench)
    (job,) = submitted(bench, after=[word.format(first)])
    verb = {"afterany": "end", "afternotok": "fail or be cancelled"}.get(word.partition(":")[0], "succeed")
    assert why(bench, job) == f"after: it waits for {first} to {verb}"
    bench.do(Launched(first, 1))
    if restarts:
        bench.restart()
    bench.do(GangEnded(first, 1, outcome, "exit code 1"))
    assert bench.state(job) == state
    late: Reply = bench.submit(ANN, after=[word.format(first)])
    assert (late.status == 201) is (state == "starting"), "one that comes later is answered by how it ended"


def test_a_singleton_waits_for_each_earlier_job_of_its_user_with_its_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, SITE)
    first, second = submitted(bench, name="train"), submitted(bench, name="train", after=["singleton"])
    others = (
        submitted(bench, BOB, name="train", after=["singleton"]),
        submitted(bench, name="eval", after=["singleton"]),
    )
    third = submitted(bench, name="train", after=["singleton"])
    assert has_seats(bench) == {first[0], others[0][0], others[1][0]}
    assert why(bench, third[0]) == f"after: it waits for {second[0]} to end", "the last of them that is left"
    bench.restart()
    bench.do(GangEnded(first[0], 1, "finished"))
    assert bench.state(second[0]) == "starting" and bench.state(third[0]) == "pending"
    bench.do(Request(Cancel(second[0]), ANN))
    assert bench.state(third[0]) == "starting"


@pytest.mark.parametrize("word", ["afterok:{}", "afterany:{}"])
def test_a_chain_of_any_length_is_cancelled_or_goes_on_when_its_first_job_is(tmp_path: Path, word: str) -> None:
    bench = Bench(tmp_path, SITE)
    chain = submitted(bench)
    for _ in range(1500):
        chain += submitted(bench, after=[word.format(chain[-1])])
    bench.do(Request(Cancel(chain[0]), ANN))
    if word.startswith("afterok"):
        assert {bench.state(job) for job in (chain[1], chain[700], chain[-1])} == {"cancelled"}
    else:
        assert [bench.state(job) for job in (chain[1], chain[2])] == ["starting", "pending"]
    bench.controller.check()


@pytest.mark.parametrize("word", ["afterok:99-zzzzz", "afterwards:1-start", "after:1", "singletons", "", "afterok:"])
def test_what_is_no_dependency_is_refused(tmp_path: Path, word: str) -> None:
    refused = Bench(tmp_path, SITE).submit(ANN, after=[word])
    assert (refused.status, [one.field for one in refused.problems]) == (422, ["after"])


@pytest.mark.parametrize("seed", range(6))
def test_at_no_moment_more_is_held_than_the_limits_allow_and_everything_ends(tmp_path: Path, seed: int) -> None:
    """Random users, sizes, arrays, holds and kills; what counts is added up from the seats alone."""
    rng = random.Random(seed)
    most = {user: (rng.choice([1, 2, 3]), rng.choice([2, 3, 6])) for user in ("ann", "bob")}
    text = SITE.replace("fifo", rng.choice(["fifo", "srtf", "slurm_fair_share", "max_min_fairness"])) + "".join(
        f"[limits.users.{user}]\nrunning_jobs = {jobs}\naccelerators = {size}\n" for user, (jobs, size) in most.items()
    ) + "[limits.tenants.vision]\naccelerators = 4\n"  # fmt: skip
    bench, arrays = Bench(tmp_path, text, numbered=True), dict[str, int]()
    cat = Principal("cat", "vision", "submitter")

    def check() -> None:
        rows = [row for row in bench.controller.rows.values() if row.seats]
        for user, (jobs, size) in most.items():
            mine = [row for row in rows if row.owner == user]
            assert len(mine) <= jobs and sum(len(row.seats) for row in mine) <= size
        assert sum(len(row.seats) for row in rows if row.tenant == "vision") <= 4
        of_array = Counter(arrays[row.id] for row in rows if row.id in arrays)
        assert all(count <= 2 for count in of_array.values())
        bench.controller.check()

    for step in range(150):
        bench.clock.at += rng.uniform(0, 20)
        rows = list(bench.controller.rows.values())
        draw = rng.random()
        if draw < 0.35:
            who, wants = rng.choice([ANN, BOB, cat]), rng.choice([{}, {"types": ["k80"]}, {"types": ["v100"]}])
            array = {"array": "0-4%2"} if rng.random() < 0.3 else {}
            reply = bench.submit(who, accelerators=rng.choice([1, 1, 2]), duration_s=30, retries=2, **wants, **array)
            if array:
                arrays |= dict.fromkeys(reply.body["ids"], step)
        elif draw < 0.5 and rows:
            bench.do(Request(rng.choice([Hold, Release, Cancel])(rng.choice(rows).id), OPERATOR))
        elif draw < 0.55:
            seen = digest(bench.controller.scheduler)
            bench.restart()
            assert digest(bench.controller.scheduler) == seen
        elif rows:
            row = rng.choice(rows)
            if row.epoch > row.ended_epoch:
                if row.launched_epoch < row.epoch:
                    bench.do(Launched(row.id, row.epoch))
                else:
                    outcome = "stopped" if row.state == "stopping" else rng.choice(["finished", "failed", "lost"])
                    bench.do(GangEnded(row.id, row.epoch, outcome, "x"))
        bench.do()
        check()
    for _ in range(600):
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


def test_an_administrator_who_submits_a_user_s_job_once_more_does_not_get_its_variables(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(tmp_path, LIVE)
    service.start()
    try:
        ann, admin = service.client("ann", "vision"), service.client("cat", "vision", "tenant-admin")
        job = ann.submit({"command": ["true"], "env": {"TOKEN": "s3cret"}})["id"]
        with pytest.raises(ServiceRefusal) as refused:
            admin.send("POST", f"/v1/jobs/{job}/resubmit", {"command": ["env"]})
        said = str(vars(refused.value))
        assert "whose job it is" in said and "s3cret" not in said
        again = admin.send("POST", f"/v1/jobs/{job}/resubmit", {"env": {}})["id"]
        assert "env" not in admin.get(f"/v1/jobs/{again}")["spec"]
        assert ann.send("POST", f"/v1/jobs/{job}/resubmit", {})["id"]
    finally:
        service.kill()
        service.stop_jobs()


# ---- on the command line ---------------------------------------------------------------------------------------------


def test_limits_arrays_and_jobs_once_more_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn", reason="needs the extra service")
    service = LiveService(
        tmp_path, LIVE + "[limits.default]\nrunning_jobs = 2\n[limits.tenants.operators]\naccelerators = 4\n"
    )
    service.start()
    typed = command_line(service, monkeypatch)
    try:
        text = "import os; print(os.environ['WORD'], os.environ['EUNOMIA_ARRAY_INDEX'])"
        ids = typed(
            "submit", "--array", "3-4%1", "--deadline", "2h", "--env", "WORD=hello", "--", "python", "-c", text
        ).split()
        until(lambda: all(service.operator.get(f"/v1/jobs/{one}")["state"] == "succeeded" for one in ids))
        again = typed("resubmit", ids[1], "--set", "name=again", "--set", "deadline_s=null").strip()
        until(lambda: service.operator.get(f"/v1/jobs/{again}")["state"] == "succeeded")
        assert typed("logs", again).splitlines()[-1] == "hello 4"
        found = service.operator.get(f"/v1/jobs/{again}")
        assert (found["name"], "deadline_s" in found["spec"], found["array_index"]) == ("again", False, 4)
        long = typed("submit", "--array", "0-2", "--", "sleep", "600").split()
        until(lambda: "[limit]" in typed("why", long[2]))
        user = found["owner"]
        assert [line.split() for line in typed("limits").splitlines()[1:]] == [
            ["user", user, "running_jobs", "2", "2", "0"], ["tenant", "operators", "accelerators", "4", "2", "2"],
        ]  # fmt: skip
        refused = CliRunner().invoke(app, ["resubmit", ids[0], "--set", "accelerator=2"])
        assert refused.exit_code and "accelerators" in refused.output
        typed("cancel", *long)
    finally:
        service.kill()
        service.stop_jobs()
