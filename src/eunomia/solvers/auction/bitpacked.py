"""Amounts of all classes side by side in a few words, so that states of layers are small and quickly compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Ints
from eunomia.solvers.auction.bids import Bids
from eunomia.solvers.auction.symmetry import likeness

_BITS = 62  # of a word that are used, so that it never turns negative


class Packed(NamedTuple):
    """The useful rows of all bidders, laid out for compiled loops."""

    begin: Ints  # (bidder + 1,) rows of each bidder
    first: Ints  # (row + 1,) entries of each row
    entry: Ints  # (entry,) a class of which the row takes some
    amount: Ints  # (entry,)
    take: Ints  # (row, class)
    most: Ints  # (bidder, class) the most that a row of the bidder takes
    alike: Ints  # (bidder, class) classes with one number are interchangeable to the bidder
    capacity: Ints  # (class,)
    full: Ints  # (word,) the capacities
    word: Ints  # (class,)
    shift: Ints  # (class,)
    mask: Ints  # (class,)


def packed(bids: Bids) -> Packed:
    """Return rows, all of which fit, laid out."""
    classes, begin, take = len(bids.capacity), bids.begin(), np.ascontiguousarray(bids.take, dtype=np.int64)
    word, shift, mask = np.zeros((3, classes), dtype=np.int64)
    bits = max(int(bids.capacity.max(initial=0)).bit_length(), 1)  # of all: what is left may change places
    for k in range(classes):
        word[k], shift[k], mask[k] = k // (_BITS // bits), k % (_BITS // bits) * bits, (1 << bits) - 1
    row, entry = np.nonzero(take)
    return Packed(
        begin=begin,
        first=np.searchsorted(row, np.arange(len(take) + 1)).astype(np.int64),
        entry=entry.astype(np.int64),
        amount=take[row, entry],
        take=take,
        most=np.maximum.reduceat(take, begin[:-1], axis=0),
        alike=likeness(begin, take, bids.worth),
        capacity=bids.capacity.astype(np.int64),
        full=_words(bids.capacity.astype(np.int64), word, shift),
        word=word,
        shift=shift,
        mask=mask,
    )


def words_of(rows: Packed, left: Ints) -> Ints:
    """Return what is left of each class, side by side, (word,)."""
    return _words(left, rows.word, rows.shift)


def _words(amounts: Ints, word: Ints, shift: Ints) -> Ints:
    words = np.zeros(int(word.max(initial=0)) + 1, dtype=np.int64)
    for k in range(len(amounts)):
        words[word[k]] |= amounts[k] << shift[k]
    return words


@kernel()
def fits(rows: Packed, row: int, left: Ints) -> bool:
    """Return whether what a row takes is left, (class,)."""
    enough = True
    for e in range(rows.first[row], rows.first[row + 1]):
        enough &= rows.amount[e] <= left[rows.entry[e]]
    return enough
