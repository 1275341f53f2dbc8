"""The line: jobs in the order of their rank, kept from pass to pass and changed where something happened.

What a moment changes is all that is looked at again: jobs that come or go, and running jobs whose key grew or fell.
Keys of waiting jobs stay, so their part of the line stays sorted in place. This is the one place that keeps an order;
the pass of `core.ranked_pass` walks it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.core.kernel_arrays import (
    ALIVE,
    DONE,
    ON_TYPE,
    RATE,
    RATE_SINCE,
    SCALE_FACTOR,
    SERVED_SINCE,
    SERVICE,
    STAGE,
    TOTAL,
    WIDTH,
    KernelArrays,
)
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.rank import BY_PLACE, BY_SCALE_FACTOR, BY_SERVICE_LEVEL, BY_SUBMISSION, key_of, level_of
from eunomia.model.rounding import rounded_as_seen
from eunomia.model.sorting import sort_into

_RUNS = int(Stage.RUNNING)
_NEARLY = 1.0 - 1e-8  # so that no rounding of service or time matters
HEAD, TAIL, KNOWN, HOLDING, SPAN = range(5)  # of `span`: begin and end of the line, rows that it knows, jobs with seats
NOT_KEPT = -1  # in place of `TAIL`


class RankLine(NamedTuple):
    """How jobs are ranked, and the line."""

    by: int  # a constant of `model.rank`
    quantum: float  # accelerator-seconds of a level
    recall: bool  # seats may be taken back at any moment
    queues: bool  # the first gang that does not fit stops the queue; else it is passed over
    capacity: Floats  # (type,) accelerators in service
    line: Ints  # (place,) rows by key, then row, from span[HEAD] to span[TAIL]
    key: Floats  # (row,) of those in the line
    holding: Ints  # (place,) rows that hold seats, ascending
    span: Ints
    steady: Floats  # (row,) until when the level of a running job holds at least
    by_place: Floats  # (place,) scratch space


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
def is_whole(rank: RankLine) -> bool:
    """Return whether the line has running jobs too: those that may be stopped, or whose level others wait for."""
    return bool(rank.recall or rank.by == BY_SERVICE_LEVEL)


@kernel(allocates=False, forceinline=True)
def _place_of(rank: RankLine, row: int) -> int:
    """Return the place of a job in the line, or where it belongs."""
    line, key, mine = rank.line, rank.key, rank.key[row]
    low: int = rank.span[HEAD]
    high: int = rank.span[TAIL]
    while low < high:
        middle = (low + high) >> 1
        other = line[middle]
        if key[other] < mine or (key[other] == mine and other < row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel(allocates=False, forceinline=True)
def _settle_at(rank: RankLine, row: int, place: int) -> None:
    """Move a job whose key has changed from its `place` to where it belongs."""
    line, key, mine = rank.line, rank.key, rank.key[row]
    while place > rank.span[HEAD]:
        other = line[place - 1]
        if key[other] < mine or (key[other] == mine and other < row):
            break
        line[place] = other
        place -= 1
    while place + 1 < rank.span[TAIL]:
        other = line[place + 1]
        if mine < key[other] or (mine == key[other] and row < other):
            break
        line[place] = other
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
    """Note that a job holds seats."""
    place, count = _holding_place(rank, row), rank.span[HOLDING]
    if place < count and rank.holding[place] == row:  # it has moved
        return
    for later in range(count, place, -1):
        rank.holding[later] = rank.holding[later - 1]
    rank.holding[place], rank.steady[row] = row, -np.inf
    rank.span[HOLDING] = count + 1


@kernel(allocates=False, forceinline=True)
def _let_go(rank: RankLine, row: int) -> None:
    """Note that a job holds no seats any more."""
    place, count = _holding_place(rank, row), rank.span[HOLDING]
    if place < count and rank.holding[place] == row:
        for later in range(place + 1, count):
            rank.holding[later - 1] = rank.holding[later]
        rank.span[HOLDING] = count - 1


@kernel(allocates=False, forceinline=True)
def _leave(rank: RankLine, row: int) -> None:
    """Take a job out of the line, if it is there."""
    span, line = rank.span, rank.line
    place = _place_of(rank, row) if row < span[KNOWN] else span[TAIL]
    if place < span[TAIL] and line[place] == row:
        for later in range(place + 1, span[TAIL]):
            line[later - 1] = line[later]
        span[TAIL] -= 1


@kernel(allocates=False, forceinline=True)
def note_end(rank: RankLine, row: int) -> None:
    """Note a job that has ended."""
    if rank.span[TAIL] != NOT_KEPT and is_whole(rank):
        _let_go(rank, row)
        _leave(rank, row)


@kernel(allocates=False, forceinline=True)
def note_start(rank: RankLine, row: int) -> None:
    """Note a job that got seats without a pass."""
    if rank.span[TAIL] == NOT_KEPT:
        return
    if is_whole(rank):
        _hold(rank, row)
    else:
        _leave(rank, row)


@kernel(allocates=False, forceinline=True)
def note_pass(rank: RankLine, stopped: Ints, started: Ints) -> None:
    """Note which jobs hold seats after a pass."""
    if is_whole(rank):
        for row in stopped:
            _let_go(rank, row)
        for row in started:
            _hold(rank, row)


@kernel(allocates=False, forceinline=True)
def note_stop(t: KernelArrays, rank: RankLine, row: int, at: float) -> None:
    """Bring a job that was stopped, and whose progress is known now, to its place in the line."""
    place = _place_of(rank, row)
    rank.key[row] = _key_now(t, rank, row, at)
    _settle_at(rank, row, place)


@kernel(allocates=False, forceinline=True)
def _sort_line(t: KernelArrays, rank: RankLine, at: float, rows: int, scratch: Ints, order: Ints) -> None:
    """Make the line anew, of the active jobs among the first `rows`."""
    span, active, count, holding = rank.span, t.active[: t.counts[ALIVE]], 0, 0
    for row in active:
        runs = t.ints[ON_TYPE, row] >= 0
        if runs and is_whole(rank):
            rank.holding[holding], rank.steady[row] = row, -np.inf
            holding += 1
        if not runs or is_whole(rank):
            rank.key[row] = rank.by_place[count] = _key_now(t, rank, row, at)
            rank.line[count] = row
            count += 1
    if rank.by != BY_SUBMISSION:
        sort_into(rank.by_place, count, order, scratch)
        for place in range(count):
            scratch[place] = rank.line[order[place]]
        for place in range(count):
            rank.line[place] = scratch[place]
    span[HEAD], span[TAIL], span[KNOWN], span[HOLDING] = 0, count, rows, holding


@kernel(allocates=False, forceinline=True)
def _add_known(t: KernelArrays, rank: RankLine, at: float, rows: int) -> None:
    """Add the jobs that were submitted since the last pass, up to row `rows`."""
    span = rank.span
    for row in range(span[KNOWN], rows):
        if t.ints[STAGE, row] <= _RUNS and (t.ints[ON_TYPE, row] < 0 or is_whole(rank)):
            rank.key[row] = _key_now(t, rank, row, at)
            rank.line[span[TAIL]] = row
            span[TAIL] += 1
            _settle_at(rank, row, span[TAIL] - 1)
    span[KNOWN] = rows


@kernel(allocates=False, forceinline=True)
def _rank_running(t: KernelArrays, rank: RankLine, at: float) -> None:
    """Bring running jobs to their places: levels of service rise, what remains falls."""
    span, line, key = rank.span, rank.line, rank.key
    if rank.by == BY_SERVICE_LEVEL:  # few of them change
        for row in rank.holding[: span[HOLDING]]:
            if at < rank.steady[row]:
                continue
            service = service_of(t, row, at)
            now = level_of(service, rank.quantum)
            left = (now + 1.0) * rank.quantum * _NEARLY - service
            rank.steady[row] = at + left / t.ledger_ints[WIDTH, row]
            if now != key[row]:
                place = _place_of(rank, row)
                key[row] = now
                _settle_at(rank, row, place)
        return
    for row in rank.holding[: span[HOLDING]]:  # all change, nearly alike: the line stays nearly sorted
        key[row] = _key_now(t, rank, row, at)
    for place in range(span[HEAD] + 1, span[TAIL]):
        row = line[place]
        mine, free = key[row], place
        while free > span[HEAD] and (
            key[line[free - 1]] > mine or (key[line[free - 1]] == mine and line[free - 1] > row)
        ):
            line[free] = line[free - 1]
            free -= 1
        line[free] = row


@kernel(allocates=False, forceinline=True)
def update_line(t: KernelArrays, rank: RankLine, at: float, rows: int, scratch: Ints, order: Ints) -> None:
    """Bring the line up to date; `rows` jobs were submitted so far. scratch, order: (place,)."""
    if rank.span[TAIL] == NOT_KEPT:
        _sort_line(t, rank, at, rows, scratch, order)
        return
    _add_known(t, rank, at, rows)
    if is_whole(rank) and rank.by > BY_SCALE_FACTOR:
        _rank_running(t, rank, at)
