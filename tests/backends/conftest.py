"""Small worlds with all their physics, played to the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from eunomia.backends.simulated import FaultModel
from eunomia.backends.simulated.detailed_simulation import DetailedSimulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Figures, Metrics
from eunomia.model.decisions import Decision, Start, Starts, Stop
from eunomia.model.events import Event, JobCancelled, JobFailed, JobFinished, Moment
from eunomia.model.held_time import HeldTime
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.speeds import Speeds
from eunomia.model.topology import Node
from eunomia.policies.order.fifo import Fifo
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import SmallWorld, one_type
from eunomia.throughputs.interference import Neighbours, Pairs
from eunomia.throughputs.placed_throughputs import PlacedThroughputs
from eunomia.throughputs.placement import Placement
from eunomia.throughputs.placement_level import ClusterUnits


@dataclass(frozen=True, kw_only=True)
class Weather:
    """What a world has besides jobs, machines and speeds."""

    placement: Placement | None = None
    neighbours: Neighbours | None = None
    pairs: Pairs | None = None
    accelerators_per_slot: int = 0
    overheads: Overheads = field(default_factory=Overheads)
    faults: FaultModel = field(default_factory=FaultModel)
    checkpoint_every_s: float = 0.0
    replay_status: bool = False


Story = Sequence[tuple[Moment, tuple[Decision, ...]]]


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What happened."""

    story: tuple[tuple[Moment, tuple[Decision, ...]], ...]
    figures: Figures
    losses: HeldTime
    busy_accelerator_s: float

    def events(self, kind: type[Event]) -> list[tuple[float, Event]]:
        """Return every event of a kind with its time."""
        return [(moment.at, e) for moment, _ in self.story for e in moment.events if isinstance(e, kind)]

    @property
    def finished(self) -> dict[str, float]:
        """Return when each job ended well."""
        return {e.job_id: at for at, e in self.events(JobFinished) if isinstance(e, JobFinished)}

    @property
    def failures(self) -> list[tuple[float, str]]:
        """Return when which job failed, whether it was tried again or not."""
        return [(at, e.job_id) for at, e in self.events(JobFailed) if isinstance(e, JobFailed)]


class _Ear:
    def __init__(self) -> None:
        self.story: list[tuple[Moment, tuple[Decision, ...]]] = []

    def observe(self, moment: Moment, decisions: list[Decision]) -> None:
        self.story.append((moment, tuple(decisions)))
        assert len(self.story) < 20_000, "a small world that never ends"


def play(
    world: SmallWorld, weather: Weather, policy: Policy, terms: LeaseTerms | None = None, seed: int = 0
) -> Reported:
    """Play a small world to its end, checked."""
    topology, cut = world.topology, terms or policy.info.mechanism
    units = ClusterUnits(replace(topology, accelerators_per_slot=weather.accelerators_per_slot))
    speeds = PlacedThroughputs(world.speeds, units, weather.placement, weather.pairs)
    scheduler = Scheduler(
        topology,
        policy.info,
        Leases(length=cut.length_s, aligned=cut.aligned, recall=cut.recall),
        Belief(speeds, weather.overheads),
        checked=True,
    )
    physical = DetailedSimulation(
        world.jobs,
        topology,
        speeds,
        neighbours=weather.neighbours,
        overheads=weather.overheads,
        faults=weather.faults,
        checkpoint_every_s=weather.checkpoint_every_s,
        replay_status=weather.replay_status,
        seed=seed,
    )
    metrics, ear = Metrics(topology, world.speeds, {}), _Ear()
    run(scheduler, physical, InlinePolicyRunner(policy), [metrics, ear])
    return Reported(
        story=tuple(ear.story),
        figures=metrics.figures(),
        losses=physical.losses(metrics.end_s),
        busy_accelerator_s=held_s(ear.story, metrics.end_s),
    )


def held_s(story: Story, until: float) -> float:
    """Return accelerator-seconds that any job held, computed from what was reported and decided alone."""
    on: dict[str, tuple[int, ...]] = {}
    since: dict[int, float] = {}
    total = 0.0

    def leave(name: str, at: float) -> float:
        seats = on.pop(name, ())
        stays = {seat for others in on.values() for seat in others}
        return sum(at - since.pop(seat) for seat in seats if seat not in stays)

    for moment, decisions in story:
        for event in moment.events:
            if isinstance(event, JobFinished | JobFailed | JobCancelled):
                total += leave(event.job_id, moment.at)
        for decision in decisions:
            if isinstance(decision, Stop):
                total += sum(leave(name, moment.at) for name in decision.job_ids)
            starts = [decision] if isinstance(decision, Start) else []
            for order in decision.each() if isinstance(decision, Starts) else starts:
                on |= {name: order.seats for name in (order.job_id, order.partner_id) if name is not None}
                since |= dict.fromkeys(order.seats, moment.at)
    return total + sum(leave(name, until) for name in list(on))


Tell = Callable[..., Reported]


@pytest.fixture
def tell() -> Tell:
    """Play jobs of 1 step/s, written as (seconds of work, accelerators), that come together."""

    def reported(
        *jobs: tuple[float, int],
        machines: tuple[int, ...] = (4,),
        racks: str = "",
        model: str = "vgg16",
        retries: int = 0,
        policy: Policy | None = None,
        terms: LeaseTerms | None = None,
        speeds: Speeds | None = None,
        seed: int = 0,
        **weather: object,
    ) -> Reported:
        named = racks or "a" * len(machines)
        nodes = tuple(Node(type="gpu", accelerators=n, rack=rack) for n, rack in zip(machines, named, strict=True))
        submitted = tuple(
            Job(job_id=f"j{i}", total_steps=work, submitted=0.0, sequence=i, scale_factor=size, job_type=model,
                retries=retries)
            for i, (work, size) in enumerate(jobs)
        )  # fmt: skip
        rates = speeds or one_type([model])
        small = SmallWorld(nodes=nodes, jobs=submitted, speeds=rates)
        return play(small, Weather(**weather), policy or Fifo(), terms, seed)  # type: ignore[arg-type]

    return reported
