"""Median and 80 % interval of futures, and their correction by how earlier ones held."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats

SHORT_S = 60.0  # waits are compared by the logarithm of wait + this
LEAST_WIDTH = 0.05  # of half an interval, in that logarithm: what nothing was known to vary by
KEPT = 400  # outcomes that a correction rests on
NEEDED = 40  # before there are so many, halves are as wide as the futures say, and at least `LEAST_WIDTH`
TRUSTED = 100.0  # outcomes as much as which the futures of our own policies are trusted
WIDEST = 20.0  # factor


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """When something happens, in seconds of the scheduler's time: 10, 50 and 90 % points; inf = not foreseeable."""

    p10: float
    p50: float
    p90: float

    def holds(self, came: float) -> bool:
        """Return whether the truth is in the interval."""
        return self.p10 <= came <= self.p90


def quantiles(times: Floats) -> Floats:
    """Return the 10, 50 and 90 % points of F futures, (3, row), times (future, row).

    They are order statistics, the k-th of F at the level k / (F + 1), so that as one more draw the truth would lie
    between the outer two of 20 in 17 of 21 cases.
    """
    count = len(times)
    low = max(round(0.1 * (count + 1)), 1) - 1
    ordered = np.sort(times, axis=0)
    middle = ordered[[(count - 1) // 2, count // 2]]
    with np.errstate(invalid="ignore"):
        median = np.where(np.isfinite(middle[1]), (middle[0] + middle[1]) / 2.0, middle[1])
    return np.stack((ordered[low], median, ordered[count - 1 - low]))


@dataclass(slots=True)
class IntervalCorrection:
    """Widens both halves of intervals until of the last outcomes a tenth at most lay outside on each side.

    This is split conformal prediction (V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World",
    2005) on the last outcomes: their distance from the median, in halves of their interval, gives both factors. Every
    distance is that of logarithms of the time from the forecast on. Intervals are never made narrower: outcomes of
    short waits are known first, and jobs that wait together are late together.
    """

    trusted: float = TRUSTED  # outcomes as much as which the futures are trusted
    _scores: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))

    def learn(self, said_at: float, said: TimeInterval, came: float) -> None:
        """Add what came of an uncorrected interval; one without an end says nothing."""
        if not np.isfinite(said.p90):
            return
        middle, low, high = (_log(when - said_at) for when in (said.p50, said.p10, said.p90))
        away = _log(came - said_at) - middle
        half = max(high - middle if away > 0 else middle - low, LEAST_WIDTH)
        self._scores.append(away / half)

    def _factor(self, wanted: float) -> float:
        """Return by what a half is stretched: the more outcomes there are, the nearer to what they want."""
        count = len(self._scores)
        return max((count * min(wanted, WIDEST) + self.trusted) / (count + self.trusted), 1.0)

    def apply(self, at: float, said: TimeInterval) -> TimeInterval:
        """Return a corrected interval."""
        if not np.isfinite(said.p90):
            return said
        below = above = 1.0
        if len(self._scores) >= NEEDED:
            ordered = sorted(self._scores)
            rank = max(round(0.1 * (len(ordered) + 1)), 1) - 1
            below, above = (self._factor(each) for each in (-ordered[rank], ordered[-1 - rank]))
        middle, low, high = (_log(when - at) for when in (said.p50, said.p10, said.p90))
        lower = _time(middle - below * max(middle - low, LEAST_WIDTH))
        upper = _time(middle + above * max(high - middle, LEAST_WIDTH))
        return TimeInterval(at + min(lower, said.p50 - at), said.p50, at + max(upper, said.p50 - at))


def _log(wait: float) -> float:
    return elementary.log_one(max(wait, 0.0) + SHORT_S)


def _time(logarithm: float) -> float:
    return max(elementary.exp_one(logarithm) - SHORT_S, 0.0)
