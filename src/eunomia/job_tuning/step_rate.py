"""Steps per second from reports of progress, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.metrics.statistics import estimate
from eunomia.model.arrays import Floats

CONFIDENCE = 0.95
PARTS = 8  # of a measurement, at most: fewer and longer ones vary less with the time at which a report is read


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRate:
    """A measured speed; `low` and `high` are the ends of its 95 % interval, None where there is no such end."""

    steps_per_s: float
    low: float | None = None
    high: float | None = None
    steps: float | None = None  # that were measured
    seconds: float | None = None


def rate_of_reports(reports: Sequence[tuple[float, float]], warm_up: float, late_s: float = 0.0) -> StepRate | None:
    """Return the rate from the first report (s, steps) after `warm_up` steps to the last; None without two of them.

    The steps are cut into at most `PARTS` parts of about equal length at reports; the interval is Student's of the
    parts' seconds per step, and at least as wide as reports allow that were read up to `late_s` after they were made.
    """
    counted = [(at, steps) for at, steps in reports if steps >= warm_up]
    if len(counted) < 2 or counted[-1][1] <= counted[0][1] or counted[-1][0] <= counted[0][0]:
        return None
    (begun, first), (ended, last) = counted[0], counted[-1]
    cuts = [counted[0]]
    for at, steps in counted[1:]:
        if steps - cuts[-1][1] >= (last - first) / PARTS and at > cuts[-1][0]:
            cuts.append((at, steps))
    cuts[-1] = counted[-1]  # the rest belongs to the last part
    pieces = np.array(cuts)
    low, high = interval_of_rates(np.diff(pieces[:, 1]) / np.diff(pieces[:, 0]))
    steps, seconds = last - first, ended - begun
    if late_s > 0:
        low, high = _widened(steps, seconds, late_s, low, high)
    return StepRate(steps_per_s=steps / seconds, low=low, high=high, steps=steps, seconds=seconds)


def _widened(
    steps: float, seconds: float, late_s: float, low: float | None, high: float | None
) -> tuple[float, float | None]:
    """Return the ends of an interval where the steps may have taken `late_s` more or less; None, None = no interval."""
    least = steps / (seconds + late_s)
    if seconds <= late_s or (low is not None and high is None):
        return least if low is None else min(low, least), None
    most = steps / (seconds - late_s)
    return (least, most) if low is None or high is None else (min(low, least), max(high, most))


def interval_of_rates(rates: Floats) -> tuple[float | None, float | None]:
    """Return the ends of the interval of several measured rates, (part,), above 0; None, None for a single one."""
    found = estimate(1.0 / rates, CONFIDENCE)
    if found is None or found.half is None:
        return None, None
    low, high = found.mean - found.half, found.mean + found.half
    return 1.0 / high, 1.0 / low if low > 0 else None
