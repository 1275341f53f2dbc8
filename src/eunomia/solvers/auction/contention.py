"""Bidders that can win: auctions whose best rows all fit together, and bidders that others always precede.

Bidder i comes before j where both bid for the same things and each of them is worth at least as much more than nothing
to i as to j. At most m bidders of such a table win something at once, m what is offered over the least that one of them
takes. So of m + 1 bidders before j one wins nothing in any answer in which j wins, with or without any one bidder, and
may have what j won: some best answer gives j nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.auction.bids import Bids


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
    order = np.lexsort((*bids.take.T[::-1], bids.bidder))
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
