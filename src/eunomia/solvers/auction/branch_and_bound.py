"""Where layers do not settle it: better answers from a few bidders at a time, then the search to its end.

First a few bidders at a time give back what they have, those on a few classes drawn by chance, and are served again by
a layer. Where every row names one class the general solver then settles most in some hundred nodes. Otherwise all
answers that lose less than a limit are searched for (`search`), then less than a larger one, so that wherever the work
ends every answer is proven to lose what the last limit said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.auction.dynamic_program import sweep
from eunomia.solvers.auction.optimum import CLOSE, Best, better
from eunomia.solvers.auction.packed_states import Packed, frames, unfolded, words_of
from eunomia.solvers.auction.prices import relaxed, surplus
from eunomia.solvers.auction.search import search
from eunomia.solvers.program import NoOptimum

STEP, FIRST_LIMIT = 1.25, 1 / 64  # each limit over the one before; the first, as a part of what is open
NODES = 500  # of the general solver, where every row names one class
PROGRAM = 10_000_000  # rows that could be looked at in the time that it mostly takes
CLASSES, SERVED, WIDTH = (3, 12), 12, 256  # classes drawn, bidders on them that are served again, and how wide a layer


def settled(
    rows: Packed, worth: Floats, bidders: Ints, price: Floats, found: Best, rounds: int, work: int
) -> tuple[Best, int]:
    """Return the best rows of `bidders`, (turn,), from those found, and what is left of `work`, rows to look at.

    `price` (class,) are prices of the linear relaxation; `rounds` times some bidders are served again.
    """
    loss = np.full(len(worth), np.inf)
    gain, _ = surplus(rows, worth, price, bidders, loss)
    most = float(gain.sum() + dot(price, rows.capacity))
    line = np.lexsort((loss, np.repeat(np.arange(len(rows.begin) - 1), np.diff(rows.begin))))
    found = replace(found, bound=min(found.bound, max(most, found.objective)))
    if not found.proven:
        found = improved(rows, worth, price, loss, gain, bidders, line, found, rounds)
    if not found.proven and work >= PROGRAM and (np.diff(rows.first) <= 1).all():
        found, work = by_program(rows, worth, bidders, loss, most, found), work - PROGRAM
    limit = max(most - found.bound, (most - found.objective) * FIRST_LIMIT)
    while not found.proven and work > 0:
        open_ = most - found.objective - CLOSE / 2
        limit = min(limit, open_)
        least, row, work = search(rows, loss, price, rows.capacity, bidders, line, limit, work)
        found = better(found, row, worth) if np.isfinite(least) else found
        if work > 0:
            proven = found.objective if np.isfinite(least) else most - limit
            found = replace(found, bound=min(found.bound, max(proven, found.objective)))
        limit *= STEP
    return found, max(work, 0)


def by_program(rows: Packed, worth: Floats, bidders: Ints, loss: Floats, most: float, found: Best) -> Best:
    """Return what the general solver finds in a few nodes among the rows that could be in a better answer.

    loss (row,) is what rows fall short at prices at which no answer is worth more than `most`; inf for other bidders.
    """
    program, out = relaxed(rows, worth, whole=True), np.flatnonzero(loss > most - found.objective + CLOSE)
    away = np.setdiff1d(np.arange(len(rows.begin) - 1), bidders)
    program.change_bounds(out, 0.0, 0.0)
    if len(away):
        program.change_sides(away, 0.0, 0.0)
    try:
        solved = program.solve(nodes=NODES)
    except NoOptimum:  # it stopped before it had any answer
        return found
    row = np.flatnonzero(solved.x > 0.5)
    found = better(found, row, worth) if _valid(rows, bidders, row) else found
    return replace(found, bound=max(min(found.bound, solved.bound), found.objective))


def _valid(rows: Packed, bidders: Ints, row: Ints) -> bool:
    """Say whether these are rows of each of `bidders` in turn, and fit together."""
    bidder = np.searchsorted(rows.begin, row, side="right") - 1
    return np.array_equal(bidder, bidders) and bool((rows.take[row].sum(axis=0) <= rows.capacity).all())


def improved(
    rows: Packed, worth: Floats, price: Floats, loss: Floats, gain: Floats, bidders: Ints, line: Ints, found: Best,
    rounds: int,
) -> Best:  # fmt: skip
    """Return an answer worth no less than the one found; draws are the same for the same bids."""
    rng, row = np.random.default_rng(len(bidders)), found.row.copy()
    for _ in range(rounds):
        if float(worth[row].sum()) >= found.bound - CLOSE:
            break
        classes = rng.choice(len(price), min(int(rng.integers(*CLASSES)), len(price)), replace=False)
        there = np.flatnonzero(rows.take[row][:, classes].any(axis=1))
        some = rng.permutation(there)[:SERVED]
        if len(some) < 2:
            continue
        some = some[np.argsort(-rows.most[bidders[some]].sum(axis=1), kind="stable")]
        left = rows.capacity - rows.take[row].sum(axis=0) + rows.take[row[some]].sum(axis=0)
        free = rows._replace(capacity=left, full=words_of(rows, left))
        seen, now = frames(free, bidders[some]), float(worth[row[some]].sum())
        bar = now + CLOSE / 2 if rng.random() < 0.5 else now - CLOSE / 2  # or another answer that is as good
        value, chosen, _ = sweep(free, worth, price, bidders[some], gain[some], loss, line, *seen, bar, WIDTH)
        if value > bar:
            row[some] = unfolded(free, worth, bidders[some], seen, chosen)
    return better(found, row, worth)
