"""The partial-allocation mechanism: proportional fairness, less what each bidder's presence costs the others.

    pf = argmax Π_i V_i(n_i),   c_i = Π_{j≠i} V_j(pf_j) / max Π_{j≠i} V_j(n_j),   i gets the part c_i of pf_i.

Everything is computed in logarithms. Reference: R. Cole, V. Gkatzelis and G. Goel, "Mechanism Design for Fair Division:
Allocating Divisible Items without Payments", EC 2013.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.bitpacked import Packed, packed
from eunomia.solvers.auction.branch_and_bound import settled
from eunomia.solvers.auction.contention import among, contenders, filled, nothing
from eunomia.solvers.auction.leave_one_out import LeaveOneOut
from eunomia.solvers.auction.optimum import EXACT, Best, Effort

_log = logging.getLogger(__name__)
AGAIN = 4000, 200  # times that some bidders are served again, where the fair rows and others' best are not settled
FAIR = 8  # the fair rows may take this part of all work: one in so many
LONG = 200_000_000  # rows looked at: some seconds


@dataclass(frozen=True, slots=True)
class Partial:
    """The winning rows, and the part of them that each bidder keeps."""

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

    Where the best rows of all bidders fit together there is nothing to search; otherwise only bidders that can win are
    searched.
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
    """Return the same of bids that are all useful, by the engine.

    Where the work ends before the fair rows are proven, no proof of others' best is tried, which is no easier.
    """
    rows, worth, everybody = packed(bids), np.ascontiguousarray(bids.worth, dtype=float), np.arange(bids.bidders)
    rest = LeaveOneOut(rows, worth, effort)
    fair, work = _fair(rows, worth, everybody, rest, effort)
    share, least = np.ones((2, bids.bidders))
    winners, work_before = np.flatnonzero(bids.take[fair.row].any(axis=1)), work
    for n, i in enumerate(winners.tolist()):  # a bidder that takes nothing costs the others nothing
        others, row = everybody[everybody != i], np.delete(fair.row, i)
        alone = rest.best(others, filled(rows.begin, rows.take, worth, rows.capacity, others, row))
        if not alone.proven and effort.work > 0:
            may = work // (len(winners) - n) if fair.proven else 0
            alone, left = settled(rows, worth, others, rest.price, alone, AGAIN[1], may)
            work -= may - left
        share[i], least[i] = (
            elementary.exp(worth[row].sum() - alone.objective),
            elementary.exp(worth[row].sum() - alone.bound),
        )
        if work_before - work > LONG:
            work_before = work
            _log.warning("auction: %d of %d optima", 2 + n, 1 + len(winners))
    return Partial(fair.row, bids.take[fair.row], share, least, fair.objective, fair.bound)


def _fair(rows: Packed, worth: Floats, everybody: Ints, rest: LeaveOneOut, effort: Effort) -> tuple[Best, int]:
    """Return the fair rows and the work that is left."""
    table = rows.begin, rows.take, worth, rows.capacity
    fair = rest.best(everybody, filled(*table, everybody, nothing(*table[:2])))
    if fair.proven or effort.work == 0:
        return fair, effort.work
    may = effort.work // FAIR
    _log.warning("auction: %d bidders, %d classes: searched row by row, which may take a minute", *rows.most.shape)
    fair, left = settled(rows, worth, everybody, rest.price, fair, AGAIN[0], may)
    return fair, effort.work - may + left
