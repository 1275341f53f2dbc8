"""Moments whose decisions need no ask are played many at once, with the same moments, decisions and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from eunomia.backends.simulated import FaultModel, Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.moment_batch import MomentBatch
from eunomia.model.overheads import Overheads
from eunomia.model.policy import Policy
from eunomia.model.topology import Node, Topology
from eunomia.policies.order.fifo import Fifo
from eunomia.policies.order.las import Las
from eunomia.policies.order.srtf import Srtf
from eunomia.records.record import step_lines
from eunomia.records.run import InlinePolicyRunner, Observer, run
from eunomia.throughputs import load

POLICIES = (Fifo(), Fifo(backfill="skip"), Las(), Srtf())
JOBS = 200


class Lines:
    """An observer that writes down what it receives, and takes moments one by one."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.lines += step_lines(moment, decisions)


class Batches:
    """An observer that counts the events that come in batches."""

    events = 0

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        pass

    def observe_batch(self, batch: MomentBatch) -> None:
        self.events += len(batch)


class OneByOne:
    """A backend that plays no moments by itself."""

    def __init__(self, world: Simulation):
        self.moments, self.carry_out = world.moments, world.carry_out


def jobs(seed: int, step_s: float) -> list[Job]:
    """Jobs of two types and several tenants, at multiples of `step_s`: with a wide one many things happen at once."""
    rng = np.random.default_rng(seed)
    at = np.sort(np.ceil(rng.exponential(300.0, JOBS).cumsum() / step_s) * step_s)
    lasts = np.ceil(rng.exponential(2500.0, JOBS) / step_s) * step_s
    return [
        Job(
            job_id=f"j{m}",
            total_steps=float(lasts[m]),
            submitted=float(at[m]),
            sequence=m,
            scale_factor=int(rng.choice([1, 1, 2, 4])),
            job_type=str(rng.choice(["any", "other"])),
            tenant=str(rng.choice(["a", "b", "c"])),
            status=str(rng.choice(["finished", "failed", "cancelled", ""])),
        )
        for m in range(JOBS)
    ]


def play(
    policy: Policy, devices: int, step_s: float, *, by_itself: bool, replay: bool = False
) -> tuple[list[str], dict[str, object], int]:
    """Lines of the record, figures, and the events that came in batches."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * (devices // 4))
    speeds, terms = load("uniform", topology.types), policy.info.mechanism
    leases = Leases(length=terms.length_s, aligned=terms.aligned, recall=terms.recall)
    metrics, lines, batches = Metrics(topology, speeds, {}), Lines(), Batches()
    world = Simulation(jobs(1, step_s), topology, speeds, replay_status=replay, overheads=Overheads(start_s=7.0))
    scheduler = Scheduler(topology, policy.info, leases, Belief(speeds))
    observers: list[Observer] = [metrics, lines, batches]
    run(scheduler, world if by_itself else OneByOne(world), InlinePolicyRunner(policy), observers)
    figures = metrics.figures()
    shown = {name: column.tolist() for name, column in figures.jobs.items()}
    return (
        lines.lines,
        {**figures.summary, "jobs": repr(shown), "busy": repr(figures.utilization.tolist())},
        batches.events,
    )


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: f"{policy.info.name}-{policy.info.jobs_independent}")
@pytest.mark.parametrize(("devices", "step_s"), [(16, 1e-3), (20, 1000.0), (64, 60.0)])
@pytest.mark.parametrize("replay", [False, True], ids=["", "replay"])
def test_moments_played_together_are_those_played_one_by_one(
    policy: Policy, devices: int, step_s: float, replay: bool
) -> None:
    lines, figures, together = play(policy, devices, step_s, by_itself=True, replay=replay)
    alone = play(policy, devices, step_s, by_itself=False, replay=replay)
    assert (lines, figures) == alone[:2]
    assert together > (JOBS if devices == 64 and not replay else 0)  # else nothing was compared
    assert alone[2] == 0


def test_with_chance_failures_no_moments_are_played_together() -> None:
    """The draws of failures have an order, that of the starts."""
    topology = Topology.of([Node(type="v100", accelerators=4)] * 16)
    speeds, batches = load("uniform", topology.types), Batches()
    for faults, expected in ((FaultModel(job_failures_per_hour=0.01), 0), (FaultModel(), 1)):
        world = Simulation(jobs(1, 1.0), topology, speeds, faults=faults)
        scheduler = Scheduler(topology, Fifo().info, Leases(), Belief(speeds))
        run(scheduler, world, InlinePolicyRunner(Fifo()), [batches])
        assert (batches.events > 0) == expected
