"""Rows and states as compiled loops read them, and which states are one.

The amounts of all classes stand side by side in a few words, so that states of layers are small and quickly compared.
Classes are interchangeable to a bidder whose table is the same with the two exchanged. `frames` says, turn by turn,
what bidders to come cannot tell apart, and `unfolded` leads back from there to the rows themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bids import Bids

_BITS = 62  # of a word that are used, so that it never turns negative
_MASK = (1 << 62) - 1
_HALF = 0x7FFFFFFF


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


@kernel()
def mixed(x: Any) -> Any:
    """Return a number of 62 bits that looks drawn; x is at least 0 and below 2 ** 62."""
    for _ in range(2):
        x = ((x & _HALF) * 0x5BD1E995) ^ (((x >> 31) & _HALF) * 0x27D4EB2D)
        x = x ^ (x >> 29)
    return x


class CanonicalStates(NamedTuple):
    """Arguments of `dynamic_program.sweep` before each turn, and after the last."""

    most: Ints  # (turn + 1, class) what bidders to come can take at most
    group: Ints  # (turn + 1, class) classes of the first group, of the second, …
    ends: Ints  # (turn + 1, group) where each group ends; -1 = no more


@kernel()
def frames(rows: Packed, bidders: Ints) -> CanonicalStates:
    """Return what these bidders can distinguish, served in that order."""
    turns, classes = len(bidders), len(rows.capacity)
    most = np.zeros((turns + 1, classes), dtype=np.int64)
    group = np.zeros((turns + 1, classes), dtype=np.int64)
    ends = np.full((turns + 1, classes // 2 + 1), -1, dtype=np.int64)
    label, shared = np.zeros(classes, dtype=np.int64), classes > 1
    for t in range(turns - 1, -1, -1):
        most[t] = most[t + 1] + rows.most[bidders[t]]
        if t > 0 and shared:  # where nothing is alike, nothing is to the bidders before
            label = _finer(label, rows.alike[bidders[t]])
            shared = _grouped(label, group[t], ends[t])
    return CanonicalStates(most, group, ends)


@kernel()
def _finer(label: Ints, alike: Ints) -> Ints:
    """Return labels (class,) that tell apart what either tells apart; a label is the first class that has it."""
    finer = np.arange(len(label))
    for k in range(len(label)):
        for other in range(k):
            if label[other] == label[k] and alike[other] == alike[k]:
                finer[k] = other
                break
    return finer


@kernel()
def _grouped(label: Ints, group: Ints, ends: Ints) -> bool:
    """Fill group and ends with the classes that share a label; say whether any do."""
    n, groups = 0, 0
    for first in range(len(label)):
        if label[first] != first:
            continue
        begin = n
        for k in range(first, len(label)):
            if label[k] == first:
                group[n] = k
                n += 1
        if n - begin == 1:
            n = begin
        else:
            ends[groups] = n
            groups += 1
    return groups > 0


@kernel()
def unfolded(rows: Packed, worth: Floats, bidders: Ints, seen: CanonicalStates, chosen: Ints) -> Ints:
    """Return the rows (turn,) that say of the classes themselves what `chosen` says of classes put in order.

    -1 stands for a row that is not there: then the classes are not interchangeable to that bidder.
    """
    left, place = rows.capacity.copy(), np.arange(len(rows.capacity))  # place: where a class in the frame really is
    found, taken = np.empty_like(chosen), np.empty_like(left)
    for t in range(len(chosen)):
        row = chosen[t]
        for k in range(len(left)):
            taken[place[k]] = rows.take[row, k]
            left[k] = min(left[k] - rows.take[row, k], seen.most[t + 1, k])
        found[t] = _row(rows, worth, bidders[t], taken, worth[row])
        begin = 0
        for end in seen.ends[t + 1]:
            if end < 0:
                break
            group = seen.group[t + 1, begin:end].copy()
            falling = group[np.argsort(-left[group], kind="mergesort")]
            left[group], place[group], begin = left[falling], place[falling], end
    return found


@kernel()
def _row(rows: Packed, worth: Floats, bidder: int, taken: Ints, value: float) -> int:
    for row in range(rows.begin[bidder], rows.begin[bidder + 1]):
        if worth[row] == value and (rows.take[row] == taken).all():
            return row
    return -1
