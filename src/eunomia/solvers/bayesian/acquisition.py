"""How much a measurement of a point promises, for minimisation.

    expected improvement   EI = (f* − μ) Φ(z) + σ φ(z),  z = (f* − μ) / σ;  max(f* − μ, 0) where σ = 0
    lower confidence bound   LCB = μ − κ σ

μ, σ the surrogate's mean and standard deviation, f* the least value measured. Reference: D. Jones, M. Schonlau and
W. Welch, "Efficient Global Optimization of Expensive Black-Box Functions", J. Global Optimization 1998, section 4.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.solvers.bayesian.normal import density, distribution

KAPPA = 2.0


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
