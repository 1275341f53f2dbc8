"""The compiled loop starts, stops and ends jobs when sorting and walking all of them at each moment does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eunomia import simulate
from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.model.decisions import Decision, Start, Stop, one_by_one
from eunomia.model.events import JobFinished, Moment
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Topology
from eunomia.policies.order.by_weight import ByWeight
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.policies.order.smallest_first import SmallestFirst
from eunomia.policies.order.srtf import Srtf
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.scenario import scenario_from_dict
from eunomia.setup.run_config import set_up
from eunomia.testing.plain_player import PlainRun, play_plainly
from eunomia.testing.small_worlds import SmallWorld, draw

ORDERS = (Fifo(), Fifo(backfill="skip"), SmallestFirst(), Las(), Srtf(), Srtf(measure="service"), ByWeight())


class Happened(PlainRun):
    """An observer that writes down what happens to jobs, and takes batches."""

    def __init__(self, topology: Topology) -> None:
        super().__init__()
        self.topology, self.in_batches = topology, 0

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.ends += [(moment.at, event.job_id) for event in moment.events if isinstance(event, JobFinished)]
        for one in one_by_one(decisions):
            if isinstance(one, Start):
                self.starts.append((moment.at, one.job_id, int(self.topology.type[one.seats[0]])))
            elif isinstance(one, Stop):
                self.stops += [(moment.at, name) for name in one.job_ids]

    def observe_batch(self, batch: MomentBatch) -> None:
        for moment, decisions in batch:
            self.in_batches += len(decisions)
            self.observe(moment, decisions)


def simulated(policy: RankedOrder, world: SmallWorld, overheads: Overheads) -> Happened:
    """Return what happens in a simulation, as `eunomia simulate` plays it."""
    happened, terms = Happened(world.topology), policy.info.mechanism
    leases = Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    scheduler = Scheduler(world.topology, policy.info, leases, Belief(world.speeds, overheads))
    backend = Simulation(world.jobs, world.topology, world.speeds, overheads=overheads)
    assert not run(scheduler, backend, InlinePolicyRunner(policy), [happened])
    return happened


@pytest.mark.parametrize("policy", [*ORDERS, Las(quantum=200.0)], ids=str)
@pytest.mark.parametrize("overheads", [Overheads(), Overheads(start_s=7.0, restore_s=5.0)], ids=["free", "overheads"])
def test_jobs_start_stop_and_end_as_by_sorting_and_walking_all(policy: RankedOrder, overheads: Overheads) -> None:
    in_batches = 0
    for seed in range(20):
        world = draw(seed)
        plain = play_plainly(policy, world, overheads)
        happened = simulated(policy, world, overheads)
        assert sorted(happened.ends) == sorted(plain.ends), f"seed {seed}"
        assert sorted(happened.stops) == sorted(plain.stops), f"seed {seed}"
        assert sorted(happened.starts) == sorted(plain.starts), f"seed {seed}"
        assert len(plain.ends) == len(world.jobs)
        in_batches += happened.in_batches
    assert in_batches > 0  # else nothing compiled was compared


@pytest.mark.parametrize("policy", ORDERS, ids=str)
def test_the_jobs_of_simulate_start_first_and_end_as_by_sorting_and_walking_all(policy: RankedOrder) -> None:
    scenario: dict[str, Any] = {
        "seed": 3,
        "cluster": {"accelerators": {"v100": 8, "k80": 8}, "accelerators_per_node": 4},
        "workload": {"generator": "philly-like", "jobs": 60, "rate_per_hour": 12.0, "job_types": "mix:default"},
        "throughputs": {"source": "catalogue"},
        "overheads": {"start_s": 30.0, "restore_s": 60.0},
    }
    setup = set_up(scenario_from_dict(scenario, Path()), policy=policy)
    world = SmallWorld(nodes=setup.nodes, jobs=tuple(setup.jobs), speeds=setup.truth)
    plain = play_plainly(policy, world, setup.overheads)
    first = {name: at for at, name, _ in reversed(plain.starts)}
    table = simulate(scenario, policy=policy).jobs
    assert len(plain.ends) == 60
    assert dict(zip(table["job_id"], table["first_started_s"], strict=True)) == first
    assert dict(zip(table["job_id"], table["finished_s"], strict=True)) == {name: at for at, name in plain.ends}
