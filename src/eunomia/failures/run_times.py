"""Which of Philly's jobs failed or were killed, and how long they ran until then, by size.

    P(fails) = 17.2 %,  P(killed) = 13.5 %                                                   Table 6
    P(reason, size) ∝ jobs(reason) · trials(reason, size) / trials(reason)                   Table 7
    run time to failure ~ min(lognormal(ln p50, ln(p90 / p50) / 1.2816), p95)                Table 7
    run time until killed ~ quantiles of the killed jobs among the first 15,000 of the public trace, by size

Of times beyond the 95th percentile Table 7 tells nothing. Tables: M. Jeon et al., USENIX ATC 2019. The paper does not
say when users kill; the trace does, for the jobs whose status was published with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from eunomia.failures.philly_reasons import REASONS, FailureReason
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import drawn, interpolate

MINUTE_S = 60.0
P90 = 1.2816  # quantile of the standard normal distribution
KILLED_LEVELS = (0, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1)
KILLED_QUANTILES_S = (  # of 1,360, 226 and 367 jobs of 1, of 2 to 4 and of more accelerators, seconds at KILLED_LEVELS
    (1, 30, 209, 3905, 31543, 39106, 1374696, 1655266, 4802248, 5199751),
    (6, 14, 33, 172, 3637, 144486, 721228, 1757425, 5061616, 5150116),
    (6, 15, 27, 158, 1864, 40146, 259194, 863434, 2921601, 4721782),
)
_KILLED_BY_SIZE = (0.1510, 0.3363, 0.4520)  # parts of those of the same jobs that did not fail
_SUBMITTED_BY_SIZE = (0.8861, 0.0649, 0.0490)  # parts of Philly's jobs, by the classes of Table 7
_NORMAL = NormalDist()
_RUN_TIMES = np.array(  # (reason, 3) logarithm of the median, its standard deviation, and the most seconds to a failure
    [
        (elementary.log(p50_min * MINUTE_S), elementary.log(p90_min / p50_min) / P90, p95_min * MINUTE_S)
        for _, _, _, _, p50_min, p90_min, p95_min, _ in REASONS
    ]
)


def size_class(scale_factor: Ints) -> Ints:
    """Return the column of the table for each gang: 0 = one accelerator, 1 = 2 to 4, 2 = more."""
    return np.asarray(np.searchsorted([1, 4], scale_factor), dtype=np.int64)


def failing_by_class(scale_factor: Ints, failing: float) -> Floats:
    """Return the failing share of the gangs of each size class, (class,), so that `failing` is the part of all.

    Table 7 has more wide gangs than were submitted, so wide gangs fail more often, by ratios that are the same here.
    """
    trials = np.array([reason.trials_by_size for reason in REASONS], dtype=np.float64)  # (reason, class)
    jobs = (trials * np.array([[reason.jobs / reason.trials] for reason in REASONS])).sum(axis=0)
    return _in_ratio(jobs / jobs.sum() / np.array(_SUBMITTED_BY_SIZE), _parts(scale_factor), failing)


def killed_by_class(scale_factor: Ints, failing: Floats, killed: float) -> Floats:
    """Return the killed share of those gangs of each size class that do not fail, (class,); `killed` is that of all.

    failing (class,) is the failing share. Of wide gangs more are killed, by ratios that are the same here.
    """
    return _in_ratio(np.array(_KILLED_BY_SIZE), _parts(scale_factor) * (1.0 - failing), killed)


def _parts(scale_factor: Ints) -> Floats:
    """Return the part of the jobs that each size class has, (class,)."""
    return np.bincount(size_class(scale_factor), minlength=3) / max(len(scale_factor), 1)


def _in_ratio(ratio: Floats, part: Floats, wanted: float) -> Floats:
    """Return shares of classes in this ratio, each at most 1, that are so much of all; part (class,) is its size."""
    found, below = np.zeros(len(ratio)), np.ones(len(ratio), dtype=bool)
    for _ in ratio:
        left, weight = wanted - part[~below].sum(), float((part * ratio)[below].sum())
        found[below] = ratio[below] * max(left, 0.0) / max(weight, 1e-12)
        below &= found < 1.0
        found = np.minimum(found, 1.0)
    return found


def pick_reasons(scale_factor: Ints, draws: Floats) -> Ints:
    """Return the row of REASONS that each draw in [0, 1) means for a gang of that size."""
    trials = np.array([reason.trials_by_size for reason in REASONS], dtype=np.float64)  # (reason, class)
    per_trial = np.array([reason.jobs / reason.trials for reason in REASONS])
    upto = np.cumsum(trials * per_trial[:, None], axis=0)
    upto /= upto[-1]
    column = size_class(scale_factor)
    picked = np.zeros(len(draws), dtype=np.int64)
    for each in range(upto.shape[1]):
        mine = column == each
        picked[mine] = np.searchsorted(upto[:, each], draws[mine], side="right")
    return picked


def run_time_to_failure(reason: FailureReason, draw: float) -> float:
    """Return the seconds at the quantile `draw` of the lognormal of a reason, at most the 95th percentile."""
    return float(_at_normal(_normal(draw), *_RUN_TIMES[REASONS.index(reason)].tolist()))


def run_times_to_failure(reason: Ints, draws: Sequence[float]) -> Floats:
    """Return (draw,) seconds to the failure of a trial as above; reason (draw,) is a row of REASONS."""
    return np.asarray(_at_normal(np.array([_normal(draw) for draw in draws]), *_RUN_TIMES[reason].T))


def _normal(draw: float) -> float:
    return _NORMAL.inv_cdf(min(max(draw, 1e-300), 1 - 1e-16))


def _at_normal(normal: Any, middle: Any, sigma: Any, longest: Any) -> Any:
    return np.minimum(drawn(elementary.exp(middle + sigma * normal)), longest)


def run_time_until_killed(scale_factor: Ints, draws: Floats) -> Floats:
    """Return the seconds at each draw in [0, 1), (job,), log-linear between the quantiles of its size class."""
    by_class = [
        elementary.exp(interpolate(draws, KILLED_LEVELS, elementary.log(quantiles))) for quantiles in KILLED_QUANTILES_S
    ]
    return np.asarray(np.choose(size_class(scale_factor), by_class))
