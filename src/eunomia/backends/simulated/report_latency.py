"""Word of what happened that comes late, or is lost and found out when the scheduler asks around."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eunomia.model.rounding import drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLatency:
    """How word travels from a gang to the scheduler. Times of jobs are those at which the scheduler hears of them."""

    delay_s: float = 0.0  # mean of an exponential
    lost: float = 0.0  # share of reports that never come
    reconcile_s: float = 300.0  # every so often the scheduler asks around, and hears what it missed

    @property
    def perfect(self) -> bool:
        """Whether word comes at once."""
        return self.delay_s == 0 and self.lost == 0

    def arrives_at(self, at: float, rng: np.random.Generator) -> float:
        """Return when the scheduler hears of what happened at `at`."""
        delay = float(drawn(rng.exponential(self.delay_s))) if self.delay_s else 0.0
        if self.lost and rng.random() < self.lost:
            return (math.floor(at / self.reconcile_s) + 1) * self.reconcile_s
        return at + delay
