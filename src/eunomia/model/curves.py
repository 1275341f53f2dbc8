"""Learning curves: the loss of a training run by its progress.

    l(p) = floor + (start − floor) / (1 + rate · p)        p fraction of the run's steps

which is the sub-linear family l(k) = 1 / (a k + b) + c of first-order methods (Peng et al., "Optimus", EuroSys 2018;
Zhang et al., "SLAQ", SoCC 2017) with b = 1 / (start − floor), a = b · rate and c = floor.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats
from eunomia.model.rounding import drawn

START = 1.0  # losses are fractions of the first one
_FLOOR = (0.2, 0.35)  # median and σ of the logarithm
_RATE = (20.0, 0.8)


class Curve(NamedTuple):
    """Loss of one run: it falls from `start` towards `floor`, faster with a larger `rate`."""

    start: float = START
    floor: float = 0.0
    rate: float = 20.0

    def loss(self, progress: float | Floats) -> float | Floats:
        """Return the loss after fractions of the steps, shape of `progress`."""
        return self.floor + (self.start - self.floor) / (1.0 + self.rate * progress)

    def reaches(self, loss: float) -> float:
        """Return the fraction of the steps at which the loss is reached; inf = never."""
        if loss >= self.start:
            return 0.0
        return ((self.start - self.floor) / (loss - self.floor) - 1.0) / self.rate if loss > self.floor else np.inf


def losses(curves: Floats, progress: Floats) -> Floats:
    """Return the losses of many runs, shape of `progress`; curves (…, 3) are start, floor and rate."""
    start, floor, rate = np.moveaxis(curves, -1, 0)
    return np.asarray(floor + (start - floor) / (1.0 + rate * progress))


def curve_of(seed: int, job_id: str) -> Curve:
    """Return a run's curve, drawn by the seed and its name alone."""
    rng = np.random.default_rng((seed, zlib.crc32(job_id.encode())))
    median, sigma = np.array((_FLOOR, _RATE)).T
    floor, rate = (median * elementary.exp(sigma * drawn(rng.standard_normal(2)))).tolist()
    return Curve(START, min(floor, 0.95 * START), rate)
