"""Where layers do not settle it: better answers from a few bidders at a time, then the search to its end.

First a few bidders at a time give back what they have, those on a few classes drawn by chance, and are served again by
a layer. Then all answers that lose less than a limit are searched for (`search`), then less than a larger one, so that
wherever the work ends every answer is proven to lose what the last limit said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.frames import frames, unfolded
from eunomia.solvers.auction.layers import sweep
from eunomia.solvers.auction.optimum import CLOSE, Best, better
from eunomia.solvers.auction.packed import Packed, words_of
from eunomia.solvers.auction.prices import relaxed_prices, surplus
from eunomia.solvers.auction.search import search

STEP, FIRST_LIMIT = 1.25, 1 / 64  # each limit over the one before; the first, as a part of what is open
CLASSES, SERVED, WIDTH = (3, 12), 12, 256  # classes drawn, bidders on them that are served again, and how wide a layer


def settled(rows: Packed, worth: Floats, who: Ints, found: Best, rounds: int, work: int) -> tuple[Best, int]:
    """Return the best rows of `who`, (turn,), from those found, and what is left of `work`, rows to look at.

    `rounds` times some bidders are served again. The prices are those of the linear relaxation.
    """
    price, loss = relaxed_prices(rows, worth, who), np.full(len(worth), np.inf)
    gain, _ = surplus(rows, worth, price, who, loss)
    most = float(gain.sum() + price @ rows.capacity)
    line = np.lexsort((loss, np.repeat(np.arange(len(rows.begin) - 1), np.diff(rows.begin))))
    found = replace(found, bound=min(found.bound, max(most, found.objective)))
    if not found.proven:
        found = improved(rows, worth, price, loss, gain, who, line, found, rounds)
    limit = max(most - found.bound, (most - found.objective) * FIRST_LIMIT)
    while not found.proven and work > 0:
        open_ = most - found.objective - CLOSE / 2
        limit = min(limit, open_)
        least, row, work = search(rows, loss, price, rows.capacity, who, line, limit, work)
        found = better(found, row, worth) if np.isfinite(least) else found
        if work > 0:
            proven = found.objective if np.isfinite(least) else most - limit
            found = replace(found, bound=min(found.bound, max(proven, found.objective)))
        limit *= STEP
    return found, max(work, 0)


def improved(
    rows: Packed, worth: Floats, price: Floats, loss: Floats, gain: Floats, who: Ints, line: Ints, found: Best,
    rounds: int,
) -> Best:  # fmt: skip
    """Return an answer worth no less than the one found; draws are the same for the same bids."""
    rng, row = np.random.default_rng(len(who)), found.row.copy()
    for _ in range(rounds):
        classes = rng.choice(len(price), min(int(rng.integers(*CLASSES)), len(price)), replace=False)
        there = np.flatnonzero(rows.take[row][:, classes].any(axis=1))
        some = rng.permutation(there)[:SERVED]
        if len(some) < 2:
            continue
        some = some[np.argsort(-rows.most[who[some]].sum(axis=1), kind="stable")]
        left = rows.capacity - rows.take[row].sum(axis=0) + rows.take[row[some]].sum(axis=0)
        free = rows._replace(capacity=left, full=words_of(rows, left))
        seen, now = frames(free, who[some]), float(worth[row[some]].sum())
        bar = now + CLOSE / 2 if rng.random() < 0.5 else now - CLOSE / 2  # or another answer that is as good
        value, chosen, _ = sweep(free, worth, price, who[some], gain[some], loss, line, *seen, bar, WIDTH)
        if value > bar:
            row[some] = unfolded(free, worth, who[some], seen, chosen)
    return better(found, row, worth)
