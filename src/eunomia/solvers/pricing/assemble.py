"""From edges and level to shares: one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.needs import needs
from eunomia.solvers.pricing.response import add_edges, join
from eunomia.solvers.pricing.rows import NeedRows

_BLOCK = 256


@kernel(error_model="numpy", inline="always")
def _parts(rows: NeedRows, o: int, nb: int, need: Floats, low: Floats, high: Floats, L: Floats, R: Floats) -> None:
    """Write speeds of the ends L, R of each lane's edge to low and high, and the right ends' shares to need."""
    T = rows.T
    for j in range(nb):
        low[j] = 0.0
        high[j] = 1e300
    for k in range(T.shape[0]):
        Tk, mark = T[k, o : o + nb], float(k)
        for j in range(nb):
            low[j] = Tk[j] if L[j] == mark else low[j]
            high[j] = Tk[j] if R[j] == mark else high[j]
    for j in range(nb):
        x = (need[j] - low[j]) * (1.0 / (high[j] - low[j]))
        x = min(max(x, 0.0), 1.0)
        need[j] = x if R[j] >= 0.0 else 0.0


@kernel(error_model="numpy")
def demand_at(rows: NeedRows, t: float, left: Array, right: Array, demand: Floats) -> None:
    """Add to demand (3, column) what the rows' edges use of each column around level t.

    left, right (row,): columns of the edge; left −1 is idle, right −1 a row that gets nothing.
    """
    K, n = rows.T.shape
    need, slope, bend = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, low, high = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    lanes = np.zeros((2 if rows.b is None else 3, K, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        size, lefts, rights = rows.size[o : o + nb], left[o : o + nb], right[o : o + nb]
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t, need, slope, bend)
        for j in range(nb):
            L[j] = lefts[j]
            R[j] = rights[j]
        _parts(rows, o, nb, need, low, high, L, R)
        for j in range(nb):
            gain = size[j] * (1.0 / (high[j] - low[j])) if R[j] >= 0.0 else 0.0
            low[j] = (1.0 - need[j]) * size[j] if R[j] >= 0.0 else 0.0
            high[j] = need[j] * size[j]
            slope[j] *= gain
            bend[j] *= gain
        add_edges(L, R, high, low, slope, bend, nb, lanes)
    join(lanes, n, demand)


@kernel(error_model="numpy")
def _write(rows: NeedRows, t: float, left: Array, right: Array, x: Floats) -> None:
    """Write the shares of the rows' edges at level t (column, row); x (1, row): those of the right ends alone."""
    K, n = x.shape[0], rows.T.shape[1]
    need, slope, bend = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, low, high = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        lefts, rights = left[o : o + nb], right[o : o + nb]
        needs(rows.a, rows.b, rows.e, rows.cap, o, nb, t, need, slope, bend)
        for j in range(nb):
            L[j] = lefts[j]
            R[j] = rights[j]
        _parts(rows, o, nb, need, low, high, L, R)
        for j in range(nb):
            low[j] = 1.0 - need[j] if R[j] >= 0.0 else 0.0
        for k in range(K):
            xk, mark = x[k, o : o + nb], float(k)
            for j in range(nb):
                rest = low[j] if L[j] == mark else 0.0
                xk[j] = need[j] if (R[j] == mark) | (K == 1) else rest


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

    def demand(self) -> Floats:
        """Return how much of each column the edges use, (column,)."""
        demand: Floats = np.zeros((3, self.columns))
        demand_at(self.rows, self.t, self.left, self.right, demand)
        return np.asarray(demand[0])

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
        share = np.empty(self.rows.count)
        _write(self.rows, self.t, self.left, self.right, share[None])
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
        x = np.empty((self.columns, self.rows.count))
        _write(self.rows, self.t, self.left, self.right, x)
        x[:, self.places] = self.full
        return x.T
