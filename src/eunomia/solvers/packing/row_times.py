"""Times of classes parted among their rows: the column, partner and share of time of each row.

Each row gets an equal part of every activity of its class, so all rows of a class have one effective rate and none is
busy for longer than the mean. Rows of two classes meet by the north-west corner rule: both classes stand along the
same stretch of time, and two rows share it where they overlap, which leaves fewer partners than there are rows.
Rows of one class stand along a stretch that is cut in the middle, and its halves lie side by side: no row meets
itself unless it fills more than half. Stretches are whole numbers, so every part is exact but for one rounding.

Where each row asks for its own rate and has a time of 1, that can be done if and only if the rates of the activities,
drawn out over time, majorise the rates asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import Classes
from eunomia.solvers.packing.activities import ALONE
from eunomia.solvers.packing.pair_programs import Shared
from eunomia.solvers.sums import total

_FINE = 2.0**52  # widths of unequal rows are distinguished to this part of the whole


@dataclass(frozen=True, slots=True)
class Entries:
    """Sparse shares of time; a pair is one entry."""

    first: Ints  # (entry,) row
    second: Ints  # (entry,) row of the partner, ALONE = none
    column: Ints  # (entry,)
    share: Floats  # (entry,) above 0

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, slots=True)
class Parts:
    """How the rows of each class part its activities; within a class each row's part is of twice the time."""

    first: tuple[Floats, ...]  # for each activity, (row of its first class,) summing to its time
    second: tuple[Floats, ...]  # the same for the partners; empty where there is none, or the class is the same


def expand(shared: Shared, classes: Classes, parts: Parts | None = None) -> Entries:
    """Return the shares of every row, in one pass. `classes` are those that `shared` was asked for.

    Without `parts` every row of a class gets the same.
    """
    things = shared.activities
    members, start = classes.members()
    partners = np.where(things.second == ALONE, 0, classes.count[things.second])
    found = _Room(int((classes.count[things.first] + partners).sum()))
    for a, time in enumerate(shared.time.tolist()):
        first, second, column = int(things.first[a]), int(things.second[a]), int(things.column[a])
        mine = members[start[first] : start[first + 1]]
        if second == ALONE:
            share = time / len(mine) if parts is None else parts.first[a]
            found.alone(mine, column, share)
        elif second == first:
            edges = 2 * _even(len(mine), 1) if parts is None else 2 * _uneven(parts.first[a])
            half = int(edges[-1]) // 2
            left, right = np.minimum(edges, half), np.maximum(edges, half) - half
            found.pairs(mine, left, mine, right, column, time / half)
        else:
            theirs = members[start[second] : start[second + 1]]
            left = _even(len(mine), len(theirs)) if parts is None else _uneven(parts.first[a])
            right = _even(len(theirs), len(mine)) if parts is None else _uneven(parts.second[a])
            found.pairs(mine, left, theirs, right, column, time / int(left[-1]))
    return found.entries()


def expand_evenly(shared: Shared, classes: Classes) -> Entries:
    """Return the shares in which every row meets every row of the other class, and alike rows do the same."""
    things = shared.activities
    members, start = classes.members()
    parts: list[tuple[Ints, Ints, Ints, Floats]] = []
    for a, time in enumerate(shared.time.tolist()):
        first, second, column = int(things.first[a]), int(things.second[a]), int(things.column[a])
        mine = members[start[first] : start[first + 1]]
        if second == ALONE:
            one, other = mine, np.full(len(mine), ALONE)
        elif second == first:
            left, right = np.triu_indices(len(mine), 1)
            one, other = mine[left], mine[right]
        else:
            theirs = members[start[second] : start[second + 1]]
            one, other = np.repeat(mine, len(theirs)), np.tile(theirs, len(mine))
        parts.append((one, other, np.full(len(one), column), np.full(len(one), time / len(one))))
    firsts, seconds, columns, shares = (np.concatenate(part) for part in zip(*parts, strict=True))
    swap = (seconds != ALONE) & (seconds < firsts)
    return Entries(np.where(swap, seconds, firsts), np.where(swap, firsts, seconds), columns, shares)


def _even(rows: int, width: int) -> Ints:
    """Return where rows of one width begin and end, (row + 1,)."""
    edges: Ints = width * np.arange(rows + 1)
    return edges


def _uneven(part: Floats) -> Ints:
    """Return where rows begin and end, (row + 1,), their widths in proportion to their parts."""
    ends = np.append(0.0, np.cumsum(part))
    edges: Ints = np.rint(ends * (_FINE / ends[-1])).astype(np.int64)
    return edges


class _Room:
    """Arrays that entries are written into."""

    def __init__(self, most: int):
        self.first, self.second, self.column = (np.empty(most, np.int64) for _ in range(3))
        self.share, self.used = np.empty(most), 0

    def alone(self, rows: Ints, column: int, share: Floats | float) -> None:
        """Write an entry for each row."""
        here = slice(self.used, self.used + len(rows))
        self.first[here], self.second[here], self.column[here], self.share[here] = rows, ALONE, column, share
        self.used = here.stop

    def pairs(self, mine: Ints, left: Ints, theirs: Ints, right: Ints, column: int, unit: float) -> None:
        """Write an entry for each overlap of two rows; left and right say where each begins, in `unit` of share."""
        here = slice(self.used, None)
        written = _overlaps(mine, left, theirs, right, unit, self.first[here], self.second[here], self.share[here])
        self.column[self.used : self.used + written] = column
        self.used += written

    def entries(self) -> Entries:
        """Return what was written."""
        here = slice(0, self.used)
        kept = self.share[here] > 0
        if kept.all():
            return Entries(self.first[here], self.second[here], self.column[here], self.share[here])
        return Entries(self.first[here][kept], self.second[here][kept], self.column[here][kept], self.share[here][kept])


@kernel()
def _overlaps(
    mine: Ints, left: Ints, theirs: Ints, right: Ints, unit: float, first: Ints, second: Ints, share: Floats
) -> int:
    """Walk along both rows of neighbours at once; return how many entries were written."""
    written, i, j, at = 0, 0, 0, 0
    while i < len(mine) and j < len(theirs):
        end = min(left[i + 1], right[j + 1])
        if end > at and mine[i] != theirs[j]:  # but for roundings no row lies beside itself
            first[written], second[written], share[written] = mine[i], theirs[j], unit * (end - at)
            written += 1
        at = end
        if left[i + 1] == end:
            i += 1
        if right[j + 1] == end:
            j += 1
    return written


def parted(asked: Floats, rate: Floats, time: Floats) -> Floats:
    """Return the time of each row in each activity, (row, activity), so that each row reaches what it asks.

    In proportion to what they ask if no row is busy for more than all its time; else stretch by stretch.
    """
    whole, n = asked.sum(), len(asked)
    share = asked / whole if whole > 0 else np.full(n, 1 / n)
    if share.max() * time.sum() <= 1:
        return share[:, None] * time
    order = np.argsort(-rate, kind="stable")
    idle = max(n - float(time.sum()), 0.0)
    part = _stretches(asked, np.append(rate[order], 0.0), np.append(time[order], idle))
    found = np.empty((n, len(rate)))
    found[:, order] = part[:, :-1]
    return found


@kernel()
def _stretches(asked: Floats, rate: Floats, time: Floats) -> Floats:
    """Return the time that each row takes of each activity, (row, activity); rates fall, times sum to the rows.

    Lay the activities along a line, the fastest first. Each row takes the last unit of it whose mean rate is what it
    asks; what remains still majorises what the others ask.
    """
    part = np.zeros((len(asked), len(rate)))
    left = time.copy()
    kinds = len(rate)
    for i in range(len(asked)):
        rest = total(left)  # beyond activity j
        for j in range(kinds):
            rest -= left[j]
            if left[j] > 0.0 and (rest < 1.0 or _mean_from(left, rate, j + 1) < asked[i]):
                _take_from(left, rate, j, asked[i], rest, part[i])
                break
    return part


@kernel()
def _mean_from(left: Floats, rate: Floats, begin: int) -> float:
    """Return the mean rate of the unit of time that starts with activity `begin`."""
    mean, wanting = 0.0, 1.0
    for j in range(begin, len(rate)):
        taken = min(left[j], wanting)
        mean += taken * rate[j]
        wanting -= taken
    return mean


@kernel()
def _take_from(left: Floats, rate: Floats, j: int, asked: float, rest: float, part: Floats) -> None:
    """Take the last unit that starts within activity j and has the mean rate asked; write it to `part`."""
    x = min(max(0.0, 1.0 - rest), left[j])
    wanting, mean, last = 1.0 - x, x * rate[j], j
    for k in range(j + 1, len(rate)):
        part[k] = min(left[k], wanting)
        wanting -= part[k]
        mean += part[k] * rate[k]
        last = k if part[k] > 0.0 else last
    while mean < asked and last > j and x < left[j]:
        gain = rate[j] - rate[last]
        moved = min(part[last], left[j] - x)
        enough = gain > 0.0 and moved * gain >= asked - mean
        if enough:
            moved = (asked - mean) / gain
        x += moved
        part[last] -= moved
        mean += moved * gain
        if enough:
            break
        if part[last] <= 0.0:
            last -= 1
    part[j] = x
    for k in range(j, len(rate)):
        left[k] = max(left[k] - part[k], 0.0)
