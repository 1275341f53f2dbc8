"""Whole assignments at least cost: rows to slots that hold several, and to queues served one row at a time.

Rows enter one by one, each along a shortest path over what the earlier ones hold (R. Jonker and A. Volgenant, "A
Shortest Augmenting Path Algorithm for Dense and Sparse Linear Assignment Problems", Computing 38, 1987). Here a column
may hold many rows, so that copies of a column cost nothing. Row prices u and column prices v ≤ 0 with
u_i + v_c ≤ cost_ic, equal where i is on c, prove the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.program import Infeasible


def soonest(time: Floats, machines: Ints) -> tuple[Ints, Ints]:
    """Return column and position from the end (1 = served last) of each row, so that the mean finish is the earliest.

    time (row, column): how long the row takes there, above 0, inf where it cannot be served; machines (column,): how
    many serve side by side. A row at position k delays k finishes, its own included, by its time: it costs k · time. So
    a column of M machines is a column of capacity M for each position (Le et al., "AlloX: Compute Allocation in
    Hybrid Clusters", EuroSys 2020, section 4). What rows have waited already is the same wherever they go. Rows that
    no column serves have −1 twice.
    """
    open_time = np.where(machines > 0, time, np.inf)
    served = np.flatnonzero(np.isfinite(open_time).any(axis=1))
    served = served[np.argsort(-open_time[served].min(axis=1), kind="stable")]  # long rows seldom have to move again
    deep = np.where(machines > 0, -(-len(served) // np.maximum(machines, 1)), 0)  # (column,) positions that may be used
    column = np.repeat(np.arange(len(machines)), deep)
    factor = np.concatenate([np.arange(1, depth + 1) for depth in deep]) if len(deep) else np.empty(0)
    slot = held(open_time[served], column, factor.astype(float), machines[column].astype(np.int64))
    places = np.full((2, len(time)), -1)
    places[:, served] = column[slot], factor[slot]
    return places[0], places[1]


def held(
    time: Floats, column: Ints, factor: Floats, capacity: Ints, more: Floats | None = None, order: Ints | None = None
) -> Ints:
    """Return the slot of each row: slot c costs time[row, column[c]] · factor[c] + more[row], holds capacity[c] rows.

    order (slot,): in which slots are looked at, as they are numbered if it is left out; among equals it decides.
    """
    more = np.zeros(len(time)) if more is None else more
    order = np.arange(len(column)) if order is None else order
    slot = _paths(np.ascontiguousarray(time, dtype=float), column, factor, np.minimum(capacity, len(time)), more, order)
    if (slot < 0).any():
        row = int(np.flatnonzero(slot < 0)[0])
        raise Infeasible(f"row {row} finds no column of finite cost that others can leave to it; allow it more columns")
    return slot


class _Slots(NamedTuple):
    """What slots are and hold, and what a search writes down."""

    column: Ints  # (slot,)
    factor: Floats
    capacity: Ints
    order: Ints  # in which they are looked at
    begin: Ints  # (slot + 1,) where in `member` its rows are
    member: Ints
    used: Ints  # (slot,) rows that it holds
    price: Floats
    shortest: Floats  # distance of a slot
    through: Ints  # the row before it
    left: Ints  # slots not looked through yet, then those that were


@kernel()
def _paths(time: Floats, column: Ints, factor: Floats, capacity: Ints, more: Floats, order: Ints) -> Ints:
    """Return the slot of each row, −1 from the first row on that cannot be held."""
    rows, slots = len(time), len(column)
    begin = np.zeros(slots + 1, np.int64)
    begin[1:] = np.cumsum(capacity)
    member, used, price = np.empty(begin[slots], np.int64), np.zeros(slots, np.int64), np.zeros(slots)
    slot, place, row_price = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64), np.zeros(rows)
    shortest, through, left = np.empty(slots), np.empty(slots, np.int64), np.empty(slots, np.int64)
    queue = np.empty(rows, np.int64)
    all_slots = _Slots(column, factor, capacity, order, begin, member, used, price, shortest, through, left)
    for row in range(rows):
        end, length, reached = _search(row, time, more, row_price, all_slots, queue)
        if end < 0:
            break
        row_price[row] += length
        for c in left[slots - reached :]:  # slots passed, whose rows had to look elsewhere
            price[c] -= length - shortest[c]
            for m in member[begin[c] : begin[c] + used[c]]:
                row_price[m] += length - shortest[c]
        free = begin[end] + used[end]
        used[end] += 1
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
    """Return the nearest slot with room (−1: none), the length of the path, and how many full slots it looked through.

    Writes `shortest`, `through`, and the end of `left`.
    """
    column, factor, capacity, order, begin, member, used, price, shortest, through, left = slots
    shortest[:] = np.inf
    left[:] = order
    remaining, length = len(column), 0.0
    queue[0], waiting = row, 1
    while True:
        for q in range(waiting):
            i = queue[q]
            for place in range(remaining):
                c = left[place]
                far = length + (time[i, column[c]] * factor[c] + more[i]) - row_price[i] - price[c]
                if far < shortest[c]:
                    shortest[c], through[c] = far, i
        nearest, best = -1, np.inf
        for place in range(remaining):
            c = left[place]
            roomy = used[c] < capacity[c]
            if shortest[c] < best or (shortest[c] == best and best < np.inf and roomy):
                nearest, best = place, shortest[c]
        if nearest < 0:
            return -1, np.inf, len(column) - remaining
        c, length = left[nearest], best
        if used[c] < capacity[c]:
            return c, length, len(column) - remaining
        remaining -= 1
        left[nearest], left[remaining] = left[remaining], c
        waiting = used[c]
        queue[:waiting] = member[begin[c] : begin[c] + waiting]
