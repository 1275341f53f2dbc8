"""Lexicographic water filling: time beside one read of the rates, and beside phases of all rows.

`python -m benchmarks.waterfill` prints the median and the worst over seeds, in ms and in reads of the matrix.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats
from eunomia.solvers.water_filling.tree import Tree, flat
from eunomia.solvers.water_filling.waterfill import _Filling, fill

ROWS = (300, 1000)
SIZES = ((2_048, 3, 20), (100_000, 3, 5), (1_000_000, 3, 3))  # rows, columns, seeds
SUPPLY = (0.125, 0.9, 1.5)  # capacity over the sum of sizes


def draw(rows: int, columns: int, seed: int, supply: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rate (row, column) in Fortran order, size, capacity and need; no two rows are alike."""
    rng = np.random.default_rng(seed)
    speed = np.sort(rng.uniform(0.2, 1, columns))
    rate = rng.lognormal(0, 1, rows) * speed[:, None] * np.exp(rng.normal(0, 0.35, (columns, rows)))
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows, p=[0.7, 0.1, 0.15, 0.05])
    capacity = rng.dirichlet(np.full(columns, 3.0)) * size.sum() * supply
    need = rng.choice([1.0, 2.0], rows) * (capacity / capacity.sum() @ rate) / size
    return rate.T, size, capacity, need


def groups(rows: int, seed: int) -> Tree:
    """Return a tree of two floors: two groups of two groups each."""
    rng = np.random.default_rng(seed)
    return Tree(
        parent=np.array([-1, -1, 0, 0, 1, 1]),
        weight=rng.integers(1, 4, 6).astype(float),
        inner=("share",) * 6,
        group_of=rng.integers(2, 6, rows),
        row_weight=rng.integers(1, 4, rows).astype(float),
    )


def _whole(rate: Floats, size: Floats, capacity: Floats, need: Floats) -> Floats:
    """Return the levels when every phase looks at all rows, those that have stopped too."""
    filling = _Filling(rate.T, size, capacity, need, rate.max(axis=1), flat(len(rate)))
    return filling.run_few().level


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each number of rows."""
    for rows in ROWS:
        problem = draw(rows, 3, 0, 0.9)
        ours, other = partial(fill, *problem), partial(_whole, *problem)
        demand_equal(np.allclose(ours().level, other(), rtol=1e-7), "water filling", rows)  # the warm-up too
        yield compare("water filling: all levels", rows, ours, other, "all rows in every phase")


def _measured(rows: int, columns: int, seed: int, supply: float, tree: bool) -> tuple[float, float]:
    """Return CPU seconds of one filling, and of one read of its rates."""
    rate, size, capacity, need = draw(rows, columns, seed, supply)
    before = time.thread_time()
    fill(rate, size, capacity, need, tree=groups(rows, seed) if tree else None)
    spent = time.thread_time() - before
    reads = []
    for _ in range(5):
        before = time.thread_time()
        rate.sum()
        reads.append(time.thread_time() - before)
    return spent, statistics.median(reads)


def main() -> None:
    """Print the table."""
    print(f"{'rows':>9} {'columns':>7} {'supply':>6} {'groups':>6} {'median ms':>10} {'worst ms':>9} {'reads':>7}")
    for rows, columns, seeds in SIZES:
        for supply in SUPPLY:
            for tree in (False, True):
                _measured(rows, columns, seeds, supply, tree)  # the warm-up
                found = [_measured(rows, columns, seed, supply, tree) for seed in range(seeds)]
                spent = [one for one, _ in found]
                middle, worst = statistics.median(spent), max(spent)
                reads = statistics.median(one / read for one, read in found)
                row = f"{rows:>9,} {columns:>7} {supply:>6} {'yes' if tree else 'no':>6}"
                print(f"{row} {1e3 * middle:>10.1f} {1e3 * worst:>9.1f} {reads:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
