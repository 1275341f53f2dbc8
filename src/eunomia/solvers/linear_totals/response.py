"""What each row takes at given prices, and which rows take the same at all prices of a box.

At prices p a place k is worth g_k = c_ik − s_i p_k to row i, and idling 0. A row without a floor takes the best of
these. A row with a floor f takes the best of those with T_k ≥ f and of the mixtures of two places, T_a < f ≤ T_b,
that just reach f. Arrays lie column by column, (column, row), so that neighbouring rows are taken in one stride.

A row's choice is one number: b for place b alone (b = columns: idle), (a + 1) · BASE + b for a mixture of a and b.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats
from eunomia.solvers.sums import summed

BASE = 100  # above any number of columns
OPEN = -1  # no choice holds in the whole box
_BLOCK = 256


@kernel()
def choose_freely(worth: Floats, size: Floats, mass: Floats, centre: Floats, half: Floats, choice: Array) -> Floats:
    """Write the choice of rows without floors over the box centre ± half; return what the decided rows use (column,).

    mass (row,) is the size of all that a row stands for. A place is the best throughout if its least value, of all
    prices in the box, beats the greatest of all others; one that is worth nothing is no better than idling.
    """
    columns, rows = worth.shape
    used = np.zeros(columns)
    surest, first, second = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    label, lanes = np.empty(_BLOCK), np.zeros((columns, _BLOCK))
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        for j in range(length):
            surest[j], first[j], second[j], label[j] = 0.0, 0.0, -np.inf, columns
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
            for j in range(length):
                lanes[k, j] += mass[begin + j] if label[j] == k else 0.0
        for j in range(length):
            choice[begin + j] = int(label[j])
    _join(lanes, rows, used)
    return used


@kernel(error_model="numpy")
def _join(lanes: Floats, rows: int, used: Floats) -> None:
    """Write the sums of the lanes (column, lane) to used (column,)."""
    for k in range(len(used)):
        used[k] = summed(lanes[k], min(rows, _BLOCK))


@kernel(error_model="numpy")
def choose(
    worth: Floats, size: Floats, mass: Floats, rate: Floats, floor: Floats, centre: Floats, half: Floats, choice: Array
) -> Floats:
    """Write the choice of rows with floors (−inf: none) over the box; return what the decided rows use (column,)."""
    columns, rows = worth.shape
    used = np.zeros(columns)
    gain, speed = np.zeros((columns + 1, _BLOCK)), np.zeros((columns + 1, _BLOCK))
    low, high, slack = np.empty((3, _BLOCK)), np.empty((3, _BLOCK)), np.empty((2, _BLOCK))
    part, unsure, lanes = np.empty(_BLOCK), np.empty(_BLOCK), np.zeros((columns, _BLOCK))
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        f, s, m = floor[begin : begin + length], size[begin : begin + length], mass[begin : begin + length]
        _fill(worth, size, rate, centre, begin, length, gain, speed)
        _edges(gain, speed, f, length, low, high)
        _doubt(gain, speed, s, half, length, low, high, slack, unsure)
        for j in range(length):
            span = high[1, j] - low[1, j]
            part[j] = (f[j] - low[1, j]) / span if span > 0 else 1.0
        for k in range(columns):
            for j in range(length):
                taken = (part[j] if high[2, j] == k else 0.0) + (1 - part[j] if low[2, j] == k else 0.0)
                lanes[k, j] += m[j] * taken if unsure[j] == 0.0 else 0.0
        for j in range(length):
            mixture = (low[2, j] + 1) * BASE if high[1, j] > low[1, j] else 0.0
            part[j] = mixture + high[2, j] if unsure[j] == 0.0 else OPEN
        for j in range(length):
            choice[begin + j] = int(part[j])
    _join(lanes, rows, used)
    return used


@kernel()
def _fill(
    worth: Floats, size: Floats, rate: Floats, price: Floats, begin: int, length: int, gain: Floats, speed: Floats
) -> None:
    """Write gain and speed of every place (place, lane) of a block of rows; the last place, idling, stays 0."""
    for k in range(len(worth)):
        p = price[k]
        for j in range(length):
            gain[k, j] = worth[k, begin + j] - size[begin + j] * p
            speed[k, j] = rate[k, begin + j]


@kernel(error_model="numpy")
def _edges(gain: Floats, speed: Floats, floor: Floats, length: int, low: Floats, high: Floats) -> None:
    """Write (gain, speed, place) of the ends of each lane's best mixture (3, lane); equal ends: a place alone."""
    places = len(gain)
    for j in range(length):
        low[0, j], low[1, j], low[2, j] = gain[0, j], speed[0, j], 0.0
    for k in range(1, places):
        for j in range(length):
            g, t = gain[k, j], speed[k, j]
            better = (g > low[0, j]) | ((g == low[0, j]) & (t > low[1, j]))
            low[0, j] = g if better else low[0, j]
            low[1, j] = t if better else low[1, j]
            low[2, j] = k if better else low[2, j]
    for _ in range(places):
        short = 0.0
        for j in range(length):
            short += 1.0 if low[1, j] < floor[j] else 0.0
            high[0, j], high[1, j], high[2, j] = -np.inf, low[1, j], low[2, j]
        if short > 0.0:
            _climb(gain, speed, length, low, high)
        short = 0.0
        for j in range(length):
            alone = low[1, j] >= floor[j]
            on = (not alone) & (high[1, j] < floor[j]) & (high[1, j] > low[1, j])
            high[0, j] = low[0, j] if alone else high[0, j]
            high[1, j] = low[1, j] if alone else high[1, j]
            high[2, j] = low[2, j] if alone else high[2, j]
            low[0, j] = high[0, j] if on else low[0, j]
            low[1, j] = high[1, j] if on else low[1, j]
            low[2, j] = high[2, j] if on else low[2, j]
            short += 1.0 if on else 0.0
        if short == 0.0:
            break


@kernel(error_model="numpy")
def _climb(gain: Floats, speed: Floats, length: int, low: Floats, high: Floats) -> None:
    """Write to high the faster place to which each lane's gain falls least per speed."""
    least = np.full(_BLOCK, np.inf)
    for k in range(len(gain)):
        for j in range(length):
            g, t = gain[k, j], speed[k, j]
            ahead = t - low[1, j]
            slope = (low[0, j] - g) / ahead if ahead > 0 else np.inf
            flatter = (slope < least[j]) | ((slope == least[j]) & (t > high[1, j]))
            take = (ahead > 0) & flatter
            least[j] = slope if take else least[j]
            high[0, j] = g if take else high[0, j]
            high[1, j] = t if take else high[1, j]
            high[2, j] = k if take else high[2, j]


@kernel(error_model="numpy")
def _doubt(
    gain: Floats,
    speed: Floats,
    size: Floats,
    half: Floats,
    length: int,
    low: Floats,
    high: Floats,
    slack: Floats,
    unsure: Floats,
) -> None:
    """Write 0 to unsure (lane,) where the choice is the best for all prices within the box, else 1."""
    columns = len(half)
    for j in range(length):  # (end, lane) by how much the gain of either end may differ
        slack[0, j], slack[1, j] = 0.0, 0.0
    for k in range(columns):
        for j in range(length):
            slack[0, j] = size[j] * half[k] if low[2, j] == k else slack[0, j]
            slack[1, j] = size[j] * half[k] if high[2, j] == k else slack[1, j]
    for j in range(length):
        falls = low[0, j] - high[0, j] >= slack[0, j] + slack[1, j]
        unsure[j] = 0.0 if (high[2, j] == low[2, j]) | falls else 1.0
    for k in range(columns + 1):
        wide = half[k] if k < columns else 0.0
        for j in range(length):
            span = high[1, j] - low[1, j]
            part = (speed[k, j] - low[1, j]) / span if span > 0 else 1.0
            reach = size[j] * wide + abs(1 - part) * slack[0, j] + abs(part) * slack[1, j]
            room = (1 - part) * low[0, j] + part * high[0, j] - gain[k, j]
            other = (low[2, j] != k) & (high[2, j] != k)
            unsure[j] = 1.0 if other & (room < reach) else unsure[j]


@kernel(error_model="numpy")
def cheapest(size: Floats, rate: Floats, floor: Floats, price: Floats) -> Floats:
    """Return what each row uses (column, row) to reach its floor at the least cost; some place reaches it."""
    columns, rows = rate.shape
    used, nothing = np.zeros((columns, rows)), np.zeros((columns, rows))
    gain, speed = np.zeros((columns + 1, _BLOCK)), np.zeros((columns + 1, _BLOCK))
    low, high = np.empty((3, _BLOCK)), np.empty((3, _BLOCK))
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        f = floor[begin : begin + length]
        _fill(nothing, size, rate, price, begin, length, gain, speed)
        _edges(gain, speed, f, length, low, high)
        for k in range(columns):
            for j in range(length):
                span = high[1, j] - low[1, j]
                part = (f[j] - low[1, j]) / span if span > 0 else 1.0
                taken = (part if high[2, j] == k else 0.0) + (1 - part if low[2, j] == k else 0.0)
                used[k, begin + j] = size[begin + j] * taken
    return used


@kernel(error_model="numpy")
def proof(worth: Floats, size: Floats, rate: Floats, floor: Floats, price: Floats) -> tuple[Floats, Floats]:
    """Return λ of each floor and y of each row's time (row,) that prove the least at these prices."""
    columns, rows = worth.shape
    floor_price, time_price = np.zeros(rows), np.zeros(rows)
    gain, speed = np.zeros((columns + 1, _BLOCK)), np.zeros((columns + 1, _BLOCK))
    low, high = np.empty((3, _BLOCK)), np.empty((3, _BLOCK))
    for begin in range(0, rows, _BLOCK):
        length = min(_BLOCK, rows - begin)
        _fill(worth, size, rate, price, begin, length, gain, speed)
        _edges(gain, speed, floor[begin : begin + length], length, low, high)
        of_floor, of_time = floor_price[begin : begin + length], time_price[begin : begin + length]
        for j in range(length):
            span = high[1, j] - low[1, j]
            rise = (low[0, j] - high[0, j]) / span if span > 0 else 0.0
            of_floor[j] = rise if rise > 0 else 0.0
        for k in range(columns):
            for j in range(length):
                best = gain[k, j] + of_floor[j] * speed[k, j]
                of_time[j] = best if best > of_time[j] else of_time[j]
    return floor_price, time_price


@kernel()
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
