"""From edges and level to shares: one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.needs import needs
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.sums import summed

_BLOCK = 256


@kernel(error_model="numpy")
def demand_at(rows: NeedRows, t: float, left: Array, right: Array, share: Floats, demand: Floats) -> None:
    """Write what each row's right end gets at level t (row,), and add to demand (3, column) its expansion around t.

    left, right (row,): columns of the edge; left −1 is idle, right −1 a row that gets nothing.
    """
    T, (K, n) = rows.T, rows.T.shape
    need, slope, bend = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, low, high = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    lanes = np.zeros((3, K, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        size, part, lefts, rights = rows.size[o : o + nb], share[o : o + nb], left[o : o + nb], right[o : o + nb]
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t, need, slope, bend)
        for j in range(nb):
            L[j] = lefts[j]
            R[j] = rights[j]
            low[j] = 0.0
            high[j] = 1e300
        for k in range(K):
            Tk, mark = T[k, o : o + nb], float(k)
            for j in range(nb):
                low[j] = Tk[j] if L[j] == mark else low[j]
                high[j] = Tk[j] if R[j] == mark else high[j]
        for j in range(nb):
            gain = 1.0 / (high[j] - low[j])
            x = (need[j] - low[j]) * gain
            x = min(max(x, 0.0), 1.0)
            x = x if R[j] >= 0.0 else 0.0
            part[j] = x
            low[j] = (1.0 - x) * size[j] if R[j] >= 0.0 else 0.0
            high[j] = x * size[j]
            gain = gain * size[j] if R[j] >= 0.0 else 0.0
            slope[j] *= gain
            bend[j] *= gain
        for k in range(K):
            mark = float(k)
            for j in range(nb):
                up, down = R[j] == mark, L[j] == mark
                lanes[0, k, j] += (high[j] if up else 0.0) + (low[j] if down else 0.0)
                lanes[1, k, j] += (slope[j] if up else 0.0) - (slope[j] if down else 0.0)
            if rows.b is not None:
                for j in range(nb):
                    up, down = R[j] == mark, L[j] == mark
                    lanes[2, k, j] += (bend[j] if up else 0.0) - (bend[j] if down else 0.0)
    count = min(n, _BLOCK)
    for d in range(3):
        for k in range(K):
            demand[d, k] += summed(lanes[d, k], count)


@dataclass(frozen=True, slots=True)
class Edges:
    """What every row gets at level t: the share of the right end of its edge follows from t; a few rows in full."""

    columns: int
    rows: NeedRows
    t: float
    left: Array  # (row,) column or −1: idle
    right: Array  # (row,) column or −1: nothing, or in full
    places: Ints  # rows in full
    full: Floats  # (column, places)

    def _fill(self) -> tuple[Floats, Floats]:
        """Return the share of each right end (row,) and the demand (column,) of all edges."""
        share, demand = np.empty(self.rows.count), np.zeros((3, self.columns))
        rows = self.rows
        demand_at(rows, self.t, self.left, self.right, share, demand)
        return share, demand[0]

    def demand(self) -> Floats:
        """Return how much of each column the edges use, (column,)."""
        return self._fill()[1]

    def used(self) -> Floats:
        """Return how much of each column all rows use, (column,)."""
        return np.asarray(self.demand() + dot(self.full, self.rows.size[self.places]))

    def instead(self, chosen: Ints, columns: Ints, x: Floats) -> Edges:
        """Return these edges with shares x (columns, chosen) for the rows chosen, whatever they had."""
        left, right = self.left.copy(), self.right.copy()
        left[chosen], right[chosen] = -1, -1
        full = np.zeros((self.columns, len(chosen)))
        full[columns] = x
        kept = ~np.isin(self.places, chosen)
        places = np.append(self.places[kept], chosen)
        full = np.concatenate((self.full[:, kept], full), axis=1)
        return replace(self, left=left, right=right, places=places, full=full)

    def with_routes(self, todo: Ints, free: Ints, routes: Edges) -> Edges:
        """Return these edges with those of the rows `todo` over the columns `free`."""
        name = np.append(free, -1).astype(np.int8)
        into = todo if len(todo) < len(self.left) else slice(None)
        self.left[into], self.right[into] = name[routes.left], name[routes.right]
        more = np.zeros((self.columns, len(routes.places)))
        more[free] = routes.full
        places = np.append(self.places, todo[routes.places])
        return replace(self, places=places, full=np.concatenate((self.full, more), axis=1))

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Return row (ascending), column and share of every place above 0."""
        share, _ = self._fill()
        on = self.right >= 0
        up = np.flatnonzero(on & (share > 0))
        down = np.flatnonzero(on & (self.left >= 0) & (share < 1))
        column, place = np.nonzero(self.full > 0)
        row = np.concatenate((up, down, self.places[place]))
        columns = np.concatenate((self.right[up], self.left[down], column)).astype(np.int64)
        order = np.lexsort((columns, row))
        shares = np.concatenate((share[up], 1 - share[down], self.full[column, place]))
        return row[order], columns[order], shares[order]

    def dense(self) -> Floats:
        """Return x (row, column), laid out by column."""
        share, _ = self._fill()
        x = np.empty((self.columns, self.rows.count))
        rest = np.where(self.right >= 0, 1 - share, 0.0)
        for k in range(self.columns):
            x[k] = np.where(self.right == k, share, np.where(self.left == k, rest, 0.0))
        x[:, self.places] = self.full
        return x.T
