"""Rows of jobs in the order of their keys, searched by what they need: those that wait, and those that run.

The rows stand in blocks. One that comes or goes moves those of its block alone. Each block knows about the smallest
gang in it, so that a search for the next gang with room skips blocks in which all are wider, and how many accelerators
its gangs need, so that those behind a place are counted by block. Where gangs are searched that end before a
reservation, it also knows about the shortest gang of each class of sizes. A pass over a deep queue so looks at the
gangs that it starts and stops and at a few numbers a block, not at the jobs that wait or run.

A place in a line is one number: that of the block in the order of blocks, shifted, plus that of the row in the block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.core.kernel_arrays import DONE, NO_CHECKPOINT, RAN, SCALE_FACTOR, TOTAL, KernelArrays
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints

BLOCK = 256  # rows of a block at most; two neighbours have more than half as many together
_NONE_FITS = 1 << 62
_SHIFT = 32  # of the block in a place
_IN_BLOCK = (1 << _SHIFT) - 1
SIZE_CLASSES = 8  # by the number of binary digits; the last has all larger ones
BLOCKS, LOOKED = range(2)  # of `tally`: blocks in use; rows and blocks at which searches looked


class JobLine(NamedTuple):
    """The arrays; every function here changes them in place. The least key is first, then the lower row."""

    rows: Ints  # (block, place)
    length: Ints  # (block,) rows in it
    least: Ints  # (block, type) no gang in it that runs on the type is smaller; no types where none is searched
    size: Ints  # (block,) accelerators that its gangs need together
    brief: Floats  # (block, size class) no gang of it is shorter, in seconds; no classes where none is searched so
    order: Ints  # (place,) the blocks in use in order, then those that are not
    tally: Ints


def no_rows(rows: int, types: int, sizes: int) -> JobLine:
    """Return a line with room for so many rows, in which none stands."""
    blocks = 4 * rows // BLOCK + 4
    return JobLine(
        np.empty((blocks, BLOCK), dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.zeros((blocks, types), dtype=np.int64),
        np.zeros(blocks, dtype=np.int64),
        np.zeros((blocks, sizes)),
        np.arange(blocks),
        np.zeros(2, dtype=np.int64),
    )


def fill(line: JobLine, rows: Ints, size: Ints) -> None:
    """Let these rows, in order, stand in an empty line; what the smallest gangs need is found in searches.

    rows, size (place,): the row and the accelerators that it needs.
    """
    used = -(-len(rows) // BLOCK)
    if used:
        line.size[:used] = np.add.reduceat(size, BLOCK * np.arange(used))
    line.rows.reshape(-1)[: len(rows)] = rows
    line.length[:used] = np.minimum(len(rows) - BLOCK * np.arange(used), BLOCK)
    line.least[:used], line.brief[:used], line.tally[BLOCKS] = 0, 0.0, used


@kernel(allocates=False, forceinline=True)
def is_before(key: Floats, one: int, other: int) -> bool:
    """Return whether a row stands before another."""
    return bool(key[one] < key[other] or (key[one] == key[other] and one < other))


@kernel(allocates=False)
def _find(line: JobLine, key: Floats, row: int) -> tuple[int, int]:
    """Return the place in `order` of the block in which a row stands or belongs, and its place there."""
    low, high = 0, max(line.tally[BLOCKS] - 1, 0)
    while low < high:
        middle = (low + high + 1) >> 1
        if is_before(key, row, line.rows[line.order[middle], 0]):
            high = middle - 1
        else:
            low = middle
    block = line.order[low]
    first, end = 0, line.length[block]
    while first < end:
        middle = (first + end) >> 1
        if is_before(key, line.rows[block, middle], row):
            first = middle + 1
        else:
            end = middle
    return low, first


@kernel(allocates=False, forceinline=True)
def run_time(t: KernelArrays, row: int) -> float:
    """Return how long a waiting job is believed to run on the first type, as `answer_rows.run_times`."""
    floats, begun = t.belief_floats, int(t.flags[RAN, row])
    left = max(floats[TOTAL, row] - floats[DONE, row], 0.0) / t.throughput[row, 0]
    return float(left + t.cost[begun + begun * int(t.flags[NO_CHECKPOINT, row]), t.ints[SCALE_FACTOR, row]])


@kernel(allocates=False, forceinline=True)
def _know_nothing(line: JobLine, block: int) -> None:
    """Let a block know of no gang."""
    line.least[block], line.brief[block] = _NONE_FITS, np.inf


@kernel(allocates=False, forceinline=True)
def _know(t: KernelArrays, line: JobLine, block: int, row: int) -> None:
    """Let a block know of the gang of a row."""
    size = t.ints[SCALE_FACTOR, row]
    for k in range(line.least.shape[1]):
        if t.throughput[row, k] > 0:
            line.least[block, k] = min(line.least[block, k], size)
    if line.brief.shape[1] > 0 and t.throughput[row, 0] > 0:
        of = _class_of(size)
        line.brief[block, of] = min(line.brief[block, of], run_time(t, row))


@kernel(allocates=False, forceinline=True)
def _know_those_of(line: JobLine, block: int, other: int) -> None:
    """Let a block know of the gangs of another block, too."""
    for k in range(line.least.shape[1]):
        line.least[block, k] = min(line.least[block, k], line.least[other, k])
    for of in range(line.brief.shape[1]):
        line.brief[block, of] = min(line.brief[block, of], line.brief[other, of])


@kernel(allocates=False, forceinline=True)
def _class_of(size: int) -> int:
    """Return the class of a size, from 2 to the power of the class on."""
    of = 0
    while of + 1 < SIZE_CLASSES and size >= 2 << of:
        of += 1
    return of


@kernel(allocates=False, forceinline=True)
def _open(line: JobLine, at: int) -> int:
    """Take a block into use at that place of `order`, and return it."""
    order, used = line.order, line.tally[BLOCKS]
    fresh: int = order[used]
    for place in range(used, at, -1):
        order[place] = order[place - 1]
    order[at] = fresh
    line.length[fresh] = line.size[fresh] = 0
    _know_nothing(line, fresh)
    line.tally[BLOCKS] = used + 1
    return fresh


@kernel(allocates=False, forceinline=True)
def _close(line: JobLine, at: int) -> None:
    """Take a block out of use."""
    order, used = line.order, line.tally[BLOCKS] - 1
    block = order[at]
    for place in range(at, used):
        order[place] = order[place + 1]
    order[used] = block
    line.tally[BLOCKS] = used


@kernel(allocates=False)
def add_row(t: KernelArrays, line: JobLine, key: Floats, row: int) -> None:
    """Add a row, which has its key."""
    rows, length, size, full = line.rows, line.length, line.size, line.rows.shape[1]
    if line.tally[BLOCKS] == 0:
        _open(line, 0)
    at, place = _find(line, key, row)
    block = line.order[at]
    if length[block] == full:  # who comes last begins a block of its own, as such often follow each other
        kept = full if place == full and at + 1 == line.tally[BLOCKS] else full // 2
        fresh = _open(line, at + 1)
        for other in range(kept, full):
            rows[fresh, other - kept] = rows[block, other]
            size[fresh] += t.ints[SCALE_FACTOR, rows[block, other]]
        length[block], length[fresh] = kept, full - kept
        size[block] -= size[fresh]
        if kept < full:
            _know_those_of(line, fresh, block)
        if place >= kept:
            block, place = fresh, place - kept
    for other in range(length[block], place, -1):
        rows[block, other] = rows[block, other - 1]
    rows[block, place] = row
    length[block] += 1
    size[block] += t.ints[SCALE_FACTOR, row]
    _know(t, line, block, row)


@kernel(allocates=False)
def remove_row(t: KernelArrays, line: JobLine, key: Floats, row: int) -> None:
    """Take a row out, if it stands there."""
    rows, length, order = line.rows, line.length, line.order
    if line.tally[BLOCKS] == 0:
        return
    at, place = _find(line, key, row)
    block = order[at]
    if place == length[block] or rows[block, place] != row:
        return
    length[block] -= 1
    line.size[block] -= t.ints[SCALE_FACTOR, row]
    for other in range(place, length[block]):
        rows[block, other] = rows[block, other + 1]
    if length[block] == 0:
        _close(line, at)
        return
    # A block that is nearly empty takes in its neighbour, so that there are never many.
    for left in (at, at - 1):
        if left < 0 or left + 1 >= line.tally[BLOCKS]:
            continue
        into, taken = order[left], order[left + 1]
        if length[into] + length[taken] <= rows.shape[1] // 2:
            for other in range(length[taken]):
                rows[into, length[into] + other] = rows[taken, other]
            length[into] += length[taken]
            line.size[into] += line.size[taken]
            _know_those_of(line, into, taken)
            _close(line, left + 1)
            break


@kernel(allocates=False, forceinline=True)
def end_of(line: JobLine) -> int:
    """Return the place behind the last row."""
    end: int = line.tally[BLOCKS] << _SHIFT
    return end


@kernel(allocates=False)
def place_of(line: JobLine, key: Floats, row: int) -> int:
    """Return the place of a row, or of the first behind where it belongs."""
    if line.tally[BLOCKS] == 0:
        return 0
    at, place = _find(line, key, row)
    return (at << _SHIFT) + place if place < line.length[line.order[at]] else (at + 1) << _SHIFT


@kernel(allocates=False, forceinline=True)
def row_at(line: JobLine, place: int) -> int:
    """Return the row at a place; -1 = behind the last."""
    if place >= end_of(line):
        return -1
    row: int = line.rows[line.order[place >> _SHIFT], place & _IN_BLOCK]
    return row


@kernel(allocates=False, forceinline=True)
def put_row(t: KernelArrays, line: JobLine, place: int, row: int) -> None:
    """Put a row at the place of another, in a line that is not searched for gangs."""
    block, there = line.order[place >> _SHIFT], place & _IN_BLOCK
    line.size[block] += t.ints[SCALE_FACTOR, row] - t.ints[SCALE_FACTOR, line.rows[block, there]]
    line.rows[block, there] = row


@kernel(allocates=False, forceinline=True)
def place_after(line: JobLine, place: int) -> int:
    """Return the place that follows that of a row."""
    at = place >> _SHIFT
    return place + 1 if (place & _IN_BLOCK) + 1 < line.length[line.order[at]] else (at + 1) << _SHIFT


@kernel(allocates=False, forceinline=True)
def place_before(line: JobLine, place: int) -> int:
    """Return the place before another; -1 = none."""
    if place & _IN_BLOCK:
        return place - 1
    at = (place >> _SHIFT) - 1
    return (at << _SHIFT) + line.length[line.order[at]] - 1 if at >= 0 else -1


@kernel(allocates=False)
def size_from(t: KernelArrays, line: JobLine, place: int) -> int:
    """Return how many accelerators the rows from a place on need together."""
    if place >= end_of(line):
        return 0
    at, needed = place >> _SHIFT, 0
    block = line.order[at]
    line.tally[LOOKED] += line.tally[BLOCKS] - at + line.length[block] - (place & _IN_BLOCK)
    for other in range(place & _IN_BLOCK, line.length[block]):
        needed += t.ints[SCALE_FACTOR, line.rows[block, other]]
    for other in range(at + 1, line.tally[BLOCKS]):
        needed += line.size[line.order[other]]
    return needed


@kernel(allocates=False)
def first_row_short_of(t: KernelArrays, line: JobLine, size: int) -> int:
    """Return the first row behind which all others together need less than `size` accelerators; -1 = none."""
    place, behind = place_before(line, end_of(line)), 0
    row = -1
    while place >= 0 and behind < size:
        row = row_at(line, place)
        line.tally[LOOKED] += 1
        behind += t.ints[SCALE_FACTOR, row]
        place = place_before(line, place)
    return row


@kernel(allocates=False, forceinline=True)
def has_room(t: KernelArrays, row: int, room: Ints) -> bool:
    """Return whether a gang can run on a type that has room for it, (type,)."""
    fits = False
    for k in range(len(room)):
        fits |= bool(t.throughput[row, k] > 0) and bool(t.ints[SCALE_FACTOR, row] <= room[k])
    return fits


@kernel(allocates=False, forceinline=True)
def next_row(line: JobLine, key: Floats, after: int) -> int:
    """Return the first row behind another, which need not stand in the line; -1 = the first of all. -1 = none."""
    if after < 0:
        return row_at(line, 0)
    place = place_of(line, key, after)
    return row_at(line, place_after(line, place) if row_at(line, place) == after else place)


@kernel(allocates=False, forceinline=True)
def next_with_room(t: KernelArrays, line: JobLine, key: Floats, after: int, room: Ints) -> int:
    """Return the first row behind another, as `next_row`, whose gang has room; -1 = none."""
    return next_beside(t, line, key, after, room, 0.0, np.inf, 0)


@kernel(allocates=False, forceinline=True)
def _may_have(line: JobLine, block: int, room: Ints, at: float, shadow: float, extra: int) -> bool:
    """Return whether a block may have a gang that `next_beside` looks for."""
    may, brief = False, line.brief
    for k in range(len(room)):
        may |= line.least[block, k] <= room[k]
    if not may or shadow == np.inf or line.least[block, 0] <= extra:
        return bool(may)
    ends = False
    for of in range(brief.shape[1]):
        ends |= (1 << of <= room[0]) & (at + brief[block, of] <= shadow)
    return bool(ends)


@kernel(allocates=False)
def next_beside(
    t: KernelArrays, line: JobLine, key: Floats, after: int, room: Ints, at: float, shadow: float, extra: int
) -> int:
    """Return the first row behind another, as `next_row`, whose gang has room beside a reservation; -1 = none.

    That is, if `shadow` is not inf, when the reservation begins, it ends by then or needs no more than `extra`.
    """
    rows, length, tally = line.rows, line.length, line.tally
    at_block, place = 0, 0
    if after >= 0 and tally[BLOCKS] > 0:
        at_block, place = _find(line, key, after)
        if place < length[line.order[at_block]] and rows[line.order[at_block], place] == after:
            place += 1
    while at_block < tally[BLOCKS]:
        block = line.order[at_block]
        tally[LOOKED] += 1
        if _may_have(line, block, room, at, shadow, extra):
            begin = place
            while place < length[block]:
                row: int = rows[block, place]
                tally[LOOKED] += 1
                if has_room(t, row, room) and (
                    shadow == np.inf or t.ints[SCALE_FACTOR, row] <= extra or at + run_time(t, row) <= shadow
                ):
                    return row
                place += 1
            if begin == 0:  # none of them has room: what the smallest and the shortest need is found anew
                _know_nothing(line, block)
                for other in range(length[block]):
                    _know(t, line, block, rows[block, other])
        at_block, place = at_block + 1, 0
    return -1
