"""One pass over a crowd in a box of prices and moments: rows that keep to one edge become sums.

What rows have got by a moment, v · weight or all their room, follows from the v of their group (tree.py). Of few rows,
and where a group serves its rows one after the other, a clock of all rows tells it at both ends of the box. Of very
many rows, v is known from a sample, and corrected by one pass over room and weight; an answer whose v is not in the
box has missed it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.pricing.response import doubts, walk
from eunomia.solvers.sums import summed
from eunomia.solvers.water_filling.boxes import BoxPass, MomentBox, MomentEstimate, around, maybe_free, without_free
from eunomia.solvers.water_filling.large_instance import LargeInstance, Sums
from eunomia.solvers.water_filling.tree import Clock

LARGE = 50_000  # rows from which on a clock of all rows takes too long
_BLOCK = 256
_HUGE = 1e200  # what stands for no end
_MARGIN = 1e-3, 0.3  # of v: least relative margin, and in parts of what the correction moved it by
_NEARLY_FULL = 1 - 1e-3  # part of its room that a group has got, from which on it may be full


def screened(crowd: LargeInstance, guess: MomentEstimate, times: float, low: float, high: float) -> BoxPass:
    """Settle the rows whose edge is certain in the box of `times` the guess's error."""
    free = maybe_free(crowd, guess, times)
    head = without_free(crowd.gather(np.empty(0, dtype=np.int64)), free)
    levels, begin, end = None, None, None
    if len(crowd.load) >= LARGE and "first" not in crowd.tree.inner:
        guess, followers, sure = _corrected(crowd, guess, low, high)
        box = around(guess, head, times, low, high)
        levels = _levels(followers, guess, sure, box)
    else:
        box = around(guess, head, times, low, high)
        begin, end = _got(crowd, box)
    priced = np.flatnonzero(~free)
    least, most = (side[: len(priced)] / crowd.capacity[priced] for side in (box.least, box.most))
    left, right, kept, sums = _looked_at(crowd, free, head.sums, (least, most), levels, begin, end)
    part = crowd.part * len(kept) / len(crowd.load)
    fewer = replace(without_free(crowd.gather(kept), free), sums=sums, part=part, least=box.least, most=box.most)
    return BoxPass(left, right, kept, fewer, box, head, levels)


def _looked_at(
    crowd: LargeInstance,
    free: Bools,
    before: Sums,
    price: tuple[Floats, Floats],
    levels: tuple[Floats, Floats] | None,
    begin: Floats | None,
    end: Floats | None,
) -> tuple[Array, Array, Ints, Sums]:
    """Return left and right ends (row,), the rows that stay open, and the sums with the others added."""
    n, priced = len(crowd.load), np.flatnonzero(~free)
    names = np.append(crowd.column[priced], crowd.columns if free.any() else -1).astype(np.int8)
    left, right, unsure = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8), np.empty(n + 1, dtype=np.int64)
    sums = Sums(*(np.array(getattr(before, name)) for name in Sums.__slots__))
    into = (sums.base, sums.full, sums.full_weight, sums.rising_weight, sums.rising_room, sums.rising_load)
    least, most = (np.zeros(len(sums.full)),) * 2 if levels is None else levels
    rows = np.ascontiguousarray(crowd.rate), crowd.load, crowd.need, crowd.room, crowd.weight, crowd.group
    columns, box = (priced, np.flatnonzero(free), names), (*price, least, np.minimum(most, _HUGE))
    found = screen(rows, columns, box, begin, end, (left, right, unsure), into)
    return left, right, unsure[:found].copy(), sums


def _got(crowd: LargeInstance, box: MomentBox) -> tuple[Floats, Floats]:
    """Return what rows have got at both ends of the box, (row,); all its room of a row that may stop in between."""
    clock, follow = crowd.clock()
    begin, end = (clock.at(moment)[0][len(follow) :] for moment in (box.low, box.high))
    first = np.array([False, *(inner == "first" for inner in crowd.tree.inner)])
    return begin, np.where((begin < end) & first[crowd.group + 1], crowd.room, end)


def _corrected(
    crowd: LargeInstance, guess: MomentEstimate, low: float, high: float
) -> tuple[MomentEstimate, Clock | None, Bools]:
    """Return the guess with the moment and v that all rows have where a sample has the guess's v.

    Second, a clock that is right nearby, and third, of which groups v is known.
    """
    groups = len(crowd.tree.parent)
    if groups == 0:
        return guess, None, np.ones(1, dtype=bool)
    sure = np.isfinite(guess.levels)
    v = np.where(sure, guess.levels, 0.0)
    v[0] = guess.moment
    old = crowd.sums
    full, full_weight = old.full.copy(), old.full_weight.copy()
    rising_weight, rising_room = old.rising_weight.copy(), old.rising_room.copy()
    survey(crowd.room, crowd.weight, crowd.group, v, full, full_weight, rising_weight, rising_room)
    target = float((full + rising_weight * v).sum())
    some, more = np.flatnonzero(full_weight), np.flatnonzero(rising_weight)
    room = np.concatenate((full[some], rising_room[more]))
    clock = Clock(
        crowd.tree,
        room,
        np.concatenate((some - 1, more - 1)),
        np.concatenate((full_weight[some], rising_weight[more])),
    )
    moment = guess.moment
    for _ in range(20):
        got, pace = clock.at(moment)
        step = (target - float(got.sum())) / max(float(pace.sum()), 1e-300)
        after = float(np.clip(moment + step, low, high))
        if abs(after - moment) <= 1e-7 * moment:
            break
        moment = after
    return replace(guess, moment=moment, levels=np.where(sure, guess.levels, np.nan)), clock, sure


def _levels(clock: Clock | None, guess: MomentEstimate, sure: Bools, box: MomentBox) -> tuple[Floats, Floats]:
    """Return bounds (group + 1,) of v within the box."""
    if clock is None:
        return np.array([box.low]), np.array([box.high])
    begun, low, high = (clock.levels(moment, _NEARLY_FULL) for moment in (guess.moment, box.low, box.high))
    old = np.where(sure, guess.levels, 0.0)
    moved = np.abs(np.where(np.isfinite(begun), begun, old) / np.where(old > 0, old, 1.0) - 1)
    reach = (box.high - box.low) / max(box.high, 1e-300)
    margin = np.minimum(min(_MARGIN[0], _MARGIN[1] * reach) + _MARGIN[1] * moved, 0.5)
    least = np.where(sure, np.where(np.isfinite(low), low, old) * (1 - margin), 0.0)
    most = np.where(sure, high * (1 + margin), np.inf)
    least[0], most[0] = box.low, box.high
    return least, most


@kernel()
def survey(
    room: Floats,
    weight: Floats,
    group: Ints,
    v: Floats,
    full: Floats,
    full_weight: Floats,
    rising_weight: Floats,
    rising_room: Floats,
) -> None:
    """Add what rows that have stopped at v (group + 1,) have got, and the others' weight and room, to their groups."""
    for i in range(len(room)):
        g = group[i] + 1
        rises = weight[i] * v[g] < room[i]
        full[g] += 0.0 if rises else room[i]
        full_weight[g] += 0.0 if rises else weight[i]
        rising_weight[g] += weight[i] if rises else 0.0
        rising_room[g] += room[i] if rises else 0.0


@kernel(inline="always")
def floor_of(rate: Floats, free: Ints, o: int, nb: int, floor: Floats) -> None:
    """Write each lane's best rate on the free columns, 0 without any."""
    for j in range(nb):
        floor[j] = 0.0
    for k in free:
        T = rate[k, o : o + nb]
        for j in range(nb):
            floor[j] = max(T[j], floor[j])


@kernel()
def _name_ends(nb: int, f: Floats, L: Floats, R: Floats, names: Array, lefts: Array, rights: Array) -> None:
    """Write the names of the columns at both ends of each row's edge, −1 = idle."""
    K = len(names) - 1
    for j in range(nb):
        fro, to = int(L[2, j]), int(R[2, j])
        below = names[K] if (f[j] > 0.0) & (to >= 0) else -1
        lefts[j] = names[fro] if fro >= 0 else below
        rights[j] = names[to] if to >= 0 else names[K]


@kernel(error_model="numpy")
def screen(
    rows: tuple[Floats, Floats, Floats, Floats, Floats, Ints],
    columns: tuple[Ints, Ints, Array],
    box: tuple[Floats, Floats, Floats, Floats],
    begin: Floats | None,
    end: Floats | None,
    found: tuple[Array, Array, Ints],
    sums: tuple[Floats, Floats, Floats, Floats, Floats, Floats],
) -> int:
    """Add the rows whose edge is certain to the sums (crowd.Sums), write their ends, and list the others.

    rows: rate (column, row), load, need, room, weight, group (row,). columns: the priced and the free ones, and what to
    write for each priced one and for all free ones (priced + 1,). box: least and greatest price (priced,), least and
    greatest v (group + 1,); begin, end (row,): what rows have got by its first and last moment, None where that
    follows from v. found: left, right (row,) and the list (row + 1,). Returns how many are listed.
    """
    rate, load, need, room, weight, group = rows
    priced, free, names = columns
    cheap, dear, least, most = box
    left, right, unsure = found
    base, full, full_weight, rising_weight, rising_room, rising_load = sums
    K, n, listed = len(priced), rate.shape[1], 0
    part, f, lost = np.empty((K, _BLOCK)), np.empty(_BLOCK), np.zeros(len(full))
    low, high, middle, need0, need1 = np.empty((5, _BLOCK))
    L, R, off, bad = np.empty((3, _BLOCK)), np.empty((3, _BLOCK)), np.empty((2, _BLOCK)), np.empty(_BLOCK)
    share, lanes = np.empty(_BLOCK), np.zeros((K, _BLOCK))
    price, half = 0.5 * (cheap + dear), 0.5 * (dear - cheap)
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)  # lanes of rows side by side
        needs, rooms, weights, loads = need[o : o + nb], room[o : o + nb], weight[o : o + nb], load[o : o + nb]
        groups, lefts, rights = group[o : o + nb], left[o : o + nb], right[o : o + nb]
        floor_of(rate, free, o, nb, f)
        for k in range(K):
            part[k, :nb] = rate[priced[k], o : o + nb]
        if begin is not None and end is not None:  # what each has got by the first and the last moment of the box
            for j in range(nb):
                low[j] = begin[o + j]
                high[j] = end[o + j]
        else:
            for j in range(nb):
                low[j] = min(least[groups[j] + 1] * weights[j], rooms[j])
                high[j] = min(most[groups[j] + 1] * weights[j], rooms[j])
        for j in range(nb):
            need0[j] = low[j] * needs[j]  # what it needs by then
            need1[j] = high[j] * needs[j]
            middle[j] = 0.5 * (need0[j] + need1[j])
        walk(part, f, 0, nb, price, middle, L, R)  # its edge at the middle of the box
        doubts(part, f, 0, nb, price, half, need0, need1, L, R, off, bad)  # doubtful: another is cheaper in the box
        for j in range(nb):
            idle = need1[j] <= f[j]
            bad[j] = 0.0 if idle else bad[j]
            bad[j] = 1.0 if (low[j] < high[j]) & (high[j] >= rooms[j]) else bad[j]
            sure = (bad[j] == 0.0) & (not idle)  # certain: its load is on the ends of one edge
            L[2, j] = -1.0 if idle else L[2, j]
            R[2, j] = -1.0 if idle else R[2, j]
            rising = low[j] < high[j]
            tilt = loads[j] / (R[0, j] - L[0, j]) if sure else 0.0
            share[j] = tilt * ((0.0 if rising else need0[j]) - L[0, j])
            off[0, j] = loads[j] - share[j] if sure else 0.0  # the fixed part at the other end
            off[1, j] = tilt * needs[j] * weights[j] if rising else 0.0  # what moves across per moment
        for k in range(K):
            for j in range(nb):
                up, down = R[2, j] == k, L[2, j] == k
                lanes[k, j] += (share[j] if up else 0.0) + (off[0, j] if down else 0.0)  # fixed loads, by column
        for j in range(nb):
            if bad[j] > 0.0:
                continue
            g, to, fro = groups[j] + 1, int(R[2, j]), int(L[2, j])
            if low[j] < high[j]:
                rising_weight[g] += weights[j]  # rows that rise with the moment, by group
                rising_room[g] += 2.0 * high[j]
                if to >= 0:
                    rising_load[g, to] += off[1, j]
                if fro >= 0:
                    rising_load[g, fro] -= off[1, j]
            else:
                more = high[j] - lost[g]  # rows that are full, by compensated sums
                after = full[g] + more
                lost[g] = (after - full[g]) - more
                full[g] = after
                full_weight[g] += weights[j]
        _name_ends(nb, f, L, R, names, lefts, rights)
        for j in range(nb):
            unsure[listed] = o + j  # the others are listed
            listed += int(bad[j])
    count = min(_BLOCK, n)
    for k in range(K):
        base[k] += summed(lanes[k], count)
    return listed
