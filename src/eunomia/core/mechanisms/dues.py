"""Shares made into an order: the share owed against the share received.

Every candidate of the last answer is owed x seconds per second; who is owed most comes first. Candidates without a
share, and jobs that the answer does not know, come last and only fill what would be idle.
"""

from __future__ import annotations

import numpy as np

from eunomia.core.state import State
from eunomia.model.answers import ANYWHERE
from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.life import Stage


class Dues:
    """The rows of the last answer and what each is owed."""

    def __init__(self, types: int):
        self._types = types
        self.job: Ints = NO_INTS  # (row,) rows of the job table
        self.type: Ints = NO_INTS
        self.partner: Ints = NO_INTS
        self.shape: Ints = NO_INTS
        self.within: Ints = NO_INTS
        self.x: Floats = np.empty(0)
        self.lag: Floats = np.empty(0)  # (row,) seconds owed less seconds received
        self.fill = True
        self._held: Bools = np.empty(0, dtype=bool)  # (row,) received since `_at`
        self._at = 0.0

    def adopt(self, job: Ints, type: Ints, partner: Ints, shape: Ints, within: Ints, x: Floats, fill: bool) -> None:
        """Take over a new answer; a candidate that was there before keeps what it is owed."""
        before, lag = self._keys(), self.lag
        self.job, self.type, self.partner, self.shape, self.within = job, type, partner, shape, within
        self.x, self.fill = x, fill
        self.lag = np.zeros(len(job))
        self._held = np.zeros(len(job), dtype=bool)
        if len(before) and len(job):
            order = np.argsort(before)
            keys = self._keys()
            at = np.minimum(np.searchsorted(before, keys, sorter=order), len(before) - 1)
            same = before[order[at]] == keys
            self.lag[same] = lag[order[at[same]]]

    def _keys(self) -> Ints:
        """Return one number per candidate that tells it from all others."""
        wide = self.type + self._types * self.shape
        return np.asarray((self.job << 38) + ((self.partner + 1) << 12) + wide)

    def advance(self, at: float) -> None:
        """Let time pass: every candidate is owed its share, those on seats receive."""
        elapsed = at - self._at
        if elapsed > 0:
            self.lag += self.x * elapsed
            self.lag[self._held] -= elapsed
        self._at = at

    def note_seats(self, state: State) -> None:
        """Look who sits now."""
        jobs = state.jobs
        self._held = (
            (jobs.on_type[self.job] == self.type)
            & (jobs.partner[self.job] == self.partner)
            & (jobs.shape[self.job] == self.shape)
        )

    def settled(self, state: State) -> bool:
        """Say whether time changes nothing: everybody sits, each on its only and whole share."""
        return (
            state.waiting == 0
            and bool((self.x[self._held] >= 1 - 1e-9).all())
            and self._held.sum() == len(state.running())
        )

    def order(self, state: State, throughput: Floats, stay: float) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Return job, type, partner, shape, within of the candidates, best first. `throughput` is (active job, type).

        Who sits is passed only by who is owed more by `stay` seconds, so that seats change hands half as often.
        """
        stage = state.jobs.stage
        known = (self.x > 0) & (stage[self.job] <= Stage.RUNNING)
        known &= (self.partner < 0) | (stage[self.partner] <= Stage.RUNNING)
        first = np.flatnonzero(known)[np.argsort(-(self.lag + stay * self._held)[known], kind="stable")]
        columns = (self.job, self.type, self.partner, self.shape, self.within)
        job, type, partner, shape, within = (column[first] for column in columns)
        if not self.fill:
            return job, type, partner, shape, within
        active = state.active
        # Spare seats go to anybody who can use them, the earliest first, each to its fastest type.
        preference = np.argsort(-throughput, axis=1, kind="stable")
        can = np.take_along_axis(throughput, preference, axis=1) > 0
        more_job = np.broadcast_to(active[:, None], preference.shape)[can]
        more_type = preference[can]
        none = np.zeros(len(more_job), dtype=np.int64)
        return (
            np.concatenate((job, more_job)),
            np.concatenate((type, more_type)),
            np.concatenate((partner, none - 1)),
            np.concatenate((shape, none)),
            np.concatenate((within, none + ANYWHERE)),
        )
