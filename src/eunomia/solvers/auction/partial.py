"""The partial-allocation mechanism: proportional fairness, less what each bidder's presence costs the others.

    pf = argmax Π_i V_i(n_i),   c_i = Π_{j≠i} V_j(pf_j) / max Π_{j≠i} V_j(n_j),   i gets the part c_i of pf_i.

Everything is reckoned in logarithms. Reference: R. Cole, V. Gkatzelis and G. Goel, "Mechanism Design for Fair Division:
Allocating Divisible Items without Payments", EC 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.optimum import EXACT, FIRST, Effort, best_rows
from eunomia.solvers.auction.packed import packed
from eunomia.solvers.auction.prices import STEPS, greedy, lowered, relaxed_prices


@dataclass(frozen=True, slots=True)
class Partial:
    """Who wins what, and which part of it they keep."""

    row: Ints  # (bidder,) rows of the proportionally fair answer
    take: Ints  # (bidder, class) what those take
    share: Floats  # (bidder,) c, above 0 and at most 1
    least: Floats  # (bidder,) what c is at least; c itself where everything is proven
    objective: float  # Σ_i v of the rows
    bound: float  # no rows are worth more

    @property
    def proven(self) -> bool:
        """Say whether the rows are the best, and each share is known."""
        return self.bound <= self.objective + 1e-8 and bool((self.share - self.least <= 1e-8).all())


def partial_allocation(bids: Bids, effort: Effort = EXACT) -> Partial:
    """Return the fair rows and every bidder's share; worths are logarithms, and every bidder may take nothing."""
    kept = bids.useful()
    bids = replace(bids, bidder=bids.bidder[kept], take=bids.take[kept], worth=bids.worth[kept])
    rows, worth, everybody = packed(bids), np.ascontiguousarray(bids.worth, dtype=float), np.arange(bids.bidders)
    known = greedy(rows, worth, _nothing(rows.begin, bids.take))
    price = lowered(rows, worth, np.zeros(len(bids.capacity)), everybody, float(worth[known].sum()), STEPS)
    fair = best_rows(rows, worth, everybody, price, known, FIRST)
    if not fair.proven:
        price = relaxed_prices(rows, worth)
        fair = best_rows(rows, worth, everybody, price, fair.row, effort)
    share, least = np.ones((2, bids.bidders))
    for i in np.flatnonzero(bids.take[fair.row].any(axis=1)).tolist():  # who takes nothing costs nobody anything
        others = everybody[everybody != i]
        known = fair.row[others]
        value = float(worth[known].sum())
        cheaper = lowered(rows, worth, price, others, value, STEPS)
        alone = best_rows(rows, worth, others, cheaper, known, effort)
        share[i], least[i] = np.exp(value - alone.objective), np.exp(value - alone.bound)
    return Partial(kept[fair.row], bids.take[fair.row], share, least, fair.objective, fair.bound)


def _nothing(begin: Ints, take: Ints) -> Ints:
    """Return the row of each bidder that takes nothing."""
    row = np.flatnonzero(~take.any(axis=1))
    return row[np.searchsorted(row, begin[:-1])]
