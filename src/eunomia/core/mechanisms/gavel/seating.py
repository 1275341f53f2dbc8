"""Where the chosen sit: the widest first; on the seats of the round before if they are still free, else the next."""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.model.arrays import Bools, Ints


@njit(cache=True)
def _stays(head: int, chain: Ints, given: Bools) -> bool:
    """Say whether no seat of that chain is given yet."""
    seat = head
    while seat >= 0:
        if given[seat]:
            return False
        seat = chain[seat]
    return True


@njit(cache=True)
def _by_size(rows: Ints, sizes: Ints) -> Ints:
    return rows[np.argsort(-sizes[rows], kind="mergesort")]


@njit(cache=True)
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
    """Seat entries; return which of `chosen` sit, by type, then size, those that stay first.

    chosen, on, sizes, placed (row,): entry, its type and size, whether it gets seats at all. devices, begin: those of
    type j, in order, are devices[begin[j]:begin[j + 1]]. `head`, `last_type` (entry,) and
    `chain` (device,) say where entries sat in the round before. Seats of the i-th to sit are
    seats[start[i]:start[i + 1]]; `kept` (row,) says who stayed.
    """
    given = np.zeros(len(chain), np.bool_)
    seated = np.empty(len(chosen), np.int64)
    n = filled = 0
    start[0] = 0
    for j in range(len(begin) - 1):
        rows = _by_size(np.flatnonzero(on == j), sizes)
        pointer, low = begin[j], 0
        while low < len(rows):
            high = low + 1
            while high < len(rows) and sizes[rows[high]] == sizes[rows[low]]:
                high += 1
            for row in rows[low:high]:
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
            for row in rows[low:high]:
                if kept[row] or not placed[row]:
                    continue
                left = sizes[row]
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


@njit(cache=True)
def remember(entry: Ints, on: Ints, start: Ints, seats: Ints, head: Ints, last_type: Ints, chain: Ints, n: int) -> None:
    """Note where the entries of this round sit, for the next; nobody else sits anywhere."""
    last_type[:n] = -1
    head[:n] = -1
    for i in range(len(entry)):
        low, high = start[i], start[i + 1]
        head[entry[i]], last_type[entry[i]] = seats[low], on[i]
        for k in range(low, high - 1):
            chain[seats[k]] = seats[k + 1]
        chain[seats[high - 1]] = -1
