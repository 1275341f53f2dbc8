"""Quincy's flow on the worked example, against every possible assignment, and in small worlds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eunomia.model.arrays import Floats
from eunomia.model.decisions import Start
from eunomia.model.topology import Node, Topology
from eunomia.policies import build
from eunomia.policies.grants.quincy.flow_network import Pools
from eunomia.solvers.quincy_flow import cheapest
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, WorldRun, line_up, one_type, play


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


@pytest.mark.parametrize("racks", [("",), ("r", "s"), ("r", "s", "t")])
def test_a_pool_is_in_another_when_all_its_machines_are(racks: tuple[str, ...]) -> None:
    nodes = [Node(type="ab"[m % 2], accelerators=2, rack=racks[m % len(racks)]) for m in range(7)]
    pools = Pools.of(Topology.of(nodes))
    inside = pools.inside > 0
    for one, other in itertools.product(range(inside.shape[1]), repeat=2):
        assert pools.above[one, other] == (inside[:, one] <= inside[:, other]).all()
    assert Pools.of(Topology.of(nodes[:3])).inside.shape[0] == 3  # of another cluster


def started(story: WorldRun) -> list[tuple[float, str]]:
    return [(at, order.job_id) for at, order in story.decisions if isinstance(order, Start)]


def test_a_job_accepts_a_slow_type_when_it_has_waited_as_long_as_that_costs() -> None:
    """A k80 is three times as slow: 300 · 2 = 600. A second waited costs 0.5, and looks are 60 s apart: at 1140 s to
    wait for one more costs that.
    """
    world = SmallWorld(
        nodes=(Node(type="v100", accelerators=1), Node(type="k80", accelerators=1)),
        jobs=line_up((0, 9000), (0, 9000)),
        speeds=DrawnRates(types=("v100", "k80"), by_kind={"": (3.0, 1.0)}),
    )
    story = play(build("quincy"), world)
    assert started(story)[:2] == [(0, "a"), (1140, "b")]


def test_a_wide_gang_that_waited_long_enough_preempts_others_and_no_job_starves() -> None:
    """One machine of 2; a narrow job a for ever, another one each 50 s. At 410 s the second of these ends. A second
    waited costs 1.

    To let b wait costs 2 (405 + 60) = 930. To stop a costs (410 + 60) + 60 = 530, and that the third narrow job, there
    since 110 s, waits on costs 300 + 60 = 360: together less. At 210 s it was 530 against 330 + 210.
    """
    narrow = [(10.0 + 50 * i, 200) for i in range(20)]
    world = SmallWorld(
        nodes=(Node(type="gpu", accelerators=2),), jobs=line_up((0, 5000), (5, 100, 2), *narrow), speeds=one_type()
    )
    story = play(build("quincy?omega=1"), world)
    assert len(story.finished) == 22
    assert story.finished["b"] == 510
    patient = play(build("quincy?preempt=false"), world)
    assert patient.counts == {"finished": 22}
    assert patient.figures.jobs["preemptions"].sum() == 0


def test_earlier_runs_protect_a_gang_that_runs_again() -> None:
    """One accelerator, two jobs, looks of 60 s. b starts when 2.2 (W + 60) > (R + 60) + 2.2 · 60, W = R = t: after 50
    s. a is back when 2.2 (w + 60) > (w + 60) + 2.2 (60 + 60), after 160 s, and has run for 60 s then. So b is when 2.2
    (60 + w + 60) > (60 + w + 60) + 2.2 (180 + 60), after 320 s; if its present run alone protected a, after 270 s. With
    half a run's second for one waited, none is preempted by one that has waited as long as it has run.
    """
    world = SmallWorld(nodes=(Node(type="gpu", accelerators=1),), jobs=line_up((0, 1000), (0, 1000)), speeds=one_type())
    assert started(play(build("quincy?omega=2.2"), world))[:4] == [(0, "a"), (60, "b"), (240, "a"), (600, "b")]
    assert started(play(build("quincy"), world)) == [(0, "a"), (1000, "b")]


@pytest.mark.parametrize("name", ["transfer", "omega", "theta"])
def test_a_cost_below_0_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is -1; it is a finite cost of at least 0"):
        build(f"quincy?{name}=-1")


def crowded(*jobs: tuple[str, float, float, int], policy: str, accelerators: int = 4) -> WorldRun:
    """Play jobs a, b, c … given as (tenant, submitted, seconds, accelerators) on one machine."""
    lined = line_up(*((at, seconds, size) for _, at, seconds, size in jobs))
    owned = tuple(replace(job, tenant=owner) for job, (owner, *_) in zip(lined, jobs, strict=True))
    return play(
        build(policy), SmallWorld(nodes=(Node(type="gpu", accelerators=accelerators),), jobs=owned, speeds=one_type())
    )


CROWD = [("lab", 0.0, 100.0, 1)] * 6 + [("shop", 1.0, 100.0, 1)] * 2


@pytest.mark.parametrize(("policy", "shop"), [("quincy?fair=true", 1.0), ("quincy", 100.0)])
def test_a_tenant_in_a_crowd_is_stopped_at_its_part_only_with_fair(policy: str, shop: float) -> None:
    """The lab may use all four while it is alone. The shop comes after 1 s, and two of the lab's have to leave."""
    story = crowded(*CROWD, policy=policy)
    assert [at for at, name in started(story) if name in "gh"] == [shop, shop]
    assert len([name for at, name in started(story) if at == 0]) == 4
    assert story.counts == {"finished": 8}


def test_a_tenant_that_wants_less_than_its_part_leaves_the_rest_to_others() -> None:
    """Of 4 the shop wants 1: the lab may run 3."""
    story = crowded(*CROWD[:6], ("shop", 0.0, 100.0, 1), policy="quincy?fair=true")
    assert sorted(name for at, name in started(story) if at == 0) == ["a", "b", "c", "g"]


def test_who_runs_is_not_stopped_for_fairness_without_preempt() -> None:
    """All of the lab's four go on; when they end, the shop's two come first, as the lab has its part with two."""
    story = crowded(*CROWD, policy="quincy?fair=true&preempt=false")
    assert [at for at, name in started(story) if name in "gh"] == [100.0, 100.0]
    assert story.figures.jobs["preemptions"].sum() == 0


def test_what_runs_and_is_not_stopped_counts_against_its_tenants_part() -> None:
    """The lab runs 2 of 4, its part, when two more of its jobs come with the shop's two: the shop's start."""
    jobs = [("lab", at, 100.0, 1) for at in (0.0, 0.0, 1.0, 1.0)] + [("shop", 1.0, 100.0, 1)] * 2
    story = crowded(*jobs, policy="quincy?fair=true&preempt=false")
    assert [name for at, name in started(story) if at == 1] == ["e", "f"]


@pytest.mark.parametrize(("policy", "first"), [("quincy?fair=true", "ac"), ("quincy", "ab")])
def test_a_gang_wider_than_its_tenants_part_runs_alone_of_its_tenant(policy: str, first: str) -> None:
    """The lab's part is 2 of 4 and its gang takes 3: it may run 3, so that its single waits, and the shop has the last.
    Without bounds the lab's single came first."""
    jobs = [("lab", 0.0, 100.0, 3), ("lab", 0.0, 100.0, 1), ("shop", 0.0, 100.0, 1), ("shop", 0.0, 100.0, 1)]
    story = crowded(*jobs, policy=policy)
    assert [name for at, name in started(story) if at == 0] == list(first)
    assert story.counts == {"finished": 4}
