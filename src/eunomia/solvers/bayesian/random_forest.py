"""Regression by a random forest, with a variance: that between the trees and that within their leaves.

Each tree splits a bootstrap sample where the squared error falls most, over a random part of the coordinates. By
F. Hutter, H. Hoos and K. Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm Configuration",
LION 2011, section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import rounded

TREES = 60
_FEWEST = 3  # measurements of a node that is split
_PART = 5 / 6  # of the coordinates that a split chooses from


@dataclass(frozen=True)
class _Leaf:
    low: Floats  # (coordinate,), exclusive
    high: Floats  # (coordinate,), inclusive
    mean: float
    variance: float


@dataclass(frozen=True)
class RandomForest:
    """A fitted forest: `predict` returns mean and standard deviation of points."""

    trees: tuple[tuple[_Leaf, ...], ...]

    @classmethod
    def fit(cls, x: Floats, y: Floats, rng: np.random.Generator) -> RandomForest:
        """Return a forest for y (measurement,) at x (measurement, coordinate)."""
        trees = []
        for _ in range(TREES):
            drawn = rng.integers(0, len(y), len(y))
            edge = np.full(x.shape[1], np.inf)
            trees.append(tuple(_grow(x[drawn], y[drawn], -edge, edge, rng)))
        return cls(tuple(trees))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation, (point,) each, at x (point, coordinate)."""
        mean, variance = np.empty((2, len(self.trees), len(x)))
        for row, leaves in enumerate(self.trees):
            for leaf in leaves:
                inside = np.asarray(((x > leaf.low) & (x <= leaf.high)).all(axis=1))
                mean[row, inside], variance[row, inside] = leaf.mean, leaf.variance
        middle = np.mean(mean, axis=0)
        return middle, np.sqrt(np.mean(np.square(mean - middle), axis=0) + np.mean(variance, axis=0))


def _grow(x: Floats, y: Floats, low: Floats, high: Floats, rng: np.random.Generator) -> list[_Leaf]:
    """Return the leaves of a tree of these measurements."""
    split = _best_split(x, y, rng) if len(y) >= _FEWEST else None
    if split is None:
        return [_Leaf(low, high, float(np.mean(y)), float(np.var(y)))]
    coordinate, at = split
    left, middle = x[:, coordinate] <= at, np.full(len(low), np.nan)
    middle[coordinate] = at
    below, above = np.where(np.isnan(middle), high, middle), np.where(np.isnan(middle), low, middle)
    return _grow(x[left], y[left], low, below, rng) + _grow(x[~left], y[~left], above, high, rng)


def _best_split(x: Floats, y: Floats, rng: np.random.Generator) -> tuple[int, float] | None:
    """Return coordinate and threshold with the least squared error; None if no coordinate varies."""
    count = max(1, int(np.ceil(_PART * x.shape[1])))
    considered: Ints = np.sort(rng.permutation(x.shape[1])[:count])
    best: tuple[int, float] | None = None
    most = 0.0
    for coordinate in considered.tolist():
        order = np.argsort(x[:, coordinate], kind="stable")
        at, total = x[order, coordinate], np.cumsum(y[order])
        n = np.arange(1, len(y))
        gain = np.square(total[:-1]) / n + np.square(total[-1] - total[:-1]) / (len(y) - n)
        gain = rounded(np.where(at[1:] > at[:-1], gain - total[-1] * total[-1] / len(y), -1.0))
        k = int(gain.argmax())
        if gain[k] > most:
            part = rng.random()  # anywhere between the two, so that trees differ where nothing was measured
            best, most = (coordinate, float(at[k] + part * (at[k + 1] - at[k]))), float(gain[k])
    return best
