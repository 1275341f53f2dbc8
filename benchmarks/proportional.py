"""Proportional fairness against its goals, in ms and in reads of the table: `python -m benchmarks.proportional`.

A read is one pass over the table of rates that finds nothing in the cache, in the same process. Median and worst of
several seeds, each solved once; compilation is not counted. Shares are made when they are
asked for: `entries`. With --unlucky the tables are those of `benchmarks.unlucky`: ties, weights over twelve decades and
loads around what there is, at --rows rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.draws import Table, draw
from benchmarks.level_engine import read, spent
from benchmarks.unlucky import FAMILIES, Problem, problem
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.proportional import NashWelfareResult, fairest_product, strategy_proof


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
    return fairest_product(*problem).entries


def proven(found: NashWelfareResult) -> None:
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


def unlucky_lines(rows: int, widths: list[int], seeds: int) -> Iterator[str]:
    """Yield one line for each family of unlucky tables and number of columns."""
    for family in FAMILIES:
        for columns in widths:
            took, gaps, failed = [], [], 0
            for seed in range(-1, seeds):  # the first warms up
                one = problem(family, rows, columns, max(seed, 0))
                before = len(gaps)
                took.append(spent(lambda one=one, gaps=gaps: gaps.append(gap_of(one))))
                failed += bool(seed >= 0 and np.isnan(gaps[before]))
            median, worst = float(np.median(took[1:])), max(took[1:])
            yield (
                f"{family:<20} {rows:>9,} × {columns}  {median:8.1f} ms {worst:8.1f} ms (seed {np.argmax(took[1:])})  "
                f"largest gap {np.nanmax([*gaps, 0.0]):.1e}  without an answer {failed}"
            )


def gap_of(one: Problem) -> float:
    """Return the gap of the answer; NaN where there is none."""
    try:
        return fairest_product(*one).gap
    except NoOptimum:
        return float("nan")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proportional", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="tables of each kind; 5")
    parser.add_argument("--unlucky", action="store_true", help="unlucky tables instead")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of unlucky tables; 100,000")
    parser.add_argument("--columns", type=int, nargs="+", default=[3, 8], help="columns of unlucky tables; 3 8")
    given = parser.parse_args()
    if given.unlucky:
        print(f"{'family':<20} {'rows × columns':>13}  {'median':>11} {'worst':>11}")
    else:
        print(f"{'problem':<50} {'rows × columns':>13}  {'median':>11} {'worst':>11} {'median':>9} {'worst':>9}")
    for line in unlucky_lines(given.rows, given.columns, given.seeds) if given.unlucky else lines(given.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
