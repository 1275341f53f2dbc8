"""Bid tables: rows of which each bidder wins exactly one.

A row takes whole amounts of some classes of interchangeable things and is worth a number, usually a logarithm. Every
bidder has a row that takes nothing, so that there is always an answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Bids:
    """The tables of all bidders, one below the other."""

    bidder: Ints  # (row,) ascending from 0; every bidder has a row
    take: Ints  # (row, class) at least 0
    worth: Floats  # (row,) finite
    capacity: Ints  # (class,) at least 0

    @property
    def bidders(self) -> int:
        """Return how many bid."""
        return int(self.bidder[-1]) + 1 if len(self.bidder) else 0

    def begin(self) -> Ints:
        """Return where the table of each bidder begins, and where the last one ends, (bidder + 1,)."""
        return np.searchsorted(self.bidder, np.arange(self.bidders + 1)).astype(np.int64)

    def useful(self) -> Ints:
        """Return the rows that an optimum may need, ascending: what fits, and is worth more than all that take less."""
        fits = np.asarray((self.take <= self.capacity).all(axis=1))
        return np.flatnonzero(_useful(self.begin(), self.take, self.worth, fits))


@kernel()
def _useful(begin: Ints, take: Ints, worth: Floats, fits: Bools) -> Bools:
    useful = fits.copy()
    for i in range(len(begin) - 1):
        for row in range(begin[i], begin[i + 1]):
            for other in range(begin[i], begin[i + 1]):
                if not useful[row]:
                    break
                if other == row or not fits[other] or worth[other] < worth[row]:
                    continue
                less = twin = True
                for k in range(take.shape[1]):
                    less &= take[other, k] <= take[row, k]
                    twin &= take[other, k] == take[row, k]
                if less and not (twin and worth[other] == worth[row] and other > row):
                    useful[row] = False
    return useful
