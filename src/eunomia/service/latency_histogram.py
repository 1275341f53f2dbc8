"""Seconds counted in fixed ranges, as Prometheus wants them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class LatencyHistogram:
    """How often something took at most so many seconds, since the service was started."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total_s += seconds

    @property
    def count(self) -> int:
        """How many were counted."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, int]]:
        """Return each bound, the last of which is +Inf, and how many values are at most as large."""
        counts = tuple(self._counts)  # another thread may add
        return list(zip((*map(str, BOUNDS), "+Inf"), accumulate(counts), strict=True))
