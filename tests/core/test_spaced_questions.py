"""A policy of shares that is asked at most so often is asked again as soon as it may be."""

from __future__ import annotations

import math

import pytest

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Shares
from eunomia.model.decisions import Ask, SetTimer
from eunomia.model.events import Answered, Event, JobSubmitted, Moment, TimerFired
from eunomia.model.topology import Node, Topology
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.runs.simulation import simulate
from eunomia.testing.small_worlds import line_up, one_type


def test_a_job_that_comes_within_the_gap_is_asked_about_when_the_gap_ends() -> None:
    topology = Topology.of((Node(type="gpu", accelerators=1),))
    cut = Leases(recall=True, solve_gap=100)
    core = Scheduler(topology, MaxMinFairness.info, cut, Belief(one_type()), checked=True)
    first, second = line_up((0, 500), (10, 500))
    (ask,) = core.handle(Moment(0, (JobSubmitted(first),)))
    assert isinstance(ask, Ask)
    answer = MaxMinFairness().decide(ask.view)
    assert isinstance(answer, Shares)
    core.handle(Moment(0, (Answered(ask.asked, answer),)))

    assert SetTimer(100) in core.handle(Moment(10, (JobSubmitted(second),)))
    assert any(isinstance(order, Ask) for order in core.handle(Moment(100, (TimerFired(),))))


@pytest.mark.parametrize("aligned", [False, True])
def test_a_policy_is_asked_again_after_so_long_though_nothing_came_or_went(aligned: bool) -> None:
    topology = Topology.of((Node(type="gpu", accelerators=1),))
    cut = Leases(length=100, aligned=aligned, ask_every=250)
    core = Scheduler(topology, MaxMinFairness.info, cut, Belief(one_type()), checked=True)
    asked, timer = [], 0.0
    events: tuple[Event, ...] = tuple(JobSubmitted(job) for job in line_up((0, 5000), (0, 5000)))
    while timer < 1000:
        at, timer = timer, math.inf
        decisions = core.handle(Moment(at, events or (TimerFired(),)))
        for ask in [order for order in decisions if isinstance(order, Ask)]:
            asked.append(at)
            decisions += core.handle(Moment(at, (Answered(ask.asked, MaxMinFairness().decide(ask.view)),)))
        timer, events = min([order.at for order in decisions if isinstance(order, SetTimer)], default=math.inf), ()
    assert asked == ([0, 300, 600, 900] if aligned else [0, 250, 500, 750])


def test_an_order_that_speaks_for_itself_is_asked_again_too() -> None:
    said = {
        "cluster": {"accelerators": {"gpu": 1}},
        "throughputs": {"source": "uniform"},
        "workload": {"generator": "poisson", "jobs": 3, "rate_per_hour": 1e6, "mean_duration_s": 5000},
        "policy": {"name": "srtf"},
        "mechanism": {"length_s": math.inf, "aligned": False, "recall": True},
    }
    seldom, often = (simulate(said | {"mechanism": said["mechanism"] | more}) for more in ({}, {"ask_every_s": 100}))
    assert (often.timing["rounds"] or 0) > 20 + (seldom.timing["rounds"] or 0)
    assert often.summary["jct_mean_s"] == seldom.summary["jct_mean_s"]


def test_most_seconds_below_the_least_are_refused() -> None:
    with pytest.raises(ValueError, match="ask_every_s is 5 and solve_gap_s 10"):
        Leases(solve_gap=10, ask_every=5)
