"""Which classes a bidder cannot tell apart: its table is the same with the two exchanged."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.hashing import mixed

_MASK = (1 << 62) - 1


def likeness(begin: Ints, take: Ints, worth: Floats) -> Ints:
    """Return (bidder, class): classes with one number are interchangeable to that bidder.

    Tables are compared by sums of hashes of their rows, taken with constants drawn once.
    """
    draw = np.random.default_rng(20200225).integers(1, 2**27, take.shape[1] + 1)
    _, value = np.unique(worth, return_inverse=True)
    return _likeness(begin, take, value.astype(np.int64) * draw[-1], draw[:-1])


@kernel()
def _likeness(begin: Ints, take: Ints, value: Ints, draw: Ints) -> Ints:
    bidders, classes = len(begin) - 1, take.shape[1]
    alike = np.empty((bidders, classes), dtype=np.int64)
    for i in range(bidders):
        low, high = begin[i], begin[i + 1]
        plain = np.empty(high - low, dtype=np.int64)  # hash of each row before mixing
        table, total = 0, np.zeros(classes, dtype=np.int64)  # hash of the table, and of each column
        for row in range(low, high):
            x = value[row]
            for k in range(classes):
                if take[row, k] > 0:
                    x += take[row, k] * draw[k]
                    total[k] = (total[k] + mixed(value[row] + take[row, k])) & _MASK
            plain[row - low] = x
            table = (table + mixed(x)) & _MASK
        for k in range(classes):
            alike[i, k] = k
            for other in range(k):
                if alike[i, other] != other or total[other] != total[k]:
                    continue  # no first of its kind, or its column holds other amounts
                step, turned = draw[k] - draw[other], 0
                for row in range(low, high):
                    turned = (turned + mixed(plain[row - low] + (take[row, other] - take[row, k]) * step)) & _MASK
                if turned == table:
                    alike[i, k] = other
                    break
    return alike
