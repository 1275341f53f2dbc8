"""What bidders to come can tell apart, turn by turn; and the way back from what they cannot to the rows themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.bitpacked import Packed


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
