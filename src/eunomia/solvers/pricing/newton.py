"""Newton's method for prices of many rows: what they ask for is nearly smooth in prices, the more so the more they are.

Unknown are the value q of each column (sum 1) and the level t; wanted is that what rows ask for, D(q, t), is all
capacity. One pass over the rows tells D and its derivative in t; that in q changes slowly: it is measured once, by
finite differences on some of the rows, and fixed after each step by what the step did (C. G. Broyden, "A Class of
Methods for Solving Nonlinear Simultaneous Equations", Mathematics of Computation 19, 1965). Where prices are not
smooth (rows that are alike, a column without a price) steps do not get smaller, and the caller goes another way:
nothing here is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.model.equations import solve
from eunomia.model.products import dot
from eunomia.solvers.pricing.response import add_edges, join, walk
from eunomia.solvers.pricing.rows import NeedRows

_BLOCK = 256
_SOME = 8192  # rows from which the derivative is measured
_NUDGE = 0.02  # relative step of the finite differences
_FLOOR = 0.5  # smallest price for a relative width, in mean prices
_PASSES = 8
_SHRINK = 0.6  # a step longer than so much of the last one is not on its way to anywhere
_FAR = 0.5  # relative step that no derivative is good for


@kernel(error_model="numpy")
def answers(T: Floats, base: Floats, s: Floats, need: Floats, slope: Floats, price: Floats, demand: Floats) -> None:
    """Add what the rows ask of each column at these prices, and its derivative in the level, to demand (2, column).

    T (column, row); base, size s, need and its slope (row,). A need above the row's best speed counts as that speed.
    """
    K, n = T.shape
    most, up, down, rise = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    L, R, lanes = np.empty((3, _BLOCK)), np.empty((3, _BLOCK)), np.zeros((2, K, _BLOCK))
    for o in range(0, n, _BLOCK):
        nb = min(_BLOCK, n - o)
        size, f, asked, steep = s[o : o + nb], base[o : o + nb], need[o : o + nb], slope[o : o + nb]
        for j in range(nb):
            most[j] = f[j]
        for k in range(K):
            Tk = T[k, o : o + nb]
            for j in range(nb):
                most[j] = max(Tk[j], most[j])
        for j in range(nb):
            most[j] = min(most[j], asked[j])
        walk(T, base, o, nb, price, most, L, R)
        for j in range(nb):
            asks = (most[j] > f[j]) & (R[2, j] >= 0.0)
            gain = size[j] / (R[0, j] - L[0, j]) if asks else 0.0
            up[j] = (most[j] - L[0, j]) * gain
            down[j] = size[j] - up[j] if asks else 0.0
            rise[j] = steep[j] * gain
        add_edges(L[2], R[2], up, down, rise, rise, nb, lanes)
    join(lanes, n, demand)


@dataclass(frozen=True, slots=True)
class PriceMarket:
    """Rows, what is settled besides them, Σ_d fixed[d] (t − anchor)^d (3, column), and capacities (column,)."""

    rows: NeedRows
    fixed: Floats
    anchor: float
    limit: Floats

    def excess(self, value: Floats, t: float) -> tuple[Floats, Floats]:
        """Return what is asked for beyond capacity, in parts of it, and its derivative in t, (column,) each."""
        rows, d = self.rows, t - self.anchor
        demand = np.stack(
            (self.fixed[0] + d * (self.fixed[1] + d * self.fixed[2]), self.fixed[1] + 2 * d * self.fixed[2])
        )
        answers(rows.T, rows.base, rows.size, *rows.need(t), value / self.limit, demand)
        return demand[0] / self.limit - 1, demand[1] / self.limit

    def slope(self, value: Floats, t: float) -> Floats:
        """Return the derivative of the excess in the values, (column, column), measured on some of the rows."""
        every = max(self.rows.count // _SOME, 1)
        some = self.rows if every == 1 else self.rows.some(np.arange(0, self.rows.count, every), float(every))
        market = PriceMarket(some, np.zeros_like(self.fixed), 0.0, self.limit)
        here, _ = market.excess(value, t)
        slope = np.empty((len(value), len(value)))
        for k, width in enumerate(_NUDGE * widths(value)):
            there = value.copy()
            there[k] += width
            slope[:, k] = (market.excess(there, t)[0] - here) / width
        return 0.5 * (slope + slope.T)

    def balance(
        self, value: Floats, t: float, top: float, slope: Floats, goal: float
    ) -> tuple[Floats, float, float] | None:
        """Return values above 0 with sum 1 and a level ≤ top with next to no excess; None where there seem none.

        Third, how far off they may be, relative. slope (column, column): derivative of the excess in the values. Stops
        where an error of `goal` is reached, or where steps get no smaller.
        """
        last, off, K = np.inf, np.inf, len(value)
        matrix = np.ones((K + 1, K + 1))
        matrix[:K, :K], matrix[K, K] = slope, 0.0
        over, rise = self.excess(value, t)
        for _ in range(_PASSES):
            matrix[:K, K] = rise * t
            step = solve(matrix, np.append(-over, 1 - value.sum()))
            length = float(np.abs(step[:K] / widths(value)).max()) if np.isfinite(step).all() else np.inf
            if length > min(_FAR, _SHRINK * last):
                break
            value, went, climbed = value + step[:K], step[:K], t * float(step[K])
            if (value <= 0).any() or not 0.0 < t + climbed <= top:
                return None
            t += climbed
            off = length * min(length / last, _SHRINK) if np.isfinite(last) else length
            last = length
            if off <= goal:
                break
            foreseen = over + dot(matrix[:K, :K], went) + rise * climbed
            over, rise = self.excess(value, t)
            matrix[:K, :K] += (over - foreseen)[:, None] * went / max(float(dot(went, went)), 1e-300)
        return (value / value.sum(), t, off) if off < _FAR else None


def widths(value: Floats) -> Floats:
    """Return what a relative width of 1 is for each column (column,)."""
    return np.maximum(value, _FLOOR / len(value))
