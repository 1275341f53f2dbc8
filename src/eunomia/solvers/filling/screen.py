"""The first look at very many rows: one pass in which most of them part with an edge that is certain.

A box around the prices and the moments of a sample is given. What rows have got by a moment, v · weight or all their
room, follows from the v of their group (tree.py), which one pass over room and weight corrects from the sample's to
that of all rows. An answer whose v is not in the box has missed it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.filling.boxes import Box, Guess, Look, around, maybe_free, without_free
from eunomia.solvers.filling.crowd import Crowd, Sums
from eunomia.solvers.filling.first import first_edges, floor_of
from eunomia.solvers.filling.tree import Clock
from eunomia.solvers.prices.response import walk

LARGE = 50_000  # rows from which on it is worth while
_BLOCK = 256
_HUGE = 1e200  # what stands for no end
_MARGIN = 1e-3, 0.3  # of v: least relative margin, and in parts of what the correction moved it by
_TRIED = 4_096  # rows
_MOST = 0.1  # part of the rows that the quick look may leave open
_WORTH = 1.1  # times the rows that the other leaves open, that the quick look may leave
_NEARLY_FULL = 1 - 1e-3  # part of its room that a group has got, from which on it may be full


def screened(crowd: Crowd, guess: Guess, times: float, low: float, high: float) -> Look:
    """Settle the rows whose edge is certain in the box of `times` the guess's error.

    No group of the crowd may serve its rows one after the other.
    """
    free = maybe_free(crowd, guess, times)
    head = without_free(crowd.gather(np.empty(0, dtype=np.int64)), free)
    guess, followers, sure = _corrected(crowd, guess, low, high)
    box = around(guess, head, times, low, high)
    least, most = _levels(followers, guess, sure, box)
    n = len(crowd.load)
    left, right = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8)
    unsure = np.empty(n + 1, dtype=np.int64)
    sums = Sums(*(np.array(getattr(head.sums, name)) for name in Sums.__slots__))
    into = (sums.base, sums.full, sums.full_weight, sums.rising_weight, sums.rising_room, sums.rising_load)
    priced = np.flatnonzero(~free)
    names = np.append(crowd.column[priced], crowd.columns if free.any() else -1).astype(np.int8)
    cheap, dear = box.least[: len(priced)] / crowd.capacity[priced], box.most[: len(priced)] / crowd.capacity[priced]
    facts = crowd.load, crowd.need, crowd.room, crowd.weight, crowd.group
    rows = crowd.rate, priced, np.flatnonzero(free), *facts
    box_of = names, cheap, dear, least, np.minimum(most, _HUGE)
    look = first_edges if _scarce(rows, box_of, tuple(np.zeros_like(sum) for sum in into)) else screen
    found = look(*rows, *box_of, left, right, unsure, *into)
    kept = unsure[:found].copy()
    fewer = replace(
        without_free(crowd.gather(kept), free),
        sums=sums,
        part=crowd.part * found / n,
        least=box.least,
        most=box.most,
    )
    return Look(left, right, kept, fewer, box, head, (least, most))


def _scarce(rows: tuple[Array, ...], box_of: tuple[Array, ...], into: tuple[Floats, ...]) -> bool:
    """Return whether most rows seem to be certain of their first edge: some are tried."""
    rate, priced, free, *facts = rows
    every = max(rate.shape[1] // _TRIED, 1)
    some = np.ascontiguousarray(rate[:, ::every]), priced, free, *(np.ascontiguousarray(v[::every]) for v in facts)
    count = some[0].shape[1]
    left, right = np.empty(count, dtype=np.int8), np.empty(count, dtype=np.int8)
    unsure = np.empty(count + 1, dtype=np.int64)
    known = *some, *box_of, left, right, unsure, *into
    quick = int(first_edges(*known))
    return quick <= _MOST * count or quick <= _WORTH * int(screen(*known))


def _corrected(crowd: Crowd, guess: Guess, low: float, high: float) -> tuple[Guess, Clock | None, Bools]:
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


def _levels(clock: Clock | None, guess: Guess, sure: Bools, box: Box) -> tuple[Floats, Floats]:
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


@kernel(error_model="numpy")
def screen(
    rate: Floats,
    priced: Ints,
    free: Ints,
    load: Floats,
    need: Floats,
    room: Floats,
    weight: Floats,
    group: Ints,
    names: Array,
    cheap: Floats,
    dear: Floats,
    least: Floats,
    most: Floats,
    left: Array,
    right: Array,
    unsure: Ints,
    base: Floats,
    full: Floats,
    full_weight: Floats,
    rising_weight: Floats,
    rising_room: Floats,
    rising_load: Floats,
) -> int:
    """Add the rows whose edge is certain to the sums (crowd.Sums), write their ends, and list the others.

    rate (column, row); priced and free number its columns; names (priced + 1,) what to write for the priced and for the
    free ones; cheap, dear (priced,) prices, least, most (group + 1,) v of the box. Returns how many
    are listed.
    """
    K, n = len(priced), rate.shape[1]
    part, f = np.empty((K, _BLOCK)), np.empty(_BLOCK)
    low, high, middle = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    need0, need1 = np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, off, bad = np.empty((3, _BLOCK)), np.empty((3, _BLOCK)), np.empty((2, _BLOCK)), np.empty(_BLOCK)
    share = np.empty(_BLOCK)
    price, half = 0.5 * (cheap + dear), 0.5 * (dear - cheap)
    found, flat = 0, len(full) == 1
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs, rooms, weights, loads = need[o : o + nb], room[o : o + nb], weight[o : o + nb], load[o : o + nb]
        groups, lefts, rights = group[o : o + nb], left[o : o + nb], right[o : o + nb]
        floor_of(rate, free, o, nb, f)
        for k in range(K):
            part[k, :nb] = rate[priced[k], o : o + nb]
        for j in range(nb):
            low[j] = least[0 if flat else groups[j] + 1]
            high[j] = most[0 if flat else groups[j] + 1]
        for j in range(nb):
            low[j] = min(low[j] * weights[j], rooms[j])
            high[j] = min(high[j] * weights[j], rooms[j])
            need0[j] = low[j] * needs[j]
            need1[j] = high[j] * needs[j]
            middle[j] = 0.5 * (need0[j] + need1[j])
        walk(part, f, 0, nb, price, middle, L, R)
        for j in range(nb):
            off[0, j] = 0.0
            off[1, j] = 0.0
        for k in range(K):
            for j in range(nb):
                off[0, j] = half[k] if L[2, j] == k else off[0, j]
                off[1, j] = half[k] if R[2, j] == k else off[1, j]
        for j in range(nb):
            ahead, span = f[j] - L[0, j], R[0, j] - L[0, j]
            rest = span - ahead
            worse = -rest * L[1, j] - ahead * R[1, j] < abs(rest) * off[0, j] + abs(ahead) * off[1, j]
            out = (need0[j] < L[0, j]) | (need1[j] > R[0, j]) | (R[2, j] < 0.0)
            bad[j] = 1.0 if out | ((L[2, j] >= 0.0) & worse) else 0.0
        for k in range(K):
            T = part[k]
            for j in range(nb):
                ahead, span = T[j] - L[0, j], R[0, j] - L[0, j]
                rest = span - ahead
                above = price[k] * span - rest * L[1, j] - ahead * R[1, j]
                worse = above < half[k] * span + abs(rest) * off[0, j] + abs(ahead) * off[1, j]
                bad[j] = 1.0 if worse & (L[2, j] != k) & (R[2, j] != k) else bad[j]
        for j in range(nb):
            idle = need1[j] <= f[j]
            bad[j] = 0.0 if idle else bad[j]
            bad[j] = 1.0 if (low[j] < high[j]) & (high[j] >= rooms[j]) else bad[j]
            sure = (bad[j] == 0.0) & (not idle)
            L[2, j] = -1.0 if idle else L[2, j]
            R[2, j] = -1.0 if idle else R[2, j]
            rising = low[j] < high[j]
            tilt = loads[j] / (R[0, j] - L[0, j]) if sure else 0.0
            share[j] = tilt * ((0.0 if rising else need0[j]) - L[0, j])
            off[0, j] = loads[j] - share[j] if sure else 0.0
            off[1, j] = tilt * needs[j] * weights[j] if rising else 0.0
        for j in range(nb):
            if bad[j] > 0.0:
                unsure[found] = o + j
                found += 1
                continue
            g, begin, end = (0 if flat else groups[j] + 1), int(L[2, j]), int(R[2, j])
            if end >= 0:
                base[end] += share[j]
                rising_load[g, end] += off[1, j]
                if begin >= 0:
                    base[begin] += off[0, j]
                    rising_load[g, begin] -= off[1, j]
            if low[j] < high[j]:
                rising_weight[g] += weights[j]
                rising_room[g] += 2.0 * high[j]
            else:
                full[g] += high[j]
                full_weight[g] += weights[j]
            below = names[K] if f[j] > 0.0 else -1
            lefts[j] = names[begin] if begin >= 0 else (below if end >= 0 else -1)
            rights[j] = names[end] if end >= 0 else names[K]
    return found
