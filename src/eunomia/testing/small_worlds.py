"""Small clusters and workloads, random by seed or given, and their simulation to the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eunomia.backends.simulated import FaultModel, Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Figures, Metrics
from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision, Start, one_by_one
from eunomia.model.events import JobFinished, Moment
from eunomia.model.finish_time import SHARE
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.policy import LeaseTerms, Policy
from eunomia.model.rounding import drawn
from eunomia.model.speeds import Speeds
from eunomia.model.tenants import Tenant
from eunomia.model.topology import Node, Topology
from eunomia.records.run import InlinePolicyRunner, run

MOST_MOMENTS = 20_000


class NeverEnds(AssertionError):
    """The simulation exceeded its limit of moments."""


@dataclass(frozen=True, kw_only=True)
class DrawnRates:
    """Given throughputs: steps/s of each job type on each accelerator type, × scale factor ** `scaling`.

    A job that shares its accelerators has the fraction `shared` of its throughput.
    """

    types: tuple[str, ...]
    by_kind: Mapping[str, tuple[float, ...]]
    scaling: float = 0.0  # 0: independent of the size of the gang; 1: proportional
    shared: float = 0.6

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        return np.asarray(np.array(self.by_kind[job_type]) * elementary.power(float(scale_factor), self.scaling))

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return steps/s of the first beside the second, (type,)."""
        both = self.solo_throughput(partner, scale_factor) > 0
        return np.asarray(np.where(both, self.solo_throughput(job_type, scale_factor) * self.shared, 0.0))


@dataclass(frozen=True, kw_only=True)
class SmallWorld:
    """A cluster, its jobs and their true throughputs."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    speeds: Speeds

    @property
    def topology(self) -> Topology:
        """The topology of the nodes."""
        return Topology.of(self.nodes)


@dataclass(frozen=True, kw_only=True)
class WorldRun:
    """The history and the metrics of a simulation."""

    story: tuple[tuple[Moment, tuple[Decision, ...]], ...]
    figures: Figures
    asks: int
    scheduler: Scheduler = field(repr=False)

    @property
    def finished(self) -> dict[str, float]:
        """Return the completion time of each finished job, by id."""
        return {
            event.job_id: moment.at
            for moment, _ in self.story
            for event in moment.events
            if isinstance(event, JobFinished)
        }

    @property
    def starts(self) -> list[tuple[float, Start]]:
        """Return every start with its time."""
        return [(m.at, order) for m, orders in self.story for order in orders if isinstance(order, Start)]

    @property
    def decisions(self) -> list[tuple[float, Decision]]:
        """Return every decision but asks, with its time."""
        return [(m.at, order) for m, orders in self.story for order in orders if type(order).__name__ != "Ask"]

    @property
    def counts(self) -> Counter[str]:
        """Return how many jobs ended in each way."""
        return Counter(self.figures.jobs["status"].tolist())


class _HistoryObserver:
    """An observer that keeps every moment. Raises NeverEnds after `max_moments`."""

    def __init__(self, max_moments: int) -> None:
        self.max_moments = max_moments
        self.story: list[tuple[Moment, tuple[Decision, ...]]] = []

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        self.story.append((moment, tuple(one_by_one(decisions))))
        if len(self.story) > self.max_moments:
            raise NeverEnds(f"{self.max_moments} moments and no end; the last: {self.story[-1]}")


def one_type(kinds: Sequence[str] = ("",)) -> DrawnRates:
    """Return throughputs of 1 step/s on a single type for every gang, so that steps are seconds."""
    return DrawnRates(types=("gpu",), by_kind=dict.fromkeys(kinds, (1.0,)))


def line_up(*jobs: tuple[float, float] | tuple[float, float, int]) -> tuple[Job, ...]:
    """Return jobs named a, b, c … from (submitted, total steps, scale factor)."""
    return tuple(
        Job(
            job_id=chr(ord("a") + i),
            sequence=i,
            submitted=spec[0],
            total_steps=spec[1],
            scale_factor=int(spec[2]) if len(spec) > 2 else 1,
        )
        for i, spec in enumerate(jobs)
    )


def play(
    policy: Policy,
    world: SmallWorld,
    *,
    terms: LeaseTerms | None = None,
    overheads: Overheads | None = None,
    faults: FaultModel | None = None,
    checkpoint_every_s: float = 0.0,
    seed: int = 0,
    world_seed: int = 0,
    prices: Mapping[str, float | None] | None = None,
    tenants: Mapping[str, Tenant] | None = None,
    checked: bool = True,
    most_moments: int = MOST_MOMENTS,
) -> WorldRun:
    """Simulate a world to its end under a policy; `terms` default to those of the policy.

    Raises NeverEnds after more than `most_moments` moments.
    """
    lease = policy.info.mechanism if terms is None else terms
    mechanism = Leases(length=lease.length_s, aligned=lease.aligned, recall=lease.recall)
    belief = Belief(world.speeds, overheads)
    known = prices or dict.fromkeys(world.topology.types, 1.0)
    price = np.array([known[name] or 0.0 for name in world.topology.types])
    info, topology = policy.info, world.topology
    scheduler = Scheduler(topology, info, mechanism, belief, seed=seed, checked=checked, price=price, tenants=tenants)
    backend = Simulation(
        world.jobs,
        world.topology,
        world.speeds,
        overheads=overheads,
        faults=faults,
        checkpoint_every_s=checkpoint_every_s,
        seed=world_seed,
    )
    history, runner = _HistoryObserver(most_moments), InlinePolicyRunner(policy)
    metrics = Metrics(world.topology, world.speeds, known, ideal=policy.info.ideal or SHARE)
    stalled = run(scheduler, backend, runner, [history, metrics])
    if stalled:
        raise NeverEnds(stalled)
    figures = metrics.figures(bins=20)
    return WorldRun(story=tuple(history.story), figures=figures, asks=runner.asks, scheduler=scheduler)


def draw(seed: int, *, jobs: int | None = None, types: int | None = None, elastic: bool = False) -> SmallWorld:
    """Draw a small world: 1 to 3 types, nodes of mixed sizes, 1 to 25 jobs, gangs up to the size of the cluster."""
    rng = np.random.default_rng(seed)
    names = ("v100", "p100", "k80")[: int(rng.integers(1, 4)) if types is None else types]
    nodes = [
        Node(type=name, accelerators=int(size)) for name in names for size in rng.integers(1, 5, rng.integers(1, 5))
    ]
    nodes = [nodes[i] for i in rng.permutation(len(nodes))]
    topology = Topology.of(nodes)
    speeds = _draw_rates(rng, topology.types)
    count = int(rng.integers(1, 26)) if jobs is None else jobs
    arrivals = np.cumsum(drawn(rng.exponential(rng.choice([5.0, 60.0, 300.0]), count)))
    if rng.random() < 0.3:
        arrivals = np.floor(arrivals / 60) * 60  # several jobs arrive at one instant
    drawn_jobs = [_draw_job(rng, i, float(arrivals[i]), speeds, topology.capacity(), elastic) for i in range(count)]
    drawn_jobs = [_draw_owner(job, np.random.default_rng((seed, job.sequence))) for job in drawn_jobs]
    return SmallWorld(nodes=tuple(nodes), jobs=tuple(drawn_jobs), speeds=speeds)


def _draw_owner(job: Job, rng: np.random.Generator) -> Job:
    """Return the job with a tenant, and with probability 1/3 a deadline."""
    deadline = job.submitted + float(rng.choice([100.0, 1e3, 1e5])) * float(rng.uniform(1, 3))
    owner = str(rng.choice(["", "lab", "lab/vision", "lab/speech", "shop"]))
    return replace(job, tenant=owner, deadline=deadline if rng.random() < 1 / 3 else math.inf)


def _draw_rates(rng: np.random.Generator, types: tuple[str, ...]) -> DrawnRates:
    by_kind = {}
    for kind in ("resnet", "lstm", "gan", "bert"):
        rates = rng.uniform(0.2, 5.0, len(types))
        rates[rng.random(len(types)) < 0.2] = 0.0  # cannot run on this type
        if not rates.any():
            rates[rng.integers(len(types))] = 1.0
        by_kind[kind] = tuple(rates.tolist())
    return DrawnRates(types=types, by_kind=by_kind, scaling=float(rng.choice([0.0, 0.8, 1.0])))


def _draw_job(
    rng: np.random.Generator, i: int, submitted: float, speeds: DrawnRates, capacity: Floats, elastic: bool
) -> Job:
    kind = str(rng.choice(list(speeds.by_kind)))
    rates = np.array(speeds.by_kind[kind])
    widest = int(capacity[rates > 0].max())
    size = widest if rng.random() < 0.1 else min(widest, int(rng.choice([1, 1, 1, 2, 2, 4, 8])))
    seconds = float(rng.choice([rng.uniform(1, 60), drawn(rng.exponential(600)), math.floor(rng.uniform(1, 20)) * 60]))
    return Job(
        job_id=f"job-{i}",
        sequence=i,
        submitted=submitted,
        job_type=kind,
        scale_factor=size,
        total_steps=max(seconds, 1.0) * float(speeds.solo_throughput(kind, size).max()),
        weight=float(rng.uniform(0.5, 4.0)),
        retries=int(rng.integers(0, 3)),
        other_shapes=(max(1, size // 2), min(widest, 2 * size)) if elastic else (),
    )
