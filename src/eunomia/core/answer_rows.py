"""Maps the rows of an answer, which refer to its view, to rows of the job table."""

from __future__ import annotations

import numpy as np

from eunomia.core.belief import Belief
from eunomia.core.state import State
from eunomia.model.answers import Rows, Shares
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.job_lifecycle import Stage

_NO_FLOATS: Floats = np.empty(0)
_NONE, _ZERO = np.full(64, -1), np.zeros(64, dtype=np.int64)


class PendingAsk:
    """The jobs an ask was about and, once answered, the candidates that were named, as job rows."""

    __slots__ = ("active", "asked", "found", "job", "partner", "runs", "shape", "source", "type", "within", "x")

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
        # Candidates of a plain answer as the check at the border has listed them: job, type and x, None without shares.
        self.found: tuple[Ints, Ints, Floats | None] | None = None
        self.runs: Bools | None = None  # (row,) of shares: whether the job can run so; None = all that have a share
        self.source: Ints | None = None  # (row,) place in the answer; left out: all rows, as they stand there

    def renumber(self, row: Ints) -> None:
        """Name jobs by the new numbers of their rows, (row,); none of them was dropped."""
        self.active, self.job = row[self.active], row[self.job]
        self.partner = np.where(self.partner >= 0, row[self.partner], -1)


def _as_asked(n: int) -> tuple[Ints, Ints, Ints]:
    """Return partner, shape and within of n rows that name none; shared, not to be written."""
    global _NONE, _ZERO
    if n > len(_NONE):
        _NONE, _ZERO = np.full(2 * n, -1), np.zeros(2 * n, dtype=np.int64)
    return _NONE[:n], _ZERO[:n], _NONE[:n]


def job_columns(answer: Rows | Shares, question: PendingAsk, state: State) -> PendingAsk:
    """Drop rows of a checked answer whose jobs ended since the ask, and name jobs by their rows in the table."""
    if question.found is not None:
        job, type, share = question.found
        x = _NO_FLOATS if share is None else share
        return PendingAsk(question.asked, question.active, job, type, *_as_asked(len(job)), x)
    rows, x = _rows_of(answer, question.runs) if isinstance(answer, Shares) else (answer, _NO_FLOATS)
    job = question.active[rows.job]
    partner, shape, within = rows.filled()
    if rows.partner is not None:
        partner = np.where(partner >= 0, question.active[partner], -1)
    alive = state.jobs.stage[job] <= Stage.RUNNING
    alive &= (partner < 0) | (state.jobs.stage[partner] <= Stage.RUNNING)
    if not alive.all():
        job, partner, shape, within = job[alive], partner[alive], shape[alive], within[alive]
        x = x[alive] if len(x) else x
        named = PendingAsk(question.asked, question.active, job, rows.type[alive], partner, shape, within, x)
        named.source = np.flatnonzero(alive)
        return named
    return PendingAsk(question.asked, question.active, job, rows.type, partner, shape, within, x)


def _rows_of(shares: Shares, runs: Bools | None) -> tuple[Rows, Floats]:
    """Return candidates and their x; a plain X of shape (job, type) names every pair that has a share.

    What an optimiser's tolerance leaves on a type where a job cannot run is dropped.
    """
    if shares.rows is None:
        job, type = np.nonzero((shares.x > 0) & (True if runs is None else runs.reshape(shares.x.shape)))
        return Rows(job, type), np.clip(shares.x[job, type], 0.0, 1.0)
    rows, x = shares.rows, np.clip(shares.x, 0.0, 1.0)
    if runs is None or runs.all():
        return rows, x
    return Rows(rows.job[runs], rows.type[runs], *(column[runs] for column in rows.filled())), x[runs]


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
