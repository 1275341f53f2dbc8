"""Entries that may be chosen: one row for each active job and, with pairs, for each two of one size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model.arrays import Bools, Floats, Ints

_LATER = 1 << 31  # above every row of the job table


class PairArrays(NamedTuple):
    """Columns of `JobPairs`. Kernels take them one by one, as numba reads a tuple slowly at every call."""

    first: Ints
    second: Ints
    size: Ints
    known: Bools
    x: Floats
    received: Floats
    deficit: Floats
    rate: Floats
    mate_rate: Floats
    last_type: Ints
    head: Ints


class JobPairs(GrowingColumns):
    """Rows in order of arrival: a job, then its pairs with earlier jobs, earliest first.

    `second` is -1 for a job alone.
    """

    first: Ints
    second: Ints
    size: Ints  # accelerators of the gang
    key: Ints  # ascends with the rows
    known: Bools  # the last answer covers it
    x: Floats  # (entry, type) its share there
    received: Floats  # (entry, type) seconds since the last ask, and the credit
    deficit: Floats  # (entry, type) seconds owed from before
    rate: Floats  # (entry, type) steps/s of the first; 0 = cannot run there
    mate_rate: Floats  # (entry, type) steps/s of the second
    last_type: Ints  # type of the seats of the round before, -1 = none
    head: Ints  # its first seat there; the others follow in the chain of seats

    def __init__(self, types: int):
        row, wide = (np.int64, -1), (np.float64, 0.0, types)
        super().__init__(
            {
                **dict.fromkeys(("first", "second", "size", "key", "last_type", "head"), row),
                "known": (np.bool_, False),
                **dict.fromkeys(("x", "received", "deficit", "rate", "mate_rate"), wide),
            }
        )

    @property
    def arrays(self) -> PairArrays:
        """The columns that kernels read and write."""
        return PairArrays(
            self.first, self.second, self.size, self.known, self.x, self.received, self.deficit, self.rate,
            self.mate_rate, self.last_type, self.head,
        )  # fmt: skip

    def append(self, first: Ints, second: Ints, size: int, rate: Floats, mate_rate: Floats, credit: float) -> None:
        """Add rows for one job and its pairs; rates are (row, type). Only the job alone has the credit."""
        new = self.add_many(len(first))
        self.first[new], self.second[new], self.size[new] = first, second, size
        self.key[new] = keys(first, second)
        self.known[new] = False
        self.x[new] = self.deficit[new] = 0.0
        self.received[new] = np.where(second < 0, credit, 0.0)[:, None]
        self.rate[new], self.mate_rate[new] = rate, mate_rate
        self.last_type[new] = self.head[new] = -1

    def find(self, first: Ints, second: Ints) -> Ints:
        """Return the entry of each job or pair, (row,); -1 where there is none."""
        wanted = keys(first, second)
        at = np.searchsorted(self.key[: len(self)], wanted)
        found = np.minimum(at, max(len(self) - 1, 0))
        return np.where((at < len(self)) & (self.key[found] == wanted), found, -1)


def keys(first: Ints, second: Ints) -> Ints:
    """Return numbers that ascend in the order in which entries come; a pair may be named either way round."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.where(second < 0, first * _LATER, high * _LATER + low + 1)
