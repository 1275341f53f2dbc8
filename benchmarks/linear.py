"""The largest total throughput: prices from samples against the general solver on the textbook's program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats
from eunomia.solvers.constraint_blocks import blocks_of
from eunomia.solvers.linear import best_total
from eunomia.solvers.program import Program

JOBS = (300, 2_048)
LARGE = ((2_048, 3, 20), (100_000, 3, 10), (100_000, 8, 5), (1_000_000, 3, 5))  # jobs, types, seeds


def draw(jobs: int, types: int, seed: int, load: float = 8.0) -> tuple[Floats, Floats, Floats]:
    """Return throughput (job, type), laid out by type, size (job,) and capacity (type,); no two jobs are alike."""
    rng = np.random.default_rng(seed)
    speed = rng.lognormal(size=(jobs, 1)) * rng.uniform(1, 5, types) * rng.lognormal(0, 0.35, (jobs, types))
    size = rng.choice([1.0, 2.0, 4.0, 8.0], jobs, p=(0.7, 0.1, 0.15, 0.05))
    return np.asfortranarray(speed), size, rng.dirichlet(np.full(types, 5.0)) * size.sum() / load


def textbook(worth: Floats, size: Floats, capacity: Floats) -> float:
    """Return the total by the program with a variable for every job and type."""
    blocks = blocks_of(worth > 0, size, np.ones(len(size)), capacity, None, None)
    cost = worth[blocks.group, blocks.column]
    return (
        Program.of_entries(cost, blocks.row, blocks.variable, blocks.value, blocks.low, blocks.high).solve().objective
    )


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each number of jobs."""
    for jobs in JOBS:
        problem = draw(jobs, 3, jobs)
        ours, other = partial(best_total, *problem), partial(textbook, *problem)
        demand_equal(abs(ours().objective / other() - 1) < 1e-8, "max throughput", jobs)  # the warm-up too
        yield compare("max throughput: one decision", jobs, ours, other, "LP with a row per job, HiGHS")


def main() -> None:
    """Print median and worst over seeds, in milliseconds and in reads of the throughput matrix."""
    for jobs, types, seeds in LARGE:
        best_total(*draw(jobs, types, 0))
        spent, reads = [], []
        for seed in range(seeds):
            problem = draw(jobs, types, seed)
            reads.append(_seconds(problem[0].sum))
            spent.append(_seconds(partial(best_total, *problem)))
        median, worst, read = np.median(spent), max(spent), np.median(reads)
        print(f"{jobs:>9} × {types}: {median * 1e3:7.1f} ms, worst {worst * 1e3:7.1f} ms, {median / read:6.0f} reads")


def _seconds(way: object) -> float:
    before = time.thread_time()
    way()  # type: ignore[operator]
    return time.thread_time() - before


if __name__ == "__main__":
    main()
