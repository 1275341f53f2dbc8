"""Jobs in the order of their rank, kept from pass to pass and changed where something happened.

What a moment changes is all that is looked at again: jobs that come or go, and running jobs whose key grew or fell.
Keys of waiting jobs stay, so that their line (`core.waiting_line`) stays sorted in place; running jobs whose key
changes or who may be stopped have a line of their own. This is the one place that keeps an order; the pass of
`core.ranked_pass` goes along both lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.core.kernel_arrays import (
    ALIVE,
    DONE,
    ON_TYPE,
    PARTNER,
    RATE,
    RATE_SINCE,
    SCALE_FACTOR,
    SERVED_SINCE,
    SERVICE,
    SHAPE,
    TOTAL,
    WIDTH,
    KernelArrays,
)
from eunomia.core.row_heap import next_place, sift
from eunomia.core.waiting_line import BLOCKS, WaitingLine, add_row, fill, is_before, no_rows, remove_row
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rank import BY_PLACE, BY_SCALE_FACTOR, BY_SERVICE_LEVEL, BY_SUBMISSION, key_of, level_of
from eunomia.model.rounding import rounded_as_seen

_NEARLY = 1.0 - 1e-8  # so that no rounding of service or time matters
HOLDING, ODD, SPAN = range(3)  # of `span`: jobs with seats; whether one of them has seats that a pass would not give it
NOT_KEPT = -1  # in place of `HOLDING`: nothing is known of the order
# The arrays of `rank_line`.
LineArrays = tuple[Floats, Ints, Ints, Ints, Floats, Ints, Ints, Ints, Ints, Ints, Ints, Ints]


class RankLine(NamedTuple):
    """How jobs are ranked, and their lines."""

    by: int  # a constant of `model.rank`
    quantum: float  # accelerator-seconds of a level
    recall: bool  # seats may be taken back at any moment
    queues: bool  # the first gang that does not fit stops the queue; else it is passed over
    capacity: Floats  # (type,) accelerators in service
    key: Floats  # (row,) of those in the lines
    line: Ints  # (place,) rows that hold seats, by key, then row; only kept where `has_line`
    holding: Ints  # (place,) the same rows, ascending
    span: Ints
    steady: Floats  # (row,) until when the level of a running job holds at least
    next_level: Ints  # (place,) rows that hold seats: a heap by `steady`
    place_there: Ints  # (row,) its place in it
    waiting: WaitingLine


@kernel(allocates=False, forceinline=True)
def rank_line(by: int, quantum: float, recall: bool, queues: bool, capacity: Floats, lines: LineArrays) -> RankLine:
    """Name the arrays of `no_lines`."""
    key, line, holding, span, steady, next_level, place_there = lines[:7]
    waiting = WaitingLine(lines[7], lines[8], lines[9], lines[10], lines[11])
    return RankLine(
        by, quantum, recall, queues, capacity, key, line, holding, span, steady, next_level, place_there, waiting
    )


def no_lines(rows: int, waiting: int, devices: int, types: int) -> LineArrays:
    """Return the arrays of lines that are not kept yet: of so many rows, of which so many may wait, and devices."""
    span = np.full(SPAN, NOT_KEPT, dtype=np.int64)
    line, holding, heap = np.empty((3, 2 * devices + 1), dtype=np.int64)  # two jobs may share seats
    steady, place_there = np.full(rows, -np.inf), np.zeros(rows, dtype=np.int64)
    return np.zeros(rows), line, holding, span, steady, heap, place_there, *no_rows(waiting, types)


def lines_of(key: Floats, running: Ints, waiting: Ints, devices: int, types: int) -> LineArrays:
    """Return the arrays of lines of running jobs, in row order, and waiting ones, in the order of `key`, (row,)."""
    lines = no_lines(len(key), len(running) + len(waiting), devices, types)
    lines[0][:], lines[2][: len(running)], lines[3][HOLDING] = key, running, len(running)
    lines[1][: len(running)] = running[np.argsort(key[running], kind="stable")]
    lines[5][: len(running)], lines[6][running] = running, np.arange(len(running))  # of equal times
    fill(WaitingLine(*lines[7:]), waiting)
    return lines


@kernel(allocates=False, forceinline=True)
def service_of(t: KernelArrays, row: int, at: float) -> float:
    """Return the attained accelerator-seconds of a job as a view has them."""
    held = (at - t.ledger_floats[SERVED_SINCE, row]) * t.ledger_ints[WIDTH, row]
    return float(rounded_as_seen(t.ledger_floats[SERVICE, row] + held))


@kernel(allocates=False, forceinline=True)
def _remaining(t: KernelArrays, row: int, at: float) -> float:
    """Return the believed steps that a job still has to do as a view has them."""
    floats = t.belief_floats
    run = max(at - floats[RATE_SINCE, row], 0.0) * floats[RATE, row]
    return float(rounded_as_seen(max(floats[TOTAL, row] - floats[DONE, row] - run, 0.0)))


@kernel(allocates=False, forceinline=True)
def _key_now(t: KernelArrays, rank: RankLine, row: int, at: float) -> float:
    """Return the key of a job; the least is first."""
    if rank.by == BY_PLACE:
        return float(rank.key[row])
    if rank.by == BY_SUBMISSION:
        return 0.0
    size, service, remaining, best = t.ints[SCALE_FACTOR, row], 0.0, 0.0, 0.0
    if rank.by == BY_SERVICE_LEVEL:
        service = service_of(t, row, at)
    elif rank.by != BY_SCALE_FACTOR:
        remaining = _remaining(t, row, at)
        for k in range(len(rank.capacity)):
            if size <= rank.capacity[k]:
                best = max(best, t.throughput[row, k])
    return float(key_of(rank.by, rank.quantum, size, service, remaining, best))


@kernel(allocates=False, forceinline=True)
def has_line(rank: RankLine) -> bool:
    """Return whether running jobs have a line: those that may be stopped, or whose level others wait for."""
    return bool(rank.recall or rank.by == BY_SERVICE_LEVEL)


@kernel(allocates=False, forceinline=True)
def place_of(rank: RankLine, row: int) -> int:
    """Return the place of a job in the line of those with seats, or where it would belong."""
    low: int = 0
    high: int = rank.span[HOLDING]
    while low < high:
        middle = (low + high) >> 1
        if is_before(rank.key, rank.line[middle], row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False, forceinline=True)
def _settle_at(rank: RankLine, row: int, place: int) -> None:
    """Move a job with seats whose key has changed from its `place` to where it belongs."""
    line = rank.line
    while place > 0 and is_before(rank.key, row, line[place - 1]):
        line[place] = line[place - 1]
        place -= 1
    while place + 1 < rank.span[HOLDING] and is_before(rank.key, line[place + 1], row):
        line[place] = line[place + 1]
        place += 1
    line[place] = row


@kernel(allocates=False, forceinline=True)
def _holding_place(rank: RankLine, row: int) -> int:
    """Return the place of a job among those that hold seats, or where it belongs."""
    low: int = 0
    high: int = rank.span[HOLDING]
    while low < high:
        middle = (low + high) >> 1
        if rank.holding[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False, forceinline=True)
def _hold(rank: RankLine, row: int) -> None:
    """Note that a job, which has its key, holds seats."""
    line, holding, count = rank.line, rank.holding, rank.span[HOLDING]
    place = _holding_place(rank, row)
    if place < count and holding[place] == row:
        return
    for later in range(count, place, -1):
        holding[later] = holding[later - 1]
    holding[place], rank.steady[row] = row, -np.inf
    place = place_of(rank, row)
    for later in range(count, place, -1):
        line[later] = line[later - 1]
    line[place], rank.span[HOLDING] = row, count + 1
    sift(rank.next_level, rank.place_there, rank.steady, row, count, count + 1)


@kernel(allocates=False, forceinline=True)
def _let_go(rank: RankLine, row: int) -> None:
    """Note that a job holds no seats any more."""
    line, holding, count = rank.line, rank.holding, rank.span[HOLDING]
    place = _holding_place(rank, row)
    if place == count or holding[place] != row:
        return
    for later in range(place + 1, count):
        holding[later - 1] = holding[later]
    for later in range(place_of(rank, row) + 1, count):
        line[later - 1] = line[later]
    rank.span[HOLDING] = count - 1
    last = rank.next_level[count - 1]
    if last != row:
        sift(rank.next_level, rank.place_there, rank.steady, last, rank.place_there[row], count - 1)


@kernel(allocates=False, forceinline=True)
def note_submission(t: KernelArrays, rank: RankLine, row: int, at: float) -> None:
    """Add a job that was submitted."""
    rank.key[row] = _key_now(t, rank, row, at)
    add_row(t, rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def note_withdrawal(rank: RankLine, row: int) -> None:
    """Undo `note_submission`."""
    remove_row(rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def note_end(rank: RankLine, row: int) -> None:
    """Note a job that has ended on its seats."""
    if has_line(rank):
        _let_go(rank, row)


@kernel(allocates=False, forceinline=True)
def note_start(rank: RankLine, row: int) -> None:
    """Note a job that waited and got seats."""
    remove_row(rank.waiting, rank.key, row)
    if has_line(rank):
        _hold(rank, row)


@kernel(allocates=False, forceinline=True)
def note_pass(rank: RankLine, stopped: Ints, started: Ints) -> None:
    """Note which jobs hold seats after a pass; those that it started have left the line of waiting jobs."""
    if has_line(rank):
        for row in stopped:
            _let_go(rank, row)
        for row in started:
            _hold(rank, row)


@kernel(allocates=False, forceinline=True)
def note_stop(t: KernelArrays, rank: RankLine, row: int, at: float) -> None:
    """Note a job that was stopped, and whose progress is known now: it waits, or has moved to other seats."""
    _let_go(rank, row)
    rank.key[row] = _key_now(t, rank, row, at)
    if t.ints[ON_TYPE, row] >= 0:
        _hold(rank, row)
    else:
        add_row(t, rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def begin_lines(t: KernelArrays, rank: RankLine, at: float) -> None:
    """Make the lines of all active jobs, unless they are kept."""
    if rank.span[HOLDING] != NOT_KEPT:
        return
    rank.span[HOLDING] = rank.span[ODD] = rank.waiting.tally[BLOCKS] = 0
    for row in t.active[: t.counts[ALIVE]]:
        on = t.ints[ON_TYPE, row]
        if on < 0:
            note_submission(t, rank, row, at)
        elif has_line(rank):
            rank.span[ODD] |= t.ints[SHAPE, row] != 0 or t.ints[PARTNER, row] != -1 or not t.throughput[row, on] > 0
            rank.key[row] = _key_now(t, rank, row, at)
            _hold(rank, row)


@kernel(allocates=False, forceinline=True)
def raise_levels(t: KernelArrays, rank: RankLine, at: float, scratch: Ints) -> None:
    """Bring running jobs to their places if they are ranked by levels of service, which rise; few of them change."""
    count, due, place = rank.span[HOLDING], 0, 0
    if rank.by != BY_SERVICE_LEVEL:
        return
    while place < count:
        row = rank.next_level[place]
        may_change = rank.steady[row] <= at
        scratch[due] = row
        due += may_change
        place = next_place(place, may_change, count)
    for row in scratch[:due]:
        service = service_of(t, row, at)
        now = level_of(service, rank.quantum)
        left = (now + 1.0) * rank.quantum * _NEARLY - service
        rank.steady[row] = at + left / t.ledger_ints[WIDTH, row]
        sift(rank.next_level, rank.place_there, rank.steady, row, rank.place_there[row], count)
        if now != rank.key[row]:
            place = place_of(rank, row)
            rank.key[row] = now
            _settle_at(rank, row, place)


@kernel(allocates=False, forceinline=True)
def lower_keys(t: KernelArrays, rank: RankLine, at: float, begin: int) -> None:
    """Bring running jobs from that place of their line on to their places if they are ranked by what remains.

    It falls, so that the others, whose keys may be old, are still before all that they were before.
    """
    if rank.by <= BY_SCALE_FACTOR or rank.by == BY_SERVICE_LEVEL:
        return
    for place in range(begin, rank.span[HOLDING]):
        row = rank.line[place]
        rank.key[row] = _key_now(t, rank, row, at)
        _settle_at(rank, row, place)
