"""What bidders to come can tell apart, turn by turn; and the way back from what they cannot to the rows themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.auction.packed import Packed


class Frames(NamedTuple):
    """Before each turn, and after the last: `most` and the interchangeable classes, as `layers.sweep` takes them."""

    most: Ints  # (turn + 1, class) what bidders to come can take at most
    group: Ints  # (turn + 1, class) classes of the first group, of the second, …
    ends: Ints  # (turn + 1, group) where each group ends; -1 = no more


def frames(rows: Packed, who: Ints) -> Frames:
    """Return what the bidders `who` can tell apart, served in that order."""
    turns, classes = len(who), len(rows.capacity)
    most = np.zeros((turns + 1, classes), dtype=np.int64)
    most[:-1] = np.cumsum(rows.most[who[::-1]], axis=0)[::-1]
    group = np.zeros((turns + 1, classes), dtype=np.int64)
    ends = np.full((turns + 1, classes // 2 + 1), -1, dtype=np.int64)
    label = np.zeros(classes, dtype=np.int64)
    for t in range(turns - 1, 0, -1):
        label = np.unique(label * classes + rows.alike[who[t]], return_inverse=True)[1].reshape(-1)
        size = np.bincount(label)
        if (size < 2).all():
            break  # nor is anything alike to the bidders before
        shared = np.flatnonzero(size[label] > 1)
        group[t, : len(shared)] = shared[np.argsort(label[shared], kind="stable")]
        ends[t, : (size > 1).sum()] = np.cumsum(size[size > 1])
    return Frames(most, group, ends)


def unfolded(rows: Packed, worth: Floats, who: Ints, seen: Frames, chosen: Ints) -> Ints:
    """Return the rows (turn,) that say of the classes themselves what `chosen` says of classes put in order."""
    if (seen.ends < 0).all():
        return chosen
    left, place = rows.capacity.copy(), np.arange(len(rows.capacity))  # place: where a class in the frame really is
    found = np.empty_like(chosen)
    for t, row in enumerate(chosen.tolist()):
        taken = np.empty_like(left)
        taken[place] = rows.take[row]
        found[t] = _row(rows, worth, int(who[t]), taken, worth[row])
        left = np.minimum(left - rows.take[row], seen.most[t + 1])
        begin = 0
        for end in seen.ends[t + 1][seen.ends[t + 1] >= 0].tolist():
            group = seen.group[t + 1, begin:end]
            falling = group[np.argsort(-left[group], kind="stable")]
            left[group], place[group], begin = left[falling], place[falling], end
    return found


def _row(rows: Packed, worth: Floats, bidder: int, taken: Ints, value: float) -> int:
    begin, end = rows.begin[bidder], rows.begin[bidder + 1]
    same = (rows.take[begin:end] == taken).all(axis=1) & (worth[begin:end] == value)
    assert same.any()  # or the classes are not interchangeable to this bidder
    return int(begin + np.argmax(same))
