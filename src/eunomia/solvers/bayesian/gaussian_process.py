"""Regression by a Gaussian process: Matérn-5/2 with a length scale for each coordinate, constant mean, noise.

    k(x, x') = s² (1 + √5 r + 5 r²/3) exp(−√5 r),   r² = Σ_d (x_d − x'_d)² / ℓ_d²

Length scales and noise maximise the marginal likelihood times a log-normal prior of the length scales, without which a
handful of points often fits best with a scale that is far too long or short. Five starts and a search along the
coordinates; the mean and s² follow in closed form. Reference: C. E. Rasmussen and C. K. I. Williams, "Gaussian
Processes for Machine Learning", 2006, sections 2.2, 4.2 and 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.equations import cholesky, solve_lower
from eunomia.model.rounding import rounded

STARTS = 5
_STEPS = 30  # of the search for length scales and noise
_FIRST_STEP = 1.0  # natural logarithm
_LENGTH = (0.05, 10.0)  # least and greatest length scale; coordinates are 0 … 1
_PRIOR = (0.5, 0.7)  # of a length scale: median, and standard deviation of the logarithm
_NOISE = (1e-4, 0.1)  # variance of the noise ÷ s²


@dataclass(frozen=True)
class GaussianProcess:
    """A fitted process: `predict` returns mean and standard deviation of points without noise."""

    x: Floats  # (measurement, coordinate)
    length: Floats  # (coordinate,)
    factor: Floats  # (measurement, measurement): Cholesky factor of the correlations with noise
    weights: Floats  # (measurement,): L⁻¹ (y − mean)
    mean: float
    variance: float  # s²

    @classmethod
    def fit(cls, x: Floats, y: Floats, rng: np.random.Generator) -> GaussianProcess:
        """Return the process that explains y (measurement,) at x (measurement, coordinate) best."""
        squares = np.square(x[:, None] - x[None])
        low = elementary.log(np.array([*[_LENGTH[0]] * x.shape[1], _NOISE[0]]))
        high = elementary.log(np.array([*[_LENGTH[1]] * x.shape[1], _NOISE[1]]))
        at = _best_parameters(squares, y, low, high, rng)
        factor, weights, mean, variance, _ = _explain(squares, y, at[None])
        return cls(x, elementary.exp(at[:-1]), factor[0], weights[0], float(mean[0]), float(variance[0]))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation, (point,) each, at x (point, coordinate)."""
        squares = np.square(self.x[:, None] - x[None])  # (measurement, point, coordinate)
        across = solve_lower(self.factor, _matern(squares, 1.0 / np.square(self.length)))
        mean = self.mean + np.add.reduce(across * self.weights[:, None], axis=0)
        rest = 1.0 - np.add.reduce(np.square(across), axis=0)
        return mean, np.sqrt(self.variance * np.maximum(rest, 0.0))


def _matern(squares: Floats, inverse: Floats) -> Floats:
    """Return correlations of squared differences (…, coordinate); `inverse` are 1 / ℓ²."""
    r = np.sqrt(5.0 * np.add.reduce(squares * inverse, axis=-1))
    return np.asarray((1.0 + r + r * r / 3.0) * elementary.exp(-r))


def _best_parameters(squares: Floats, y: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
    """Return the logarithms of length scales and noise with the greatest likelihood."""
    at = low + (high - low) * rng.random((STARTS, len(low)))
    at[0] = (low + high) / 2
    value, step = _explain(squares, y, at)[-1], np.full(STARTS, _FIRST_STEP)
    moves = np.concatenate((np.eye(len(low)), -np.eye(len(low))))
    for _ in range(_STEPS):
        tried = np.clip(at[:, None] + step[:, None, None] * moves, low, high)
        found = _explain(squares, y, tried.reshape(-1, len(low)))[-1].reshape(STARTS, -1)
        chosen = found.argmax(axis=1)
        best = np.take_along_axis(found, chosen[:, None], axis=1)[:, 0]
        better = best > value
        at = np.where(better[:, None], tried[np.arange(STARTS), chosen], at)
        value, step = np.where(better, best, value), np.where(better, step, step / 2)
    return np.asarray(at[rounded(value).argmax()])


def _explain(squares: Floats, y: Floats, at: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return factor, weights, mean, s² and log posterior without its constant, for each row of parameters."""
    n = len(y)
    matrix = _matern(squares, elementary.exp(-2.0 * at[:, None, None, :-1]))
    matrix = matrix + elementary.exp(at[:, -1])[:, None, None] * np.eye(n)
    factor = cholesky(matrix)
    sides = solve_lower(factor, np.broadcast_to(np.stack((y, np.ones(n)), axis=1), (len(at), n, 2)))
    ones = sides[..., 1]
    mean = np.add.reduce(sides[..., 0] * ones, axis=-1) / np.add.reduce(ones * ones, axis=-1)
    weights = sides[..., 0] - mean[:, None] * ones
    variance = np.maximum(np.add.reduce(np.square(weights), axis=-1) / n, 1e-300)
    log_root = np.add.reduce(elementary.log(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    off = (at[:, :-1] - elementary.log(_PRIOR[0])) / _PRIOR[1]
    prior = -0.5 * np.add.reduce(np.square(off), axis=1)
    return factor, weights, mean, variance, rounded(prior - 0.5 * n * elementary.log(variance) - log_root)
