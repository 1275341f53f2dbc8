"""The isolated baseline is one that can be had: types with fewer accelerators than a gang count nowhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eunomia.allocation import solve
from eunomia.allocation.parse_problem import problem_of
from eunomia.allocation.view_from_problem import SOURCES
from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.fluid import Fluid
from eunomia.metrics import Figures, Metrics
from eunomia.model.job import Job
from eunomia.model.policy import Policy
from eunomia.model.topology import Node
from eunomia.policies import build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import DrawnRates, SmallWorld, draw, play

PAIR = SmallWorld(
    nodes=(Node(type="v100", accelerators=1), Node(type="k80", accelerators=4)),
    jobs=(Job(job_id="pair", total_steps=4000.0, scale_factor=2, job_type="pair"),),
    speeds=DrawnRates(types=("v100", "k80"), by_kind={"pair": (30.0, 4.0), "one": (15.0, 1.0)}),
)


def played(policy: Policy, world: SmallWorld) -> Figures:
    """Return the figures of a run in which all receive exactly their shares."""
    core = Scheduler(world.topology, policy.info, Fluid(), Belief(world.speeds), checked=True)
    metrics = Metrics(world.topology, world.speeds, dict.fromkeys(world.topology.types, 1.0))
    run(core, FluidSimulation(world.jobs, world.topology, world.speeds), InlinePolicyRunner(policy), [metrics])
    return metrics.figures()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("together", [True, False])
def test_under_isolation_every_finish_time_is_the_isolated_one(seed: int, together: bool) -> None:
    world = draw(seed)
    if together:
        world = replace(world, jobs=tuple(replace(job, submitted=0.0) for job in world.jobs))
    assert played(build("isolated"), world).jobs["rho_isolated"] == pytest.approx(np.ones(len(world.jobs)), rel=1e-6)


def test_a_gang_alone_is_compared_with_its_time_on_the_types_that_hold_it() -> None:
    """A fifth of its time would be on the one v100, which cannot hold two: 4/5 of 4 steps/s. It runs at 4: ρ = 0.8."""
    assert play(build("fifo"), PAIR).figures.jobs["rho_isolated"].tolist() == pytest.approx([0.8])
    assert played(build("isolated"), PAIR).jobs["jct_s"].tolist() == pytest.approx([4000 / 3.2])


def test_one_decision_and_the_core_show_the_same_baseline() -> None:
    """The gang of two as above, with a single beside it: halves of both rows. 4/4 of the k80 hold the gang all time."""
    problem = {
        "types": ["v100", "k80"], "capacity": [1, 4], "throughput": [[30.0, 4.0], [15.0, 1.0]], "scale_factor": [2, 1],
        "steps_remaining": [4000, 4000], "elapsed_s": [0, 0],
    }  # fmt: skip
    # in all 5/4 of the gang's time is cut to 1: 1/5 on the v100, which is lost, and 4/5; 5/2 of the single's likewise
    alone = [4.0 * 4 / 5, 15.0 / 5 + 1.0 * 4 / 5]
    assert SOURCES["equal_share_throughput"].read(problem_of(problem)).tolist() == pytest.approx(alone)
    found = solve("finish_time_fairness", problem)
    rho = np.array(alone) / found.effective_throughput
    assert found.as_dict()["objective"] == pytest.approx(rho.max())
    world = replace(PAIR, jobs=(*PAIR.jobs, Job(job_id="one", sequence=1, total_steps=4000.0, job_type="one")))
    assert played(build("isolated"), world).jobs["rho_isolated"].tolist() == pytest.approx([1.0, 1.0])
