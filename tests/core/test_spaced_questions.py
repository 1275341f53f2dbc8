"""A policy of shares that is asked at most so often is asked again as soon as it may be."""

from __future__ import annotations

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Shares
from eunomia.model.decisions import Ask, SetTimer
from eunomia.model.events import Answered, JobSubmitted, Moment, TimerFired
from eunomia.model.topology import Node, Topology
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
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
