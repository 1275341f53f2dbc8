"""Seats of chosen entries: the widest first; those of the last round if still free, else the next."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Ints


@kernel(allocates=False, forceinline=True)
def _stays(head: int, chain: Ints, given: Bools) -> bool:
    """Return whether no seat of that chain is given yet."""
    seat = head
    while seat >= 0:
        if given[seat]:
            return False
        seat = chain[seat]
    return True


@kernel(allocates=False)
def _widest_first(on: Ints, sizes: Ints, widest: int, place: Ints, order: Ints) -> None:
    """Fill `order` with the rows by type, of one type the widest first, else as they stand."""
    place[:] = 0
    for row in range(len(on)):
        place[on[row] * widest + widest - sizes[row]] += 1
    before = 0
    for k in range(len(place)):
        here = place[k]
        place[k] = before
        before += here
    for row in range(len(on)):
        k = on[row] * widest + widest - sizes[row]
        order[place[k]] = row
        place[k] += 1


@kernel()
def seat(
    chosen: Ints,
    on: Ints,
    sizes: Ints,
    placed: Bools,
    devices: Ints,
    begin: Ints,
    head: Ints,
    last_type: Ints,
    chain: Ints,
    sticky: bool,
    seats: Ints,
    start: Ints,
    kept: Bools,
) -> Ints:
    """Place entries; return which of `chosen` are placed, by type, then size, those that stay first.

    chosen, on, sizes, placed (row,): entry, its type and size, whether it gets seats at all. devices, begin: those of
    type j, in order, are devices[begin[j]:begin[j + 1]]. `head`, `last_type` (entry,) and
    `chain` (device,) give seats of entries in the round before. Seats of the i-th placed are
    seats[start[i]:start[i + 1]]; `kept` (row,) marks entries that keep their seats.
    """
    rows, widest = len(chosen), sizes.max() if len(chosen) else 1
    order, seated = np.empty(rows, np.int64), np.empty(rows, np.int64)
    _widest_first(on, sizes, widest, np.empty((len(begin) - 1) * widest, np.int64), order)
    given = np.zeros(len(chain), np.bool_)
    n = filled = low = pointer = 0
    type = -1
    start[0] = 0
    while low < len(order):
        j, size, high = on[order[low]], sizes[order[low]], low + 1
        while high < len(order) and sizes[order[high]] == size and on[order[high]] == j:
            high += 1
        pointer = pointer if j == type else begin[j]
        type = j
        for row in order[low:high]:
            e = chosen[row]
            kept[row] = sticky and last_type[e] == j and _stays(head[e], chain, given)
            if kept[row]:
                device = head[e]
                while device >= 0:
                    given[device] = True
                    seats[filled] = device
                    filled += 1
                    device = chain[device]
                seated[n] = row
                n += 1
                start[n] = filled
        for row in order[low:high]:
            if kept[row] or not placed[row]:
                continue
            left = size
            while left > 0:
                device = devices[pointer]
                pointer += 1
                if not given[device]:
                    given[device] = True
                    seats[filled] = device
                    filled += 1
                    left -= 1
            seated[n] = row
            n += 1
            start[n] = filled
        low = high
    return seated[:n]


@kernel(allocates=False)
def remember(entry: Ints, on: Ints, start: Ints, seats: Ints, head: Ints, last_type: Ints, chain: Ints, n: int) -> None:
    """Store the seats of this round for the next one; no other job has seats."""
    last_type[:n] = -1
    head[:n] = -1
    for i in range(len(entry)):
        low, high = start[i], start[i + 1]
        head[entry[i]], last_type[entry[i]] = seats[low], on[i]
        for k in range(low, high - 1):
            chain[seats[k]] = seats[k + 1]
        chain[seats[high - 1]] = -1
