"""The core believes of a restart what the worlds make of it: who wrote no checkpoint pays for none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest

from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.decisions import Decision
from eunomia.model.events import Event, JobFailed, JobSubmitted, Moment, NodeJoined, NodeLost
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Node, Topology
from eunomia.policies.order.las import Las
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import one_type

COSTS = Overheads(start_s=7.0, checkpoint_s=100.0, restore_s=5.0)


class Script:
    """A world in which these things happen, whatever is ordered."""

    def __init__(self, moments: Sequence[tuple[float, Sequence[Event]]]):
        self._moments = moments

    def moments(self) -> Iterator[Moment]:
        for at, events in self._moments:
            yield Moment.of(at, events)

    def carry_out(self, decision: Decision) -> None:
        pass


def works_from(*moments: tuple[float, Sequence[Event]]) -> float:
    """Return when job "a" is believed to have begun to work, after all of this."""
    belief = Belief(one_type(), COSTS)
    topology = Topology.of([Node(type="gpu", accelerators=1)])
    policy = Las(quantum=50.0)
    scheduler = Scheduler(topology, policy.info, Leases(length=math.inf, recall=True), belief, checked=True)
    run(scheduler, Script(moments), InlinePolicyRunner(policy))
    return float(belief.since[scheduler.state.row_of["a"]])


def comes(name: str, at: float, steps: float = 1000.0) -> JobSubmitted:
    return JobSubmitted(Job(job_id=name, total_steps=steps, submitted=at, retries=3))


def test_a_first_start_costs_a_start() -> None:
    assert works_from((0.0, [comes("a", 0.0)])) == 7.0


def test_who_was_stopped_pays_for_its_checkpoint() -> None:
    stopped = [(0.0, [comes("a", 0.0)]), (200.0, [comes("b", 200.0)]), (600.0, [JobFailed("b", 1, "x")])]
    assert works_from(*stopped) == 600.0 + 105.0


@pytest.mark.parametrize("loss", [[JobFailed("a", 1, "x")], [NodeLost(0), NodeJoined(0)]])
def test_who_failed_or_lost_its_machine_wrote_no_checkpoint(loss: list[Event]) -> None:
    assert works_from((0.0, [comes("a", 0.0)]), (100.0, loss)) == 105.0


def test_a_checkpoint_is_paid_for_again_after_the_restart() -> None:
    failed = [(0.0, [comes("a", 0.0)]), (100.0, [JobFailed("a", 1, "x")])]
    stopped = [(300.0, [comes("b", 300.0)]), (700.0, [JobFailed("b", 1, "x")])]
    assert works_from(*failed, *stopped) == 700.0 + 105.0
