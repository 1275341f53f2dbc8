"""`[mechanism] name = "ideal"` from a scenario file to results, record and explanation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

Jobs = Callable[..., str]


@pytest.fixture
def fluid(desk: Desk) -> Desk:
    """The tiny scenario, whose two v100 can be divided at will."""
    cut = '[policy]\nname = "max_min_fairness"\n[mechanism]\nname = "ideal"\n'
    desk.write("tiny.toml", (desk.folder / "tiny.toml").read_text() + cut)
    return desk


def finished(desk: Desk, *words: str) -> list[float]:
    out = desk.simulate("--check", "--force", *words)
    head, *rows = (line.split(",") for line in (out / "jobs.csv").read_text().splitlines())
    return [float(row[head.index("finished_s")]) for row in rows]


def test_two_jobs_on_one_accelerator_have_half_of_it_each_while_both_are_there(fluid: Desk, jobs: Jobs) -> None:
    """a runs alone for 50 s and at half speed for 100 s; b is half done then and continues alone."""
    fluid.write("jobs.csv", jobs("a,0,1,LM,100", "b,50,1,LM,100"))
    assert finished(fluid, "--set", "cluster.accelerators={ v100 = 1 }") == pytest.approx([150.0, 200.0])


def test_its_record_replays(fluid: Desk) -> None:
    finished(fluid)
    assert fluid.type("replay", "out/record.jsonl.gz") == 0
    assert fluid.stdout == "identical\n"


def test_a_new_job_sees_when_the_policy_is_asked_again(fluid: Desk, jobs: Jobs) -> None:
    fluid.write("jobs.csv", jobs("a,0,1,LM,100", "b,50,1,LM,100"))
    assert finished(fluid, "--set", "mechanism.solve_gap_s=80") == [100.0, 180.0]
    assert fluid.type("explain", "b", "--record", "out/record.jsonl.gz", "--json") == 0
    (wait,) = json.loads(fluid.stdout)["waits"]
    assert (wait["from_s"], wait["to_s"], wait["reason"], wait["free"]) == (50, 80, "next_question", {"v100": 1})
    assert "80 s" in wait["text"]
    assert wait["held_by"] == ["a"]


def test_a_policy_that_answers_an_order_is_refused_with_its_line(fluid: Desk) -> None:
    (problem,) = fluid.refused("simulate", "tiny.toml", "--out", "out", "--policy", "las")["problems"]
    assert (problem["row"], problem["column"]) == (10, "mechanism.name")
    assert "las answers an order" in problem["rule"]
