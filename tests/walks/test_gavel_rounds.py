"""`[mechanism] name = "gavel"` from a scenario file to results, records and complaints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

Jobs = Callable[..., str]
CLOCK = '[policy]\nname = "gavel:isolated"\n[mechanism]\nname = "gavel"\n'


@pytest.fixture
def clocked(desk: Desk) -> Desk:
    """The tiny scenario under Gavel's clock; its one type is a v100."""
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text() + CLOCK)
    return desk


def summary(folder: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((folder / "summary.json").read_text())
    return found


def test_an_arrival_waits_until_the_round_ends_and_idles_until_the_policy_is_asked(clocked: Desk, jobs: Jobs) -> None:
    """Jobs a and b fill the cluster in the first round, b's accelerator being idle from 50 s on; c comes at 10 s.

    The round ends when a has done its 360th step. The policy was asked at 0 s, and so it may be asked again at once: c
    runs from 360 s on.
    """
    clocked.write("jobs.csv", jobs("a,0,1,LM,1000", "b,0,1,LM,50", "c,10,1,LM,30"))
    out = clocked.simulate("--set", "mechanism.solve_gap_s=1000")
    ended = {line.split(",")[0]: line.split(",") for line in (out / "jobs.csv").read_text().splitlines()}
    place = ended["job_id"].index("finished_s")
    assert {name: float(row[place]) for name, row in ended.items() if name != "job_id"} == {
        "a": 1000.0,
        "b": 50.0,
        "c": 390.0,
    }


def test_an_arrival_that_the_last_answer_does_not_know_takes_a_seat_and_leaves_it_idle(
    clocked: Desk, jobs: Jobs
) -> None:
    """As above, but d comes at 400 s, and the policy may next be asked 1000 s after 360 s: in the round from 1440 s."""
    clocked.write("jobs.csv", jobs("a,0,1,LM,5000", "b,0,1,LM,50", "c,10,1,LM,30", "d,400,1,LM,30"))
    finished_s = []
    for idle in ("true", "false"):
        clocked.simulate(
            "--set", "mechanism.solve_gap_s=1000", "--set", f"mechanism.idle_arrivals={idle}", "--force", record=False
        )
        rows = (clocked.folder / "out" / "jobs.csv").read_text().splitlines()
        finished_s.append(float(rows[4].split(",")[rows[0].split(",").index("finished_s")]))
    assert finished_s == [1470.0, 750.0]


def test_a_gang_with_fewer_steps_than_workers_is_dropped_and_counted(clocked: Desk) -> None:
    trace = "job_id,submitted_s,scale_factor,job_type,total_steps\na,0,2,LM,1\nb,0,1,LM,720\n"
    clocked.write("jobs.csv", trace)
    out = clocked.simulate()
    assert summary(out)["jobs_rejected"] == 1
    assert summary(out)["jobs_finished"] == 1
    assert clocked.type("replay", "out/record.jsonl.gz") == 0
    assert clocked.type("explain", "a", "--record", "out/record.jsonl.gz") == 0


@pytest.mark.parametrize("policy", ["gavel:gandiva", "gavel:fifo_packed", "gavel:allox", "gavel:max_min_fairness_perf"])
def test_every_kind_of_answer_is_carried_out_and_repeated_by_replay(clocked: Desk, jobs: Jobs, policy: str) -> None:
    clocked.write("jobs.csv", jobs(*(f"j{m},{37 * m},1,LM,{200 + 90 * m}" for m in range(9))))
    out = clocked.simulate("--set", f"policy.name={policy}")
    assert summary(out)["jobs_finished"] == 9
    assert clocked.type("replay", "out/record.jsonl.gz") == 0


def test_users_who_cancel_leave_in_the_middle_of_a_round(clocked: Desk, jobs: Jobs) -> None:
    clocked.write("jobs.csv", jobs(*(f"j{m},{20 * m},1,LM,{300 + 100 * m}" for m in range(12))))
    out = clocked.simulate(
        "--set", "world.cancel_fraction=0.5", "--set", "world.cancel_after_s=600", "--set", "check=true"
    )
    counts = summary(out)
    assert counts["jobs_cancelled"] >= 2
    assert counts["jobs_finished"] + counts["jobs_cancelled"] == 12
    assert clocked.type("replay", "out/record.jsonl.gz") == 0


def test_a_misspelt_key_is_answered_with_the_nearest(clocked: Desk) -> None:
    answer = clocked.refused("simulate", "tiny.toml", "--out", "out", "--set", "mechanism.solve_gap=5")
    (problem,) = answer["problems"]
    assert problem["column"] == "mechanism.solve_gap"
    assert "solve_gap_s" in problem["fix"]


def test_what_gavels_books_have_no_page_for_is_refused_all_at_once(clocked: Desk) -> None:
    words = ("--set", "overheads.start_s=5", "--set", "belief.kind=noisy", "--set", "world.job_failures_per_hour=1")
    answer = clocked.refused("simulate", "tiny.toml", "--out", "out", *words)
    assert answer["count"] == 3


def test_an_unknown_mechanism_is_answered_with_the_nearest(clocked: Desk) -> None:
    answer = clocked.refused("simulate", "tiny.toml", "--out", "out", "--set", "mechanism.name=gravel")
    assert "gavel" in answer["problems"][0]["fix"]


def test_a_wait_between_two_rounds_is_explained_by_the_clock(clocked: Desk, jobs: Jobs) -> None:
    """As above: an accelerator is free, but d must wait for a round, and then for an answer that knows it."""
    clocked.write("jobs.csv", jobs("a,0,1,LM,5000", "b,0,1,LM,50", "c,10,1,LM,30", "d,400,1,LM,30"))
    clocked.simulate("--set", "mechanism.solve_gap_s=1000")
    explained = []
    for job in ("c", "d"):
        assert clocked.type("explain", job, "--record", "out/record.jsonl.gz", "--json") == 0
        explained.append(json.loads(clocked.stdout)["waits"])
    assert [[(wait["from_s"], wait["to_s"], wait["reason"]) for wait in waits] for waits in explained] == [
        [(10, 360, "next_round")],
        [(400, 720, "next_round"), (720, 1440, "not_chosen")],
    ]
    assert "the next begins at 360 s" in explained[0][0]["text"]
