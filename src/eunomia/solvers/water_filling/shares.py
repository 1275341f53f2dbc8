"""Shares from the levels of rows: the rows that stop, the edge that serves each, and all entries on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.water_filling.large_instance import OPEN
from eunomia.solvers.water_filling.tree import Tree, unsure

_BLOCK = 256  # rows at once
_BELOW = 1 - 2.0**-52
Entries: TypeAlias = tuple[Ints, Ints, Floats]  # row, column, share


@dataclass(frozen=True, slots=True)
class WaterFillingShares:
    """The edge of each row that has one, and the entries of all others."""

    rate: Floats  # (column, row)
    load: Floats
    need: Floats
    whole: Floats  # (column,) capacity
    left: Array  # (row,) column, −1 idle
    right: Array  # (row,) column, −1 where the row has no edge
    others: Entries

    def entries(self, tree: Tree, got: Floats) -> tuple[Entries, float]:
        """Return all entries at what rows have got, cut to fit, and by how much any row then falls short.

        got (row,) is lowered by the rounding of its group's sum, see `tree.unsure`.
        """
        place, column = np.empty((2, 2 * len(got)), dtype=np.int64)
        share = np.empty(2 * len(got))
        found = _ends(self.rate, self.need, got, self.left, self.right, place, column, share)
        row = np.concatenate((place[:found], self.others[0]))
        column = np.concatenate((column[:found], self.others[1]))
        share = np.concatenate((share[:found], self.others[2]))
        rounding = unsure(tree, got)
        short = _cut(self.rate, self.load, self.need, self.whole, rounding, got, row, column, share)
        return (row, column, share), short

    def short(self, got: Floats, left: Floats) -> float:
        """Return a bound on by how much any row will fall short, in parts of its best rate, without a look at all.

        left (column,) is what is left of the capacity; that rows on edges reach their need is known.
        """
        over = float(np.max(-left / np.maximum(self.whole, 1e-300), initial=0.0, where=self.whole > 0))
        row, column, share = self.others
        if len(row) == 0:
            return over
        rows, of = np.unique(row, return_inverse=True)
        best = np.maximum(self.rate[:, rows].max(axis=0), 1e-300)
        lost = got[rows] * self.need[rows] - np.bincount(of, self.rate[column, row] * share)
        late = np.bincount(of, share) - 1
        return over + max(float((lost / best).max()), float(late.max()), 0.0)


@kernel(inline="always")
def room_of(best: float, need: float) -> float:
    """Return the level at which a row is at its best rate: rounded so that its need there is not above that."""
    level = best / need
    return level * _BELOW if level * need > best else level


@kernel()
def rise(room: Floats, weight: Floats, group: Ints, levels: Floats) -> Floats:
    """Return what rows have got, (row,), where their groups' v is `levels`, (group + 1,)."""
    got = np.empty(len(room))
    for i in range(len(room)):
        got[i] = min(room[i], weight[i] * levels[group[i] + 1])
    return got


@kernel()
def stop(
    rate: Floats, need: Floats, free: Ints, got: Floats, room: Floats, own: Bools, frozen_in: Array, phase: int,
    after: tuple[Floats, Bools, Array],
) -> None:  # fmt: skip
    """Write room, own and frozen_in (row,) after a phase in which rows have got `got`, and `free` columns are left."""
    rooms, owns, frozen = after
    best = np.empty(_BLOCK)
    for o in range(0, len(got), _BLOCK):
        nb = min(_BLOCK, len(got) - o)
        for j in range(nb):
            best[j] = 0.0
        for k in free:
            T = rate[k, o : o + nb]
            for j in range(nb):
                best[j] = max(best[j], T[j])
        needs, has, left = need[o : o + nb], got[o : o + nb], room[o : o + nb]
        for j in range(nb):
            best[j] = room_of(best[j], needs[j])
            full = has[j] >= left[j]
            priced = (not full) & (has[j] >= best[j] * (1 - 1e-12))
            best[j] = has[j] if full | priced else min(left[j], best[j])
            owns[o + j] = own[o + j] & (not priced)
            halts = (full | priced) & (left[j] > 0.0) & (frozen_in[o + j] == 0)
            frozen[o + j] = phase if halts else frozen_in[o + j]
        for j in range(nb):
            rooms[o + j] = best[j]


@kernel()
def serve(
    rows: tuple[Floats, Floats, Floats, Floats, Floats, Ints], waiting: Ints, columns: Ints, free: Ints,
    ends: tuple[Array, Array, Array, Array], used: Floats, sums: tuple[Floats, Floats, Floats], still: Ints,
) -> int:  # fmt: skip
    """Serve those of the waiting rows that pay and keep to an edge, and list in `still` those that do not pay.

    rows: rate (column, row), load, need, got, weight, group (row,). columns: what the ends of edges, left and right
    (waiting row,), count; one after the last is the fastest of `free` for the row. Writes lefts, rights (row,), adds to
    used (column,), and to full and full_weight (group + 1,) all that pay; lost (group + 1,) is what rounding took from
    full. Returns how many are listed.
    """
    rate, load, need, got, weight, group = rows
    left, right, lefts, rights = ends
    full, full_weight, lost = sums
    found = 0
    for w in range(len(waiting)):
        i = waiting[w]
        level, best, fastest = got[i] * need[i], 0.0, -1
        for k in free:
            if fastest < 0 or rate[k, i] > best:
                best, fastest = rate[k, i], k
        lefts[i], rights[i] = -1, -1
        if not level > best * (1 + 1e-12):
            still[found] = i
            found += 1
            continue
        g = group[i] + 1
        more = got[i] - lost[g]
        after = full[g] + more
        lost[g] = (after - full[g]) - more
        full[g] = after
        full_weight[g] += weight[i]
        if left[w] == OPEN:
            continue
        begin, end = int(left[w]), int(right[w])
        begin = -1 if begin < 0 else (fastest if begin == len(columns) else columns[begin])
        end = fastest if end == len(columns) else columns[end]
        speed = rate[begin, i] if begin >= 0 else 0.0
        part = (level - speed) / (rate[end, i] - speed)
        lefts[i], rights[i] = begin, end
        used[end] += load[i] * part
        if begin >= 0:
            used[begin] += load[i] * (1.0 - part)
    return found


@kernel()
def _ends(
    rate: Floats, need: Floats, got: Floats, left: Array, right: Array, place: Ints, column: Ints, share: Floats,
) -> int:  # fmt: skip
    """Write the shares of the rows that have an edge, (2 · row,); return the number of entries."""
    found = 0
    for i in range(len(need)):
        begin, end = left[i], right[i]
        if end < 0:
            continue
        speed = rate[begin, i] if begin >= 0 else 0.0
        part = (got[i] * need[i] - speed) / (rate[end, i] - speed)
        place[found], column[found], share[found] = i, end, part
        found += 1
        if begin >= 0 and part < 1.0:
            place[found], column[found], share[found] = i, begin, 1.0 - part
            found += 1
    return found


@kernel()
def _cut(
    rate: Floats, load: Floats, need: Floats, whole: Floats, unsure: Floats, got: Floats, row: Ints, column: Ints,
    share: Floats,
) -> float:  # fmt: skip
    """Cut the entries (row, column, share) so that no row has more than got · need, its time or the capacity.

    got (row,) is lowered to what a row reaches where that is no more than `unsure` (row,) below. Returns by how much
    any other falls short at most, in parts of its best rate.
    """
    reached, time, taken = np.zeros(len(need)), np.zeros(len(need)), np.zeros(len(whole))
    for entry in range(len(row)):
        i = row[entry]
        reached[i] += rate[column[entry], i] * share[entry]
        time[i] += share[entry]
    for entry in range(len(row)):
        i = row[entry]
        share[entry] *= min(1.0, got[i] * need[i] / reached[i] if reached[i] > 0.0 else 1.0) / max(1.0, time[i])
        taken[column[entry]] += load[i] * share[entry]
    reached[:] = 0.0
    for entry in range(len(row)):
        k = column[entry]
        share[entry] *= min(1.0, whole[k] / taken[k] if taken[k] > 0.0 else 1.0)
        reached[row[entry]] += rate[k, row[entry]] * share[entry]
    worst = 0.0
    for i in range(len(need)):
        short = got[i] * need[i] - reached[i]
        if short > 0.0:
            best = 0.0
            for k in range(len(whole)):
                best = max(best, rate[k, i])
            if short <= unsure[i] * need[i]:
                got[i] = reached[i] / need[i]
            else:
                worst = max(worst, short / best if best > 0.0 else 1.0)
    return worst
