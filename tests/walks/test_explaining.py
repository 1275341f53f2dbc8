"""A record replays without policy or trace, shows where it was changed, and says why a job waited."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eunomia import __version__

if TYPE_CHECKING:
    from conftest import Desk

Jobs = Callable[..., str]
OURS = "from eunomia.policies.order.las import Las\n\nclass Mine(Las):\n    pass\n"

packed = partial(gzip.compress, mtime=0)  # the same bytes whenever it is made


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def rewrite(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0))


def test_the_reason_of_a_refused_job_is_shown(desk: Desk) -> None:
    desk.write("jobs.csv", b"job_id,submitted_s,scale_factor,job_type,duration_s,tenant\nwide,0,2,any,60,lab\n")
    refusing = ["--policy", "quotas", "--set", "tenants={lab={quota=1,may_borrow=false}}"]
    out = desk.simulate(*refusing)
    assert desk.type("explain", "wide", "--record", str(out)) == 0
    assert "rejected at 0 s" in desk.stdout
    assert "it was refused: " in desk.stdout
    assert "it never waited" not in desk.stdout
    assert desk.type("explain", "wide", "--record", str(out), "--json") == 0
    assert "quota" in json.loads(desk.stdout)["refused"]


# ---- replay ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fifo", "las", "max_min_fairness", "locality", "mine.py:Mine"])
def test_a_record_replays_with_trace_scenario_and_policy_gone(desk: Desk, policy: str) -> None:
    desk.write("mine.py", OURS)
    record = desk.simulate("--policy", policy) / "record.jsonl.gz"
    for name in ("tiny.toml", "jobs.csv", "mine.py"):
        (desk.folder / name).unlink()
    assert desk.type("replay", str(record)) == 0
    assert desk.stdout == "identical\n"
    assert desk.type("replay", str(record), "--json") == 0
    assert json.loads(desk.stdout) == {"identical": True}
    assert desk.type("replay", str(record.parent)) == 0  # the folder of its run will do


def test_a_record_has_its_scenario_and_hashes_of_its_files(desk: Desk) -> None:
    head = lines_of(desk.simulate("--set", "seed=5") / "record.jsonl.gz")[0]
    assert head["eunomia"] == 1
    assert head["version"] == __version__
    assert head["scenario"]["seed"] == 5
    assert head["scenario"]["workload"]["trace"] == "jobs.csv"
    assert head["inputs"] == {"jobs.csv": sha256((desk.folder / "jobs.csv").read_bytes()).hexdigest()}


def test_a_decision_that_was_changed_is_shown_from_both_sides(desk: Desk) -> None:
    record = desk.simulate() / "record.jsonl.gz"
    lines = lines_of(record)
    changed = next(i for i, line in enumerate(lines) if line.get("decision", {}).get("job_id") == "b")
    moment = max(i for i in range(changed) if lines[i].get("kind") == "moment")
    lines[changed]["decision"]["seats"] = [1]
    rewrite(record, lines)
    assert desk.type("replay", str(record), "--json") == 1
    found = json.loads(desk.stdout)
    assert found["identical"] is False
    assert found["index"] == moment + 1
    assert found["at"] == 100
    assert found["recorded"][0]["seats"] == [1]
    assert found["decided"][0]["seats"] == [0]
    assert desk.type("replay", str(record)) == 1
    assert f"line {moment + 1}" in desk.stdout


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\n", b"{}\n", packed(b"{}\n"), packed(b"[]\n"), packed(b"[" * 100_000),
     packed(b'{"eunomia":1}\n'), packed(b'{"eunomia":99}\n')],
)  # fmt: skip
def test_what_is_no_record_is_refused(desk: Desk, content: bytes) -> None:
    desk.write("record.jsonl.gz", content)
    assert desk.places("replay", "record.jsonl.gz")[0][0] == "record.jsonl.gz"
    desk.refused("explain", "a", "--record", "record.jsonl.gz")


def test_a_record_cut_short_or_damaged_is_refused(desk: Desk) -> None:
    whole = (desk.simulate() / "record.jsonl.gz").read_bytes()
    for content in (whole[:-30], whole[: len(whole) // 2], whole[:60] + bytes(8) + whole[68:]):
        desk.write("short.gz", content)
        desk.refused("replay", "short.gz")
        desk.refused("explain", "a", "--record", "short.gz")
    for name in ("absent.gz", "."):
        desk.refused("replay", name)


@pytest.mark.parametrize(
    "moment",
    [3, [1], {"is": "Stop"}, [{"is": "JobFinished", "job_id": "unheard-of", "epoch": 1}], [{"is": "Answered"}],
     [{"is": "NodeLost", "node": 99}], [{"number": []}], [{"array": "int64", "shape": [10**15], "from": 0, "step": 1}]],
)  # fmt: skip
def test_a_moment_that_cannot_have_been_is_refused_with_its_line(desk: Desk, moment: Any) -> None:
    record = desk.simulate() / "record.jsonl.gz"
    rewrite(record, [lines_of(record)[0], {"at": 0, "kind": "moment", "events": moment}])
    assert desk.places("replay", str(record)) == [("record.jsonl.gz", 2, None)]


@pytest.mark.parametrize("broken", [b"{bad", b"[1]", b"3", b"[" * 100_000, b"1" * 5000])
def test_a_line_that_is_no_object_is_refused_by_its_own_number(desk: Desk, broken: bytes) -> None:
    record = desk.simulate() / "record.jsonl.gz"
    lines = gzip.decompress(record.read_bytes()).splitlines()
    record.write_bytes(packed(b"\n".join([*lines[:3], broken, *lines[4:]])))
    assert desk.places("replay", str(record)) == [("record.jsonl.gz", 4, None)]


@pytest.mark.parametrize("key", ["nodes", "policy", "mechanism", "overheads", "alone"])
@pytest.mark.parametrize("value", [None, 3, [1], {"a": 1}])
def test_a_header_that_describes_no_core_is_refused(desk: Desk, key: str, value: Any) -> None:
    record = desk.simulate() / "record.jsonl.gz"
    first, *others = lines_of(record)
    rewrite(record, [{**first, key: value}, *others])
    assert desk.places("replay", str(record))[0][0] == "record.jsonl.gz"


# ---- explain -----------------------------------------------------------------------------------------------------


def waits(desk: Desk, job: str, *words: str) -> list[dict[str, Any]]:
    assert desk.type("explain", job, "--record", "out/record.jsonl.gz", "--json", *words) == 0, desk.stderr
    found: list[dict[str, Any]] = json.loads(desk.stdout)["waits"]
    return found


def test_a_job_that_finds_everything_taken_waits_for_capacity(desk: Desk) -> None:
    desk.simulate()
    (wait,) = waits(desk, "b")
    assert (wait["from_s"], wait["to_s"], wait["reason"]) == (0, 100, "no_capacity")
    assert wait["free"] == {"v100": 0}
    assert waits(desk, "a") == []


def test_a_job_whose_seats_are_free_but_spread_waits_for_fragmentation(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("a,0,1,LM,100", "b,0,1,LM,10", "c,0,1,LM,100", "d,20,2,LM,10"))
    desk.simulate("--set", "cluster.accelerators={ v100 = 2, k80 = 2 }")
    (wait,) = waits(desk, "d")
    assert (wait["from_s"], wait["to_s"], wait["reason"]) == (20, 100, "fragmentation")
    assert wait["free"] == {"v100": 1, "k80": 1}


def test_a_job_that_would_fit_waits_behind_the_head_of_the_line(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("a,0,1,LM,100", "b,0,2,LM,10", "c,0,1,LM,10"))
    desk.simulate()
    first, *_ = waits(desk, "c")
    assert first["reason"] == "behind"
    assert first["behind"] == ["b"]
    desk.simulate("--force", "--policy", "fifo?backfill=skip")
    assert waits(desk, "c") == []


def test_a_job_that_had_its_share_waits_for_the_others(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("a,0,2,LM,2000", "b,0,2,LM,2000"))
    desk.simulate("--policy", "max_min_fairness")
    texts = {wait["text"] for job in ("a", "b") for wait in waits(desk, job) if wait["reason"] == "share_used"}
    assert texts
    assert all("worth" in text or "scarce" in text for text in texts), "the prices of the types are shown"


def test_a_job_that_may_use_one_type_only_waits_though_another_is_free(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs(*(f"j{m},0,1,LM,100" for m in range(9))))
    desk.simulate("--set", "cluster.accelerators={ v100 = 1, k80 = 1 }", "--policy",
                  "fifo?backfill=skip&types=agnostic")  # fmt: skip
    found = [wait for m in range(9) for wait in waits(desk, f"j{m}") if wait["reason"] == "type_drawn"]
    assert found
    assert all(1 in wait["free"].values() for wait in found)


def test_a_wait_can_be_asked_for_at_one_second(desk: Desk) -> None:
    desk.simulate()
    assert len(waits(desk, "b", "--at", "99")) == 1
    assert waits(desk, "b", "--at", "100") == []
    assert desk.type("explain", "b", "--record", "out/record.jsonl.gz", "--at", "50") == 0
    assert "[no_capacity]" in desk.stdout
    assert desk.type("explain", "b", "--record", "out/record.jsonl.gz", "--at", "120") == 0
    assert "did not wait at 120 s" in desk.stdout
    (problem,) = desk.refused("explain", "b", "--record", "out/record.jsonl.gz", "--at", "nan")["problems"]
    assert problem["column"] == "--at"


def test_a_job_that_the_record_does_not_hold_is_answered_with_the_nearest(desk: Desk, jobs: Jobs) -> None:
    desk.write("jobs.csv", jobs("train-lm,0,1,LM,100"))
    desk.simulate()
    (problem,) = desk.refused("explain", "train-ml", "--record", "out/record.jsonl.gz")["problems"]
    assert problem["fix"] == "did you mean 'train-lm'?"


def test_one_reason_is_one_interval_whichever_job_is_ahead_if_its_text_names_no_job(desk: Desk) -> None:
    """b4 waits for v's quota all the time: behind b2, then behind b3, then behind no job."""
    head = "job_id,submitted_s,scale_factor,job_type,duration_s,tenant\n"
    desk.write("jobs.csv", head + "a,0,1,LM,900,u\n" + "".join(f"b{m},{m},1,LM,100,v\n" for m in range(1, 5)))
    desk.simulate("--policy", "philly", "--set", "tenants={ u = { quota = 1 }, v = { quota = 1 } }")
    found = waits(desk, "b4")
    assert [(wait["from_s"], wait["to_s"]) for wait in found] == [(4, 301)], found


def test_the_summary_has_the_parts_of_the_wait_in_per_cent_and_the_end_of_the_job(desk: Desk) -> None:
    """b waits 100 s for a, which holds both accelerators; then c 90 s for a and 50 s more for nothing."""
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s\na,0,2,any,100\nb,10,1,any,50\n")
    out = desk.simulate()
    assert desk.type("explain", "b", "--record", str(out)) == 0
    head, summary, wait = desk.stdout.splitlines()
    assert head == (
        "job b: 1 accelerator, submitted at 10 s, first started at 100 s, finished at 150 s "
        "(2.33 min after its submission)"
    )
    assert summary == "it waited 90.0 s: 100 % nothing large enough was free"
    assert wait.startswith("  10 s to 100 s (90.0 s): it needs 1; 0 are free")


def test_a_preempted_job_names_when_and_the_job_that_took_its_accelerators(desk: Desk, jobs: Jobs) -> None:
    """Under srtf b takes one of the two accelerators of a at 20 s; c takes the other one until 120 s."""
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s\na,0,2,any,300\nb,20,1,any,50\n"
               "c,30,1,any,90\n")  # fmt: skip
    out = desk.simulate("--policy", "srtf")
    assert desk.type("explain", "a", "--record", str(out)) == 0
    _, summary, preempted, wait = desk.stdout.splitlines()
    assert summary == (
        "it waited 1.67 min in all, 0 s of it before its first start: "
        "100 % after it was preempted, as nothing large enough was free"
    )
    assert preempted == "it was preempted at 20 s by b, which srtf ranks before it"
    assert wait.startswith(
        "  20 s to 120 s (1.67 min): it was preempted by b, which srtf ranks before it; it needs 2; "
    )
    assert wait.endswith(" [preempted]")
    assert desk.type("explain", "a", "--record", str(out), "--json") == 0
    found = json.loads(desk.stdout)
    assert found["preemptions"] == [{"at": 20.0, "by": ["b"], "ranked": True, "moved": False}]
    assert desk.type("explain", "b", "--record", str(out), "--json") == 0
    assert json.loads(desk.stdout)["preemptions"] == []


def test_every_interval_is_shown_on_request_only(desk: Desk) -> None:
    rows = [f"j{k},{k},1,any,{100 + 7 * k}" for k in range(9)]
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s\n" + "\n".join(rows) + "\n")
    out = desk.simulate("--policy", "max_min_fairness_agnostic", "--set", "mechanism={name='leases',length_s=20}")
    assert desk.type("explain", "j8", "--record", str(out), "--json") == 0
    every = json.loads(desk.stdout)["waits"]
    assert len(every) > 3
    assert desk.type("explain", "j8", "--record", str(out)) == 0
    short = desk.stdout.splitlines()
    assert desk.type("explain", "j8", "--record", str(out), "--details") == 0
    assert len([line for line in short if line.startswith("  ")]) == 3
    assert f"the 3 longest of {len(every)} intervals (--details shows all):" in short
    assert len([line for line in desk.stdout.splitlines() if line.startswith("  ") and " s to " in line]) == len(every)


def test_times_are_dates_where_the_trace_has_them(desk: Desk) -> None:
    rows = ["job_id,user,vc,gpu_num,state,submit_time,duration", "1,u,v,2,COMPLETED,2020-04-01 08:00:00,3600",
            "2,u,v,1,COMPLETED,2020-04-01 08:10:00,1800"]  # fmt: skip
    desk.write("helios.csv", "\n".join(rows) + "\n")
    words = ["--set", "workload.trace=helios.csv", "--set", "workload.format=helios"]
    out = desk.simulate(*words)
    assert desk.type("explain", "2", "--record", str(out)) == 0, desk.stderr
    assert "submitted at Wed 2020-04-01 08:10" in desk.stdout
    assert "first started at Wed 2020-04-01 09:00" in desk.stdout
