"""Quincy's flow on the worked example, against every possible assignment, and in small worlds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.contract.worlds import Played, Rates, Small, line_up, one_type, play
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Start
from eunomia.model.topology import Node
from eunomia.policies import build
from eunomia.solvers.places import cheapest


def on_machines(cost: Floats, waits: Floats, size: Floats, seats: Floats) -> tuple[list[int], float]:
    """Solve with an option for each gang on each machine; the option's number is gang · machines + machine."""
    gang, machine = (axis.ravel() for axis in np.indices(cost.shape))
    entry = np.arange(cost.size)
    chosen, total = cheapest(waits, gang, cost.ravel(), entry, machine, size[gang], seats)
    return [-1 if o < 0 else int(machine[o]) for o in chosen.tolist()], total


def test_three_tasks_on_two_machines() -> None:
    """Worked by hand: 1 + 3 + 6 = 10; the first two the other way round are 5 + 2 + 6 = 13."""
    cost = np.array([[1.0, 5.0], [2.0, 3.0], [10.0, 10.0]])
    assert on_machines(cost, np.full(3, 6.0), np.ones(3), np.ones(2)) == ([0, 1, -1], 10.0)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_assignment_costs_less(seed: int, gangs: bool) -> None:
    rng = np.random.default_rng(seed)
    cost, waits = rng.uniform(0, 10, (4, 3)), rng.uniform(0, 10, 4)
    size = rng.integers(1, 4, 4).astype(float) if gangs else np.ones(4)
    seats = rng.integers(1, 4, 3).astype(float)
    _, total = on_machines(cost, waits, size, seats)
    best = np.inf
    for places in itertools.product(range(-1, 3), repeat=4):
        taken = np.bincount([p for p in places if p >= 0], size[[p >= 0 for p in places]], minlength=3)
        if (taken <= seats).all():
            best = min(best, sum(waits[m] if p < 0 else cost[m, p] for m, p in enumerate(places)))
    assert total == pytest.approx(best)


def started(story: Played) -> list[tuple[float, str]]:
    return [(at, order.job_id) for at, order in story.decisions if isinstance(order, Start)]


def test_a_job_accepts_a_slow_type_when_it_has_waited_as_long_as_that_costs() -> None:
    """A k80 is three times as slow: 300 · 2 = 600. Looks are 60 s apart: at 540 s to wait for one more costs that."""
    world = Small(
        nodes=(Node(type="v100", accelerators=1), Node(type="k80", accelerators=1)),
        jobs=line_up((0, 9000), (0, 9000)),
        speeds=Rates(types=("v100", "k80"), by_kind={"": (3.0, 1.0)}),
    )
    story = play(build("quincy"), world)
    assert started(story)[:2] == [(0, "a"), (540, "b")]


def test_a_wide_gang_that_waited_long_enough_makes_others_leave_and_nobody_starves() -> None:
    """One machine of 2; a narrow job a for ever, another one each 50 s. At 410 s the second of these ends.

    To let b wait costs 2 (405 + 60) = 930. To stop a costs (410 + 60) + 60 = 530, and that the third narrow job, there
    since 110 s, waits on costs 300 + 60 = 360: together less. At 210 s it was 530 against 330 + 210.
    """
    narrow = [(10.0 + 50 * i, 200) for i in range(20)]
    world = Small(
        nodes=(Node(type="gpu", accelerators=2),), jobs=line_up((0, 5000), (5, 100, 2), *narrow), speeds=one_type()
    )
    story = play(build("quincy"), world)
    assert len(story.finished) == 22
    assert story.finished["b"] == 510
    patient = play(build("quincy?preempt=false"), world)
    assert patient.counts == {"finished": 22}
    assert patient.figures.jobs["preemptions"].sum() == 0
