"""A grid of settings: every combination of the values of several parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints


def scaled(values: Sequence[float], *, log: bool = False) -> Floats:
    """Return numbers as one column, (value, 1), scaled to 0 … 1, by their logarithms if asked.

    If one is infinite, by their places in the list.
    """
    column = np.asarray(values, dtype=np.float64)
    if not np.isfinite(column).all():
        column = np.arange(float(len(column)))
    elif log:
        column = elementary.log(column)
    low, high = column.min(), column.max()
    return np.asarray(((column - low) / (high - low if high > low else 1.0))[:, None])


def unordered(count: int) -> Floats:
    """Return choices without an order, (value, value): two different ones are a distance of 1 apart."""
    return np.eye(count) / 2**0.5


@dataclass(frozen=True)
class SearchGrid:
    """Points are numbered; the last parameter varies fastest. `columns` are the coordinates of each parameter."""

    columns: tuple[Floats, ...]  # of each parameter: (value, coordinate)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of each parameter."""
        return tuple(len(column) for column in self.columns)

    @property
    def points(self) -> int:
        """The number of points."""
        return int(np.prod([float(size) for size in self.sizes]))

    def values(self, points: Ints) -> Ints:
        """Return the number of the value of each parameter, (point, parameter)."""
        return np.stack(np.unravel_index(points, self.sizes), axis=-1)

    def point(self, values: Ints) -> Ints:
        """Return the points with these values, (…, parameter)."""
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(values, -1, 0)), self.sizes))

    def coordinates(self, points: Ints) -> Floats:
        """Return the coordinates of points, (point, coordinate)."""
        values = self.values(points)
        return np.concatenate([column[values[:, k]] for k, column in enumerate(self.columns)], axis=1)
