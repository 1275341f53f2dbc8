"""The partial-allocation mechanism: proportional fairness, less what each bidder's presence costs the others.

    pf = argmax Π_i V_i(n_i),   c_i = Π_{j≠i} V_j(pf_j) / max Π_{j≠i} V_j(n_j),   i gets the part c_i of pf_i.

Everything is computed in logarithms. Of what cannot be divided a bidder keeps (`whole`)

    floor        ⌊c·n⌋ of the n things won
    randomized   ⌊c·n⌋, and one more with the probability that is left: c·n on average
    lease        all n, for the part c of the time

Only bidders that can win are searched (`contenders`). Bidder i comes before j where both bid for the same things and
each of them is worth at least as much more than nothing to i as to j. At most m bidders of such a table win something
at once, m what is offered over the least that one of them takes. So of m + 1 bidders before j one wins nothing in any
answer in which j wins, with or without any one bidder, and may have what j won: some best answer gives j nothing.

Reference: R. Cole, V. Gkatzelis and G. Goel, "Mechanism Design for Fair Division: Allocating Divisible Items without
Payments", EC 2013.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eunomia.kernels import kernel
from eunomia.model import elementary
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.branch_and_bound import settled
from eunomia.solvers.auction.optimum import EXACT, Best, Effort, LeaveOneOut
from eunomia.solvers.auction.packed_states import Packed, packed

_log = logging.getLogger(__name__)
AGAIN = 4000, 200  # times that some bidders are served again, where the fair rows and others' best are not settled
FAIR = 8  # the fair rows may take this part of all work: one in so many
LONG = 200_000_000  # rows looked at: some seconds
Treatment = Literal["floor", "randomized", "lease"]
_ROUNDING = 1e-9  # c·n that is below a whole number by less than this is that number


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


def whole(won: Ints, share: Floats, treatment: Treatment, rng: np.random.Generator) -> Ints:
    """Return how many of the things won each bidder keeps, (bidder,)."""
    if treatment == "lease":
        return won.copy()
    exact = share * won + _ROUNDING
    keeps = np.floor(exact).astype(np.int64)
    if treatment == "randomized":
        keeps += rng.random(len(won)) < np.maximum(exact - keeps - _ROUNDING, 0.0)
    return np.minimum(keeps, won)


def cut(take: Ints, keeps: Ints) -> Ints:
    """Return (bidder, class) what each keeps of its take: the classes of which it has most first, so few classes."""
    order = np.argsort(-take, axis=1, kind="stable")
    falling = np.take_along_axis(take, order, axis=1)
    before = np.cumsum(falling, axis=1) - falling
    kept = np.empty_like(take)
    np.put_along_axis(kept, order, np.clip(keeps[:, None] - before, 0, falling), axis=1)
    return kept


@kernel()
def nothing(begin: Ints, take: Ints) -> Ints:
    """Return the row of each bidder that takes nothing, (bidder,)."""
    row = begin[:-1].copy()
    for i in range(len(row)):
        while take[row[i]].any():
            row[i] += 1
    return row


@kernel()
def filled(begin: Ints, take: Ints, worth: Floats, capacity: Ints, bidders: Ints, row: Ints) -> Ints:
    """Return rows that fit together and are worth no less than `row`, (turn,), which fit together too.

    The bidder that its best row helps most takes the best row that fits beside those of all others, and so on.
    """
    left, row, helped = capacity.copy(), row.copy(), np.empty(len(bidders))
    for t in range(len(bidders)):
        left -= take[row[t]]
        helped[t] = worth[begin[bidders[t]] : begin[bidders[t] + 1]].max() - worth[row[t]]
    for t in np.argsort(-helped, kind="mergesort"):
        if helped[t] == 0:
            continue
        left += take[row[t]]
        for other in range(begin[bidders[t]], begin[bidders[t] + 1]):
            if worth[other] > worth[row[t]] and (take[other] <= left).all():
                row[t] = other
        left -= take[row[t]]
    return row


def contenders(bids: Bids, empty: Ints) -> Ints:
    """Return bidders, ascending, such that some best answer gives nothing to all others.

    empty (bidder,) is the row of each that takes nothing. All rows are useful.
    """
    draw = np.random.default_rng(20200225).integers(1, 2**62, bids.take.shape[1])
    order = np.lexsort(((bids.take * draw).sum(axis=1), bids.bidder))  # any order that is the same in like tables
    begin, gain = bids.begin(), bids.worth - bids.worth[empty][bids.bidder]
    alike: dict[bytes, list[int]] = {}
    for i, (low, high) in enumerate(zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True)):
        alike.setdefault(bids.take[order[low:high]].tobytes(), []).append(i)
    stays = np.ones(bids.bidders, dtype=bool)
    for same in alike.values():
        rows = np.stack([order[begin[i] : begin[i + 1]] for i in same])
        stays[same] = _stays(gain[rows], _winners(bids.take[rows[0]], bids.capacity))
    return np.flatnonzero(stays)


def _winners(take: Ints, capacity: Ints) -> int:
    """Return how many bidders with the same rows win something at once, at most."""
    size = take.sum(axis=1)
    if not size.any():
        return 0
    wanted = take.any(axis=0)
    return int(capacity[wanted].sum() // size[size > 0].min())


@kernel()
def _stays(gain: Floats, winners: int) -> Bools:
    """Return which bidders have at most `winners` before them, (bidder,). gain (bidder, row)."""
    stays = np.ones(len(gain), dtype=np.bool_)
    for j in range(len(gain)):
        before = 0
        for i in range(len(gain)):
            least, equal = True, True
            for b in range(gain.shape[1]):
                least &= gain[i, b] >= gain[j, b]
                equal &= gain[i, b] == gain[j, b]
            before += least and (not equal or i < j)
            if before > winners:
                stays[j] = False
                break
    return stays


def among(bids: Bids, bidders: Ints) -> tuple[Bids, Ints]:
    """Return the bids of some of the bidders, ascending, and their rows."""
    turn = np.full(bids.bidders, -1)
    turn[bidders] = np.arange(len(bidders))
    rows = np.flatnonzero(turn[bids.bidder] >= 0)
    bidder = turn[bids.bidder[rows]]
    return replace(bids, bidder=bidder, take=bids.take[rows], worth=bids.worth[rows]), rows
