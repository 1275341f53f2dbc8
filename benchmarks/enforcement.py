"""How closely rounds enforce shares: time received ÷ time elapsed − share, with a fixed set of jobs.

python -m benchmarks.enforcement [--jobs N …] [--load L …] [--rounds R …] [--draws D] [--start-s S]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np

from benchmarks.draws import Table, draw
from eunomia.core.belief import Belief
from eunomia.core.scheduler import Scheduler
from eunomia.mechanisms.gavel_rounds import GavelRounds
from eunomia.mechanisms.leases import Leases
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Ask, SetTimer
from eunomia.model.events import Answered, JobSubmitted, Moment, TimerFired
from eunomia.model.job import Job
from eunomia.model.overheads import Overheads
from eunomia.model.topology import Node, Topology
from eunomia.policies.shares.max_min_fairness import MaxMinFairness

TYPES = ("v100", "p100", "k80")
ROUND_S = 360.0
PER_NODE = 8
ENDLESS_STEPS = 1e15
WAYS = ("leases", "gavel")


@dataclass(frozen=True)
class Listed:
    """Speeds of a table; job types are row numbers."""

    throughput: Floats  # (job, type)
    types: tuple[str, ...] = TYPES

    def solo_throughput(self, job_type: str, scale_factor: int) -> Floats:
        """Return steps/s on each type, (type,)."""
        return np.asarray(self.throughput[int(job_type)])

    def packed_throughput(self, job_type: str, partner: str, scale_factor: int) -> Floats:
        """Return 0: no job shares."""
        return np.zeros(len(self.types))


def _cluster(table: Table) -> Topology:
    """Return whole nodes, at least one of each type, as near to the table's capacity as can be."""
    nodes = np.maximum(1, np.round(table.capacity / PER_NODE)).astype(int)
    return Topology.of([Node(type=TYPES[j], accelerators=PER_NODE) for j, n in enumerate(nodes) for _ in range(n)])


def capacity_of(table: Table) -> Floats:
    """Return the accelerators of each type that a table's jobs contend for here, (type,)."""
    return _cluster(table).capacity()


def _scheduler(way: str, table: Table, start_s: float) -> Scheduler:
    belief, cluster = Belief(Listed(table.throughput), Overheads(restore_s=start_s)), _cluster(table)
    if way == "gavel":
        return Scheduler(cluster, MaxMinFairness.info, GavelRounds(), belief)
    return Scheduler(cluster, MaxMinFairness.info, Leases(length=ROUND_S, aligned=True), belief)


def errors(way: str, table: Table, rounds: int, start_s: float = 0.0) -> tuple[Floats, Floats]:
    """Return received ÷ elapsed − x, (job, type), after so many rounds, and x.

    Only pairs that have a share count: spare time that goes to others is owed to no job.
    """
    core, policy, x = _scheduler(way, table, start_s), MaxMinFairness(), np.zeros((0, 0))
    came = zip(table.size.tolist(), table.weight.tolist(), strict=True)
    jobs = [
        JobSubmitted(
            Job(job_id=f"{m}", job_type=f"{m}", scale_factor=int(z), weight=w, total_steps=ENDLESS_STEPS, sequence=m)
        )
        for m, (z, w) in enumerate(came)
    ]
    at, opened, events = 0.0, 0, tuple(jobs)
    while True:
        wake = math.inf
        pending = [Moment(at, events)]
        while pending:
            for decision in core.handle(pending.pop()):
                if isinstance(decision, Ask):
                    answer = policy.decide(decision.view)
                    x = np.asarray(answer.x)
                    pending.append(Moment(at, (Answered(decision.asked, answer),)))
                elif isinstance(decision, SetTimer):
                    wake = decision.at
        opened += 1
        at = wake if wake < math.inf else at + ROUND_S
        if opened == rounds:
            return core.ledger.received_at(at, core.state.active) / at - x, x
        events = (TimerFired(),)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.enforcement", description=__doc__)
    parser.add_argument("--jobs", nargs="+", type=int, default=(64, 512))
    parser.add_argument("--load", nargs="+", type=float, default=(1.2, 2.0, 8.0))
    parser.add_argument("--rounds", nargs="+", type=int, default=(20, 100))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--start-s", type=float, default=0.0, help="seconds that a start costs, but for a job's first")
    asked = parser.parse_args()
    print("| mechanism | jobs | load | rounds | median | p99 | most below | most above |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for way in WAYS:
        for jobs in asked.jobs:
            for load in asked.load:
                for rounds in asked.rounds:
                    found = []
                    for seed in range(asked.draws):
                        error, x = errors(way, draw(jobs, len(TYPES), seed, load=load), rounds, asked.start_s)
                        found.append(error[x > 0])
                    error = np.concatenate(found)
                    size = np.abs(error)
                    print(
                        f"| {way} | {jobs} | {load:g} | {rounds} | {np.median(size):.3f} "
                        f"| {np.percentile(size, 99):.3f} | {error.min():.3f} | {error.max():.3f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
