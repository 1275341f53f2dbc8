"""A binary heap of rows by a time of each, the earliest first, which knows the place of each row in it."""

from __future__ import annotations

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints


@kernel(allocates=False, forceinline=True)
def sift(heap: Ints, where: Ints, time: Floats, row: int, place: int, count: int) -> None:
    """Bring a row up or down a heap of `count` rows, from a free place of it.

    heap (place,), of which the first `count` are valid; where, time (row,).
    """
    while place > 0 and time[row] < time[heap[(place - 1) >> 1]]:
        heap[place] = heap[(place - 1) >> 1]
        where[heap[place]] = place
        place = (place - 1) >> 1
    while 2 * place + 1 < count:
        below = 2 * place + 1
        if below + 1 < count and time[heap[below + 1]] < time[heap[below]]:
            below += 1
        if time[row] <= time[heap[below]]:
            break
        heap[place] = heap[below]
        where[heap[place]] = place
        place = below
    heap[place], where[row] = row, place


@kernel(allocates=False, forceinline=True)
def next_place(place: int, goes_down: bool, count: int) -> int:
    """Return the place that follows in a walk of a heap of `count` rows; `count` = none.

    `goes_down`: the walk goes on below this place, where times are later, else beside it.
    """
    if goes_down and 2 * place + 1 < count:
        return 2 * place + 1
    while place > 0 and (place % 2 == 0 or place + 1 == count):
        place = (place - 1) >> 1
    return place + 1 if place > 0 else count
