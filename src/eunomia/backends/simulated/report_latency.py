"""Delay and loss of status reports; lost reports are recovered by polling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eunomia.model.rounding import drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLatency:
    """How reports travel from a gang to the scheduler. Times of jobs are those at which their reports arrive."""

    delay_s: float = 0.0  # mean of an exponential
    lost: float = 0.0  # share of reports that never come
    reconcile_s: float = 300.0  # interval of polling, which recovers lost reports

    @property
    def perfect(self) -> bool:
        """Whether reports arrive at once."""
        return self.delay_s == 0 and self.lost == 0

    def arrives_at(self, at: float, rng: np.random.Generator) -> float:
        """Draw when a report that is sent at `at` arrives."""
        delay = float(drawn(rng.exponential(self.delay_s))) if self.delay_s else 0.0
        if self.lost and rng.random() < self.lost:
            return (math.floor(at / self.reconcile_s) + 1) * self.reconcile_s
        return at + delay
