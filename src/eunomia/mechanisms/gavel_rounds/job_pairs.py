"""Who may be chosen: one row for each active job and, with pairs, for each two of one size."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

_FIRST = 64
_LATER = 1 << 31  # above every row of the job table


class JobPairs:
    """Rows in the order in which they came: a job, then its pairs with those that were there, earliest first.

    Every array is longer than `len(self)`. `second` is -1 for a job alone.
    """

    first: Ints
    second: Ints
    size: Ints  # accelerators of the gang
    key: Ints  # ascends with the rows
    known: Bools  # the last answer speaks of it
    x: Floats  # (entry, type) its share there
    received: Floats  # (entry, type) seconds since the last question, and the credit
    deficit: Floats  # (entry, type) seconds owed from before
    rate: Floats  # (entry, type) steps/s of the first; 0 = cannot run there
    mate_rate: Floats  # (entry, type) steps/s of the second
    last_type: Ints  # type of the seats of the round before, -1 = none
    head: Ints  # its first seat there; the others follow in the chain of seats

    def __init__(self, types: int):
        self._length = 0
        self._types = types
        one, wide = (_FIRST,), (_FIRST, types)
        for name in ("first", "second", "size", "key", "last_type", "head"):
            setattr(self, name, np.full(one, -1, dtype=np.int64))
        self.known = np.zeros(one, dtype=np.bool_)
        for name in ("x", "received", "deficit", "rate", "mate_rate"):
            setattr(self, name, np.zeros(wide))

    def __len__(self) -> int:
        return self._length

    def append(self, first: Ints, second: Ints, size: int, rate: Floats, mate_rate: Floats, credit: float) -> None:
        """Add rows for one job and its pairs; rates are (row, type). Only the job alone has the credit."""
        low, high = self._length, self._length + len(first)
        while high > len(self.first):
            self._double()
        self.first[low:high], self.second[low:high], self.size[low:high] = first, second, size
        self.key[low:high] = keys(first, second)
        self.known[low:high] = False
        self.x[low:high] = self.deficit[low:high] = 0.0
        self.received[low:high] = np.where(second < 0, credit, 0.0)[:, None]
        self.rate[low:high], self.mate_rate[low:high] = rate, mate_rate
        self.last_type[low:high] = self.head[low:high] = -1
        self._length = high

    def _double(self) -> None:
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, np.concatenate((column, np.zeros_like(column))))

    def keep(self, stays: Bools) -> None:
        """Drop the rows that do not stay, (entry,); the order of the others holds."""
        n = int(stays.sum())
        for column in vars(self).values():
            if isinstance(column, np.ndarray):
                column[:n] = column[: self._length][stays]
        self._length = n

    def find(self, first: Ints, second: Ints) -> Ints:
        """Return the entry of each job or pair, (row,); -1 where there is none."""
        wanted = keys(first, second)
        at = np.searchsorted(self.key[: self._length], wanted)
        found = np.minimum(at, max(self._length - 1, 0))
        return np.where((at < self._length) & (self.key[found] == wanted), found, -1)


def keys(first: Ints, second: Ints) -> Ints:
    """Return numbers that ascend in the order in which entries come; a pair may be named either way round."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.where(second < 0, first * _LATER, high * _LATER + low + 1)
