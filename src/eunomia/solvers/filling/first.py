"""The quick look at very many rows: those that are certain of their first edge, as most are where capacity is scarce.

A row's first edge leads from idle, or from its best rate on the free columns, to the column that gives the most rate
beyond that for its price. It is certain in a box of prices if it is the best even at its highest price and the
others' lowest; and the row keeps to it while what it needs is between the ends.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.solvers.sums import summed

_BLOCK = 256
_HUGE = 1e200  # what stands for no end


@kernel(inline="always")
def floor_of(rate: Floats, free: Ints, o: int, nb: int, floor: Floats) -> None:
    """Write each lane's best rate on the free columns, 0 without any."""
    for j in range(nb):
        floor[j] = 0.0
    for k in free:
        T = rate[k, o : o + nb]
        for j in range(nb):
            floor[j] = max(T[j], floor[j])


@kernel(error_model="numpy", inline="always")
def _certain(
    rate: Floats,
    priced: Ints,
    o: int,
    nb: int,
    floor: Floats,
    cheap: Floats,
    dear: Floats,
    need0: Floats,
    need1: Floats,
    speed: Floats,
    code: Floats,
    sure: Floats,
) -> None:
    """Write the rate and number of each lane's first column, and whether its edge is certain (1) or not (0)."""
    K = len(priced)
    best, own, other = np.zeros(nb), np.zeros(nb), np.zeros(nb)
    for j in range(nb):
        speed[j], code[j] = floor[j], -1.0
    for k in range(K):
        T, mark, unit = rate[priced[k], o : o + nb], float(k), 2.0 / max(cheap[k] + dear[k], 1e-300)
        for j in range(nb):
            score = (T[j] - floor[j]) * unit
            better = score > best[j]
            best[j] = score if better else best[j]
            speed[j] = T[j] if better else speed[j]
            code[j] = mark if better else code[j]
    for k in range(K):
        T, mark = rate[priced[k], o : o + nb], float(k)
        least, most = 1.0 / max(dear[k], 1e-300), 1.0 / cheap[k] if cheap[k] > 1e-300 else _HUGE
        for j in range(nb):
            mine, gain = code[j] == mark, T[j] - floor[j]
            other[j] = max(other[j], -1.0 if mine else gain * most)
            own[j] = gain * least if mine else own[j]
    for j in range(nb):
        within = (need1[j] <= speed[j]) & (need0[j] >= floor[j])
        sure[j] = 1.0 if (own[j] >= other[j]) & within & (code[j] >= 0.0) else 0.0


@kernel(error_model="numpy")
def first_edges(
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
    """Do what `screen.screen` does, for rows that are certain of their first edge or of no need for one."""
    K, n, flat, found = len(priced), rate.shape[1], len(full) == 1, 0
    low, high, need0, need1 = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    speed, code, sure = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    share, tilt, up, open_ = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    f, by_column, by_kind = np.zeros(_BLOCK), np.zeros((2, K, _BLOCK)), np.zeros((4, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        needs, rooms, weights, loads = need[o : o + nb], room[o : o + nb], weight[o : o + nb], load[o : o + nb]
        groups, lefts, rights = group[o : o + nb], left[o : o + nb], right[o : o + nb]
        floor_of(rate, free, o, nb, f)
        if flat:
            for j in range(nb):
                low[j], high[j] = least[0], most[0]
        else:
            for j in range(nb):
                low[j], high[j] = least[groups[j] + 1], most[groups[j] + 1]
        for j in range(nb):
            low[j] = min(low[j] * weights[j], rooms[j])
            high[j] = min(high[j] * weights[j], rooms[j])
            need0[j], need1[j] = low[j] * needs[j], high[j] * needs[j]
        _certain(rate, priced, o, nb, f, cheap, dear, need0, need1, speed, code, sure)
        for j in range(nb):
            idle = need1[j] <= f[j]
            rising = low[j] < high[j]
            known = (idle | (sure[j] > 0.0)) & ((low[j] >= high[j]) | (high[j] < rooms[j]))
            open_[j] = 0.0 if known else 1.0
            code[j] = -1.0 if idle else code[j]
            steep = loads[j] / (speed[j] - f[j]) if known & (not idle) else 0.0
            share[j] = steep * ((0.0 if rising else need0[j]) - f[j])
            tilt[j] = steep * needs[j] * weights[j] if rising else 0.0
            up[j] = 1.0 if rising else 0.0
        for k in range(K):
            mark = float(k)
            for j in range(nb):
                by_column[0, k, j] += share[j] if code[j] == mark else 0.0
                by_column[1, k, j] += tilt[j] if code[j] == mark else 0.0
        if flat:
            for j in range(nb):
                part = (1.0 - open_[j]) * up[j]
                rest = (1.0 - open_[j]) - part
                by_kind[0, j] += part * weights[j]
                by_kind[1, j] += 2.0 * part * high[j]
                by_kind[2, j] += rest * high[j]
                by_kind[3, j] += rest * weights[j]
        else:
            for j in range(nb):
                if open_[j] > 0.0:
                    continue
                g = groups[j] + 1
                if code[j] >= 0.0:
                    rising_load[g, int(code[j])] += tilt[j]
                if up[j] > 0.0:
                    rising_weight[g] += weights[j]
                    rising_room[g] += 2.0 * high[j]
                else:
                    full[g] += high[j]
                    full_weight[g] += weights[j]
        for j in range(nb):
            end = int(code[j])
            lefts[j] = names[K] if (f[j] > 0.0) & (end >= 0) else -1
            rights[j] = names[end] if end >= 0 else names[K]
        for j in range(nb):
            unsure[found] = o + j
            found += int(open_[j])
    lanes = min(_BLOCK, n)
    for k in range(K):
        base[k] += summed(by_column[0, k], lanes)
    if flat:
        for k in range(K):
            rising_load[0, k] += summed(by_column[1, k], lanes)
        rising_weight[0] += summed(by_kind[0], lanes)
        rising_room[0] += summed(by_kind[1], lanes)
        full[0] += summed(by_kind[2], lanes)
        full_weight[0] += summed(by_kind[3], lanes)
    return found
