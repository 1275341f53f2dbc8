"""What is believed of the run time of a job that declares none: the median of like jobs, and an 80 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from eunomia.model.elementary import exp_one, log_one

HOUR_S = 3600.0  # believed length of a job about which nothing is known
FACTOR = 30.0  # each end of its interval is so far away


def estimate_run_time(known: Sequence[float]) -> tuple[float, float, float, int]:
    """Return median, both ends of the interval, and how many run times of like jobs, `known`, they rest on.

    The ends are order statistics, and while there are few run times at least a factor away that shrinks with them.
    """
    count = len(known)
    middle = max(median(known) if known else HOUR_S, 1e-6)
    factor = exp_one(log_one(FACTOR) / (1.0 + count / 2.0))
    ordered = sorted(known) or [middle]
    rank = max(round(0.1 * (count + 1)), 1) - 1
    low, high = min(ordered[rank], middle / factor), max(ordered[-1 - rank], middle * factor)
    return middle, max(low, 1e-6), high, count
