"""Whole assignments at least cost: rows to slots that hold several, and to queues served one row at a time.

Rows enter one by one, each along a shortest path over what the earlier ones hold (R. Jonker and A. Volgenant, "A
Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems", Computing 38, 1987). Here a column
may hold many rows, so that copies of a column cost nothing, and each more may cost more than the last. Row prices u and
column prices v with u_i + v_c ≤ cost_ic, equal where i is on c, and −v_c between the last place's cost and the next
one's, prove the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.program import Infeasible


def soonest(time: Floats, machines: Ints, free_in: Floats | None = None) -> tuple[Ints, Ints]:
    """Return column and position from the end (1 = served last) of each row, so that the mean finish is the earliest.

    time (row, column): how long the row takes there, above 0, inf where it cannot be served; machines (column,): how
    many serve side by side; free_in (column, machine): when they are free, ascending; at once if it is left out. A row
    at position k delays k finishes, its own included, by its time: it costs k · time + free_in. So a column of M
    machines is, for each position, a column of capacity M of which the machines that are free first are used first (Le
    et al., "AlloX: Compute Allocation in Hybrid Clusters", EuroSys 2020, section 4). What rows have waited already is
    the same wherever they go. Rows that no column serves have −1 twice.
    """
    open_time = np.where(machines > 0, time, np.inf)
    served = np.flatnonzero(np.isfinite(open_time).any(axis=1))
    served = served[np.argsort(-open_time[served].min(axis=1), kind="stable")]  # long rows seldom have to move again
    machines = machines.astype(np.int64)
    delay = np.zeros((len(machines), 1 + int(machines.max(initial=0)))) if free_in is None else free_in
    deepest = np.where(machines > 0, len(served), 0)
    deep = np.minimum(deepest, 1 + -(-len(served) // max(int(machines.sum()), 1)))  # (column,) positions that are open
    while True:
        column = np.repeat(np.arange(len(machines)), deep)
        factor = np.concatenate([np.arange(1, depth + 1) for depth in deep]) if len(deep) else np.empty(0, np.int64)
        slot = _held(open_time[served], column, factor.astype(float), machines[column], delay=delay)
        more = (deep < deepest) & (
            _last_is_short(slot, column, factor == deep[column], machines, delay) | (slot < 0).any()
        )
        if not more.any():
            break
        deep = np.where(more, np.minimum(2 * deep, deepest), deep)
    places = np.full((2, len(time)), -1)
    places[:, served] = column[slot], factor[slot]
    return places[0], places[1]


def _last_is_short(slot: Ints, column: Ints, is_last: Bools, machines: Ints, delay: Floats) -> Bools:
    """Return of which columns a position behind the last may be worth more than the place that the last has left.

    It is not where that place is of a machine that is free as early as any: a later position costs more.
    """
    used = np.zeros(len(machines), dtype=np.int64)
    used[column[is_last]] = np.bincount(slot[slot >= 0], minlength=len(column))[is_last]
    next_free = delay[np.arange(len(machines)), np.minimum(used, delay.shape[1] - 1)]
    return np.asarray((used > 0) & ((used >= machines) | (next_free > delay[:, 0])))


def held(
    time: Floats, column: Ints, factor: Floats, capacity: Ints, more: Floats | None = None, order: Ints | None = None
) -> Ints:
    """Return the slot of each row: slot c costs time[row, column[c]] · factor[c] + more[row], holds capacity[c] rows.

    order (slot,): in which slots are looked at, as they are numbered if it is left out; among equals it decides.
    """
    slot = _held(time, column, factor, capacity, more=more, order=order)
    if (slot < 0).any():
        row = int(np.flatnonzero(slot < 0)[0])
        raise Infeasible(f"row {row} finds no column of finite cost that others can leave to it; allow it more columns")
    return slot


def _held(
    time: Floats, column: Ints, factor: Floats, capacity: Ints,
    *, more: Floats | None = None, delay: Floats | None = None, order: Ints | None = None,
) -> Ints:  # fmt: skip
    """Return the slot of each row as `held` does, −1 from the first row that has none.

    delay (column, place): what the first, second … row of a slot costs beside, ascending.
    """
    more = np.zeros(len(time)) if more is None else more
    capacity = np.minimum(capacity, len(time))
    delay = np.zeros((time.shape[1], int(capacity.max(initial=0)))) if delay is None else delay
    order = np.arange(len(column)) if order is None else order
    matrix, delay = (np.ascontiguousarray(one, dtype=float) for one in (time, delay))
    return _paths(matrix, column, factor, capacity, more, delay, order)


class _Slots(NamedTuple):
    """What slots are and hold, and what a search writes down."""

    column: Ints  # (slot,)
    factor: Floats
    delay: Floats  # (column, place) what the next row of a slot costs beside
    capacity: Ints
    order: Ints  # in which they are looked at
    begin: Ints  # (slot + 1,) where in `member` its rows are
    member: Ints
    used: Ints  # (slot,) rows that it holds
    price: Floats
    room: Floats  # what its next row costs beside, and its price; inf = it is full
    shortest: Floats  # distance of a slot
    through: Ints  # the row before it
    left: Ints  # slots not looked through yet, then those that were


@kernel()
def _paths(
    time: Floats, column: Ints, factor: Floats, capacity: Ints, more: Floats, delay: Floats, order: Ints
) -> Ints:
    """Return the slot of each row, −1 from the first row on that cannot be held."""
    rows, slots = len(time), len(column)
    begin = np.zeros(slots + 1, np.int64)
    begin[1:] = np.cumsum(capacity)
    member, used, price = np.empty(begin[slots], np.int64), np.zeros(slots, np.int64), np.zeros(slots)
    slot, place, row_price = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64), np.zeros(rows)
    room = np.full(slots, np.inf)
    for c in range(slots):
        if capacity[c] > 0:
            room[c] = delay[column[c], 0]
    shortest, through, left = np.empty(slots), np.empty(slots, np.int64), np.empty(slots, np.int64)
    queue = np.empty(rows, np.int64)
    all_slots = _Slots(
        column, factor, delay, capacity, order, begin, member, used, price, room, shortest, through, left
    )
    for row in range(rows):
        end, length, reached = _search(row, time, more, row_price, all_slots, queue)
        if end < 0:
            break
        row_price[row] += length
        for c in left[slots - reached :]:  # slots looked through, whose rows had to look elsewhere
            price[c] -= length - shortest[c]
            room[c] -= length - shortest[c]
            for m in member[begin[c] : begin[c] + used[c]]:
                row_price[m] += length - shortest[c]
        free = begin[end] + used[end]
        used[end] += 1
        room[end] = delay[column[end], used[end]] + price[end] if used[end] < capacity[end] else np.inf
        while True:
            moved = through[end]
            before, gap = slot[moved], place[moved]
            member[free], slot[moved], place[moved] = moved, end, free
            if moved == row:
                break
            end, free = before, gap
    return slot


@kernel()
def _search(
    row: int, time: Floats, more: Floats, row_price: Floats, slots: _Slots, queue: Ints
) -> tuple[int, float, int]:
    """Return the slot with the nearest place (−1: none), the length of the path, and how many slots it looked through.

    Writes `shortest`, `through`, and the end of `left`.
    """
    column, factor, order, begin, member = slots.column, slots.factor, slots.order, slots.begin, slots.member
    used, price, room, shortest, through, left = slots[7:]
    shortest[:] = np.inf
    left[:] = order
    remaining, length = len(column), 0.0
    queue[0], waiting = row, 1
    end, end_length = -1, np.inf  # of the slots looked through, the one with the nearest place left
    while True:
        for q in range(waiting - 1):
            i = queue[q]
            for c in left[:remaining]:
                far = length + (time[i, column[c]] * factor[c] + more[i]) - row_price[i] - price[c]
                if far < shortest[c]:
                    shortest[c], through[c] = far, i
        i = queue[waiting - 1] if waiting > 0 else -1  # its distances are taken in on the way to the nearest slot
        nearest, best, last, last_length = -1, np.inf, end, end_length
        for place in range(remaining):
            c = left[place]
            if i >= 0:
                far = length + (time[i, column[c]] * factor[c] + more[i]) - row_price[i] - price[c]
                if far < shortest[c]:
                    shortest[c], through[c] = far, i
            reach = shortest[c]
            if reach < best:
                nearest, best = place, reach
            to_place = reach + room[c]
            if to_place <= last_length:
                last, last_length = c, to_place
        if last_length <= best:  # also where both are infinite: no slot is in reach
            return last if last_length < np.inf else -1, last_length, len(column) - remaining
        c, length = left[nearest], best
        if shortest[c] + room[c] < end_length:
            end, end_length = c, shortest[c] + room[c]
        remaining -= 1
        left[nearest], left[remaining] = left[remaining], c
        waiting = used[c]
        queue[:waiting] = member[begin[c] : begin[c] + waiting]
