"""Learning curves: the loss of a training run as it goes on.

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

START = 1.0  # losses are told as parts of the first one
_FLOOR = (0.2, 0.35)  # median and σ of the logarithm
_RATE = (20.0, 0.8)


class Curve(NamedTuple):
    """One run's loss; falls from `start` towards `floor`, the faster the greater `rate`."""

    start: float = START
    floor: float = 0.0
    rate: float = 20.0

    def loss(self, progress: float | Floats) -> float | Floats:
        """Return the loss when a fraction of the steps is done, shape of `progress`."""
        return self.floor + (self.start - self.floor) / (1.0 + self.rate * progress)

    def reaches(self, loss: float) -> float:
        """Return at which fraction of the steps the loss is reached; inf = never, however long the run."""
        if loss >= self.start:
            return 0.0
        return ((self.start - self.floor) / (loss - self.floor) - 1.0) / self.rate if loss > self.floor else np.inf


def losses(curves: Floats, progress: Floats) -> Floats:
    """Return the losses of many runs, shape of `progress`; curves (…, 3) start, floor and rate of each."""
    start, floor, rate = np.moveaxis(curves, -1, 0)
    return np.asarray(floor + (start - floor) / (1.0 + rate * progress))


def curve_of(seed: int, job_id: str) -> Curve:
    """Return a run's curve, drawn by the seed and its name alone: who else runs does not matter."""
    rng = np.random.default_rng((seed, zlib.crc32(job_id.encode())))
    median, sigma = np.array((_FLOOR, _RATE)).T
    floor, rate = (median * elementary.exp(sigma * drawn(rng.standard_normal(2)))).tolist()
    return Curve(START, min(floor, 0.95 * START), rate)
