"""Predicted ends of gangs: a binary heap that knows the position of each gang in it.

Each gang has one entry, which moves when its end moves, so no entry is ever out of date. Earlier ends come first; of
equal ends the one predicted first. `heap` holds `ENTRY`s. `counts` holds the number of gangs in the heap, the number of
ends predicted so far, and then each job's position, -1 = none: apart from the jobs' rows, because every change moves
several other entries.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints

ENTRY = np.dtype([("when", np.float64), ("foreseen", np.int64), ("row", np.int64)])
IN_HEAP, FORESEEN, PLACES = 0, 1, 2


@kernel(allocates=False, forceinline=True)
def _put(heap: Array, counts: Ints, place: int, when: float, foreseen: int, row: int) -> None:
    entry = heap[place]
    entry["when"], entry["foreseen"], entry["row"] = when, foreseen, row
    counts[PLACES + row] = place


@kernel(allocates=False, forceinline=True)
def _sift(heap: Array, counts: Ints, length: int, place: int, when: float, foreseen: int, row: int) -> None:
    """Move an entry up or down from the free position `place`."""
    while place > 0:
        above = heap[(place - 1) >> 1]
        if when > above["when"] or (when == above["when"] and foreseen > above["foreseen"]):
            break
        _put(heap, counts, place, above["when"], above["foreseen"], above["row"])
        place = (place - 1) >> 1
    _sink(heap, counts, length, place, when, foreseen, row)


@kernel(allocates=False, forceinline=True)
def _sink(heap: Array, counts: Ints, length: int, place: int, when: float, foreseen: int, row: int) -> None:
    """Move an entry down from the free position `place`."""
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
        _put(heap, counts, place, least["when"], least["foreseen"], least["row"])
        place = below
    _put(heap, counts, place, when, foreseen, row)


@kernel(allocates=False, forceinline=True)
def forget_end(heap: Array, counts: Ints, row: int) -> None:
    """Remove a gang from the heap, if it is there."""
    place = counts[PLACES + row]
    if place < 0:
        return
    counts[PLACES + row] = -1
    counts[IN_HEAP] -= 1
    length = counts[IN_HEAP]
    if place < length:
        last = heap[length]
        _sift(heap, counts, length, place, last["when"], last["foreseen"], last["row"])


@kernel(allocates=False)
def forget_ends(heap: Array, counts: Ints, rows: Ints) -> None:
    """Remove many gangs at once, and restore the order of the heap."""
    for row in rows:
        counts[PLACES + row] = -1
    length = 0
    for place in range(counts[IN_HEAP]):
        entry = heap[place]
        if counts[PLACES + entry["row"]] >= 0:
            _put(heap, counts, length, entry["when"], entry["foreseen"], entry["row"])
            length += 1
    counts[IN_HEAP] = length
    for place in range(length // 2 - 1, -1, -1):
        entry = heap[place]
        _sink(heap, counts, length, place, entry["when"], entry["foreseen"], entry["row"])


@kernel(allocates=False, forceinline=True)
def foresee_end(heap: Array, counts: Ints, row: int, when: float) -> None:
    """Insert a gang, or move it to its new end; inf = no end is predicted."""
    if when == np.inf:
        forget_end(heap, counts, row)
        return
    place = counts[PLACES + row]
    if place < 0:
        place = counts[IN_HEAP]
        counts[IN_HEAP] += 1
    _sift(heap, counts, counts[IN_HEAP], place, when, counts[FORESEEN], row)
    counts[FORESEEN] += 1


@kernel(allocates=False, forceinline=True)
def note_next(heap: Array, counts: Ints, next_end: Floats) -> None:
    """Write the time of the next end into `next_end`, (1,); inf when none is predicted."""
    next_end[0] = heap[0]["when"] if counts[IN_HEAP] > 0 else np.inf


def no_ends(jobs: int) -> tuple[Array, Ints]:
    """Return `heap` and `counts` for so many jobs, none of which runs."""
    counts = np.full(PLACES + jobs, -1, dtype=np.int64)
    counts[:PLACES] = 0
    return np.empty(jobs, dtype=ENTRY), counts
