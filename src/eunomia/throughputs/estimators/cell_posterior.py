"""Exact Gaussian conditioning over a finite set of cells, one measurement at a time.

    k = Σ[:, o] − V[:n, :]ᵀ V[:n, o],   s² = k[o] + noise,   V[n, :] = k / s
    mean ← mean + k (y − mean[o]) / s²,   variance ← variance − k² / s²

Σ the prior covariance, V the rows of an incremental Cholesky factor. The result does not depend on the order of the
measurements but for rounding. C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006,
chapter 2 and appendix A.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints

GAUSSIAN_80 = 1.2815515655446004  # half width of the 80 % interval in standard deviations
PRIOR_SCORES = 30  # scores of a Gaussian with which a calibration begins
LEAST_SCORES = 10  # on which one rests at least that begins with none
SURPRISE = 4.0  # standard deviations from which a measurement counts as less sure than it says


def half_width(scores: Sequence[float], prior: int = PRIOR_SCORES) -> float:
    """Return half of the 80 % interval in standard deviations, by the |error| of predictions that could be checked.

    V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", 2005; Gaussian scores come first.
    """
    gaussian = GAUSSIAN_80 * (np.arange(prior) + 0.5) / (0.8 * max(prior, 1))
    ordered = np.sort(np.concatenate((np.array(scores), gaussian)))
    return float(ordered[min(int(np.ceil(0.8 * (len(ordered) + 1))) - 1, len(ordered) - 1)])


def half_width_of_few(scores: Sequence[float]) -> float:
    """Return `half_width` where scores are few and may be far from Gaussian: that only stands in for missing ones."""
    return half_width(scores, max(LEAST_SCORES - len(scores), 0))


@kernel(allocates=False)
def _subtract_rows(rows: Floats, count: int, cell: int, column: Floats) -> None:
    """Subtract rows[m, cell] · rows[m] from `column` for the first `count` rows."""
    for m in range(count):
        factor = rows[m, cell]
        for k in range(len(column)):
            column[k] -= factor * rows[m, k]


class CellPosterior:
    """Means and variances of all cells after the measurements so far.

    A measurement further than `SURPRISE` standard deviations from what was expected has its noise inflated to
    (distance / SURPRISE)², so that a wild value moves the estimate little and repeated ones move it anyway.
    """

    def __init__(self, prior: Floats, mean: Floats):
        """`prior` is the covariance of the cells, (cell, cell), and `mean` what is expected of each, (cell,)."""
        self._prior = prior
        self._rows = np.zeros((64, len(mean)))
        self.mean = np.array(mean, dtype=float)
        self.variance = prior.diagonal().copy()
        self.count = 0

    def copy(self) -> CellPosterior:
        """Return a posterior that learns on its own from here; the prior is shared."""
        twin = copy.copy(self)
        twin._rows, twin.mean, twin.variance = self._rows.copy(), self.mean.copy(), self.variance.copy()
        return twin

    def observe(self, cell: int, value: float, noise: float) -> float:
        """Learn one measured value with a noise variance; return how surprising it was, in standard deviations."""
        column = self.covariance_with(cell)
        expected = float(column[cell]) + noise
        innovation = value - float(self.mean[cell])
        surprise = float(innovation / np.sqrt(expected))
        if abs(surprise) > SURPRISE:
            far = innovation / SURPRISE
            expected = max(expected, far * far * abs(surprise) / SURPRISE)
        if self.count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros(self._rows.shape)))
        row = column / np.sqrt(expected)
        self._rows[self.count] = row
        self.count += 1
        self.mean += column * (innovation / expected)
        self.variance = np.maximum(self.variance - row * row, 1e-12)
        return surprise

    def covariance_with(self, cell: int) -> Floats:
        """Return the covariance of every cell with one, (cell,)."""
        column: Floats = self._prior[cell].copy()
        _subtract_rows(self._rows, self.count, cell, column)
        return column

    def most_telling(self, candidates: Ints, noise: float, of: Ints) -> int:
        """Return the candidate that would reduce the variance of the cells `of` most; the first of equals."""
        best, most = int(candidates[0]), -1.0
        for cell in candidates.tolist():
            column = self.covariance_with(cell)
            gain = float(np.square(column[of]).sum() / (column[cell] + noise))
            if gain > most * (1.0 + 1e-9):
                best, most = cell, gain
        return best
