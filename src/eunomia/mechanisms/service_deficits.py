"""Turns shares into an order by service deficit: service owed minus service received.

Every candidate of the last answer is owed x seconds per second. The largest debt at the end of the coming lease, if the
candidate got nothing of it, comes first: so every debt stays within about half a lease on either side. A running
job is preempted only for a debt of ten times the seconds that its next start would cost, so that switching costs a
tenth of the time at most; where starts cost nothing, no job is protected. Candidates without a share, and jobs
that the answer does not know, come last and only fill what would be idle.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.answer_rows import PendingAsk, sizes_of
from eunomia.core.kernel_arrays import ON_TYPE, PARTNER, SHAPE, STAGE
from eunomia.core.state import State
from eunomia.kernels import kernel
from eunomia.model.answers import ANYWHERE
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.job_lifecycle import Stage
from eunomia.model.tolerance import is_at_least
from eunomia.placement.radix_sort import rising

_RUNS = int(Stage.RUNNING)
_GRID = 1.5 * 2.0**32  # what is added to it is rounded to a millionth: debts are ranked by microseconds
_WORTH = 10.0  # seconds of debt for which a second may be spent on a change of seats


@kernel(allocates=False, forceinline=True)
def _owed(x: float, lag: float, held: bool, elapsed: float) -> float:
    """Return the debt to a row after so many seconds: its share of them minus those received on seats."""
    return lag + x * elapsed - (elapsed if held else 0.0)


@kernel(allocates=False)
def _ranked_rows(
    job: Ints,
    partner: Ints,
    size: Ints,
    x: Floats,
    lag: Floats,
    held: Bools,
    ints: Ints,
    ahead: float,
    cost: Floats,
    elapsed: float,
    rows: Ints,
    key: Floats,
) -> int:
    """Advance time; list the rows with a share whose jobs have not ended, and their keys; return their number."""
    count = 0
    for row in range(len(job)):
        mate = partner[row]
        lag[row] = _owed(x[row], lag[row], held[row], elapsed)
        if x[row] > 0 and ints[STAGE, job[row]] <= _RUNS and (mate < 0 or ints[STAGE, mate] <= _RUNS):
            rows[count] = row
            owed = lag[row] + x[row] * ahead + (_WORTH * cost[1, size[row]] if held[row] else 0.0)
            key[count] = _GRID - (owed + _GRID)
            count += 1
    return count


@kernel(allocates=False)
def _advance(x: Floats, lag: Floats, held: Bools, elapsed: float) -> None:
    """Advance time for every row."""
    for row in range(len(x)):
        lag[row] = _owed(x[row], lag[row], held[row], elapsed)


@kernel(allocates=False)
def _mark_held(job: Ints, type: Ints, partner: Ints, shape: Ints, held: Bools, ints: Ints) -> None:
    """Set `held` for rows whose job runs as the row says."""
    for row in range(len(job)):
        m = job[row]
        same_mate, same_shape = ints[PARTNER, m] == partner[row], ints[SHAPE, m] == shape[row]
        held[row] = (ints[ON_TYPE, m] == type[row]) & same_mate & same_shape


class ServiceDeficits:
    """The rows of the last answer, as rows of the job table, and what each is owed."""

    def __init__(self, types: int):
        self._types = types
        self.rows = PendingAsk(-1, np.empty(0, dtype=np.int64))
        self.size: Ints = np.empty(0, dtype=np.int64)  # (row,) accelerators
        self.lag: Floats = np.empty(0)  # (row,) seconds owed less seconds received
        self.fill = True
        self._held: Bools = np.empty(0, dtype=bool)  # (row,) received since `_at`
        self._at = 0.0

    @property
    def job(self) -> Ints:
        """(row,) rows of the job table."""
        return self.rows.job

    @property
    def type(self) -> Ints:
        """(row,) accelerator type."""
        return self.rows.type

    @property
    def x(self) -> Floats:
        """(row,) share of time."""
        return self.rows.x

    def adopt(self, rows: PendingAsk, fill: bool, state: State) -> None:
        """Take over a new answer; a candidate that was there before keeps what it is owed."""
        before, lag = self._keys(), self.lag
        self.rows, self.fill, self.size = rows, fill, sizes_of(rows.job, rows.shape, state)
        self.lag = np.zeros(len(rows.job))
        self._held = np.zeros(len(rows.job), dtype=bool)
        if len(before) and len(rows.job):
            order = np.argsort(before, kind="stable")
            keys = self._keys()
            at = np.minimum(np.searchsorted(before, keys, sorter=order), len(before) - 1)
            same = before[order[at]] == keys
            self.lag[same] = lag[order[at[same]]]

    def _keys(self) -> Ints:
        """Return one number per candidate that identifies it."""
        rows = self.rows
        return np.asarray((rows.job << 38) + ((rows.partner + 1) << 12) + rows.type + self._types * rows.shape)

    def advance(self, at: float) -> None:
        """Advance time: every candidate is owed its share; those on seats receive."""
        if at > self._at:
            _advance(self.x, self.lag, self._held, at - self._at)
        self._at = at

    def note_seats(self, state: State) -> None:
        """Update which rows hold seats."""
        rows = self.rows
        _mark_held(rows.job, rows.type, rows.partner, rows.shape, self._held, state.jobs.ints)

    def settled(self, state: State) -> bool:
        """Return whether time changes nothing: every job runs, each with its only and whole share."""
        return (
            state.waiting == 0
            and bool(is_at_least(self.x[self._held], 1.0).all())
            and self._held.sum() == len(state.running())
        )

    def line(self, state: State, at: float, lease_s: float, cost: Floats) -> Ints:
        """Advance time and return the rows that have a share, the largest debt at the end of a lease first.

        `cost` (0 = first start or 1 = later one, accelerators) are the seconds that a start costs.
        """
        ahead = lease_s if lease_s < np.inf else 0.0
        rows, elapsed, self._at = self.rows, max(at - self._at, 0.0), at
        able, key = np.empty(len(rows.job), dtype=np.int64), np.empty(len(rows.job))
        count = _ranked_rows(
            rows.job, rows.partner, self.size, rows.x, self.lag, self._held, state.jobs.ints, ahead, cost, elapsed,
            able, key,
        )  # fmt: skip
        order = rising(key[:count])
        return order if count == len(able) else able[order]

    def in_line(self, line: Ints, state: State, throughput: Floats) -> PendingAsk:
        """Return the candidates of a line, best first, and after them those for spare seats, if the answer fills.

        `throughput` is (active job, type). Spare seats go to any job that can use them, the earliest first, each to
        its fastest type.
        """
        rows = self.rows
        columns = [column[line] for column in (rows.job, rows.type, rows.partner, rows.shape, rows.within)]
        active = state.active.copy()
        if self.fill:
            preference = np.argsort(-throughput, axis=1, kind="stable")
            can = np.take_along_axis(throughput, preference, axis=1) > 0
            job, none = np.broadcast_to(active[:, None], preference.shape)[can], np.zeros(can.sum(), dtype=np.int64)
            spare = (job, preference[can], none - 1, none, none + ANYWHERE)
            columns = [np.concatenate(both) for both in zip(columns, spare, strict=True)]
        job, type, partner, shape, within = columns
        return PendingAsk(rows.asked, active, job, type, partner, shape, within)
