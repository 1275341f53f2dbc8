"""Nonsense of a policy, or an exception in it, is wrong input of whatever command asks it: refused, nothing written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk

POLICIES = """\
from dataclasses import dataclass
from itertools import count
from typing import ClassVar
import numpy as np
from eunomia import PolicyInfo, Rows, Order, Shares

TURN = count()

def card(name, kind="shares"):
    return PolicyInfo(name=name, answer_type=kind, objective="", technique="", paper="",
                      needs=frozenset({"scale_factor", "throughput", "capacity"}))

class Nan:
    info: ClassVar[PolicyInfo] = card("nan")
    def decide(self, view):
        return Shares(np.full((view.jobs, len(view.types)), np.nan))

class Elsewhere:
    info: ClassVar[PolicyInfo] = card("elsewhere", "order")
    def decide(self, view):
        return Order(Rows(np.arange(view.jobs), np.full(view.jobs, 7)))

class Asks:
    info: ClassVar[PolicyInfo] = card("asks")
    def decide(self, view):
        return Shares(self.rate(view) * np.ones((view.jobs, 1)))
    def rate(self, view):
        return 1.0 / view.now

class Forgets:
    info: ClassVar[PolicyInfo] = card("forgets")
    def decide(self, view):
        Shares(view.throughput)

class Lucky:
    info: ClassVar[PolicyInfo] = card("lucky", "order")
    def decide(self, view):
        return Order(Rows(np.roll(np.arange(view.jobs), next(TURN)), np.zeros(view.jobs, dtype=np.int64)))

class First:
    info: ClassVar[PolicyInfo] = card("first", "order")
    def decide(self, view):
        job, type = np.nonzero((view.throughput > 0) & (view.scale_factor[:, None] <= view.capacity))
        return Order(Rows(job, type))
"""
PROBLEM = {"types": ["gpu"], "capacity": [1], "scale_factor": [1], "weight": [1], "throughput": [[1.0]]}


@pytest.fixture
def with_policies(desk: Desk) -> Desk:
    desk.write("mine.py", POLICIES)
    desk.write("problem.json", json.dumps(PROBLEM))
    return desk


@pytest.mark.parametrize("command", ["simulate", "compare", "solve"])
@pytest.mark.parametrize(
    ("policy", "where", "rule"),
    [
        ("Nan", "policy 'nan' at 0 s", "has a share of nan on"),
        ("Elsewhere", "policy 'elsewhere' at 0 s", "a row names a type outside"),
        ("Forgets", "policy 'forgets' at 0 s", "it answered NoneType"),
        ("Asks", "mine.py", "a view has no 'now'; a view has 'at'"),
    ],
)
def test_a_command_refuses_a_policy_by_its_rule_and_writes_nothing(
    with_policies: Desk, command: str, policy: str, where: str, rule: str
) -> None:
    chosen = ("--policy", f"mine.py:{policy}")
    words = {"solve": ("--problem", "problem.json")}.get(command, ("tiny.toml", "--out", "out"))
    more = ("--policy", "fifo") if command == "compare" else ()
    (problem,) = with_policies.refused(command, *words, *chosen, *more)["problems"]
    assert problem["file"].endswith(where) and rule in problem["rule"]
    if policy == "Asks":
        assert problem["row"] == 1 + POLICIES.splitlines().index("        return 1.0 / view.now")
        assert "in decide:  return Shares(self.rate(view)" in problem["fix"]
        assert "asked at 0 s about" in problem["rule"]


def test_a_sweep_keeps_its_other_runs_and_names_the_one_that_was_refused(with_policies: Desk) -> None:
    with_policies.write("sweep.toml", 'scenario = "tiny.toml"\n[axes]\npolicy = ["fifo", "mine.py:Nan"]\n')
    assert with_policies.type("sweep", "sweep.toml", "--out", "out", "--jobs", "1", "--json") == 1
    answer = json.loads(with_policies.stdout)
    assert [run["policy"] for run in answer["runs"]] == ["fifo"]
    (failed,) = answer["failed"]
    assert failed["policy"] == "mine.py:Nan" and "has a share of nan on" in failed["error"]


def test_what_depends_on_more_than_the_view_is_refused_before_the_first_run(with_policies: Desk) -> None:
    problems = with_policies.refused("simulate", "tiny.toml", "--out", "out", "--policy", "mine.py:Lucky")["problems"]
    assert {problem["file"] for problem in problems} == {"mine.py:Lucky"}
    assert "the same view gets the same answer" in problems[0]["rule"]


def test_check_names_each_rule_and_fails_where_one_is_broken(with_policies: Desk) -> None:
    assert with_policies.type("check", "mine.py:First", "--seeds", "1") == 0, with_policies.stdout
    assert "FAIL" not in with_policies.stdout and "no rule is broken" in with_policies.stdout
    assert with_policies.type("check", "mine.py:Nan", "--seeds", "1", "--json") == 1
    answer = json.loads(with_policies.stdout)
    broken = [one for one in answer["rules"] if one["outcome"] == "fail"]
    assert answer["broken"] == len(broken) > 0
    assert broken[0]["seed"] == 0 and "has a share of nan" in broken[0]["text"]
    assert with_policies.type("check", "mine.py:Absent") == 2
    assert with_policies.type("check", "fifo?backfill=never") == 2
    assert with_policies.type("check", "fifo?backfill=skip", "--seeds", "1") == 0


def test_a_what_if_refuses_a_policy_once_for_all_periods_and_with_the_code_of_wrong_input(desk: Desk) -> None:
    desk.write("policies.py", POLICIES)
    lines = "".join(f"j{k},{k * 3600},1,LM,1800\n" for k in range(48))
    desk.write("jobs.csv", "job_id,submitted_s,scale_factor,job_type,duration_s\n" + lines)
    words = ("whatif", "tiny.toml", "--policy", "policies.py:Elsewhere", "--weeks", "2")
    assert desk.type(*words) == 2, desk.stdout
    assert desk.stderr.count("policy 'elsewhere' at ") == 1
    assert desk.type("whatif", "tiny.toml", "--policy", "gone.py:Nan", "--weeks", "2") == 2
    assert desk.stderr.count("there is no file 'gone.py'") == 1
