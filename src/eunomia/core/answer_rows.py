"""Maps the rows of an answer, which refer to its view, to rows of the job table."""

from __future__ import annotations

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.state import State
from eunomia.kernels import kernel
from eunomia.model.answers import InvalidAnswer, Rows, Shares
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.job_lifecycle import Stage

_NO_FLOATS: Floats = np.empty(0)
_RUNS = int(Stage.RUNNING)
_NONE, _ZERO = np.full(64, -1), np.zeros(64, dtype=np.int64)


class PendingAsk:
    """The jobs an ask was about and, once answered, the candidates that were named, as job rows."""

    __slots__ = ("active", "asked", "job", "partner", "shape", "source", "type", "within", "x")

    def __init__(
        self,
        asked: int,
        active: Ints,
        job: Ints = NO_INTS,
        type: Ints = NO_INTS,
        partner: Ints = NO_INTS,
        shape: Ints = NO_INTS,
        within: Ints | None = None,
        x: Floats = _NO_FLOATS,
    ):
        self.asked, self.active = asked, active
        # Without gaps, so that the kernels that read them are compiled once: columns of `np.nonzero` have gaps.
        self.job, self.type = np.ascontiguousarray(job), np.ascontiguousarray(type)
        self.partner, self.shape, self.x = np.ascontiguousarray(partner), np.ascontiguousarray(shape), x
        self.within = _as_asked(len(job))[2] if within is None else within
        self.source: Ints | None = None  # (row,) place in the answer; left out: all rows, as they stand there


def _demand(holds: object, message: str) -> None:
    if not holds:
        raise InvalidAnswer(message)


def _in_range(values: Ints, low: int, high: int, what: str) -> None:
    if len(values):
        _demand(values.min() >= low and values.max() < high, f"a row names {what} outside {low} … {high - 1}")


def _rows_of(shares: Shares, jobs: int, types: int) -> tuple[Rows, Floats]:
    """Return candidates and their x; a plain X of shape (job, type) names every pair that has a share."""
    if shares.rows is not None:
        _demand(shares.x.shape == (len(shares.rows),), f"x has shape {shares.x.shape} for {len(shares.rows)} rows")
        return shares.rows, np.clip(shares.x, 0.0, 1.0)
    _demand(shares.x.shape == (jobs, types), f"x has shape {shares.x.shape}; it should be {(jobs, types)}")
    job, type = np.nonzero(shares.x > 0)
    return Rows(job, type), np.clip(shares.x[job, type], 0.0, 1.0)


@kernel()
def _simple_rows(job: Ints, type: Ints, active: Ints, types: int, stage: Ints) -> Ints:
    """Return the rows of the job table that plain rows name; nothing if a row is wrong or a job has ended."""
    found = np.empty(len(job), dtype=np.int64)
    if len(job) != len(type):
        return found[:0]
    for row in range(len(job)):
        if not (0 <= job[row] < len(active) and 0 <= type[row] < types):
            return found[:0]
        found[row] = active[job[row]]
        if stage[found[row]] > _RUNS:
            return found[:0]
    return found


def _as_asked(n: int) -> tuple[Ints, Ints, Ints]:
    """Return partner, shape and within of n rows that name none; shared, not to be written."""
    global _NONE, _ZERO
    if n > len(_NONE):
        _NONE, _ZERO = np.full(2 * n, -1), np.zeros(2 * n, dtype=np.int64)
    return _NONE[:n], _ZERO[:n], _NONE[:n]


def job_columns(answer: Rows | Shares, question: PendingAsk, state: State) -> PendingAsk:
    """Check the rows, drop those whose jobs ended since the ask, and name jobs by their rows in the table.

    Raises InvalidAnswer when a row names a job, type, partner or shape that is not there.
    """
    n, types = len(question.active), len(state.topology.types)
    if isinstance(answer, Rows) and answer.partner is None and answer.shape is None and answer.within is None:
        job = _simple_rows(answer.job, answer.type, question.active, types, state.jobs.stage)
        if len(job):
            return PendingAsk(question.asked, question.active, job, answer.type, *_as_asked(len(job)))
    rows, x = _rows_of(answer, n, types) if isinstance(answer, Shares) else (answer, _NO_FLOATS)
    _in_range(rows.job, 0, n, "a job")
    _in_range(rows.type, 0, types, "a type")
    _demand(len(rows.job) == len(rows.type), "rows.job and rows.type differ in length")
    job = question.active[rows.job]
    plain = rows.partner is None and rows.shape is None and rows.within is None
    partner, shape, within = rows.filled()
    if not plain:
        partner, shape = _check_wide(job, partner, shape, question, state)
    alive = state.jobs.stage[job] <= Stage.RUNNING
    alive &= (partner < 0) | (state.jobs.stage[partner] <= Stage.RUNNING)
    if not alive.all():
        job, partner, shape, within = job[alive], partner[alive], shape[alive], within[alive]
        x = x[alive] if len(x) else x
        named = PendingAsk(question.asked, question.active, job, rows.type[alive], partner, shape, within, x)
        named.source = np.flatnonzero(alive)
        return named
    return PendingAsk(question.asked, question.active, job, rows.type, partner, shape, within, x)


def _check_wide(job: Ints, partner: Ints, shape: Ints, question: PendingAsk, state: State) -> tuple[Ints, Ints]:
    """Check partners and shapes; return partners as rows of the job table, and shapes."""
    _in_range(partner, -1, len(question.active), "a partner")
    mates = np.where(partner >= 0, question.active[partner], -1)
    _demand((mates != job).all(), "a row pairs a job with itself")
    sizes = state.jobs.scale_factor
    _demand((sizes[job] == sizes[mates])[mates >= 0].all(), "a row pairs gangs of different scale factors")
    other = np.flatnonzero(shape)
    if len(other):
        known = state.shapes.counts_of(job[other])
        for m in np.flatnonzero((shape[other] < 0) | (shape[other] >= known))[:1].tolist():
            raise InvalidAnswer(f"a row names shape {shape[other[m]]} of a job that has {known[m]}")
        _demand((mates[other] < 0).all(), "a row gives a pair another shape")
    return mates, shape


def sizes_of(job: Ints, shape: Ints, state: State) -> Ints:
    """Return the accelerators of each row, (row,)."""
    size = state.jobs.scale_factor[job]
    if not shape.any():
        return size
    other = np.flatnonzero(shape)
    size[other] = state.shapes.size_in(job[other], shape[other])
    return size


def run_times(named: PendingAsk, size: Ints, at: float, state: State, belief: Belief) -> Floats:
    """Return how long each row is believed to run, (row,), and note in the state when seats will come free."""
    jobs, running = state.jobs, state.running()
    with np.errstate(divide="ignore", invalid="ignore"):
        run_time = belief.remaining_at(at, named.job) / belief.throughput[named.job, named.type]
        run_time += belief.start_cost(jobs.ran[named.job], jobs.no_checkpoint[named.job], size)
        left = belief.remaining_at(at, running) / belief.rate[running]
    ends = np.maximum(belief.since[running], at) + np.nan_to_num(left, nan=np.inf)
    jobs.end[running] = np.minimum(ends, jobs.until[running])
    return run_time
