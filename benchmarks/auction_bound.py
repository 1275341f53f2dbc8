"""What an auction of 40 bidders on named machines knows within the time of Themis' arbiter, 1.4 s.

    python -m benchmarks.auction_bound

Bidders want 1, 2, 4 or 8 accelerators of 32 machines of 8, on any one machine or on up to three of them in a row. The
policy searches narrowly (`QUICK`), and says what it found and what no other answer exceeds: the gap of the product of
values, and what the least certain c lies between. CPU seconds; the median and the largest of the draws.
"""

from __future__ import annotations

import time

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import QUICK
from eunomia.solvers.auction.partial import partial_allocation

BIDDERS, ROWS, MACHINES, EACH, DRAWS = 40, 64, 32, 8, 7


def named(rng: np.random.Generator, most: int) -> Bids:
    """Return bids of which each row names 1 to `most` machines."""
    take, worth = [], []
    for _ in range(BIDDERS):
        counts, rho = np.zeros((ROWS, MACHINES), dtype=np.int64), np.full(ROWS, 1e6)
        elapsed, left, ideal = rng.uniform(0, 5), rng.uniform(0.5, 5), rng.uniform(2, 6)
        for row in range(1, ROWS):
            machines = rng.choice(MACHINES, rng.integers(1, most + 1), replace=False)
            counts[row, machines] = rng.choice([1, 2, 4, 8], len(machines))
            rho[row] = (elapsed + left * 8 / counts[row].sum()) / ideal
        take.append(counts)
        worth.append(-np.log(rho))
    bidder = np.repeat(np.arange(BIDDERS), ROWS)
    return Bids(bidder, np.concatenate(take), np.concatenate(worth), np.full(MACHINES, EACH))


def measure(most: int, seed: int) -> Floats:
    """Return CPU seconds, the gap of the product, and the largest factor between a c and what it is at least."""
    bids = named(np.random.default_rng(seed), most)
    began = time.process_time()
    found = partial_allocation(bids, QUICK)
    seconds = time.process_time() - began
    return np.array([seconds, np.expm1(found.bound - found.objective), (found.share / found.least).max()])


def main() -> None:
    """Print a line for each kind of row."""
    measure(1, DRAWS)  # the warm-up
    for most in (1, 3):
        each = np.array([measure(most, seed) for seed in range(DRAWS)])
        (s, gap, c), (slowest, widest, least) = np.median(each, axis=0), each.max(axis=0)
        print(
            f"up to {most} machines a row: {s:.2f} s, at most {slowest:.2f} s; the product is known to within "
            f"{gap:.1%}, at most {widest:.1%}; c to a factor of {c:.2f}, at most {least:.2f}"
        )


if __name__ == "__main__":
    main()
