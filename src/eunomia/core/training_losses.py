"""Losses reported by running jobs, to which curves can be fitted; kept only if a policy needs them."""

from __future__ import annotations

import math

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model.arrays import Floats, Ints

MOST = 32  # losses that are kept of a job; when there are more every second one is


class SeenLosses(GrowingColumns):
    """Losses by steps, one row per job, in the order of their reports."""

    count: Ints
    steps: Floats  # (job, MOST) ascending; nan past the count
    loss: Floats  # (job, MOST)

    def __init__(self) -> None:
        column = (np.float64, np.nan, MOST)
        super().__init__({"count": (np.int64, 0), "steps": column, "loss": column})

    def record(self, row: int, steps: float, loss: float) -> None:
        """Record a loss; ignore one at no more steps than the last, as after a failure."""
        count = int(self.count[row])
        if math.isnan(loss) or (count and steps <= self.steps[row, count - 1]):
            return
        if count == MOST:
            for column in (self.steps, self.loss):
                column[row, : MOST // 2] = column[row, 1::2]
                column[row, MOST // 2 :] = np.nan
            count = MOST // 2
        self.steps[row, count], self.loss[row, count] = steps, loss
        self.count[row] = count + 1

    def of(self, rows: Ints) -> Floats:
        """Return steps and loss of all reports of these jobs, (row, loss, 2); nan where there is no more."""
        most = int(self.count[rows].max(initial=0))
        return np.stack((self.steps[rows, :most], self.loss[rows, :most]), axis=2)
