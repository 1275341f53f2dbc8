"""What each row takes at given prices, and which rows take the same at all prices of a box.

At prices p a place k is worth g_k = c_ik − s_i p_k to row i, and idling 0. A row without a floor takes the best of
these. A row with a floor f takes the best of those with T_k ≥ f and of the mixtures of two places, T_a < f ≤ T_b,
that just reach f. Arrays lie column by column, (column, row), so that neighbouring rows are taken in one stride.

A row's choice is one number: b for place b alone (b = columns: idle), (a + 1) · BASE + b for a mixture of a and b.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Array, Floats

BASE = 100  # above any number of columns
OPEN = -1  # no choice holds in the whole box
_BLOCK = 256


@njit(cache=True, fastmath={"nsz", "arcp", "contract", "reassoc"})
def choose_freely(worth: Floats, size: Floats, centre: Floats, half: Floats, choice: Array) -> Floats:
    """Write the choice of rows without floors over the box centre ± half; return what the decided rows use (column,).

    A place is the best throughout if its least value, of all prices in the box, beats the greatest of all others;
    one that is worth nothing is no better than idling.
    """
    columns, rows = worth.shape
    used = np.zeros(columns)
    surest, first, second = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    label = np.empty(_BLOCK)
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        surest[:], first[:], second[:], label[:] = 0.0, 0.0, -np.inf, columns
        for k in range(columns):
            dear, cheap = centre[k] + half[k], centre[k] - half[k]
            for j in range(length):
                c, s = worth[k, begin + j], size[begin + j]
                least = c - s * dear
                most = c - s * cheap if c > 0 else -np.inf
                label[j] = k if least > surest[j] else label[j]
                surest[j] = least if least > surest[j] else surest[j]
                lower = most if most < first[j] else first[j]
                second[j] = lower if lower > second[j] else second[j]
                first[j] = most if most > first[j] else first[j]
        for j in range(length):
            label[j] = label[j] if surest[j] > second[j] else OPEN
        for k in range(columns):
            total = 0.0
            for j in range(length):
                total += size[begin + j] if label[j] == k else 0.0
            used[k] += total
        for j in range(length):
            choice[begin + j] = int(label[j])
    return used


@njit(cache=True)
def choose(
    worth: Floats, size: Floats, rate: Floats, floor: Floats, centre: Floats, half: Floats, choice: Array
) -> Floats:
    """Write the choice of rows with floors (−inf: none) over the box; return what the decided rows use (column,)."""
    columns, rows = worth.shape
    used = np.zeros(columns)
    gain, speed, slack = np.zeros(columns + 1), np.zeros(columns + 1), np.zeros(columns + 1)
    for i in range(rows):
        for k in range(columns):
            gain[k] = worth[k, i] - size[i] * centre[k]
            speed[k], slack[k] = rate[k, i], size[i] * half[k]
        low, high = _hull_edge(gain, speed, floor[i])
        if not _holds(gain, speed, slack, floor[i], low, high):
            choice[i] = OPEN
        elif low < 0:
            choice[i] = high
            if high < columns:
                used[high] += size[i]
        else:
            choice[i] = (low + 1) * BASE + high
            part = (floor[i] - speed[low]) / (speed[high] - speed[low])
            if high < columns:
                used[high] += size[i] * part
            if low < columns:
                used[low] += size[i] * (1 - part)
    return used


@njit(cache=True)
def _hull_edge(gain: Floats, speed: Floats, floor: float) -> tuple[int, int]:
    """Return (−1, b) where b alone is best, or the mixture (a, b); some place reaches the floor."""
    low, places = 0, len(gain)
    for k in range(1, places):
        if gain[k] > gain[low] or (gain[k] == gain[low] and speed[k] > speed[low]):
            low = k
    if speed[low] >= floor:
        return -1, low
    while True:
        high, least = -1, np.inf
        for k in range(places):
            if speed[k] > speed[low] and gain[k] > -np.inf:
                slope = (gain[low] - gain[k]) / (speed[k] - speed[low])
                if slope < least or (slope == least and speed[k] > speed[high]):
                    high, least = k, slope
        if high < 0 or speed[high] >= floor:
            return low, high
        low = high


@njit(cache=True)
def _holds(gain: Floats, speed: Floats, slack: Floats, floor: float, low: int, high: int) -> bool:
    """Return whether the choice is the best for all prices within the box (slack: size times half its width)."""
    for k in range(len(gain)):
        if k in (low, high) or gain[k] == -np.inf:
            continue
        if low < 0:
            if gain[high] - gain[k] < slack[high] + slack[k]:
                return False
        else:
            part = (speed[k] - speed[low]) / (speed[high] - speed[low])
            reach = slack[k] + abs(1 - part) * slack[low] + abs(part) * slack[high]
            if (1 - part) * gain[low] + part * gain[high] - gain[k] < reach:
                return False
    return low < 0 or gain[low] - gain[high] >= slack[low] + slack[high]


@njit(cache=True)
def cheapest(size: Floats, rate: Floats, floor: Floats, price: Floats) -> Floats:
    """Return what each row uses (column, row) to reach its floor at the least cost; some place reaches it."""
    columns, rows = rate.shape
    used = np.zeros((columns, rows))
    gain, speed = np.zeros(columns + 1), np.zeros(columns + 1)
    for i in range(rows):
        for k in range(columns):
            gain[k], speed[k] = -size[i] * price[k], rate[k, i]
        low, high = _hull_edge(gain, speed, floor[i])
        part = 1.0 if low < 0 else (floor[i] - speed[low]) / (speed[high] - speed[low])
        if high < columns:
            used[high, i] = size[i] * part
        if 0 <= low < columns:
            used[low, i] = size[i] * (1 - part)
    return used


@njit(cache=True)
def in_play(worth: Floats, size: Floats, centre: Floats, half: Floats, rows: Array) -> Floats:
    """Return the worths (row, column) of rows without floors, −inf where a place is never the best in the box."""
    columns = len(worth)
    left = np.empty((len(rows), columns))
    for r in range(len(rows)):
        i, surest = rows[r], 0.0
        for k in range(columns):
            surest = max(surest, worth[k, i] - size[i] * (centre[k] + half[k]))
        for k in range(columns):
            most = worth[k, i] - size[i] * (centre[k] - half[k])
            left[r, k] = worth[k, i] if most >= surest and worth[k, i] > 0 else -np.inf
    return left


@njit(cache=True)
def proof(worth: Floats, size: Floats, rate: Floats, floor: Floats, price: Floats) -> tuple[Floats, Floats]:
    """Return λ of each floor and y of each row's time (row,) that prove the least at these prices."""
    columns, rows = worth.shape
    floor_price, time_price = np.zeros(rows), np.zeros(rows)
    gain, speed = np.zeros(columns + 1), np.zeros(columns + 1)
    for i in range(rows):
        for k in range(columns):
            gain[k], speed[k] = worth[k, i] - size[i] * price[k], rate[k, i]
        low, high = _hull_edge(gain, speed, floor[i])
        if low >= 0 and high >= 0:
            floor_price[i] = max((gain[low] - gain[high]) / (speed[high] - speed[low]), 0.0)
        for k in range(columns):
            time_price[i] = max(time_price[i], gain[k] + floor_price[i] * speed[k])
    return floor_price, time_price


@njit(cache=True, fastmath={"nsz", "arcp", "contract", "reassoc"})
def proof_freely(worth: Floats, size: Floats, price: Floats) -> Floats:
    """Return y of each row's time (row,) at these prices, for rows without floors."""
    columns, rows = worth.shape
    time_price = np.zeros(rows)
    for begin in range(0, rows, _BLOCK):
        end = min(begin + _BLOCK, rows)
        for k in range(columns):
            for i in range(begin, end):
                gain = worth[k, i] - size[i] * price[k]
                time_price[i] = gain if gain > time_price[i] else time_price[i]
    return time_price
