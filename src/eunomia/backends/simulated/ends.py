"""The ends that are foreseen: a binary heap of gangs that knows where each of them stands in it.

One entry a gang, moved when its end moves, so that nothing in the heap is ever out of date. Earlier ends come first;
of equal ends the one that was foreseen first. `heap` holds `ENTRY`s, `counts` = (gangs in the heap, foreseen so far),
and the column `place` of `gangs` says where each gang's entry is, -1 = it has none.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from eunomia.kernels import BARE
from eunomia.model.arrays import Array, Floats, Ints

ENTRY = np.dtype([("when", np.float64), ("foreseen", np.int64), ("row", np.int64)])
IN_HEAP, FORESEEN = 0, 1


@njit(**BARE, forceinline=True)
def _put(gangs: Array, heap: Array, place: int, when: float, foreseen: int, row: int) -> None:
    entry = heap[place]
    entry["when"], entry["foreseen"], entry["row"] = when, foreseen, row
    gangs[row]["place"] = place


@njit(**BARE, forceinline=True)
def _sift(gangs: Array, heap: Array, length: int, place: int, when: float, foreseen: int, row: int) -> None:
    """Put an entry where it belongs, up or down from the hole at `place`."""
    while place > 0:
        above = heap[(place - 1) // 2]
        if when > above["when"] or (when == above["when"] and foreseen > above["foreseen"]):
            break
        _put(gangs, heap, place, above["when"], above["foreseen"], above["row"])
        place = (place - 1) // 2
    while 2 * place + 1 < length:
        below = 2 * place + 1
        least = heap[below]
        if below + 1 < length:
            other = heap[below + 1]
            if other["when"] < least["when"] or (
                other["when"] == least["when"] and other["foreseen"] < least["foreseen"]
            ):
                below, least = below + 1, other
        if when < least["when"] or (when == least["when"] and foreseen < least["foreseen"]):
            break
        _put(gangs, heap, place, least["when"], least["foreseen"], least["row"])
        place = below
    _put(gangs, heap, place, when, foreseen, row)


@njit(**BARE, forceinline=True)
def forget_end(gangs: Array, heap: Array, counts: Ints, row: int) -> None:
    """Take a gang out of the heap, if it is in it."""
    place = gangs[row]["place"]
    if place < 0:
        return
    gangs[row]["place"] = -1
    counts[IN_HEAP] -= 1
    length = counts[IN_HEAP]
    if place < length:
        last = heap[length]
        _sift(gangs, heap, length, place, last["when"], last["foreseen"], last["row"])


@njit(**BARE, forceinline=True)
def foresee_end(gangs: Array, heap: Array, counts: Ints, row: int, when: float) -> None:
    """Put a gang into the heap, or move it to where its new end belongs; inf = no end is foreseen."""
    if when == np.inf:
        forget_end(gangs, heap, counts, row)
        return
    place = gangs[row]["place"]
    if place < 0:
        place = counts[IN_HEAP]
        counts[IN_HEAP] += 1
    _sift(gangs, heap, counts[IN_HEAP], place, when, counts[FORESEEN], row)
    counts[FORESEEN] += 1


@njit(**BARE, forceinline=True)
def note_next(heap: Array, counts: Ints, next_end: Floats) -> None:
    """Write the time of the next end into `next_end`, (1,); inf when none is foreseen."""
    next_end[0] = heap[0]["when"] if counts[IN_HEAP] > 0 else np.inf
