"""Linear interpolation between scattered points, over the Delaunay simplex around a point.

Where more points than a simplex has lie on one sphere, as on a grid, several simplices are as good. SciPy takes that
of Qhull, which is what other programs are likely to have taken; it is used where it is installed. Without it the
simplex is found as a linear program, whose choice among equals is another one:

    minimise_λ   Σ_i λ_i |x_i - q|²   subject to   Σ_i λ_i x_i = q,   Σ_i λ_i = 1,   λ ≥ 0
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.products import dot
from eunomia.solvers.program import Program


@cache
def has_qhull() -> bool:
    """Say whether SciPy is installed."""
    return find_spec("scipy") is not None


class Scattered:
    """Values (point, value) at points (point, axis)."""

    def __init__(self, points: Floats, values: Floats):
        self._points, self._values = points, values
        self._interpolator: Any = None

    def at(self, place: Floats) -> Floats:
        """Return the values (value,) at a place (axis,) that lies between the points."""
        return self._by_qhull(place) if has_qhull() else self._by_program(place)

    def _by_qhull(self, place: Floats) -> Floats:
        if self._interpolator is None:
            scipy: Any = import_module("scipy.interpolate")
            self._interpolator = scipy.LinearNDInterpolator(self._points, self._values)
        return np.asarray(self._interpolator(place)[0])

    def _by_program(self, place: Floats) -> Floats:
        """Return the values where the lifted points are lowest. Raises Infeasible for a place outside of all points."""
        n, axes = self._points.shape
        offset = self._points - place
        matrix = np.column_stack([offset, np.ones(n)])
        sides = np.append(np.zeros(axes), 1.0)
        start, index = np.arange(n + 1) * (axes + 1), np.tile(np.arange(axes + 1), n)
        lifted = (offset**2).sum(axis=1)
        program = Program(lifted, start, index, matrix.ravel(), sides, sides, maximise=False)
        return np.asarray(dot(program.solve().x, self._values))
