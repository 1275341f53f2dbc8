"""Service received by each job: sums over time, a base value plus the time since."""

from __future__ import annotations

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model.arrays import Floats, Ints


class Ledger(GrowingColumns):
    """Attained service and time by type, one row per job; nothing is touched while a job just runs or waits.

    The steps of `core.moves` write it.
    """

    width: Ints  # accelerators that it holds now, shared ones in full; 0 = none
    on_type: Ints  # of its last lease
    service: Floats  # accelerator-seconds up to `since`
    since: Floats  # when it started or, of a waiting job, when it began to wait
    received: Floats  # (job, type) seconds up to `since`

    def __init__(self, types: int):
        super().__init__(
            {
                "width": (np.int64, 0),
                "on_type": (np.int64, 0),
                "service": (np.float64, 0.0),
                "since": (np.float64, 0.0),
                "received": (np.float64, 0.0, types),
            }
        )

    def open(self, submitted: float) -> None:
        """Add a job, which waits from then on."""
        row = self.add()  # which may make the columns anew
        self.since[row] = submitted

    def wait_at(self, at: float, rows: Ints) -> Floats:
        """Return for how many seconds these jobs have waited without a break, (row,); 0 while they hold seats."""
        return np.where(self.width[rows] > 0, 0.0, at - self.since[rows])

    def started(self, rows: Ints) -> Floats:
        """Return when these jobs started on their seats, (row,); inf while they wait."""
        return np.where(self.width[rows] > 0, self.since[rows], np.inf)

    def service_at(self, at: float, rows: Ints) -> Floats:
        """Return attained accelerator-seconds of these jobs, (row,)."""
        return np.asarray(self.service[rows] + (at - self.since[rows]) * self.width[rows])

    def service_then(self, past: float, rows: Ints) -> Floats:
        """Return what these jobs had attained at a `past` time, or when their present lease began if that is later.

        (row,) accelerator-seconds; nan if the time is -inf.
        """
        if past == -np.inf:
            return np.full(len(rows), np.nan)
        return np.asarray(self.service[rows] + np.maximum(past - self.since[rows], 0.0) * self.width[rows])

    def received_at(self, at: float, rows: Ints) -> Floats:
        """Return the seconds that these jobs held each type, (row, type)."""
        received = self.received[rows]
        held = np.where(self.width[rows] > 0, at - self.since[rows], 0.0)
        received[np.arange(len(rows)), self.on_type[rows]] += held
        return received
