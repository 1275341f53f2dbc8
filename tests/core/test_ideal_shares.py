"""Under the mechanism `ideal` everybody receives exactly its share, at every instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from eunomia.backends.simulated import FaultModel
from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.fluid import Fluid
from eunomia.metrics import Figures, Metrics
from eunomia.metrics.lost_time import lost_time_of
from eunomia.model.answers import Answer, InvalidAnswer, Order, Rows, Shares
from eunomia.model.job import Job
from eunomia.model.policy import Policy, PolicyInfo
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.shares.max_min_fairness import MaxMinFairness
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import DrawnRates

INFO = PolicyInfo(
    name="fixed", answer_type="shares", objective="", technique="", paper="", needs=frozenset({"remaining"})
)


@dataclass(frozen=True)
class Fixed:
    """Answers the same whoever is there, cut to those who are."""

    answer: Answer
    info: ClassVar[PolicyInfo] = INFO

    def decide(self, view: View) -> Answer:
        if isinstance(self.answer, Shares) and self.answer.rows is None:
            return replace(self.answer, x=self.answer.x[-view.jobs :])
        return self.answer


def job(name: str, submitted: float = 0.0, steps: float = 100.0, kind: str = "even", size: int = 1) -> Job:
    """Return a job of 100 s."""
    return Job(job_id=name, submitted=submitted, total_steps=steps, job_type=kind, scale_factor=size)


def played(
    policy: Policy, jobs: Sequence[Job], gap_s: float = 0.0, faults: FaultModel | None = None
) -> tuple[Figures, dict[str, float | None]]:
    """Play the jobs on two v100 and two k80; return the figures, and where the accelerator-seconds went."""
    speeds = DrawnRates(types=("v100", "k80"), by_kind={"even": (1.0, 1.0), "apt": (4.0, 1.0)})
    topology = Topology.of([Node(type=name, accelerators=2) for name in speeds.types])
    core = Scheduler(topology, policy.info, Fluid(solve_gap_s=gap_s), Belief(speeds), checked=True)
    metrics = Metrics(topology, speeds, {"v100": 3600.0, "k80": 360.0})
    world = FluidSimulation(jobs, topology, speeds, faults=faults)
    run(core, world, InlinePolicyRunner(policy), [metrics])
    return metrics.figures(), lost_time_of(metrics, world.losses(metrics.end_s))


def test_a_job_receives_its_share_of_every_type_and_is_reported_so() -> None:
    """3/4 of a v100 and 1/4 of a k80 at 4 and 1 steps/s are 3.25 steps/s: 325 steps take 100 s."""
    figures, where = played(Fixed(Shares(np.array([[0.75, 0.25]]))), [job("a", steps=325.0, kind="apt")])
    assert figures.jobs["jct_s"].tolist() == pytest.approx([100.0])
    assert figures.jobs["received_v100_s"].tolist() == pytest.approx([75.0])
    assert figures.jobs["received_k80_s"].tolist() == pytest.approx([25.0])
    assert figures.jobs["attained_service_s"].tolist() == pytest.approx([100.0])
    assert figures.summary["utilization_v100"] == pytest.approx(75 / 200)
    assert figures.summary["cost_usd"] == pytest.approx(75.0 + 2.5)
    assert (figures.summary["queueing_mean_s"], figures.summary["preemptions"]) == (0.0, 0)
    assert where["useful_accelerator_s"] == pytest.approx(100.0)


def test_a_gang_holds_its_share_of_as_many_accelerators_as_it_is_wide() -> None:
    figures, _ = played(Fixed(Shares(np.array([[0.5, 0.5]]))), [job("a", size=2)])
    assert figures.jobs["attained_service_s"].tolist() == pytest.approx([200.0])
    assert figures.summary["utilization"] == pytest.approx(0.5)


def test_two_that_share_use_their_accelerators_once_and_each_goes_at_the_speed_of_the_pair() -> None:
    """At 0.6 of their speed, half of the time: 30 steps take 100 s, and what 60 s alone would take uses 50 s."""
    pair = Rows(np.array([0]), np.array([0]), partner=np.array([1]))
    figures, where = played(Fixed(Shares(np.array([0.5]), pair)), [job("a", steps=30.0), job("b", steps=30.0)])
    assert figures.jobs["jct_s"].tolist() == pytest.approx([100.0, 100.0])
    assert figures.summary["utilization_v100"] == pytest.approx(0.25)
    assert (where["useful_accelerator_s"], where["lost_sharing_accelerator_s"]) == pytest.approx((60.0, -10.0))


def test_whoever_has_no_share_waits_though_accelerators_are_idle() -> None:
    """The last two jobs that are there have these shares, in order: b gets nothing until a has gone."""
    figures, where = played(Fixed(Shares(np.array([[0.0, 0.0], [1.0, 0.0]]))), [job("a"), job("b")])
    assert figures.jobs["first_started_s"].tolist() == [100.0, 0.0]
    assert figures.jobs["finished_s"].tolist() == [200.0, 100.0]
    assert where["lost_held_back_accelerator_s"] == pytest.approx(300.0)
    assert where["lost_fragmentation_accelerator_s"] == 0.0


@pytest.mark.parametrize("x", [0.25, 0.5, 1 - 1e-4])
def test_whoever_has_a_part_of_its_time_waits_for_the_rest(x: float) -> None:
    """Four accelerators, two gangs of two on one of the types each: what is idle is held back until b has gone."""
    shares = Shares(np.array([[x, 0.0], [0.0, 1.0]]))  # of who is left, the last: a then has all of its time
    figures, where = played(Fixed(shares), [job("a", size=2), job("b", size=2)])
    assert figures.jobs["finished_s"].tolist() == pytest.approx([100 + 100 * (1 - x), 100.0])
    assert where["lost_held_back_accelerator_s"] == pytest.approx(200 * (1 - x))
    assert where["lost_no_demand_accelerator_s"] == pytest.approx(200 * (1 - x))


@pytest.mark.parametrize("x", [1.0, 1 - 1e-9])
def test_whoever_has_all_of_its_time_but_for_roundings_waits_for_nothing(x: float) -> None:
    figures, where = played(Fixed(Shares(np.array([[x / 2, x / 2]]))), [job("a", size=2), job("b", 200.0, size=2)])
    assert figures.jobs["finished_s"].tolist() == pytest.approx([100.0, 300.0])
    assert (where["lost_held_back_accelerator_s"], where["lost_fragmentation_accelerator_s"]) == (0.0, 0.0)
    assert where["lost_no_demand_accelerator_s"] == pytest.approx(4 * 300 - 2 * 200)


def test_both_of_a_pair_that_share_all_their_time_wait_for_nothing() -> None:
    pair = Rows(np.array([0]), np.array([0]), partner=np.array([1]))
    _, where = played(Fixed(Shares(np.array([1.0]), pair)), [job("a", steps=30.0), job("b", steps=30.0)])
    assert where["lost_held_back_accelerator_s"] == 0.0
    assert where["lost_no_demand_accelerator_s"] == pytest.approx(3 * 50.0)


def test_between_two_questions_the_last_answer_holds_and_newcomers_wait() -> None:
    figures, _ = played(MaxMinFairness(), [job("a", steps=500.0), job("b", 10.0)], gap_s=300.0)
    assert figures.jobs["first_started_s"].tolist() == [0.0, 300.0]
    assert figures.jobs["finished_s"].tolist() == pytest.approx([500.0, 400.0])


def test_who_is_cancelled_receives_nothing_more_and_what_it_did_is_lost() -> None:
    alone = Fixed(Shares(np.array([[1.0, 0.0]])))
    figures, where = played(alone, [job("a", steps=1e6)], faults=FaultModel(cancel_fraction=1.0, cancel_after_s=50.0))
    assert figures.summary["jobs_cancelled"] == 1
    assert where["lost_cancelled_jobs_accelerator_s"] == pytest.approx(figures.summary["end_s"])
    assert where["useful_accelerator_s"] == 0.0


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (Shares(np.array([[0.9, 0.9]])), "at most 1"),
        (Shares(np.array([[1.0, 0.0]] * 3)), "shares take 3 accelerators of v100.*and 2 are in service"),
        (Order(Rows(np.array([0]), np.array([0]))), "it answered Order"),
    ],
)
def test_an_answer_that_no_fluid_could_follow_is_refused(answer: Answer, rule: str) -> None:
    with pytest.raises(InvalidAnswer, match=rule):
        played(Fixed(answer), [job(name) for name in ("a", "b", "c")][-len(getattr(answer, "x", [0])) :])
