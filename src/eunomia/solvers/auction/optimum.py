"""The rows that are worth most together, one of each bidder, with the proof; of all bidders, and of all but one.

    maximise Σ_i v_i,b(i)   subject to   Σ_i n_i,b(i),k ≤ C_k for each class k

Bidders are served layer by layer (`dynamic_program`) with wider and wider layers until nothing that could be better was
let go. Where it is known about how far below the bound the best lies, only what is that good is looked for at first.
Where that does not finish, `branch_and_bound` continues.

What one problem tells serves the next (`LeaveOneOut`): prices found in a few steps and narrow layers settle most. Once
they have failed the linear relaxation gives the prices, solved again from its last basis; and without another bidder
the best is about as far below the bound as it was last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.auction.dynamic_program import sweep
from eunomia.solvers.auction.packed_states import Packed, frames, unfolded
from eunomia.solvers.auction.prices import STEPS, Relaxation, ceiling, lowered, surplus

CLOSE = 1e-9  # of a sum of logarithms: what is nearer is the same
WIDTHS = (64, 1024, 8192, 65536)
WORK = 400_000  # states times classes of the widest layer
NARROWEST, WIDER = 1 / 256, 2.0  # the first window, as a part of the gap at least; each one over the one before
HOPELESS = 0.5  # share of the gap that a layer of 1024 states must have closed for wider ones to be tried
MORE = 1.25  # the first window, in times of how far below the bound the last best was


@dataclass(frozen=True, slots=True)
class Effort:
    """How far to look: the widest layer, and the rows that a search may look at where layers do not settle it."""

    widest: int = WIDTHS[-1]
    work: int = 2_500_000_000  # of all optima together: about a minute


EXACT, QUICK = Effort(), Effort(widest=1024, work=0)


@dataclass(frozen=True, slots=True)
class Best:
    """The best rows known, and what no others can exceed."""

    row: Ints  # (turn,) of the bidders asked about
    objective: float
    bound: float

    @property
    def proven(self) -> bool:
        """Say whether nothing is better."""
        return self.bound <= self.objective + CLOSE


def best_rows(
    rows: Packed, worth: Floats, bidders: Ints, price: Floats, known: Ints, widest: int, window: float = np.inf
) -> Best:
    """Return the best rows of the bidders, (turn,).

    `price` (class,) sets how well layers can be judged, `known` (turn,) are rows that fit together, `widest` is the
    most states of a layer, and `window` how far below the bound of these prices the best is believed to be, if known.
    """
    loss = np.empty(len(worth))
    gain, chosen = surplus(rows, worth, price, bidders, loss)
    found = Best(known, float(worth[known].sum()), float(gain.sum() + dot(price, rows.capacity)))
    if not found.proven and (rows.take[chosen].sum(axis=0) <= rows.capacity).all():
        found = better(found, chosen, worth)
    if not found.proven:
        found = _by_layers(rows, worth, bidders, price, loss, gain, found, widest, window)
    return replace(found, bound=max(found.bound, found.objective))


def better(found: Best, row: Ints, worth: Floats) -> Best:
    """Return the better of the answer found and other rows that fit together."""
    value = float(worth[row].sum())
    return replace(found, row=row, objective=value) if value > found.objective else found


def _by_layers(
    rows: Packed, worth: Floats, bidders: Ints, price: Floats, loss: Floats, gain: Floats, found: Best, widest: int,
    window: float,
) -> Best:  # fmt: skip
    """Search the windows, then widen the layers until the answer is proven, or that is too much work."""
    order = np.argsort(-rows.most[bidders].sum(axis=1), kind="stable")  # largest bidder first: fewest states
    turn, first = bidders[order], found.bound
    seen = frames(rows, turn)
    line = np.lexsort((loss, np.repeat(np.arange(len(rows.begin) - 1), np.diff(rows.begin))))

    def swept(found: Best, bar: float, width: int) -> Best:
        value, chosen, lost = sweep(rows, worth, price, turn, gain[order], loss, line, *seen, bar, width)
        if value > found.objective:
            row = np.empty_like(chosen)
            row[order] = unfolded(rows, worth, turn, seen, chosen)
            assert row.min() >= 0
            found = better(found, row, worth)
        return replace(found, bound=min(found.bound, max(lost, found.objective)))

    widths = [w for w in WIDTHS if w == WIDTHS[0] or (w <= widest and w * len(price) <= WORK)]
    if np.isfinite(window):
        found = _in_windows(swept, found, window, [w for w in widths[1:] if w < WIDTHS[-1]])
    for width in widths:
        if found.proven:
            break
        found = swept(found, found.objective + CLOSE / 2, width)
        closed = first - found.bound
        if width > WIDTHS[0] and closed < HOPELESS * (first - found.objective) and len(price) > 8:
            break
    return found


def _in_windows(swept: Callable[[Best, float, int], Best], found: Best, window: float, widths: list[int]) -> Best:
    """Look for what lies in the window below the bound, then in wider ones; with wider layers where one overflows."""
    first, level = found.bound, 0
    window = max(window, NARROWEST * (first - found.objective))
    while level < len(widths) and not found.proven:
        bar = max(first - window, found.objective + CLOSE / 2)
        found = swept(found, bar, widths[level])
        if found.bound > bar:
            level += 1  # better ones were let go
        else:
            window = WIDER * max(window, first - found.bound)
    return found


class LeaveOneOut:
    """What is known after the problems so far."""

    def __init__(self, rows: Packed, worth: Floats, effort: Effort):
        """Take the rows of all bidders, what they are worth, (row,), and how far to look."""
        self.rows, self.worth, self.effort = rows, worth, effort
        self.price = np.zeros(len(rows.capacity))  # (class,) of the last problem
        self.near: Floats | None = None  # (class,) prices of the first problem, from which the steps start
        self.relaxation: Relaxation | None = None
        self.below = np.inf

    def best(self, bidders: Ints, known: Ints) -> Best:
        """Return the best rows of the bidders, (turn,); `known` (turn,) are rows that fit together."""
        rows, worth, bound = self.rows, self.worth, np.inf
        if self.relaxation is None:
            start, target = self.price if self.near is None else self.near, float(worth[known].sum())
            self.price = lowered(rows, worth, start, bidders, target, STEPS)
            self.near = self.price if self.near is None else self.near
            found = best_rows(rows, worth, bidders, self.price, known, WIDTHS[0])
            if found.proven:
                return found
            self.relaxation, known, bound = Relaxation(rows, worth), found.row, found.bound
        self.price = self.relaxation.prices(bidders)
        found = best_rows(rows, worth, bidders, self.price, known, self.effort.widest, MORE * self.below)
        self.below = ceiling(rows, worth, self.price, bidders) - found.objective if found.proven else np.inf
        return replace(found, bound=max(min(found.bound, bound), found.objective))
