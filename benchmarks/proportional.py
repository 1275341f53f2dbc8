"""Proportional fairness against its goals, in ms and in reads of the table: `python -m benchmarks.proportional`.

A read is one pass over the table of rates that finds nothing in the cache, in the same process. Median and worst of
several seeds, each solved once; compilation is not counted. Shares are made when they are
asked for: `entries`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.draws import Table, draw
from benchmarks.level_engine import read, spent
from eunomia.solvers.proportional import Proportional, fairest_product, strategy_proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A kind of problem at a size, and the most that it may take."""

    name: str
    rows: int
    columns: int
    most: str
    load: float = 8.0
    decades: float = 0.0  # that weights spread over


GOALS = (
    Goal(name="cold", rows=1_000, columns=3, most="5 ms"),
    Goal(name="cold", rows=1_000, columns=8, most="25 ms"),
    Goal(name="cold", rows=100_000, columns=3, most="100 ms"),
    Goal(name="cold", rows=100_000, columns=8, most="250 ms"),
    Goal(name="cold", rows=1_000_000, columns=3, most="100 R"),
    Goal(name="cold", rows=1_000_000, columns=8, most="100 R"),
    Goal(name="cold", rows=1_000_000, columns=3, most="100 R", load=0.7),
    Goal(name="cold", rows=1_000_000, columns=3, most="-", load=1.0),
    Goal(name="cold", rows=1_000_000, columns=3, most="100 R", decades=12),
    Goal(name="warm, 1% changed", rows=1_000_000, columns=3, most="50 R"),
    Goal(name="entries", rows=1_000_000, columns=3, most="-"),
    Goal(name="strategy-proof", rows=300, columns=3, most="-"),
)


def solver(goal: Goal, table: Table, seed: int) -> Callable[[], object]:
    """Return what is to be measured."""
    rng = np.random.default_rng(seed)
    weight = table.weight * 10.0 ** rng.uniform(-goal.decades / 2, goal.decades / 2, len(table.weight))
    problem = (table.throughput, table.size, table.capacity, weight)
    if goal.name == "strategy-proof":
        return lambda: strategy_proof(*problem)
    if goal.name == "cold":
        return lambda: proven(fairest_product(*problem))
    before = fairest_product(*problem)
    if goal.name == "entries":
        return before.entries
    changed = np.where(rng.random(len(weight)) < 0.01, 1.5 * weight, weight)
    return lambda: proven(fairest_product(*problem[:3], changed, start=before.price))


def proven(found: Proportional) -> None:
    """Raise unless the answer is as good as was promised."""
    if found.gap > 1e-6:
        raise RuntimeError(f"the gap is {found.gap:.1e}")


def lines(seeds: int) -> Iterator[str]:
    """Yield one line of the table for each goal."""
    for goal in GOALS:
        took, reads = [], []
        for seed in range(-1, seeds):  # the first warms up
            table = draw(goal.rows, goal.columns, seed + 1, load=goal.load)
            work = solver(goal, table, seed + 1)
            reads.append(spent(lambda table=table: read(table.throughput.T)))
            took.append(spent(work))
        one, median, worst = min(reads), float(np.median(took[1:])), max(took[1:])
        kind = f"{goal.name}, load {goal.load:g}, weights over {goal.decades:g} decades"
        yield (
            f"{kind:<50} {goal.rows:>9,} × {goal.columns}  {median:8.1f} ms {worst:8.1f} ms "
            f"{median / one:7.1f} R {worst / one:7.1f} R   at most {goal.most}"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proportional", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="tables of each kind; 5")
    seeds = parser.parse_args().seeds
    print(f"{'problem':<50} {'rows × columns':>13}  {'median':>11} {'worst':>11} {'median':>9} {'worst':>9}")
    for line in lines(seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
