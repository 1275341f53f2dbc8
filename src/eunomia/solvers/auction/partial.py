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
from eunomia.solvers.auction.contention import among, contenders, filled, nothing
from eunomia.solvers.auction.optimum import EXACT, FIRST, Effort, best_rows
from eunomia.solvers.auction.packed import packed
from eunomia.solvers.auction.prices import STEPS, lowered, relaxed_prices


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
    """Return the fair rows and every bidder's share; worths are logarithms, and every bidder may take nothing.

    Where all have their best at once nobody is in anybody's way, and nothing is searched for; where they have not, only
    bidders are searched among that can win.
    """
    kept = bids.useful()
    bids = replace(bids, bidder=bids.bidder[kept], take=bids.take[kept], worth=bids.worth[kept])
    begin = bids.begin()
    empty = nothing(begin, bids.take)
    row = filled(begin, bids.take, bids.worth, bids.capacity, np.arange(bids.bidders), empty)
    share, least, objective = *np.ones((2, bids.bidders)), float(bids.worth[row].sum())
    if (bids.worth[row] == np.maximum.reduceat(bids.worth, begin[:-1])).all():
        return Partial(kept[row], bids.take[row], share, least, objective, objective)
    bidders = contenders(bids, empty)
    some, rows = among(bids, bidders)
    found = searched(some, effort)
    row = empty.copy()
    row[bidders], share[bidders], least[bidders] = rows[found.row], found.share, found.least
    rest = float(np.delete(bids.worth[empty], bidders).sum())
    return Partial(kept[row], bids.take[row], share, least, found.objective + rest, found.bound + rest)


def searched(bids: Bids, effort: Effort) -> Partial:
    """Return the same of bids that are all useful, by the engine."""
    rows, worth, everybody = packed(bids), np.ascontiguousarray(bids.worth, dtype=float), np.arange(bids.bidders)
    table = rows.begin, rows.take, worth, rows.capacity
    known = filled(*table, everybody, nothing(*table[:2]))
    price = lowered(rows, worth, np.zeros(len(bids.capacity)), everybody, float(worth[known].sum()), STEPS)
    fair = best_rows(rows, worth, everybody, price, known, FIRST)
    if not fair.proven:
        price = relaxed_prices(rows, worth)
        fair = best_rows(rows, worth, everybody, price, fair.row, effort)
    share, least = np.ones((2, bids.bidders))
    for i in np.flatnonzero(bids.take[fair.row].any(axis=1)).tolist():  # who takes nothing costs nobody anything
        others = everybody[everybody != i]
        value, known = float(worth[fair.row[others]].sum()), filled(*table, others, fair.row[others])
        cheaper = lowered(rows, worth, price, others, float(worth[known].sum()), STEPS)
        alone = best_rows(rows, worth, others, cheaper, known, effort)
        share[i], least[i] = np.exp(value - alone.objective), np.exp(value - alone.bound)
    return Partial(fair.row, bids.take[fair.row], share, least, fair.objective, fair.bound)
