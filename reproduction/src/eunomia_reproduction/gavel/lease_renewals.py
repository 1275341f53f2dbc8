"""How many leases are renewed: gangs that go on in a round on the accelerators that they had in the one before.

A gang of a round could be renewed when a job of it has steps left after it, whether it is chosen again or not; a pair
is another gang than each of its jobs. So counts the published simulator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.mechanisms.gavel_rounds.progress_accounting import ACTIVE, Round
from eunomia.mechanisms.gavel_rounds.round_progress import RoundClock
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment


class LeaseRenewals:
    """An observer that counts them from round to round."""

    def __init__(self, clock: RoundClock) -> None:
        self.renewed = 0
        self.possible = 0
        self._clock = clock
        self._last: Round | None = None

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Receive one moment and its decisions; a round may have begun in it."""
        now, before = self._clock.now, self._last
        if now is None or now is before:
            return
        if before is not None:
            goes_on = self._clock.jobs.outcome == ACTIVE
            self.possible += int((goes_on[before.first] | (goes_on[before.second] & (before.second >= 0))).sum())
        self.renewed += int(np.count_nonzero(now.kept))
        self._last = now

    @property
    def part(self) -> float | None:
        """Return which part of the leases that could be renewed were; None where none could."""
        return self.renewed / self.possible if self.possible else None
