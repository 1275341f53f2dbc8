"""One pass over an answer without partners and shapes: whether it keeps every rule, and its candidates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eunomia.core.answer_check.facts import AnswerFacts, StateFacts
from eunomia.core.answer_rows import PendingAsk
from eunomia.kernels import kernel
from eunomia.model.answers import Grants, Order, Rows, Shares
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.tolerance import SOLVED
from eunomia.placement.selection import MISFIT

_RUNS = int(Stage.RUNNING)
_MOST_TYPES = 62  # that bits of one number stand for
_NAMED = -1


@kernel(allocates=False)
def _plain_shares(
    x: Floats,
    active: Ints,
    stage: Ints,
    scale_factor: Ints,
    throughput: Floats,
    capacity: Floats,
    slack: float,
    used: Floats,
    job: Ints,
    type: Ints,
    share: Floats,
) -> int:
    """List the candidates of shares (job, type) whose jobs have not ended, and return their number; -1 = look again.

    `used` (type,) is to be 0; it gets the accelerators that the shares take.
    """
    count = 0
    for m in range(len(x)):
        row, time, held = active[m], 0.0, float(scale_factor[active[m]])
        goes_on = stage[row] <= _RUNS
        for j in range(len(capacity)):
            value = x[m, j]
            if value == 0.0:
                continue
            if not (-slack <= value <= 1.0 + slack):
                return -1
            if value < 0.0:
                continue
            if throughput[row, j] <= 0.0 or held > capacity[j]:
                if value > slack:
                    return -1
                continue
            time += value
            used[j] += value * held
            if goes_on:
                job[count], type[count], share[count] = row, j, min(value, 1.0)
                count += 1
        if time > 1.0 + slack:
            return -1
    for j in range(len(capacity)):
        if used[j] > capacity[j] * (1.0 + slack) + slack:
            return -1
    return count


@kernel(allocates=False)
def _plain_rows(
    job: Ints,
    type: Ints,
    active: Ints,
    stage: Ints,
    scale_factor: Ints,
    throughput: Floats,
    capacity: Floats,
    left: Ints,
    found: Ints,
) -> bool:
    """List the rows of the job table that plain rows name; return False if a row is wrong or a job has ended.

    `left` (job,) is scratch: a bit for each type on which the job could run, or `_NAMED` once a row names the job.
    """
    for m in range(len(active)):
        place, could = active[m], 0
        if stage[place] <= _RUNS:
            size = float(scale_factor[place])
            for j in range(len(capacity)):
                if throughput[place, j] > 0.0 and size <= capacity[j]:
                    could |= 1 << j
        left[m] = could
    last, rest, place = -1, 0, 0
    for row in range(len(job)):
        m, j = job[row], type[row]
        if m != last:
            if not 0 <= m < len(active) or left[m] == _NAMED:
                return False
            last, rest, place, left[m] = m, left[m], active[m], _NAMED
        if not (0 <= j < len(capacity) and (rest >> j) & 1):
            return False
        rest ^= 1 << j
        found[row] = place
    return True


class _Granted(NamedTuple):
    """The columns of grants without partners and shapes."""

    job: Ints
    type: Ints
    row: Ints
    device: Ints
    stop: Ints
    until: Floats


class _Known(NamedTuple):
    """What grants are held against."""

    active: Ints
    scale_factor: Ints
    throughput: Floats
    capacity: Floats
    kind: Ints  # (device,) its type
    holder: Ints  # (device,) as `AnswerFacts.holder`


@kernel(allocates=False)
def _plain_grants(given: _Granted, known: _Known, at: float, left: Ints, used: Bools) -> bool:
    """Return whether whole gangs get distinct seats that are free or become free by the answer.

    `left` (job,) and `used` (device,) are scratch, to be 0 and False: a gang's seats still to come and one more.
    """
    for r in range(len(given.job)):
        m, j = given.job[r], given.type[r]
        if not (0 <= m < len(left) and 0 <= j < len(known.capacity)) or left[m] != 0 or given.until[r] <= at:
            return False
        size = known.scale_factor[known.active[m]]
        if not known.throughput[known.active[m], j] > 0.0 or size > known.capacity[j]:
            return False
        left[m] = size + 1
    for e in range(len(given.device)):
        r, device = given.row[e], given.device[e]
        if not (0 <= r < len(given.job) and 0 <= device < len(used)) or used[device]:
            return False
        used[device] = True
        left[given.job[r]] -= 1
        if known.kind[device] != given.type[r]:
            return False
    for m in given.job:
        if left[m] != 1:
            return False
    for m in given.stop:
        if not 0 <= m < len(left):
            return False
        left[m] = 1
    for device in given.device:
        holder = known.holder[device]
        if holder == -2 or (holder >= 0 and left[holder] == 0):
            return False
    return True


def _is_column(values: object, dtype: type) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == dtype


def are_plain_shares(answer: Shares, facts: AnswerFacts, question: PendingAsk) -> bool:
    """Return whether shares (job, type) keep every rule; note their candidates in the question."""
    x: Array = answer.x
    shape = len(facts.active), len(facts.types)
    if answer.rows is not None or not isinstance(x, np.ndarray) or x.shape != shape or x.dtype != np.float64:
        return False
    if answer.fill is not True and answer.fill is not False:
        return False
    job, type, share = np.empty(x.size, dtype=np.int64), np.empty(x.size, dtype=np.int64), np.empty(x.size)
    count = _plain_shares(
        np.ascontiguousarray(x), facts.active, facts.stage, facts.scale_factor, facts.throughput, facts.capacity,
        SOLVED, np.zeros(len(facts.types)), job, type, share,
    )  # fmt: skip
    if count < 0:
        return False
    question.found = job[:count], type[:count], share[:count]
    return True


def are_plain_rows(answer: Order, facts: AnswerFacts, question: PendingAsk) -> bool:
    """Return whether an order without partners and shapes keeps every rule; note its candidates in the question."""
    rows = answer.rows
    job, type = getattr(rows, "job", None), getattr(rows, "type", None)
    if not (_is_column(job, np.int64) and _is_column(type, np.int64) and len(job) == len(type)):  # type: ignore[arg-type]
        return False
    if rows.partner is not None or rows.shape is not None or rows.within is not None or len(facts.types) > _MOST_TYPES:
        return False
    if not isinstance(answer.misfit, str) or answer.misfit not in MISFIT:
        return False
    job, type = np.ascontiguousarray(job), np.ascontiguousarray(type)
    left, found = np.empty(len(facts.active), dtype=np.int64), np.empty(len(job), dtype=np.int64)
    is_right = _plain_rows(
        job, type, facts.active, facts.stage, facts.scale_factor, facts.throughput, facts.capacity, left, found
    )
    if is_right:
        question.found = found, type, None
    return bool(is_right)


def are_plain_grants(answer: Grants, facts: AnswerFacts) -> bool:
    """Return whether grants without partners and shapes keep every rule."""
    rows = answer.rows
    columns: list[Any] = [getattr(rows, "job", None), getattr(rows, "type", None)]
    columns += [answer.row, answer.device, answer.stop]
    if (
        not isinstance(rows, Rows)
        or not isinstance(facts, StateFacts)
        or not all(_is_column(one, np.int64) for one in columns)
    ):
        return False
    job, type, row, device, _ = columns
    if not _is_column(answer.until, np.float64) or not len(job) == len(type) == len(answer.until):
        return False
    if len(row) != len(device) or rows.within is not None:
        return False
    for column, plain in ((rows.partner, -1), (rows.shape, 0)):
        if column is not None and not (
            _is_column(column, np.int64) and len(column) == len(job) and (column == plain).all()
        ):
            return False
    known = _Known(
        facts.active, facts.scale_factor, facts.throughput, facts.capacity, facts.topology().type, facts.holder()
    )
    given = _Granted._make(np.ascontiguousarray(column) for column in (*columns, answer.until))
    left, used = np.zeros(len(facts.active), dtype=np.int64), np.zeros(len(known.holder), dtype=np.bool_)
    return bool(_plain_grants(given, known, facts.at, left, used))
