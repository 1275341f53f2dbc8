"""The linear programs of sharing time, laid out as a solver takes them, and solved job by job where they are coupled.

x ≥ 0,   Σ_i s_i x_ik ≤ N_k,   Σ_k x_ik ≤ 1,   Σ_k T_ik x_ik ≥ r_i   or   Σ_k T_ik x_ik ≥ t, with t as large as can be
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.equations import solve
from eunomia.model.products import dot, row_dots

_SCALINGS = 3
_SLIGHT = 1e-15  # of a job's system, added so that it can be solved though its last digits are gone


class SharedTime:
    """Rows: one for each place, each type, each job's time, each job's level. Columns: places, and t if there is one.

    Rows and columns are scaled to like size, as `row` and `column` say; c, h and all arguments are in scaled units.
    """

    def __init__(self, T: Floats, size: Floats, capacity: Floats, least: Floats | None = None):
        """Take T (job, type), size (job,), capacity (type,); `least` (job,) in place of t."""
        n, K = T.shape
        self._shape, self._lifts = (n, K), least is None
        self._own, self._seats = -np.ones((n, K)), np.tile(size[:, None], (1, K)).astype(float)
        self._time, self._level = np.ones((n, K)), -T.astype(float)
        self._t = np.ones(n) if self._lifts else np.zeros(n)
        self._cuts = np.cumsum([n * K, K, n])
        self.row, self.column = np.ones(n * K + K + 2 * n), np.ones(n * K + self._lifts)
        for _ in range(_SCALINGS):
            self._scale(*self._largest())
        h = np.concatenate((np.zeros(n * K), capacity, np.ones(n), np.zeros(n) if least is None else -least))
        self.h = h / self.row
        self.c = np.zeros(len(self.column))
        if self._lifts:
            self.c[-1] = -1.0 / self.column[-1]

    def shares(self, x: Floats) -> Floats:
        """Return X (job, type) in its own units."""
        n, K = self._shape
        return np.clip((x / self.column)[: n * K].reshape(n, K), 0.0, 1.0)

    # ---- scaling ---------------------------------------------------------------------------------------------

    def _largest(self) -> tuple[Floats, Floats]:
        """Return the largest entry of each row and of each column."""
        own, seats, time, level = (np.abs(part) for part in (self._own, self._seats, self._time, self._level))
        t = np.abs(self._t)
        rows = (own.ravel(), seats.max(axis=0), time.max(axis=1), np.maximum(level.max(axis=1), t))
        places = np.maximum.reduce((own, seats, time, level)).ravel()
        return np.concatenate(rows), np.append(places, t.max()) if self._lifts else places

    def _scale(self, rows: Floats, columns: Floats) -> None:
        by_row, by_column = np.sqrt(rows), np.sqrt(columns)
        by_row[by_row == 0], by_column[by_column == 0] = 1.0, 1.0
        own, seats, time, level = np.split(by_row, self._cuts)
        n, K = self._shape
        places = by_column[: n * K].reshape(n, K)
        self._own = self._own / own.reshape(n, K) / places
        self._seats = self._seats / seats / places
        self._time = self._time / time[:, None] / places
        self._level = self._level / level[:, None] / places
        if self._lifts:
            self._t = self._t / level / by_column[-1]
        self.row, self.column = self.row * by_row, self.column * by_column

    # ---- products and the system -----------------------------------------------------------------------------

    def _parts(self, rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        own, seats, time, level = np.split(rows, self._cuts)
        return own.reshape(self._shape), seats, time, level

    def times(self, x: Floats) -> Floats:
        """Return G x."""
        n, K = self._shape
        X, t = x[: n * K].reshape(n, K), x[-1] if self._lifts else 0.0
        level = (self._level * X).sum(axis=1) + self._t * t
        own, seats = (self._own * X).ravel(), (self._seats * X).sum(axis=0)
        return np.concatenate((own, seats, (self._time * X).sum(axis=1), level))

    def back(self, z: Floats) -> Floats:
        """Return Gᵀz."""
        own, seats, time, level = self._parts(z)
        X = self._own * own + self._seats * seats + self._time * time[:, None] + self._level * level[:, None]
        return np.append(X, dot(self._t, level)) if self._lifts else X.ravel()

    def system(self, weight: Floats, above: Floats, below: Floats) -> tuple[Floats, Floats]:
        """Return x, z with Gᵀz = above and G x − weight z = below: each job by itself, given seats' prices and t."""
        n, K = self._shape
        own, seats, time, level = self._parts(weight)
        b_own, b_seats, b_time, b_level = self._parts(below)
        block = self._time[:, :, None] * self._time[:, None] / time[:, None, None]
        block += self._level[:, :, None] * self._level[:, None] / level[:, None, None]
        block[:, np.arange(K), np.arange(K)] += self._own**2 / own
        block[:, np.arange(K), np.arange(K)] += _SLIGHT * np.trace(block, axis1=1, axis2=2)[:, None]
        right = above[: n * K].reshape(n, K) + self._own * b_own / own
        right = right + self._time * (b_time / time)[:, None] + self._level * (b_level / level)[:, None]
        by_t = self._level * (self._t / level)[:, None]  # what x gives way by for each t
        wide = np.zeros((n, K, K + 2))
        wide[:, :, 0], wide[:, :, 1] = right, by_t
        wide[:, np.arange(K), 2 + np.arange(K)] = self._seats
        answers = solve(block, wide)  # x = answers · (1, −t, −prices of seats)
        used = (self._seats[:, :, None] * answers).sum(axis=0)
        matrix, rest = np.zeros((K + 1, K + 1)), np.zeros(K + 1)
        matrix[:K, :K], matrix[:K, K] = used[:, 2:] + np.diag(seats), used[:, 1]
        rest[:K] = used[:, 0] - b_seats
        if self._lifts:
            pulled = (by_t[:, :, None] * answers).sum(axis=(0, 1))
            matrix[K, :K], matrix[K, K] = -pulled[2:], float((self._t**2 / level).sum()) - pulled[1]
            rest[K] = above[-1] + float((self._t * b_level / level).sum()) - pulled[0]
        else:
            matrix[K, K] = 1.0
        found = solve(matrix, rest)
        X = answers[:, :, 0] - answers[:, :, 1] * found[K] - row_dots(answers[:, :, 2:], found[:K])
        x = np.append(X, found[K]) if self._lifts else X.ravel()
        z = (self.times(x) - below) / weight
        z[n * K : n * K + K] = found[:K]
        return x, z
