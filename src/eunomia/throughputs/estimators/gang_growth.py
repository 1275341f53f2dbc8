"""How the rate of one job grows with the size of its gang, as a Gaussian process over accelerator types and sizes.

    log rate(t, n) = level(t) + log expected(t, n) + g(t, n) + f(t, n),   x = log2 n,   f with the covariance
    a x x' + b min(x, x') + [same type] (c x x' + d min(x, x'))

g is common to all jobs: the mean of their steps from one size to the next on that type, shrunk to the mean over types.
The Brownian parts let growth change with the size; a size on one type says something of the sizes on all others. The
constants are orders of magnitude, and are not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.throughputs.estimators.cell_posterior import GAUSSIAN_80, CellPosterior, half_width_of_few

LEVEL = 100.0
SLOPE, WALK = 0.01, 0.02  # a, b
TYPE_SLOPE, TYPE_WALK = 0.002, 0.002  # c, d
NOISE = 0.003  # variance of the logarithm of a measured rate
MOST = 0.7  # of the logarithm in a doubling: a factor of 2 off what is expected
CHECKED = 64  # measurements at most that are left out to see how wide an interval has to be
SHRUNK = 1.0  # doublings for which what is expected counts

Rates = Mapping[tuple[int, int], float]  # by (type, size): logarithm of the measured rate over the expected one


class GangGrowth:
    """Beliefs about one job on some types, in gangs of `sizes`, after some measurements."""

    def __init__(self, sizes: Sequence[int], measured: Rates, common: Floats, noise: float = NOISE):
        """`common` is g, (type, size); `measured` may have the sizes given only."""
        self._place, types = {size: m for m, size in enumerate(sizes)}, len(common)
        type, x = np.repeat(np.arange(types), len(sizes)), np.tile(elementary.log2(np.array(sizes, dtype=float)), types)
        same, both, least = type[:, None] == type, x[:, None] * x, np.minimum(x[:, None], x)
        curve = SLOPE * both + WALK * least + same * (LEVEL + TYPE_SLOPE * both + TYPE_WALK * least)
        self._posterior = CellPosterior(np.asarray(curve), common.ravel())
        for (t, size), value in measured.items():
            self._posterior.observe(self._cell(t, size), value, noise)

    def _cell(self, type: int, size: int) -> int:
        return type * len(self._place) + self._place[size]

    def between(self, type: int, size: int, larger: int) -> tuple[float, float]:
        """Return mean and variance of the logarithm of the rate of one size over another's, both as expected."""
        one, other = self._cell(type, size), self._cell(type, larger)
        column = self._posterior.covariance_with(one)
        variance = self._posterior.variance[[one, other]].sum() - 2.0 * column[other]
        return float(self._posterior.mean[other] - self._posterior.mean[one]), max(float(variance), 0.0)


def deviation_of_step(size: int, larger: int) -> float:
    """Return the standard deviation of the logarithm of one size's rate over another's, of a job of unknown growth."""
    if size == larger:
        return 0.0
    x = abs(elementary.log2(larger / size))
    return float(np.sqrt((SLOPE + TYPE_SLOPE) * x * x + (WALK + TYPE_WALK) * x + 2.0 * NOISE))


def common_growth(types: int, sizes: Sequence[int], jobs: Sequence[Rates]) -> Floats:
    """Return g, (type, size): 0 for the first size. What was measured from one size to another counts for each step."""
    x = elementary.log2(np.array(sizes, dtype=float))
    off, far = np.zeros((types, len(sizes))), np.zeros((types, len(sizes)))  # of the step that ends at each size
    for measured in jobs:
        for ((type, size), value), ((same, larger), grown) in pairwise(sorted(measured.items())):
            if type == same:
                first, last = sizes.index(size), sizes.index(larger)
                step = min(max((grown - value) / (x[last] - x[first]), -MOST), MOST)  # wild ones count little
                off[type, first + 1 : last + 1] += step * np.diff(x)[first:last]
                far[type, first + 1 : last + 1] += np.diff(x)[first:last]
    slope = float(off.sum() / (far.sum() + SHRUNK))
    per_doubling = (off + SHRUNK * slope) / (far + SHRUNK)
    return np.asarray(np.cumsum(per_doubling * np.diff(x, prepend=x[0]), axis=1))


def widening(types: int, sizes: Sequence[int], jobs: Sequence[Rates]) -> float:
    """Return by what standard deviations have to be multiplied so that 80 % intervals hold sizes that are left out.

    They are those of a measured rate over another measured one, with the noise of both. At most `CHECKED` measurements
    are left out, each in turn.
    """
    cells, scores = [(job, key) for job, measured in enumerate(jobs) for key in measured], []
    for job, (type, size) in cells[:: -(-len(cells) // CHECKED)] if cells else []:
        others = {key: each for key, each in jobs[job].items() if key != (type, size)}
        here = [own for same, own in others if same == type]
        if here:
            common = common_growth(types, sizes, [*jobs[:job], others, *jobs[job + 1 :]])
            near = min(here, key=lambda own: (abs(elementary.log2(own / size)), own))
            mean, variance = GangGrowth(sizes, others, common).between(type, near, size)
            error = abs(jobs[job][type, size] - others[type, near] - mean)
            scores.append(error / float(np.sqrt(variance + 2.0 * NOISE)))
    return half_width_of_few(scores) / GAUSSIAN_80
