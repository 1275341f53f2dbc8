"""Sequential search of the point of a grid with the least value: asks for a point, receives its value, asks again.

    D ← initial design: the centre and a Latin hypercube
    repeat: fit the surrogate to (z, log y); measure the point that was not measured and promises most

It ends when expected improvement falls below `epsilon`: as y is in logarithms, that is a share of the best value.
References: J. Snoek, H. Larochelle and R. Adams, "Practical Bayesian Optimization of Machine Learning Algorithms",
NeurIPS 2012; O. Alipourfard et al., "CherryPick", NSDI 2017, section 3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.rounding import rounded
from eunomia.solvers.bayesian.acquisition import expected_improvement, lower_bound
from eunomia.solvers.bayesian.gaussian_process import GaussianProcess
from eunomia.solvers.bayesian.grid import SearchGrid
from eunomia.solvers.bayesian.random_forest import RandomForest

METHODS = ("gp-ei", "gp-lcb", "rf-ei", "rf-lcb", "random", "grid")
INITIAL = 4  # points of the initial design
FEWEST = 6  # measurements before the search may end early
EPSILON = 0.01
ENUMERATED = 20_000  # points of a grid that is searched whole
_SAMPLED, _CLIMBS = 1000, 30  # points drawn of a larger one; steps of the local search from the best of them


class GridSearch:
    """One search. `ask` returns the number of a point that was not measured, None when the search ends."""

    def __init__(self, grid: SearchGrid, method: str, *, budget: int, seed: int, epsilon: float = EPSILON):
        self._grid, self._method, self._epsilon = grid, method, epsilon
        self._rng = np.random.default_rng(seed)
        self._visited: set[int] = set()
        self._points: list[int] = []
        self._logs: list[float] = []
        self._planned = iter(_factorial(grid, budget) if method == "grid" else _design(grid, self._rng))

    def ask(self) -> int | None:
        """Return the point to be measured next."""
        planned = self.next_planned()
        if planned is not None or len(self._visited) >= self._grid.points:
            return planned
        return self._draw() if len(self._logs) < 2 else self._promising()

    def next_planned(self) -> int | None:
        """Return the point to be measured next if no value decides it: of the initial design, drawn, or of a factorial.

        None after that, and when every point was visited.
        """
        if len(self._visited) >= self._grid.points:
            return None
        if self._method != "random":
            for point in self._planned:
                if point not in self._visited:
                    return point
        return self._draw() if self._method in ("random", "grid") else None

    def tell(self, point: int, y: float) -> None:
        """Take in the value of a point, above 0."""
        self._visited.add(point)
        self._points.append(point)
        self._logs.append(elementary.log(y))

    def exclude(self, point: int) -> None:
        """Take in that a point cannot be measured."""
        self._visited.add(point)

    def _draw(self) -> int:
        """Return a point at random; each that was not visited is as likely."""
        if self._grid.points > ENUMERATED:
            while True:
                point = int(self._rng.integers(self._grid.points))
                if point not in self._visited:
                    return point
        return int(self._rng.choice(self._unvisited()))

    def _unvisited(self) -> Ints:
        left = np.ones(self._grid.points, dtype=bool)
        left[list(self._visited)] = False
        return np.flatnonzero(left)

    def _promising(self) -> int | None:
        """Return the point that promises most; None if no improvement is expected of it."""
        x = self._grid.coordinates(np.array(self._points))
        logs = np.array(self._logs)
        middle, spread = float(np.mean(logs)), float(np.std(logs)) or 1.0
        surrogate = GaussianProcess if self._method.startswith("gp") else RandomForest
        model = surrogate.fit(x, (logs - middle) / spread, self._rng)
        best = float((logs.min() - middle) / spread)

        def promise(points: Ints) -> Floats:
            mean, sd = model.predict(self._grid.coordinates(points))
            value = expected_improvement(mean, sd, best) if self._method.endswith("ei") else -lower_bound(mean, sd)
            return rounded(value)

        if self._grid.points <= ENUMERATED:
            points = self._unvisited()
            values = promise(points)
        else:
            points, values = self._climb(promise)
        chosen = int(self._rng.choice(points[values == values.max()]))
        expected = expected_improvement(*model.predict(self._grid.coordinates(np.array([chosen]))), best)
        if len(logs) >= FEWEST and float(expected[0]) * spread < self._epsilon:
            return None
        return chosen

    def _climb(self, promise: Callable[[Ints], Floats]) -> tuple[Ints, Floats]:
        """Return points of a large grid and their promise: 1,000 at random, and steps from the best to neighbours."""
        points = np.unique(self._rng.integers(self._grid.points, size=_SAMPLED))
        points = self._without_visited(points)
        values = promise(points)
        steps = np.concatenate((np.eye(len(self._grid.sizes)), -np.eye(len(self._grid.sizes)))).astype(np.int64)
        for _ in range(_CLIMBS):
            at = self._grid.values(points[values.argmax()])
            near = np.clip(at + steps, 0, np.array(self._grid.sizes) - 1)
            fresh = self._without_visited(np.setdiff1d(self._grid.point(near), points))
            if len(fresh) == 0:
                break
            found = promise(fresh)
            is_top = found.max() <= values.max()
            points, values = np.concatenate((points, fresh)), np.concatenate((values, found))
            if is_top:
                break
        return points, values

    def _without_visited(self, points: Ints) -> Ints:
        return points[~np.isin(points, np.fromiter(self._visited, dtype=np.int64, count=len(self._visited)))]


def _design(grid: SearchGrid, rng: np.random.Generator) -> list[int]:
    """Return the centre and the points of a Latin hypercube, those that differ."""
    sizes = np.array(grid.sizes)
    places = np.stack([rng.permutation(INITIAL - 1) for _ in grid.sizes], axis=1)
    values = np.floor((places + rng.random(places.shape)) / (INITIAL - 1) * sizes).astype(np.int64)
    values = np.concatenate((((sizes - 1) // 2)[None], np.minimum(values, sizes - 1)))
    return list(dict.fromkeys(grid.point(values).tolist()))


def _factorial(grid: SearchGrid, budget: int) -> list[int]:
    """Return at most `budget` points: every combination of equally many values of each parameter, evenly spread."""
    levels, tried = 1, 1
    while True:
        tried = int(np.prod([min(levels + 1, size) for size in grid.sizes]))
        if tried > budget or levels >= max(grid.sizes):
            break
        levels += 1
    axes = [
        np.unique(((np.arange(min(levels, size)) + 0.5) / min(levels, size) * size).astype(np.int64))
        for size in grid.sizes
    ]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return [int(point) for point in grid.point(mesh)]
