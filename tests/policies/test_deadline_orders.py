"""Orders by deadline: who meets what, on worlds small enough to follow by hand or to try every order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.decisions import Stop
from eunomia.model.policy import Policy
from eunomia.model.topology import Node
from eunomia.model.view import View
from eunomia.policies.order.edf import Edf
from eunomia.policies.order.least_slack import LeastSlack
from eunomia.policies.order.srtf import Srtf
from eunomia.testing.small_worlds import SmallWorld, WorldRun, line_up, one_type, play

NEVER = float("inf")


def played(policy: Policy, *jobs: tuple[float, float, float], accelerators: int = 1) -> WorldRun:
    """Play jobs a, b, c … given as (submitted, seconds, deadline)."""
    lined = line_up(*((submitted, seconds) for submitted, seconds, _ in jobs))
    due = tuple(replace(job, deadline=spec[2]) for job, spec in zip(lined, jobs, strict=True))
    return play(policy, SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=due, speeds=one_type()))


def missed(policy: Policy, *jobs: tuple[float, float, float], accelerators: int = 1) -> list[str]:
    ends = played(policy, *jobs, accelerators=accelerators).finished
    return [job for (job, end), (_, _, due) in zip(sorted(ends.items()), jobs, strict=True) if end > due + 1e-6]


def stops(story: WorldRun) -> int:
    return sum(len(order.job_ids) for _, order in story.decisions if isinstance(order, Stop))


def in_some_order_all_are_in_time(jobs: Sequence[tuple[float, float, float]]) -> bool:
    """Try every order of the jobs on one machine, none of them interrupted."""
    for order in itertools.permutations(jobs):
        now = 0.0
        for submitted, seconds, due in order:
            now = max(now, submitted) + seconds
            if now > due:
                break
        else:
            return True
    return False


JOB = st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(0, 60)).map(
    lambda job: (float(job[0]), float(job[1]), float(job[0] + job[1] + job[2]))
)


@settings(max_examples=25, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=6))
def test_if_some_order_of_one_machine_meets_all_deadlines_the_earliest_first_does(
    jobs: list[tuple[float, float, float]],
) -> None:
    jobs = sorted(jobs, key=lambda job: job[0])
    if in_some_order_all_are_in_time(jobs):
        assert missed(Edf(), *jobs) == []


def test_an_earlier_deadline_interrupts_a_later_one_where_a_shorter_job_would_not_be_in_time() -> None:
    jobs = ((0.0, 100.0, 400.0), (10.0, 200.0, 220.0), (20.0, 50.0, NEVER))
    assert played(Edf(), *jobs).finished == {"b": 210, "a": 300, "c": 350}
    assert missed(Srtf(), *jobs) == ["b"]  # c, then what is left of a, then b


def test_on_two_machines_slack_sees_what_deadlines_do_not() -> None:
    """c has to start at once: 105 s are left for 100 s of work, but the others are due a little earlier."""
    jobs = ((0.0, 50.0, 100.0), (0.0, 50.0, 100.0), (0.0, 100.0, 105.0))
    assert missed(Edf(), *jobs, accelerators=2) == ["c"]
    assert missed(LeastSlack(), *jobs, accelerators=2) == []


def test_after_a_miss_the_late_job_may_hold_up_the_others_or_let_them_pass() -> None:
    jobs = ((0.0, 100.0, 50.0), (0.0, 60.0, 120.0), (0.0, 50.0, 175.0))
    assert missed(Edf(), *jobs) == ["a", "b", "c"]
    assert missed(Edf(late="last"), *jobs) == ["a"]  # stopped at 50 s, when it is late
    assert missed(LeastSlack(late="last"), *jobs) == ["a"]  # never begun before the others: it could not be in time
    assert played(LeastSlack(late="last"), *jobs).finished["b"] == 60


def test_jobs_of_equal_slack_take_turns_of_a_quantum() -> None:
    """b overtakes at 60 s, when its slack of 180 s has fallen to that of a less the quantum; it ends at 180 s.

    That c comes at 30 s, when b has less slack than a, changes nothing.
    """
    jobs = ((0.0, 120.0, 300.0), (0.0, 120.0, 300.0), (30.0, 10.0, NEVER))
    story = played(LeastSlack(quantum=60.0), *jobs)
    assert story.finished == pytest.approx({"b": 180, "a": 240, "c": 250}, abs=1e-5)
    assert stops(story) == 1
    assert stops(played(LeastSlack(quantum=20.0), *jobs)) > 1


def test_without_deadlines_jobs_are_served_in_submission_order_and_none_is_stopped() -> None:
    jobs = ((0.0, 300.0, NEVER), (1.0, 30.0, NEVER), (2.0, 3.0, NEVER))
    for policy in (Edf(), Edf(late="last"), LeastSlack(quantum=1.0)):
        assert played(policy, *jobs).finished == {"a": 300, "b": 330, "c": 333}


def a_view(deadline: list[float], remaining: list[float], at: float) -> View:
    n = len(deadline)
    columns = {
        "deadline": np.array(deadline),
        "remaining": np.array(remaining),
        "throughput": np.ones((n, 1)),
        "scale_factor": np.ones(n, dtype=int),
        "capacity": np.ones(1),
        "on_type": np.full(n, -1),
    }
    return View(at=at, types=("gpu",), jobs=n, columns=columns, memory={"drawn_type": np.full(n, -1.0)})


def test_who_is_late_is_named_when_the_deadline_has_passed_or_as_soon_as_it_must_be_missed() -> None:
    view = a_view([100.0, 150.0, 300.0, NEVER], [10.0, 60.0, 60.0, 60.0], at=100.0)
    by_deadline, by_slack = Edf().decide(view), LeastSlack().decide(view)
    assert (by_deadline.late, by_slack.late) == ((0,), (0, 1))
    assert str(by_deadline.why[0]) == "late: its deadline, 100 s, has passed"
    assert str(by_slack.why[1]) == "late: it cannot be done by its deadline, 150 s, even if it runs from now on"
    assert Edf(late="last").decide(view).rows.job.tolist() == [1, 2, 3, 0]


def test_a_job_that_ends_at_its_deadline_but_for_rounding_is_not_stopped_before() -> None:
    """0.1 + 0.2 is above 0.3: a, submitted at 0.1, ends a little after its deadline, at which b waits and comes."""
    jobs = line_up((0.1, 0.2), (0.15, 5.0), (0.3, 5.0))
    jobs = (replace(jobs[0], deadline=0.3), replace(jobs[1], deadline=9.0), replace(jobs[2], deadline=8.0))
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=jobs, speeds=one_type())
    run = play(Edf(late="last"), world)
    assert run.finished["a"] == pytest.approx(0.3)
    assert run.figures.summary["deadlines_missed"] == 2 - 1  # only b is: c runs before it
    assert run.figures.summary["preemptions"] == 0
