"""Fixed needs on divisible columns: the cheapest mix of each row at given prices, and the least load that serves all.

    minimise θ   subject to   Σ_k T[i,k] x[i,k] ≥ r[i],   Σ_k x[i,k] ≤ 1,   Σ_i s[i] x[i,k] ≤ θ N[k],   x ≥ 0

A row's cheapest mix at prices p lies on the lower hull of the points (0, 0) and (T[i,k], s[i] p[k]): at r[i] it is a
mix of the two ends of one edge. T rate, s load of a whole share, N capacity, r need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.program import INF, NoOptimum, Program
from eunomia.solvers.water_filling.bundles import Bundles, directions

_MOST = 3_000  # rows, or bundles of them, that the general solver takes


@dataclass(frozen=True, slots=True)
class Routed:
    """The least load, the prices that prove it, and the shares."""

    over: float  # θ − 1; with prices kept in a box the most that any of them proves
    price: Floats  # (column,) Σ price · capacity = 1
    share: Floats  # (row, column)
    traded: Floats  # (column,) above 0 where the box keeps a price from rising, below where it keeps it from falling


class Routing:
    """The program above for needs that change: each solution starts from the last.

    Where the worth of a column, price · capacity, is kept between two bounds, loads may be traded at them: an answer
    without trades is the answer without bounds.
    """

    def __init__(self, rate: Floats, load: Floats, capacity: Floats, least: Floats, most: Floats):
        """Take rate (row, column), load (row,), capacity, least and most worth (column,), all worth being 1.

        Without capacity a column serves no row; with an infinite one it has no price. Raises NoOptimum for rows too
        many and too different.
        """
        self.bundles = Bundles(np.where(capacity > 0, rate, 0.0), load)
        gain = self.bundles.gain
        if len(gain) > _MOST:
            raise NoOptimum(f"{len(gain)} rows do not part by prices: they are alike but for little; round their rates")
        self.shape, self.capacity = gain.shape, capacity
        self.row, self.column = np.nonzero(gain > 0)
        self.some = np.flatnonzero(gain.any(axis=1))
        part = self.bundles.load[self.row] / capacity[self.column]
        # θ − 1 is counted in parts of one row, so that the solver's tolerances mean that.
        self.unit = max(float(part.max(initial=0.0)), 1e-9)
        self.buy, self.sell = np.flatnonzero(most < 1), np.flatnonzero(least > 0)
        trade = np.concatenate((most[self.buy], -least[self.sell]))
        self.program = self._program(gain[self.row, self.column], part / self.unit, trade)

    def _program(self, gain: Floats, part: Floats, trade: Floats) -> Program:
        """Return the program; its rows are levels, times and loads, its columns the shares, the trades and θ."""
        n, m, (rows, columns) = len(self.row), len(trade), self.shape
        index = np.stack((self.row, rows + self.row, 2 * rows + self.column), axis=1).ravel()
        value = np.stack((gain, np.ones(n), part), axis=1).ravel()
        traded = 2 * rows + np.concatenate((self.buy, self.sell))
        starts = (3 * np.arange(n), 3 * n + np.arange(m + 1), np.array([3 * n + m + columns]))
        return Program(
            cost=np.concatenate((np.zeros(n), trade, np.ones(1))),
            start=np.concatenate(starts),
            index=np.concatenate((index, traded, 2 * rows + np.arange(columns))),
            value=np.concatenate((value, -np.sign(trade), -np.ones(columns))),
            low=np.concatenate((np.zeros(rows), np.full(rows + columns, -INF))),
            high=np.concatenate((np.full(rows, INF), np.ones(rows), np.full(columns, 1 / self.unit))),
            lower=np.append(np.zeros(n + m), -INF),
            maximise=False,
        )

    def at(self, need: Floats, base: Floats) -> Routed:
        """Return the least load at needs (row,) beside a base load that is there already, (column,).

        A need above the row's best rate is taken for that rate. Raises NoOptimum when the solver fails.
        """
        n, (rows, columns) = len(self.row), self.shape
        amount, time = self.bundles.gather(need)
        self.program.change_sides(self.some, amount[self.some], INF)
        self.program.change_sides(rows + self.some, -INF, time[self.some])
        taken = np.divide(base, self.capacity, out=np.zeros(columns), where=self.capacity > 0)
        self.program.change_sides(2 * rows + np.arange(columns), -INF, (1 - taken) / self.unit)
        solved = self.program.solve()
        worth = np.maximum(-solved.row_price[2 * rows :], 0.0)
        price = np.divide(worth, self.capacity, out=np.zeros(columns), where=self.capacity > 0)
        share, traded = np.zeros(self.shape), np.zeros(columns)
        share[self.row, self.column] = solved.x[:n]
        bought, sold = np.split(solved.x[n:-1], [len(self.buy)])
        traded[self.buy] += bought * self.unit
        traded[self.sell] -= sold * self.unit
        return Routed(solved.objective * self.unit, price / worth.sum(), self.bundles.expand(share), traded)


@kernel()
def edge(rate: Floats, price: Floats, level: float) -> tuple[int, int]:
    """Return the ends of the hull edge on which a level, up to the best rate, is cheapest; −1 is idle."""
    right = 0
    for k in range(1, len(rate)):
        better = rate[k] > rate[right] or (rate[k] == rate[right] and price[k] < price[right])
        right = k if better else right
    left, low, paid = -1, 0.0, 0.0
    while True:
        run, rise = rate[right] - low, price[right] - paid
        best, chosen = -1e-14 * run * price[right], -1
        for k in range(len(rate)):
            below = (price[k] - paid) * run - rise * (rate[k] - low)
            if below < best and k not in (left, right):
                best, chosen = below, k
        if chosen < 0:
            return left, right
        if rate[chosen] >= level:
            right = chosen
        else:
            left, low, paid = chosen, rate[chosen], price[chosen]


def ties(rate: Floats, price: Floats, need: Floats) -> int:
    """Return how many ends besides the two of its edge each row, rate (row, column), could mix as cheaply, in sum.

    Rows of one direction and one edge count once: what one of them gives away, only those take.
    """
    return int(_ties(rate, price, need, directions(rate).of))


@kernel()
def _ties(rate: Floats, price: Floats, need: Floats, of: Ints) -> int:
    """Return the number above; of (row,) is the class of each row."""
    columns = len(price)
    seen = np.zeros((of.max() + 1 if len(of) else 0, columns + 1, columns), dtype=np.bool_)
    found, near = 0, 1e-9 * price.max()
    for i in range(len(need)):
        left, right = edge(rate[i], price, need[i])
        if need[i] >= rate[i, right] * (1 - 1e-12) or seen[of[i], left + 1, right]:
            continue
        seen[of[i], left + 1, right] = True
        low, paid = (rate[i, left], price[left]) if left >= 0 else (0.0, 0.0)
        run, rise = rate[i, right] - low, price[right] - paid
        if left >= 0 and rise * low - paid * run <= near * run:
            found += 1
        for k in range(columns):
            serves = rate[i, k] > 0.0  # else it is as good as idle, whatever it costs
            if serves and k not in (left, right) and (price[k] - paid) * run - rise * (rate[i, k] - low) <= near * run:
                found += 1
    return found
