"""A simulated round, policy excluded: ours, whole loop, against a plain loop over jobs; how its cost grows with jobs.

python -m benchmarks.rounds        prints Gandiva's rounds: jobs in pairs, an answer each round
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from benchmarks.plain_rounds import PlainRounds
from benchmarks.side_by_side import Comparison, demand_equal, on_one_thread
from eunomia.backends.simulated import Simulation
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.gavel_rounds import GavelRounds
from eunomia.mechanisms.leases import Leases
from eunomia.metrics import Metrics
from eunomia.model.answers import Shares
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.job import Job
from eunomia.model.policy import PolicyInfo
from eunomia.model.topology import Node, Topology
from eunomia.model.view import View
from eunomia.policies.shares.gandiva import Gandiva
from eunomia.records.run import InlinePolicyRunner, run
from eunomia.testing.small_worlds import DrawnRates

ROUND_S = 360.0
PER_NODE = 8
TYPES = ("k80", "p100", "v100")
WARM_UP, MEASURED = 10, 50  # rounds
ACTIVE = (64, 256, 1_024, 2_048, 4_096, 16_384)
REPEATS = 3


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Jobs that contend for three accelerators for every four of them, all there from the start, none of which ends."""

    active: int

    @property
    def nodes(self) -> int:
        """Return the nodes of each type."""
        return max(3 * self.active // 4 // (len(TYPES) * PER_NODE), 1)

    @property
    def topology(self) -> Topology:
        """Return the cluster."""
        return Topology.of([Node(type=type, accelerators=PER_NODE) for type in TYPES for _ in range(self.nodes)])

    def speeds(self) -> DrawnRates:
        """Return the speeds of 26 job types."""
        by_kind = {f"model-{k}": (1.0, 2.0 + k % 3, 3.0 + k % 5) for k in range(26)}
        return DrawnRates(types=self.topology.types, by_kind=by_kind, scaling=1.0)

    def jobs(self) -> list[Job]:
        """Return jobs of 1, 2, 4 and 8 accelerators as in Philly."""
        sizes = np.random.default_rng(0).choice([1, 2, 4, 8], self.active, p=[0.7, 0.1, 0.15, 0.05])
        return [
            Job(job_id=f"job-{i}", sequence=i, total_steps=1e12, scale_factor=int(size), job_type=f"model-{i % 26}")
            for i, size in enumerate(sizes)
        ]

    def shares(self) -> Floats:
        """Return shares that fill the cluster, most jobs on two types, (job, type)."""
        x = np.random.default_rng(1).dirichlet(np.ones(len(TYPES)), self.active)
        x[x < 0.2] = 0.0
        sizes = np.array([job.scale_factor for job in self.jobs()])
        return np.asarray(x * np.minimum(1.0, self.topology.capacity() / (sizes @ x)))


@dataclass(frozen=True)
class Fixed:
    """A policy that always answers the same."""

    x: Floats
    info: PolicyInfo = field(
        default=PolicyInfo(
            name="fixed", answer_type="shares", objective="", technique="", paper="", needs=frozenset({"scale_factor"})
        ),
        init=False,
    )

    def decide(self, view: View) -> Shares:
        """Return the shares."""
        return Shares(self.x)


class _Enough(Exception):
    """The rounds to be measured are over."""


class _Watch:
    """An observer that stops a run after its last round, and the time of the rounds after the warm-up."""

    def __init__(self) -> None:
        self.began = self.round_s = 0.0

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Look at the clock when a round begins."""
        if moment.at >= ROUND_S * WARM_UP and not self.began:
            self.began = time.thread_time()
        if moment.at >= ROUND_S * (WARM_UP + MEASURED):
            self.round_s = (time.thread_time() - self.began) / MEASURED
            raise _Enough


def scheduler(crowd: Crowd, mechanism: str) -> Scheduler:
    """Return a fresh core that cuts time so."""
    belief, info = Belief(crowd.speeds()), Fixed(crowd.shares()).info
    if mechanism == "gavel":
        return Scheduler(crowd.topology, info, GavelRounds(solve_gap_s=1e9, visit=()), belief)
    return Scheduler(crowd.topology, info, Leases(length=ROUND_S, aligned=True), belief)


def ours(crowd: Crowd, mechanism: str) -> tuple[float, Floats]:
    """Return the CPU seconds of a round, and what each job received, (job, type) seconds."""
    topology, speeds, watch = crowd.topology, crowd.speeds(), _Watch()
    metrics, world = Metrics(topology, speeds, {}), Simulation(crowd.jobs(), topology, speeds)
    with suppress(_Enough):
        run(scheduler(crowd, mechanism), world, InlinePolicyRunner(Fixed(crowd.shares())), [metrics, watch])
    metrics.end_s = ROUND_S * (WARM_UP + MEASURED)
    return watch.round_s, metrics.served()[0]


def plain(crowd: Crowd) -> tuple[float, Floats]:
    """Return the same of the plain loop."""
    jobs, speeds = crowd.jobs(), crowd.speeds()
    rates = [speeds.solo_throughput(job.job_type, job.scale_factor).tolist() for job in jobs]
    loop = PlainRounds(jobs, crowd.shares().tolist(), rates, nodes=crowd.nodes, size=PER_NODE, length=ROUND_S)
    loop.round(first=True)
    for _ in range(WARM_UP):
        loop.round()
    before = time.thread_time()
    for _ in range(MEASURED):
        loop.round()
    return (time.thread_time() - before) / MEASURED, np.array([run.received for run in loop.runs])


def cases(active: Sequence[int] = ACTIVE) -> Iterator[Comparison]:
    """Check that both loops seat the same jobs, then yield the comparisons, per round."""
    for jobs in active:
        crowd = Crowd(active=jobs)
        mine, others = ours(crowd, "default"), plain(crowd)
        demand_equal(np.array_equal(mine[1], others[1]), "rounds", jobs)
        for name, mechanism in (("rounds", "default"), ("rounds, gavel mode", "gavel")):
            ours_s = statistics.median(ours(crowd, mechanism)[0] for _ in range(REPEATS))
            yield Comparison(
                name=name, n=jobs, ours_s=ours_s, other_s=plain(crowd)[0], other="plain loop over jobs in Python"
            )


def gandiva(crowd: Crowd) -> tuple[float, float]:
    """Return the CPU seconds of a round of Gandiva, which packs jobs two by two, and the policy's part of them."""
    policy, topology, speeds, watch = Gandiva(), crowd.topology, crowd.speeds(), _Watch()
    adviser, metrics = InlinePolicyRunner(policy), Metrics(topology, speeds, {})
    core = Scheduler(topology, policy.info, Leases(length=ROUND_S, aligned=True), Belief(speeds))
    with suppress(_Enough):
        run(core, Simulation(crowd.jobs(), topology, speeds), adviser, [metrics, watch])
    return watch.round_s, adviser.cpu_s / max(adviser.asks, 1)


def main() -> None:
    """Print what a round of Gandiva costs."""
    print("| active jobs | accelerators | a round, ms | an answer, ms |")
    print("| ---: | ---: | ---: | ---: |")
    for active in (256, 2_048):
        crowd = Crowd(active=active)
        gandiva(crowd)
        whole, answer = min(gandiva(crowd) for _ in range(REPEATS))
        devices = crowd.topology.devices
        print(f"| {active:,} | {devices:,} | {whole * 1000:.2f} | {answer * 1000:.2f} |", flush=True)


if __name__ == "__main__":
    on_one_thread()
    main()
