"""Many rows at once: the edge of the hull that each keeps to while prices and needs stay within a box.

Blocks of rows lie column after column in memory and every choice is a selection, so that the compiler can take several
rows at a time. `price` and `width` are tuples: their length is known to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

OPEN = -2  # as left end: more than one edge is possible
_BLOCK = 256


@kernel(error_model="numpy")
def keep(rate: Floats, low: Floats, high: Floats, price: Any, width: Any, left: Array, right: Array) -> None:
    """Fill in the ends (row,) of each row's edge, or OPEN if it may change; −1 as left end is idle.

    rate (column, row); needs lie between low and high, (row,), both below 0 where the row is open anyhow; prices lie
    within price ± width, tuples of one number for each column.
    """
    columns = len(price)
    speed0, paid0, end0, blur0 = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    speed1, paid1, end1, blur1 = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, rate.shape[1], _BLOCK):
        count = min(_BLOCK, rate.shape[1] - start)
        T, least, most = rate[:, start : start + count], low[start : start + count], high[start : start + count]
        for j in range(count):
            best, paid, end, blur = T[0, j], price[0], 0.0, width[0]
            for k in range(1, columns):
                more = T[k, j] > best
                best = T[k, j] if more else best
                paid = price[k] if more else paid
                blur = width[k] if more else blur
                end = float(k) if more else end
            speed1[j], paid1[j], end1[j], blur1[j] = best, paid, end, blur
            speed0[j], paid0[j], end0[j], blur0[j] = 0.0, 0.0, -1.0, 0.0
        for _ in range(2 * columns):
            moved = 0.0
            for j in range(count):
                run, rise = speed1[j] - speed0[j], paid1[j] - paid0[j]
                best, speed, paid, end, blur = -1e-13 * run * paid1[j], 0.0, 0.0, -1.0, 0.0
                for k in range(columns):
                    below = (price[k] - paid0[j]) * run - rise * (T[k, j] - speed0[j])
                    less = below < best
                    best = below if less else best
                    speed = T[k, j] if less else speed
                    paid = price[k] if less else paid
                    blur = width[k] if less else blur
                    end = float(k) if less else end
                found = end >= 0.0
                to_right = found and (speed >= most[j] or speed >= speed1[j])
                to_left = found and not to_right
                speed1[j] = speed if to_right else speed1[j]
                paid1[j] = paid if to_right else paid1[j]
                end1[j] = end if to_right else end1[j]
                blur1[j] = blur if to_right else blur1[j]
                speed0[j] = speed if to_left else speed0[j]
                paid0[j] = paid if to_left else paid0[j]
                end0[j] = end if to_left else end0[j]
                blur0[j] = blur if to_left else blur0[j]
                moved += 1.0 if found else 0.0
            if moved == 0.0:
                break
        for j in range(count):
            run = speed1[j] - speed0[j]
            still = 1.0 if least[j] >= speed0[j] else 0.0
            still = 0.0 if most[j] > speed1[j] * (1 + 1e-15) else still
            idle = speed0[j] * paid1[j] - speed1[j] * paid0[j] - speed1[j] * blur0[j] - speed0[j] * blur1[j]
            still = 0.0 if end0[j] >= 0.0 and idle < 0.0 else still
            for k in range(columns):
                ahead = T[k, j] - speed0[j]
                behind = run - ahead
                above = price[k] * run - behind * paid0[j] - ahead * paid1[j]
                above -= width[k] * run + abs(behind) * blur0[j] + abs(ahead) * blur1[j]
                still = 0.0 if above < 0.0 and end0[j] != float(k) and end1[j] != float(k) else still
            still = 1.0 if most[j] == 0.0 else still
            left[start + j] = np.int8(end0[j] if still > 0.0 else OPEN)
            right[start + j] = np.int8(end1[j])


@kernel()
def add_up(
    rate: Floats,
    load: Floats,
    need: Floats,
    group: Ints,
    weight: Floats,
    low: Floats,
    high: Floats,
    left: Array,
    right: Array,
    base: Floats,
    full: Floats,
    full_weight: Floats,
    rising_weight: Floats,
    rising_room: Floats,
    rising_load: Floats,
) -> None:
    """Add the rows that keep to an edge to the sums (crowd.Sums); low, high (row,) what a row gets within the box."""
    lost = np.zeros(len(full))
    for i in range(len(load)):
        if left[i] == OPEN:
            continue
        g, begin, end = group[i] + 1, left[i], right[i]
        speed = rate[begin, i] if begin >= 0 else 0.0
        tilt = load[i] / (rate[end, i] - speed) if high[i] > 0.0 else 0.0
        if low[i] == high[i]:
            share = tilt * (low[i] * need[i] - speed)
            more = high[i] - lost[g]
            after = full[g] + more
            lost[g] = (after - full[g]) - more
            full[g] = after
            full_weight[g] += weight[i]
        else:
            share = -tilt * speed
            per_v = tilt * need[i] * weight[i]
            rising_weight[g] += weight[i]
            rising_room[g] += 2 * high[i]
            rising_load[g, end] += per_v
            if begin >= 0:
                rising_load[g, begin] -= per_v
        base[end] += share
        if begin >= 0 and high[i] > 0.0:
            base[begin] += load[i] - share


@kernel()
def cut(
    rate: Floats,
    load: Floats,
    need: Floats,
    whole: Floats,
    unsure: Floats,
    got: Floats,
    row: Ints,
    column: Ints,
    share: Floats,
) -> float:
    """Cut the entries (row, column, share) so that nobody has more than got · need, its time or the capacity.

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
