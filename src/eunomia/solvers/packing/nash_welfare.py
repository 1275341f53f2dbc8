"""The largest product of effective rates when two rows may share a column, over classes of alike rows.

    maximise Σ_c w[c] log E[c]   subject to the sides of `sharing`, E the effective rates summed over a class

The logarithm is drawn as straight pieces, steep ones first, so that one linear program over classes finds times and
the worth λ of each class's rate. Pieces are then laid closer around what was found, until the proof closes: at prices
p of columns, u of rows' time and λ no point has more than

    Σ_c w[c] ( log(w[c] / λ[c]) − 1 ) + Σ_k p[k] C[k] + Σ_c u[c] n[c]

since w log E ≤ λ E + w (log(w / λ) − 1), and Σ λ E costs no more than all there is. Pieces of a relative width δ leave
a gap of about δ² / 8 per unit of weight. The times a class gets alone, without sharing, say where to begin.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.packing.activities import Activities, activities, fastest, reach
from eunomia.solvers.packing.column_generation import Prices, SharingProgram, in_some_units
from eunomia.solvers.packing.pair_programs import Shared, fitting, put_together
from eunomia.solvers.program import INF, NoOptimum, Program
from eunomia.solvers.proportional import GAP, fairest_product

_PIECES = 16  # of each class
_WIDE = 8.0  # the first pieces reach from the guess over this to the guess times this
_AIM = 1e-8  # gap per unit of weight that is aimed at; GAP is what must be proven
_FINEST = 1e-5  # relative width of the pieces below which nothing is gained
_ROUNDS = 40
_EDGE = 1e-9  # so near to the end of all pieces a rate may well lie beyond
_AROUND = 2.0  # pieces to either side of what was found that the next round looks at


def largest_shared_product(
    rate: Floats, beside: Floats, size: Floats, count: Ints, capacity: Floats, weight: Floats
) -> Shared:
    """Return the times with the highest Σ weight · log(effective rate) over rows; weight > 0 (class,) of each row.

    The rest as in `highest_shared_level`. Classes that no column serves get nothing and are left out of the sum.
    Raises NoOptimum unless the gap is at most 1e-6 per unit of total weight.
    """
    things = activities(rate, beside, size, count, capacity)
    able = fastest(things, len(size)) > 0
    whole = np.where(able, weight * count, 0.0)
    guess = _without_sharing(rate, size, count, capacity, weight)
    guess = np.where(guess > 0, guess, reach(things, size, count, capacity) / 2)

    def solve(least_step: float) -> Shared:
        program = ProductProgram(things, size, count, capacity, whole, guess, least_step)
        return program.largest_product()

    return in_some_units(solve)


def _without_sharing(rate: Floats, size: Floats, count: Ints, capacity: Floats, weight: Floats) -> Floats:
    """Return the effective rates summed over classes, (class,), when every row has its columns alone."""
    alone = fairest_product(rate, size * count, capacity, weight * count)
    return np.asarray(alone.level * count)


class ProductProgram(SharingProgram):
    """Times of activities, and a variable for each piece of each class's logarithm; rates are in parts of a guess."""

    def __init__(
        self,
        things: Activities,
        size: Floats,
        count: Ints,
        capacity: Floats,
        whole: Floats,
        guess: Floats,
        least_step: float,
    ):
        """Take whole (class,) the weight of all rows, 0 = left out, and guess (class,) near the rates, above 0."""
        self.whole, self.guess = whole, np.where(guess > 0, guess, 1.0)
        self.centre, self.spread = np.ones(len(size)), np.full(len(size), _WIDE)  # (class,) of the pieces
        self.most_rate = reach(things, size, count, capacity)
        none = np.zeros(len(size))
        super().__init__(things, size, count, capacity, self.guess, none, unit=1.0, limit=0.0, least_step=least_step)

    def _start(self) -> Program:
        """Return the program with all its rows, t, which stays 0, and the pieces, class by class."""
        program, pieces = super()._start(), _PIECES * self.classes
        of = np.repeat(np.arange(self.classes), _PIECES)
        program.add_columns(np.zeros(pieces), np.arange(pieces + 1), of, np.full(pieces, -1.0), 0.0, 0.0)
        return program

    def largest_product(self) -> Shared:
        """Lay pieces closer until the proof closes. Raises NoOptimum where it does not."""
        weight, bound, best = float(self.whole.sum()), INF, None
        for _ in range(_ROUNDS):
            prices = self._with_pieces()
            bound = min(bound, self._bound(prices))
            found = put_together(self, fitting(self), prices, 0.0, bound)
            objective = self._product(found.rate)
            if best is None or objective > best.objective:
                best = replace(found, objective=objective)
            if bound - best.objective <= _AIM * weight or not self._closer(found.rate * self.count / self.guess):
                break
        assert best is not None
        gap = (bound - best.objective) / weight if weight > 0 else 0.0
        if not gap <= GAP:
            raise NoOptimum(f"the gap per unit of weight is {gap:.1e}, more than {GAP:.0e}; bring weights nearer")
        return replace(best, bound=bound, scale=weight)

    def _with_pieces(self) -> Prices:
        """Find the best times for the pieces as they lie; return the prices."""
        ends = self._ends()
        wide = np.diff(ends, axis=1, prepend=0.0)
        slope = np.diff(elementary.log(ends), axis=1, prepend=0.0) / wide
        slope[:, 0] = 2 / ends[:, 0]  # steeper than all that follow
        pieces = np.arange(1, self.ahead)
        self.program.change_bounds(pieces, 0.0, np.where(self.whole > 0, wide.T, 0.0).T.ravel())
        worth = (self.whole[:, None] * slope).ravel()
        unit = float(worth.max(initial=0.0)) or 1.0
        cost = np.concatenate(([0.0], worth / unit, np.zeros(len(self.taken))))
        return self._raise(cost, np.zeros(len(self.things)), unit)

    def _ends(self) -> Floats:
        """Return where pieces end, (class, piece), in parts of the guess."""
        ends: Floats = self.centre[:, None] * elementary.power(self.spread[:, None], np.linspace(-1, 1, _PIECES))
        return ends

    def _bound(self, prices: Prices) -> float:
        """Return a sum of weight · log rate that no times exceed."""
        some = (self.whole > 0) & (self.most_rate > 0)
        w, most, each = self.whole[some], self.most_rate[some], prices.demand[: self.classes][some]
        rate = np.minimum(np.divide(w, each, out=most.copy(), where=each > 0), most)
        paid = float(dot(prices.capacity, self.capacity) + dot(prices.time, self.count) + dot(prices.gain, self.most))
        return float((w * elementary.log(rate / self.count[some]) - each * rate).sum()) + paid

    def _product(self, rate: Floats) -> float:
        """Return Σ weight · log rate over rows, rate (class,)."""
        some = self.whole > 0
        with np.errstate(divide="ignore"):
            return float(dot(self.whole[some], elementary.log(rate[some])))

    def _closer(self, rate: Floats) -> bool:
        """Lay the pieces around rates (class,), in parts of the guess; return whether that says any more."""
        ends, step = self._ends(), elementary.power(self.spread, 2 / (_PIECES - 1))
        inside = (rate > ends[:, 0] * (1 + _EDGE)) & (rate < ends[:, -1] * (1 - _EDGE))
        finest = (step <= 1 + _FINEST) & inside
        self.centre = np.clip(rate, ends[:, 0], ends[:, -1])
        self.spread = np.where(inside, np.maximum(elementary.power(step, _AROUND), 1 + _FINEST), self.spread)
        return not finest[self.whole > 0].all()
