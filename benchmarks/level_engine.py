"""The level engine against its goals, in milliseconds and in reads of the table: `python -m benchmarks.level_engine`.

A read is one pass over the table of rates that finds nothing in the cache, in the same process. Median and worst of
several seeds, each solved once; compilation is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.draws import Table, draw
from eunomia.model.arrays import Floats
from eunomia.solvers.max_min import MaxMinResult, highest_level

FLUSH = np.ones(1 << 23)  # 64 MiB, more than the caches hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A kind of problem at a size, and the most that it may take."""

    name: str
    rows: int
    columns: int
    most_ms: float | None = None
    most_reads: float | None = None
    load: float = 8.0
    spread: float = 0.2


GOALS = (
    Goal(name="max-min", rows=2_048, columns=3, most_ms=5),
    Goal(name="max-min", rows=100_000, columns=3, most_ms=10),
    Goal(name="max-min", rows=100_000, columns=8, most_ms=45),
    Goal(name="max-min", rows=1_000_000, columns=3, most_reads=40),
    Goal(name="max-min", rows=1_000_000, columns=8, most_reads=40),
    Goal(name="max-min", rows=1_000_000, columns=3, most_reads=40, load=1.0),
    Goal(name="makespan", rows=1_000_000, columns=3, most_reads=40),
    Goal(name="makespan", rows=1_000_000, columns=8, most_reads=40),
    Goal(name="finish-time fairness", rows=2_048, columns=3, most_ms=10),
    Goal(name="finish-time fairness", rows=1_000_000, columns=3, most_reads=60),
    Goal(name="finish-time fairness", rows=1_000_000, columns=8, most_reads=60),
    Goal(name="finish-time fairness", rows=1_000_000, columns=8, most_reads=60, spread=2.0),
)


def solver(name: str, table: Table) -> Callable[[], MaxMinResult]:
    """Return what is to be measured."""
    rate, size, capacity = table.throughput, table.size, table.capacity
    if name == "makespan":
        return lambda: highest_level(rate, size, capacity, table.steps)
    if name == "finish-time fairness":
        return lambda: highest_level(rate, size, capacity, table.steps, base=table.alone, age=table.age)
    return lambda: highest_level(rate, size, capacity, table.need)


def read(across: Floats) -> float:
    """Return the sum of a table (column, row)."""
    return float(across.sum())


def spent(work: Callable[[], object]) -> float:
    """Return the milliseconds of this thread that the work takes, with nothing of its table in the cache."""
    FLUSH.sum()
    before = time.thread_time()
    work()
    return (time.thread_time() - before) * 1e3


def lines(seeds: int) -> Iterator[str]:
    """Yield one line of the table for each goal."""
    for goal in GOALS:
        took, reads = [], []
        for seed in range(-1, seeds):  # the first warms up
            table = draw(goal.rows, goal.columns, seed + 1, load=goal.load, spread=goal.spread)
            work = solver(goal.name, table)
            reads.append(spent(lambda table=table: read(table.throughput.T)))
            took.append(spent(work))
        one, median, worst = min(reads), float(np.median(took[1:])), max(took[1:])
        most = f"{goal.most_ms:.0f} ms" if goal.most_ms else f"{goal.most_reads:.0f} R"
        kind = f"{goal.name}, load {goal.load:g}, spread {goal.spread:g}"
        yield (
            f"{kind:<45} {goal.rows:>9,} × {goal.columns}  {median:8.1f} ms {worst:8.1f} ms "
            f"{median / one:7.1f} R {worst / one:7.1f} R   at most {most}"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.level_engine", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="tables of each kind; 5")
    seeds = parser.parse_args().seeds
    print(f"{'problem':<45} {'rows × columns':>13}  {'median':>11} {'worst':>11} {'median':>9} {'worst':>9}")
    for line in lines(seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
