"""Themis' auction: who wins what, and what everybody's presence costs the others, against the general solver.

40 bidders with 64 rows each on 256 accelerators: 41 problems with whole numbers, of which ours shares what it can. The
general solver (HiGHS) solves them one by one. Ours is measured on every draw, the other on the first few.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, demand_equal
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.packed_states import packed
from eunomia.solvers.auction.partial import partial_allocation
from eunomia.solvers.auction.prices import relaxed

BIDDERS, ROWS, ACCELERATORS = 40, 64, 256
MACHINES = np.repeat([8, 16, 2], [16, 6, 16])  # accelerators of each, as Themis' simulator is believed to have them
TYPES = np.array([86, 85, 85])
SPEEDS = (1.0, 0.6, 0.3)  # of those types, where a row names one
DRAWS, OTHERS = 21, 2


def _tables(take: list[Ints], worth: list[Floats], capacity: Ints) -> Bids:
    bidder = np.repeat(np.arange(len(take)), [len(rows) for rows in take])
    return Bids(bidder, np.concatenate(take), np.concatenate(worth), capacity)


def one_class(rng: np.random.Generator) -> Bids:
    """Return counts of like accelerators; ρ falls with a power of the count up to the demand."""
    take, worth = [], []
    for _ in range(BIDDERS):
        counts = np.concatenate(([0], np.sort(rng.choice(np.arange(1, 101), ROWS - 1, replace=False))))
        useful = np.minimum(np.maximum(counts, 1), rng.integers(4, 64))
        rho = rng.uniform(1, 8) / useful ** rng.uniform(0.3, 0.95)
        rho[0] = 1e6 if rng.random() < 0.5 else 2 * rho[0]
        take.append(counts[:, None])
        worth.append(-np.log(rho))
    return _tables(take, worth, np.array([ACCELERATORS]))


def three_types(rng: np.random.Generator) -> Bids:
    """Return mixed counts of three types, each worth more or less to each bidder; more is worth no less."""
    take, worth = [], []
    for _ in range(BIDDERS):
        counts = np.vstack((np.zeros((1, 3), dtype=np.int64), rng.integers(0, 10, (ROWS - 1, 3))))
        speed = counts @ rng.uniform(0.2, 1, 3) * rng.uniform(0.9, 1.1, ROWS)
        value = np.array([speed[(counts <= row).all(axis=1)].max() for row in counts])
        take.append(counts)
        worth.append(np.log(0.01 + value) * rng.uniform(0.3, 1))
    return _tables(take, worth, TYPES)


def one_type_a_row(rng: np.random.Generator) -> Bids:
    """Return so many of one type in each row, in steps of a gang; what exceeds a demand is worth no more."""
    take, worth, capacity = [], [], np.array([96, 80, 80])
    for _ in range(BIDDERS):
        elapsed, left, ideal = rng.uniform(0, 2e4), rng.lognormal(9, 1), rng.lognormal(10, 0.6)
        gang, demand = rng.choice([1, 2, 4]), rng.choice([8, 16, 32])
        counts, rho = np.zeros((ROWS, 3), dtype=np.int64), np.full(ROWS, 1e6)
        for row in range(1, ROWS):
            k, n = divmod(row - 1, ROWS // 3)
            counts[row, k] = (n + 1) * gang
            rho[row] = (elapsed + left / (min(counts[row, k], demand) * SPEEDS[k])) / ideal
        fits = (counts <= capacity).all(axis=1)
        take.append(counts[fits])
        worth.append(-np.log(rho[fits]))
    return _tables(take, worth, capacity)


def machines(rng: np.random.Generator) -> Bids:
    """Return gangs of a bidder's size, or half of it, on any one machine that holds them."""
    take, worth = [], []
    for _ in range(BIDDERS):
        size = int(rng.choice([1, 2, 4]) * rng.choice([1, 2, 4]))
        elapsed, left, ideal = rng.uniform(0, 5), rng.uniform(0.5, 5), rng.uniform(2, 6)
        rows = [(z, k) for z in sorted({size, max(1, size // 2)}, reverse=True) for k in range(38) if MACHINES[k] >= z]
        counts = np.zeros((min(ROWS, len(rows) + 1), 38), dtype=np.int64)
        rho = np.full(len(counts), 1e6)
        for row, (z, k) in enumerate(rows[: ROWS - 1], 1):
            counts[row, k], rho[row] = z, (elapsed + left * size / z) / ideal
        take.append(counts)
        worth.append(-np.log(rho))
    return _tables(take, worth, MACHINES)


def by_highs(bids: Bids) -> Floats:
    """Return the best sums of worths: of all bidders, then without each, (1 + bidder,)."""
    rows = packed(bids)
    program = relaxed(rows, bids.worth, whole=True)
    best = np.empty(1 + bids.bidders)
    best[0] = program.solve().objective
    for i in range(bids.bidders):
        mine = np.arange(rows.begin[i], rows.begin[i + 1])
        program.change_bounds(mine, 0.0, 0.0)
        program.change_sides(np.array([i]), 0.0, 0.0)
        best[1 + i] = program.solve().objective
        program.change_bounds(mine, 0.0, 1.0)
        program.change_sides(np.array([i]), 1.0, 1.0)
    return best


def by_ours(bids: Bids) -> Floats:
    """Return the same from the shares; several fair answers may share a best sum."""
    found = partial_allocation(bids)
    demand_equal(found.proven, "auction", bids.bidders)
    return np.append(found.objective, found.objective - bids.worth[found.row] - np.log(found.share))


STRUCTURES: Mapping[str, Callable[[np.random.Generator], Bids]] = {
    "one class": one_class,
    "3 types": three_types,
    "3 types, one a row": one_type_a_row,
    "38 machines": machines,
}


def cases() -> Iterator[Comparison]:
    """Yield the median and the 95th percentile for each structure."""
    for name, draw in STRUCTURES.items():
        partial_allocation(draw(np.random.default_rng(DRAWS)))  # the warm-up
        ours, other = [], []
        for seed in range(DRAWS):
            bids = draw(np.random.default_rng(seed))
            seconds, found = _timed(partial(by_ours, bids))
            ours.append(seconds)
            if seed < OTHERS:
                seconds, best = _timed(partial(by_highs, bids))
                other.append(seconds)
                demand_equal(np.allclose(best, found, rtol=0, atol=1e-6), f"auction, {name}", seed)
        for word, rank in (("p50", 50), ("p95", 95)):
            ours_s, other_s = float(np.percentile(ours, rank)), float(np.percentile(other, rank))
            yield Comparison(
                name=f"auction, {name}, {word}", n=BIDDERS, ours_s=ours_s, other_s=other_s, other="HiGHS, one by one"
            )


def _timed(way: Callable[[], Floats]) -> tuple[float, Floats]:
    before = time.process_time()
    found = way()
    return time.process_time() - before, found
