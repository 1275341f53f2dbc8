"""Rounds in which nothing changes: no lease is renewed, and yet no lease may lapse or be taken within a round."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from eunomia.model.decisions import Renew, SetTimer, Start, Stop
from eunomia.model.events import TimerFired
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.policies.order.las import Las
from eunomia.policies.shares.max_min_fairness import MaxMinFairness

from .conftest import Desk

Sit = Callable[..., Desk]
ROUNDS = LeaseTerms(length_s=100, aligned=True)


@pytest.mark.parametrize("policy", [Las(quantum=50), MaxMinFairness()])
def test_a_lease_runs_on_without_an_end_while_no_job_wakes_the_core(sit: Sit, policy: Policy) -> None:
    """A real world stops a gang whose lease ends unrenewed, so a lease that is not renewed may not end."""
    decided = sit(policy, (2,), terms=ROUNDS).submit(0, "a", total_steps=1000)
    assert [d.until for d in decided if isinstance(d, Start)] == [100]
    assert [d for d in decided if isinstance(d, Renew)] == [Renew(("a",), math.inf)]
    assert decided[-1] == SetTimer(math.inf)


def test_who_sat_through_quiet_rounds_leaves_at_a_common_end_and_not_before(sit: Sit) -> None:
    desk = sit(Las(quantum=50), (2,), terms=ROUNDS)
    desk.submit(0, "a", total_steps=1000)
    arrival = desk.submit(250, "wide", scale_factor=2)  # stands first, but a's round lasts until 300
    assert [d for d in arrival if isinstance(d, Stop | Start)] == []
    assert Renew(("a",), 300) in arrival
    assert SetTimer(300) in arrival
    assert [type(d) for d in desk.tell(300, TimerFired()) if isinstance(d, Stop | Start)] == [Stop, Start]


def test_who_comes_at_the_very_end_of_a_quiet_round_is_seated_then(sit: Sit) -> None:
    desk = sit(Las(quantum=50), (1,), terms=ROUNDS)
    desk.submit(0, "a", total_steps=1000)
    assert [type(d) for d in desk.submit(300, "b") if isinstance(d, Stop | Start)] == [Stop, Start]
