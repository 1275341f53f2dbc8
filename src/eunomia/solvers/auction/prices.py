"""Prices of the classes: with them every bidder's choice is its own, and no choice of all is worth more than

    L(λ) = Σ_k λ_k C_k + Σ_i max_b ( v_ib − Σ_k λ_k n_ibk ),   λ ≥ 0.

The lowest L is the optimum of the linear relaxation. Subgradient steps (B. T. Polyak, "Minimization of unsmooth
functionals", 1969) come near it, from prices of nothing for the whole problem and from its prices for the problems
without one bidder. Where they do not come near enough, the general solver finds it.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.auction.packed_states import Packed
from eunomia.solvers.program import INF, Program
from eunomia.solvers.sums import inner_product, total

STEPS = 120


def relaxed(rows: Packed, worth: Floats, *, whole: bool = False) -> Program:
    """Return the program over (row,) of which the auction is the one in whole numbers: bidders, then classes."""
    bidders, count = len(rows.begin) - 1, len(worth)
    bidder = np.repeat(np.arange(bidders), np.diff(rows.begin))
    per_row = np.repeat(np.arange(count), np.diff(rows.first))
    return Program.of_entries(
        worth,
        np.concatenate((bidder, bidders + rows.entry)),
        np.concatenate((np.arange(count), per_row)),
        np.concatenate((np.ones(count), rows.amount.astype(float))),
        np.concatenate((np.ones(bidders), np.full(len(rows.capacity), -INF))),
        np.concatenate((np.ones(bidders), rows.capacity.astype(float))),
        upper=1.0,
        whole=np.ones(count, dtype=bool) if whole else None,
    )


class Relaxation:
    """The linear relaxation, kept: without one bidder it is solved again from the last basis, in a few steps."""

    def __init__(self, rows: Packed, worth: Floats):
        """Take the rows of all bidders and what they are worth, (row,)."""
        self.bidders, self.away = len(rows.begin) - 1, np.empty(0, dtype=np.int64)
        self.program = relaxed(rows, worth)

    def prices(self, bidders: Ints) -> Floats:
        """Return the prices (class,) at which L of these bidders is lowest."""
        away = np.setdiff1d(np.arange(self.bidders), bidders)
        for changed, side in ((self.away, 1.0), (away, 0.0)):
            if len(changed):
                self.program.change_sides(changed, side, side)
        self.away = away
        return np.maximum(self.program.solve().row_price[self.bidders :], 0.0)


def ceiling(rows: Packed, worth: Floats, price: Floats, bidders: Ints) -> float:
    """Return L of these bidders: no rows of theirs are worth more together."""
    return float(surplus(rows, worth, price, bidders, np.empty(len(worth)))[0].sum() + dot(price, rows.capacity))


@kernel()
def surplus(rows: Packed, worth: Floats, price: Floats, bidders: Ints, loss: Floats) -> tuple[Floats, Ints]:
    """Return what each of `bidders` gains at these prices, and by which row; fill `loss` (row,), what rows fall short.

    Where two rows gain alike the one that takes less is named.
    """
    best, chosen = np.empty(len(bidders)), np.empty(len(bidders), dtype=np.int64)
    for t in range(len(bidders)):
        begin, end = rows.begin[bidders[t]], rows.begin[bidders[t] + 1]
        best[t], chosen[t] = -np.inf, begin
        for row in range(begin, end):
            gain = worth[row]
            for e in range(rows.first[row], rows.first[row + 1]):
                gain -= price[rows.entry[e]] * rows.amount[e]
            loss[row] = gain
            if gain > best[t]:
                best[t], chosen[t] = gain, row
        for row in range(begin, end):
            loss[row] = best[t] - loss[row]
    return best, chosen


@kernel()
def lowered(rows: Packed, worth: Floats, price: Floats, bidders: Ints, target: float, steps: int) -> Floats:
    """Return prices with an L that is lower, if some are found; `target` is what the bound may come down to."""
    now, best = price.copy(), price.copy()
    loss, left = np.empty(len(worth)), np.empty(len(price))
    lowest, pace, stalled = np.inf, 0.5, 0
    for _ in range(steps):
        gain, chosen = surplus(rows, worth, now, bidders, loss)
        bound = total(gain) + inner_product(now, rows.capacity)
        if bound < lowest - 1e-12:
            stalled = 0 if bound < lowest - 1e-3 * (lowest - target) else stalled + 1
            lowest = bound
            for k in range(len(now)):
                best[k] = now[k]
        else:
            stalled += 1
        if stalled >= 5:
            pace, stalled, now = pace / 2, 0, best.copy()
        for k in range(len(now)):
            left[k] = rows.capacity[k]
        for row in chosen:
            for e in range(rows.first[row], rows.first[row + 1]):
                left[rows.entry[e]] -= rows.amount[e]
        for k in range(len(now)):
            left[k] = 0.0 if now[k] <= 0.0 and left[k] > 0.0 else left[k]
        length = inner_product(left, left)
        if length == 0 or bound <= target or pace < 1e-3:
            break
        for k in range(len(now)):
            moved = now[k] - pace * (bound - target) / length * left[k]
            now[k] = moved if moved > 0.0 else 0.0
    return best
