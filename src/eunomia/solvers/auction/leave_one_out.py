"""The best rows of all bidders and of all but one, by layers: what one of these problems tells serves the next.

Prices found in a few steps and narrow layers settle most. Once they have failed the linear relaxation gives the prices,
solved again from its last basis; and without another bidder the best is about as far below the bound as it was last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bitpacked import Packed
from eunomia.solvers.auction.optimum import WIDTHS, Best, Effort, best_rows
from eunomia.solvers.auction.prices import STEPS, Relaxation, ceiling, lowered

MORE = 1.25  # the first window, in times of how far below the bound the last best was


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
