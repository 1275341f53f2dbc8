"""Jobs in the order of their rank, kept from pass to pass and changed where something happened.

What a moment changes is all that is looked at again: jobs that come or go, and running jobs whose key grew or fell.
Keys of waiting jobs stay, so that their line (`core.job_line`) stays sorted in place; running jobs whose key changes or
who may be stopped have a line of their own. Keys that fall are brought up to date from the end of that line on, as far
as a pass has to know. This is the one place that keeps an order; the pass of `core.ranked_pass` goes along both lines.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from eunomia.core.job_line import (
    BLOCKS,
    LOOKED,
    JobLine,
    add_row,
    end_of,
    fill,
    is_before,
    no_rows,
    place_after,
    place_before,
    place_of,
    put_row,
    remove_row,
    row_at,
)
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
    WEIGHT,
    WIDTH,
    KernelArrays,
)
from eunomia.core.row_heap import next_place, sift
from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rank import (
    BY_PLACE,
    BY_REMAINING_SERVICE,
    BY_REMAINING_TIME,
    BY_SERVICE_LEVEL,
    BY_SUBMISSION,
    key_of,
    level_of,
)
from eunomia.model.rounding import rounded_as_seen
from eunomia.placement.selection import RESERVE

_NEARLY = 1.0 - 1e-8  # so that no rounding of service or time matters
HOLDING, ODD, SPAN = range(3)  # of `span`: jobs with seats; whether one of them has seats that a pass would not give it
NOT_KEPT = -1  # in place of `HOLDING`: nothing is known of the order
# The arrays of `rank_line`.
LineArrays: TypeAlias = tuple[
    Floats, Ints, Floats, Ints, Ints,
    Ints, Ints, Ints, Ints, Floats, Ints, Ints,
    Ints, Ints, Ints, Ints, Floats, Ints, Ints,
]  # fmt: skip
_HOLDING, _WAITING = slice(5, 12), slice(12, 19)  # of them


class RankLine(NamedTuple):
    """How jobs are ranked, and their lines."""

    by: int  # a constant of `model.rank`
    quantum: float  # accelerator-seconds of a level
    recall: bool  # seats may be taken back at any moment
    misfit: int  # what follows a gang that does not fit, a constant of `placement.selection`
    capacity: Floats  # (type,) accelerators in service
    key: Floats  # (row,) of those in the lines
    span: Ints
    steady: Floats  # (row,) until when the level of a running job holds at least
    next_level: Ints  # (place,) rows that hold seats: a heap by `steady`
    place_there: Ints  # (row,) its place in it
    holding: JobLine  # of jobs with seats; only kept where `has_line`
    waiting: JobLine


@kernel(allocates=False, forceinline=True)
def rank_line(by: int, quantum: float, recall: bool, misfit: int, capacity: Floats, lines: LineArrays) -> RankLine:
    """Name the arrays of `no_lines`."""
    key, span, steady, next_level, place_there = lines[:5]
    holding, waiting = JobLine(*lines[5:12]), JobLine(*lines[12:19])
    return RankLine(by, quantum, recall, misfit, capacity, key, span, steady, next_level, place_there, holding, waiting)


def no_lines(rows: int, waiting: int, devices: int, types: int, sizes: int = 0) -> LineArrays:
    """Return the arrays of lines that are not kept yet: of so many rows, of which so many may wait, and devices.

    `sizes` is 0, or `SIZE_CLASSES` where waiting jobs are searched by how long they run.
    """
    span, most = np.full(SPAN, NOT_KEPT, dtype=np.int64), 2 * devices + 1  # two jobs may share seats
    heap, place_there = np.empty(most, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    return (
        np.zeros(rows), span, np.full(rows, -np.inf), heap, place_there,
        *no_rows(most, 0, 0), *no_rows(waiting, types, sizes),
    )  # fmt: skip


def lines_of(key: Floats, size: Ints, running: Ints, waiting: Ints, devices: int, types: int) -> LineArrays:
    """Return the arrays of lines of running jobs, in row order, and waiting ones, in the order of `key`.

    key, size (row,): of the rows that stand in a line, `size` in accelerators. Running jobs have the seats that a pass
    would give them: in their first shape, alone.
    """
    lines = no_lines(len(key), len(running) + len(waiting), devices, types)
    count, ordered = len(running), running[np.argsort(key[running], kind="stable")]
    lines[0][:], lines[1][HOLDING], lines[1][ODD] = key, count, 0
    lines[3][:count], lines[4][running] = running, np.arange(count)  # of equal times
    fill(JobLine(*lines[_HOLDING]), ordered, size[ordered])
    fill(JobLine(*lines[_WAITING]), waiting, size[waiting])
    return lines


def forget(lines: LineArrays) -> None:
    """Note that anything may have happened since lines were kept."""
    lines[1][HOLDING] = NOT_KEPT


def looked_at(lines: LineArrays) -> int:
    """Return at how many rows and blocks of the lines passes looked."""
    return int(JobLine(*lines[_HOLDING]).tally[LOOKED] + JobLine(*lines[_WAITING]).tally[LOOKED])


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
def falls(rank: RankLine) -> bool:
    """Return whether keys of running jobs fall: they are ranked by what remains."""
    return bool(rank.by in (BY_REMAINING_TIME, BY_REMAINING_SERVICE))


@kernel(allocates=False, forceinline=True)
def _key_now(t: KernelArrays, rank: RankLine, row: int, at: float) -> float:
    """Return the key of a job; the least is first."""
    if rank.by == BY_PLACE:
        return float(rank.key[row])
    if rank.by == BY_SUBMISSION:
        return 0.0
    size, weight, service, remaining, best = t.ints[SCALE_FACTOR, row], t.floats[WEIGHT, row], 0.0, 0.0, 0.0
    if rank.by == BY_SERVICE_LEVEL:
        service = service_of(t, row, at)
    elif falls(rank):
        remaining = _remaining(t, row, at)
        for k in range(len(rank.capacity)):
            if size <= rank.capacity[k]:
                best = max(best, t.throughput[row, k])
    return float(key_of(rank.by, rank.quantum, size, weight, service, remaining, best))


@kernel(allocates=False, forceinline=True)
def has_line(rank: RankLine) -> bool:
    """Return whether running jobs have a line: those that may be stopped, or whose level or end others wait for."""
    return bool(rank.recall or rank.by == BY_SERVICE_LEVEL or rank.misfit == RESERVE)


@kernel(allocates=False, forceinline=True)
def _hold(t: KernelArrays, rank: RankLine, row: int) -> None:
    """Note that a job, which has its key, holds seats."""
    count = rank.span[HOLDING]
    rank.steady[row], rank.span[HOLDING] = -np.inf, count + 1
    add_row(t, rank.holding, rank.key, row)
    sift(rank.next_level, rank.place_there, rank.steady, row, count, count + 1)


@kernel(allocates=False, forceinline=True)
def let_go(t: KernelArrays, rank: RankLine, row: int) -> None:
    """Note that a job holds no seats any more, if it is not known."""
    count, place = rank.span[HOLDING], rank.place_there[row]
    if place >= count or rank.next_level[place] != row:
        return
    remove_row(t, rank.holding, rank.key, row)
    rank.span[HOLDING] = count - 1
    last = rank.next_level[count - 1]
    if last != row:
        sift(rank.next_level, rank.place_there, rank.steady, last, place, count - 1)


@kernel(allocates=False, forceinline=True)
def _move(t: KernelArrays, rank: RankLine, row: int, key: float) -> None:
    """Bring a job with seats to where it belongs with another key."""
    remove_row(t, rank.holding, rank.key, row)
    rank.key[row] = key
    add_row(t, rank.holding, rank.key, row)


@kernel(allocates=False, forceinline=True)
def note_submission(t: KernelArrays, rank: RankLine, row: int, at: float) -> None:
    """Add a job that was submitted."""
    rank.key[row] = _key_now(t, rank, row, at)
    add_row(t, rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def note_withdrawal(t: KernelArrays, rank: RankLine, row: int) -> None:
    """Undo `note_submission`."""
    remove_row(t, rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def note_end(t: KernelArrays, rank: RankLine, row: int) -> None:
    """Note a job that has ended on its seats."""
    if has_line(rank):
        let_go(t, rank, row)


@kernel(allocates=False, forceinline=True)
def note_start(t: KernelArrays, rank: RankLine, row: int) -> None:
    """Note a job that waited and got seats."""
    remove_row(t, rank.waiting, rank.key, row)
    if has_line(rank):
        _hold(t, rank, row)


@kernel(allocates=False, forceinline=True)
def note_pass(t: KernelArrays, rank: RankLine, stopped: Ints, started: Ints) -> None:
    """Note which jobs hold seats after a pass; those that it started have left the line of waiting jobs."""
    if has_line(rank):
        for row in stopped:
            let_go(t, rank, row)
        for row in started:
            _hold(t, rank, row)


@kernel(allocates=False, forceinline=True)
def note_stop(t: KernelArrays, rank: RankLine, row: int, at: float) -> None:
    """Note a job that was stopped, and whose progress is known now: it waits, or has moved to other seats."""
    let_go(t, rank, row)
    rank.key[row] = _key_now(t, rank, row, at)
    if t.ints[ON_TYPE, row] >= 0:
        _hold(t, rank, row)
    else:
        add_row(t, rank.waiting, rank.key, row)


@kernel(allocates=False, forceinline=True)
def begin_lines(t: KernelArrays, rank: RankLine, at: float) -> None:
    """Make the lines of all active jobs, unless they are kept."""
    if rank.span[HOLDING] != NOT_KEPT:
        return
    rank.span[HOLDING] = rank.span[ODD] = rank.holding.tally[BLOCKS] = rank.waiting.tally[BLOCKS] = 0
    for row in t.active[: t.counts[ALIVE]]:
        on = t.ints[ON_TYPE, row]
        if on < 0:
            note_submission(t, rank, row, at)
        elif has_line(rank):
            rank.span[ODD] |= t.ints[SHAPE, row] != 0 or t.ints[PARTNER, row] != -1 or not t.throughput[row, on] > 0
            rank.key[row] = _key_now(t, rank, row, at)
            _hold(t, rank, row)


@kernel(allocates=False, forceinline=True)
def raise_levels(t: KernelArrays, rank: RankLine, at: float, scratch: Ints) -> None:
    """Bring running jobs to their places if they are ranked by levels of service, which rise; few of them change."""
    count, due, place = rank.span[HOLDING], 0, 0
    if rank.by != BY_SERVICE_LEVEL:
        return
    while place < count:
        row = rank.next_level[place]
        may_change = rank.steady[row] <= at
        rank.holding.tally[LOOKED] += 1
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
            _move(t, rank, row, now)


@kernel(allocates=False, forceinline=True)
def lower_key(t: KernelArrays, rank: RankLine, at: float, place: int) -> int:
    """Bring the key of the running job before a place of their line up to date, behind which all are.

    Return the place of the first that is up to date now: that of the job, or, if others are behind it now, of the same
    as before. Since keys only fall, who is before that place is before all that are up to date.
    """
    line, key = rank.holding, rank.key
    here = place_before(line, place)
    row = row_at(line, here)
    was, key[row] = key[row], _key_now(t, rank, row, at)
    rank.holding.tally[LOOKED] += 1
    before = place_before(line, here)
    if before < 0 or is_before(key, row_at(line, before), row):
        return here
    first, now, key[row] = row_at(line, place), key[row], was
    _move(t, rank, row, now)
    return place_of(line, key, first) if first >= 0 else end_of(line)


@kernel(allocates=False, forceinline=True)
def lower_keys(t: KernelArrays, rank: RankLine, at: float) -> None:
    """Bring all keys of running jobs up to date that fall; few pass others, and none many."""
    line, key, before, place = rank.holding, rank.key, -1, 0
    end = end_of(line) if falls(rank) else 0
    while place < end:
        row, free = row_at(line, place), place
        key[row] = _key_now(t, rank, row, at)
        if before >= 0 and is_before(key, row, before):
            while free > 0 and is_before(key, row, row_at(line, place_before(line, free))):
                put_row(t, line, free, row_at(line, place_before(line, free)))
                free = place_before(line, free)
            put_row(t, line, free, row)
        else:
            before = row
        place = place_after(line, place)
