"""Where time can be divided at will, every job that is given its shares also ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from eunomia.backends.simulated.fluid import FluidSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.fluid import Fluid
from eunomia.model.decisions import Decision
from eunomia.model.events import JobFinished, Moment
from eunomia.model.policy import Policy
from eunomia.policies import POLICIES, build
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import SmallWorld, draw

BY_SHARES = sorted(name for name in POLICIES if build(name).info.answer_type == "shares")
VARIANTS = ["makespan?types=agnostic", "makespan?space_sharing=true", "max_min_fairness?space_sharing=true"]
BEGIN = {  # when jobs come, and the worlds that are played
    "one by one": (None, (0, 1)),
    "at once": (0.0, (2, 3)),
    "at once, late": (1e9, (0, 3)),
    "at once, very late": (1e11, (1, 2)),
}


@dataclass
class Ended:
    """Remembers who has ended."""

    names: set[str] = field(default_factory=set)

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.names |= {event.job_id for event in moment.events if isinstance(event, JobFinished)}


def unfinished(policy: Policy, world: SmallWorld) -> set[str]:
    """Return the jobs that did not end."""
    core, ended = Scheduler(world.topology, policy.info, Fluid(), Belief(world.speeds), checked=True), Ended()
    run(core, FluidSimulation(world.jobs, world.topology, world.speeds), InlinePolicyRunner(policy), [ended])
    return {job.job_id for job in world.jobs} - ended.names


@pytest.mark.parametrize("spelling", [*BY_SHARES, *VARIANTS])
@pytest.mark.parametrize("begin", BEGIN)
def test_every_job_ends_under_every_policy_that_answers_shares(spelling: str, begin: str) -> None:
    """By makespan those that come at once end at once, and rounding must not leave some of them a trace of work."""
    at, seeds = BEGIN[begin]
    for seed in seeds:
        world = draw(seed)
        if at is not None:
            world = replace(world, jobs=tuple(replace(job, submitted=at) for job in world.jobs))
        assert unfinished(build(spelling), world) == set(), f"seed {seed}"
