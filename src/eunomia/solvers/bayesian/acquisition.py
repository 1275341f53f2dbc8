"""How much a measurement of a point promises, for minimisation.

    expected improvement   EI = (f* − μ) Φ(z) + σ φ(z),  z = (f* − μ) / σ;  max(f* − μ, 0) where σ = 0
    lower confidence bound   LCB = μ − κ σ

μ, σ the surrogate's mean and standard deviation, f* the least value measured. Reference: D. Jones, M. Schonlau and
W. Welch, "Efficient Global Optimization of Expensive Black-Box Functions", J. Global Optimization 1998, section 4.

Φ and φ have the same bits on every machine: up to 3 the series Φ(x) = 1/2 + φ(x) Σ x^(2k+1) / (1 · 3 · … (2k+1)),
beyond it the continued fraction of the tail (M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.2.11
and 26.2.14).
"""

from __future__ import annotations

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats

_SQRT_TWO_PI = 2.5066282746310002
_SERIES_UP_TO = 3.0
_TERMS = 60
_FAR = 38.0  # the density is 0 in floating point
KAPPA = 2.0


def density(x: Floats) -> Floats:
    """Return φ(x)."""
    near = np.minimum(np.abs(x), _FAR)
    return np.asarray(elementary.exp(-near * near / 2) / _SQRT_TWO_PI)


def distribution(x: Floats) -> Floats:
    """Return Φ(x); the relative error of small values is small too."""
    near = np.clip(x, -_SERIES_UP_TO, _SERIES_UP_TO)
    term, total = near.copy(), near.copy()
    for k in range(1, _TERMS):
        term = term * near * near / (2 * k + 1)
        total = total + term
    far = np.clip(np.abs(x), _SERIES_UP_TO, _FAR)
    fraction = far.copy()
    for k in range(_TERMS, 0, -1):
        fraction = far + k / fraction
    tail = density(far) / fraction
    middle = 0.5 + density(near) * total
    return np.asarray(np.where(np.abs(x) <= _SERIES_UP_TO, middle, np.where(x > 0, 1 - tail, tail)))


def expected_improvement(mean: Floats, sd: Floats, best: float) -> Floats:
    """Return EI of points, (point,)."""
    gain = best - mean
    with np.errstate(over="ignore"):  # an infinite z is as good as any beyond 40
        z = np.divide(gain, sd, out=np.zeros_like(gain), where=sd > 0)
    improvement = np.where(sd > 0, gain * distribution(z) + sd * density(z), gain)
    return np.asarray(np.maximum(improvement, 0.0))


def lower_bound(mean: Floats, sd: Floats, kappa: float = KAPPA) -> Floats:
    """Return LCB of points, (point,)."""
    return np.asarray(mean - kappa * sd)
