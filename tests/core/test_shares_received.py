"""Over many rounds everybody receives the share that was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Ask, Starts
from eunomia.model.events import Answered, JobSubmitted, Moment, TimerFired
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, PolicyInfo
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, play

ROUND_S = 100.0
X = np.array([[0.5, 0.25], [0.25, 0.75], [0.6, 0.0], [0.65, 0.0], [0.0, 1.0]])  # of 2 v100 and 2 k80


@dataclass(frozen=True)
class Fixed:
    """Answers X, from its row `first` on, scaled to the cluster, whatever happens."""

    fill: bool = False
    first: int = 0
    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="fixed",
        answer_type="shares",
        objective="",
        technique="",
        paper="",
        needs=frozenset({"capacity"}),
        mechanism=LeaseTerms(length_s=ROUND_S, aligned=True),
    )

    def decide(self, view: View) -> Shares:
        x = X[self.first :][: view.jobs]
        return Shares(x / max(1.0, (x.sum(axis=0) / view.capacity).max()), fill=self.fill)


def received(rounds: int, policy: Fixed) -> Floats:
    """Return seconds received (job, type) over so many rounds by jobs that are all cancelled then."""
    rates = DrawnRates(types=("v100", "k80"), by_kind={"": (1.0, 1.0)})
    topology = Topology.of([Node(type=name, accelerators=2) for name in rates.types])
    core = Scheduler(topology, policy.info, Leases(length=ROUND_S, aligned=True), Belief(rates), checked=True)
    jobs = [JobSubmitted(Job(job_id=str(i), total_steps=1e9, sequence=i)) for i in range(len(X))]
    for k in range(rounds):
        for decision in core.handle(Moment.of(k * ROUND_S, [TimerFired()] if k else jobs)):
            if isinstance(decision, Ask):
                core.handle(Moment.of(k * ROUND_S, [Answered(decision.asked, policy.decide(decision.view))]))
    return core.ledger.received_at(rounds * ROUND_S, core.state.active)


@pytest.mark.parametrize("rounds", [20, 21, 37, 200])
def test_what_is_received_stays_within_a_round_of_what_is_owed(rounds: int) -> None:
    owed = X * rounds * ROUND_S
    assert np.abs(received(rounds, Fixed()) - owed).max() <= ROUND_S


def test_after_twenty_rounds_shares_are_met_to_a_twentieth_and_after_two_hundred_to_half_a_hundredth() -> None:
    for rounds, close in ((20, 0.05), (200, 0.005)):
        assert np.abs(received(rounds, Fixed()) / (rounds * ROUND_S) - X).max() <= close + 1e-9


def test_gangs_of_many_sizes_receive_their_max_min_shares_to_a_twentieth_after_twenty_rounds() -> None:
    """Random max-min allocations with gangs of 1 to 8: the 99th percentile over jobs and types."""
    off = np.concatenate([drawn_errors(seed) for seed in range(6)])
    assert np.percentile(np.abs(off), 99) <= 0.05 + 1e-9


def drawn_errors(seed: int, jobs: int = 96, nodes: int = 8, rounds: int = 20) -> Floats:
    """Return received ÷ elapsed − share of every job and type with a share, for a random fixed set of jobs."""
    rng = np.random.default_rng(seed)
    rates = DrawnRates(
        types=("v100", "k80"), by_kind={str(m): tuple(rng.uniform(0.5, 4.0, 2).tolist()) for m in range(jobs)}
    )
    topology = Topology.of([Node(type=name, accelerators=8) for name in rates.types for _ in range(nodes)])
    core = Scheduler(topology, MaxMinFairness.info, Leases(length=ROUND_S, aligned=True), Belief(rates), checked=True)
    gangs = rng.choice([1, 2, 4, 8], jobs, p=[0.7, 0.1, 0.15, 0.05]).tolist()
    came = [
        JobSubmitted(Job(job_id=str(m), job_type=str(m), total_steps=1e12, sequence=m, scale_factor=gang))
        for m, gang in enumerate(gangs)
    ]
    x = np.zeros((jobs, 2))
    for k in range(rounds):
        for decision in core.handle(Moment.of(k * ROUND_S, [TimerFired()] if k else came)):
            if isinstance(decision, Ask):
                answer = MaxMinFairness().decide(decision.view)
                x = np.asarray(answer.x)
                core.handle(Moment.of(k * ROUND_S, [Answered(decision.asked, answer)]))
    return np.asarray((core.ledger.received_at(rounds * ROUND_S, core.state.active) / (rounds * ROUND_S) - x)[x > 0])


def test_without_fill_no_job_receives_a_type_of_which_it_has_no_share() -> None:
    assert (received(20, Fixed())[X == 0] == 0).all()


def test_spare_seats_go_to_whoever_can_use_them_unless_the_policy_says_no() -> None:
    """One v100, one k80, two jobs that have shares of the v100 alone: with fill the other one uses the k80."""
    world = SmallWorld(
        nodes=(Node(type="v100", accelerators=1), Node(type="k80", accelerators=1)),
        jobs=tuple(Job(job_id=str(i), total_steps=1000, sequence=i) for i in range(2)),
        speeds=DrawnRates(types=("v100", "k80"), by_kind={"": (1.0, 1.0)}),
    )
    assert max(play(Fixed(fill=True, first=2), world).finished.values()) == 1000
    assert max(play(Fixed(fill=False, first=2), world).finished.values()) == 2000


@dataclass(frozen=True)
class Halves(Fixed):
    """Gives half of one type to each of two jobs."""

    def decide(self, view: View) -> Shares:
        return Shares(np.full((view.jobs, 1), 0.5), fill=False)


@pytest.mark.parametrize(("start_s", "rounds_a_turn"), [(0.0, 1), (15.0, 4), (20.0, 5)])
def test_who_sits_is_passed_for_ten_times_the_cost_of_its_next_start(start_s: float, rounds_a_turn: int) -> None:
    """Between two that take turns the debt swings by twice that, at a second a second, rounded up to whole rounds."""
    topology, rates = (
        Topology.of([Node(type="v100", accelerators=1)]),
        DrawnRates(types=("v100",), by_kind={"": (1.0,)}),
    )
    belief = Belief(rates, Overheads(restore_s=start_s))
    core = Scheduler(topology, Halves.info, Leases(length=ROUND_S, aligned=True), belief, checked=True)
    came = [JobSubmitted(Job(job_id=str(i), total_steps=1e9, sequence=i)) for i in range(2)]
    started = []
    for k in range(22):
        for decision in core.handle(Moment.of(k * ROUND_S, [TimerFired()] if k else came)):
            if isinstance(decision, Ask):
                decided = core.handle(Moment.of(0.0, [Answered(decision.asked, Halves().decide(decision.view))]))
                started += [k for order in decided if isinstance(order, Starts)]
            elif isinstance(decision, Starts):
                started.append(k)
    turns = np.diff(started)[1:]  # the first is half as long
    assert len(turns) > 2
    assert (turns == rounds_a_turn).all(), started
