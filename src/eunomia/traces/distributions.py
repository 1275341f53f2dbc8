"""Published distributions of sizes and durations of jobs, for synthetic workloads.

`gavel`: the workload of D. Narayanan et al., OSDI 2020: sizes after Philly's, durations log-uniform in two ranges.
`philly`: sizes of the 84,605 jobs and run times of the 64,483 passed ones that Philly's users submitted from August
to mid-November 2017 (trace of M. Jeon et al., USENIX ATC 2019): quantiles by size, log-linear between them.
`philly-submitted`: the same sizes, and what all jobs would have taken that were submitted, those that failed or were
killed included. How long these ran is known (`eunomia.failures.run_times`), how long they would have gone on is not:
each is as long as a job that passed and is longer than that. Outcomes drawn for these lengths (`[physics] fates =
"philly"`) leave to the jobs that pass about the run times of `philly`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.failures.philly_reasons import KILLED, UNSUCCESSFUL
from eunomia.failures.run_times import (
    failing_by_class,
    killed_by_class,
    pick_reasons,
    run_time_until_killed,
    run_times_to_failure,
    size_class,
)
from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import interpolate

Draw = Callable[[np.random.Generator, np.random.Generator, int], tuple[Ints, Floats]]

GAVEL_SIZES = {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}
LONG = 0.2  # share of jobs of 10^U(3, 4) minutes; the others take 10^U(1.5, 3)

PHILLY_SIZES = {1: 0.8861, 2: 0.0202, 4: 0.0447, 8: 0.0423, 16: 0.0055, 32: 0.0012}
TRIALS = 3  # of a job that fails for good
LEVELS = (0, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1)
PHILLY_QUANTILES_S = {  # largest size of the class → run time in seconds at LEVELS
    1: (1, 52, 63, 185, 1258, 2651, 6850, 15566, 119341, 3256045),
    4: (2, 10, 13, 20, 666, 59919, 180733, 280592, 907226, 2750674),
    8: (17, 88, 186, 823, 29380, 193134, 402400, 602047, 1552287, 4628226),
    32: (20, 41, 69, 420, 47358, 112922, 325268, 509571, 1269831, 1710643),
}


def gavel(sizes: np.random.Generator, durations: np.random.Generator, jobs: int) -> tuple[Ints, Floats]:
    """Return (job,) scale factors and (job,) durations in seconds, drawn independently of each other."""
    is_long = durations.random(jobs) < LONG
    exponent = np.where(is_long, 3 + durations.random(jobs), 1.5 + 1.5 * durations.random(jobs))
    return _draw_sizes(sizes, GAVEL_SIZES, jobs), 60 * elementary.power(10, exponent)


def philly(sizes: np.random.Generator, durations: np.random.Generator, jobs: int) -> tuple[Ints, Floats]:
    """Return (job,) scale factors and (job,) durations in seconds; larger jobs run longer."""
    scale_factor, level = _draw_sizes(sizes, PHILLY_SIZES, jobs), durations.random(jobs)
    return scale_factor, _philly_run_time(scale_factor, level)


def philly_submitted(sizes: np.random.Generator, durations: np.random.Generator, jobs: int) -> tuple[Ints, Floats]:
    """Return (job,) scale factors and (job,) seconds that each job would take if it passed."""
    scale_factor = _draw_sizes(sizes, PHILLY_SIZES, jobs)
    ran_s = philly_ran(scale_factor, durations)
    ran = elementary.log(np.maximum(ran_s, 1.0))
    least = _by_quantiles(scale_factor, lambda quantiles: interpolate(ran, quantiles, LEVELS))
    level = least + (1.0 - least) * durations.random(jobs)
    return scale_factor, np.maximum(_philly_run_time(scale_factor, level), ran_s)


def philly_ran(scale_factor: Ints, rng: np.random.Generator) -> Floats:
    """Return the seconds that each job runs before it fails for good or is killed, (job,); 0 = it passes."""
    size, failing = size_class(scale_factor), failing_by_class(scale_factor, UNSUCCESSFUL)
    fate, killing, reason, ran = rng.random((4, len(scale_factor)))
    fails = fate < failing[size]
    kills = ~fails & (killing < killed_by_class(scale_factor, failing, KILLED)[size])
    ran_s = np.where(kills, run_time_until_killed(scale_factor, ran), 0.0)
    rows, draws = np.flatnonzero(fails), rng.random((int(fails.sum()), TRIALS))
    reasons = pick_reasons(scale_factor[rows], reason[rows])
    ran_s[rows] = sum(run_times_to_failure(reasons, each) for each in draws.T.tolist())
    return ran_s


def _philly_run_time(scale_factor: Ints, level: Floats) -> Floats:
    """Return the run time of a passed job of each size at each level in [0, 1), (job,)."""
    return elementary.exp(_by_quantiles(scale_factor, lambda quantiles: interpolate(level, LEVELS, quantiles)))


def _by_quantiles(scale_factor: Ints, read: Callable[[Floats], Floats]) -> Floats:
    """Return what `read` says of the logarithms of the quantiles of each job's size, (job,)."""
    by_class = [read(elementary.log(quantiles)) for quantiles in PHILLY_QUANTILES_S.values()]
    return np.choose(np.searchsorted(np.array(list(PHILLY_QUANTILES_S)), scale_factor), by_class)


def _draw_sizes(rng: np.random.Generator, share_by_size: dict[int, float], jobs: int) -> Ints:
    return rng.choice(np.array(list(share_by_size)), size=jobs, p=list(share_by_size.values()))


DISTRIBUTIONS: dict[str, Draw] = {"gavel": gavel, "philly": philly, "philly-submitted": philly_submitted}
