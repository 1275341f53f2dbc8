"""One pass over an answer without partners and shapes: whether it keeps every rule, and its candidates."""

from __future__ import annotations

import numpy as np

from eunomia.core.answer_check.facts import AnswerFacts
from eunomia.core.answer_rows import PendingAsk
from eunomia.kernels import kernel
from eunomia.model.answers import Order, Shares
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.tolerance import SOLVED
from eunomia.placement.selection import MISFIT

_RUNS = int(Stage.RUNNING)


@kernel()
def _plain_shares(
    x: Floats, active: Ints, stage: Ints, scale_factor: Ints, throughput: Floats, capacity: Floats, slack: float,
    job: Ints, type: Ints, share: Floats,
) -> int:  # fmt: skip
    """List the candidates of shares (job, type) whose jobs have not ended, and return their number; -1 = look again."""
    n, types = x.shape
    used = np.zeros(types)
    count = 0
    for m in range(n):
        row, time = active[m], 0.0
        for j in range(types):
            value = x[m, j]
            if value == 0.0:
                continue
            if not (-slack <= value <= 1.0 + slack):
                return -1
            if value <= 0.0:
                continue
            if throughput[row, j] <= 0.0 or scale_factor[row] > capacity[j]:
                if value > slack:
                    return -1
                continue
            time += value
            used[j] += value * scale_factor[row]
            if stage[row] <= _RUNS:
                job[count], type[count], share[count] = row, j, min(value, 1.0)
                count += 1
        if time > 1.0 + slack:
            return -1
    for j in range(types):
        if used[j] > capacity[j] * (1.0 + slack) + slack:
            return -1
    return count


@kernel()
def _plain_rows(
    job: Ints, type: Ints, active: Ints, stage: Ints, scale_factor: Ints, throughput: Floats, capacity: Floats
) -> Ints:
    """Return the rows of the job table that plain rows name; nothing if a row is wrong or a job has ended."""
    n, found = len(active), np.empty(len(job), dtype=np.int64)
    seen = np.zeros(n, np.bool_)
    first = 0  # row at which the rows of the present job begin
    for row in range(len(job)):
        m, j = job[row], type[row]
        if not (0 <= m < n and 0 <= j < len(capacity)):
            return found[:0]
        if row == 0 or m != job[row - 1]:
            if seen[m]:
                return found[:0]
            seen[m], first = True, row
        for other in range(first, row):
            if type[other] == j:
                return found[:0]
        place = active[m]
        if stage[place] > _RUNS or throughput[place, j] <= 0.0 or scale_factor[place] > capacity[j]:
            return found[:0]
        found[row] = place
    return found


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
        SOLVED, job, type, share,
    )  # fmt: skip
    if count < 0:
        return False
    question.found = job[:count], type[:count], share[:count]
    return True


def are_plain_rows(answer: Order, facts: AnswerFacts, question: PendingAsk) -> bool:
    """Return whether an order without partners and shapes keeps every rule; note its candidates in the question."""
    rows = answer.rows
    job, type = getattr(rows, "job", None), getattr(rows, "type", None)
    if not (_is_column(job, np.int64) and _is_column(type, np.int64) and len(job) == len(type) > 0):  # type: ignore[arg-type]
        return False
    if rows.partner is not None or rows.shape is not None or rows.within is not None or answer.misfit not in MISFIT:
        return False
    job, type = np.ascontiguousarray(job), np.ascontiguousarray(type)
    found = _plain_rows(job, type, facts.active, facts.stage, facts.scale_factor, facts.throughput, facts.capacity)
    if not len(found):
        return False
    question.found = found, type, None
    return True
