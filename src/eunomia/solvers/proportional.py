"""Proportional fairness: divide capacity so that the weighted product of what the rows get is largest.

    maximise Σ_i w_i log(T_i·x_i)   subject to   Σ_k x_ik ≤ 1,   Σ_i s_i x_ik ≤ N_k,   x ≥ 0

Solved in the prices p of the columns alone: at given prices a row's best share is a closed form (`smooth/response.py`),
and the least of Σ_i max (w_i log(T_i·x_i) − s_i p·x_i) + p·N over p ≥ 0 is the optimum. That same value, at whatever
prices, bounds every x: it is the certificate. Levels T_i·x_i are unique; shares are not where rows are tied between
columns, and those of tied rows are then the central ones.

The partial-allocation mechanism on top of it makes honest reports a best answer: R. Cole, V. Gkatzelis and G. Goel,
"Mechanism Design for Fair Division: Allocating Divisible Items without Payments", EC 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.model.rounding import rounded
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows, settled
from eunomia.solvers.nash_welfare.box_refinement import all_at_once, best_point, rougher_point
from eunomia.solvers.nash_welfare.market import NashMarket, Point, made_to_fit, totals
from eunomia.solvers.nash_welfare.response import expand, listed
from eunomia.solvers.program import NoOptimum

GAP = 1e-6  # per unit of total weight; answers are usually within 1e-10
_OVERUSE = 1e-10  # of a capacity: passed over
_PAYMENT = 1e-4  # relative error of a payment that is let pass
_REACH = 4.0  # a row of a part f of all weight is taken to move prices by no more than 4 f of themselves


@dataclass(frozen=True)
class NashWelfareResult:
    """The fairest product and its certificate. `objective` = Σ w log level, at most `bound` for any x.

    price (column,) is what one unit of a column is worth, in weight; 0 where it is not scarce.
    """

    objective: float
    bound: float
    price: Floats
    shape: tuple[int, int]
    _weight: float
    _row: Ints  # (able row,) of those that get something
    _column: Ints  # (open column,) of those that have something
    _rows: NashRows
    _point: Point
    _keep: Floats  # (open column,) what is kept of shares: 1 but for the rounding of a column that is full

    @property
    def gap(self) -> float:
        """Return how far the objective may be from the best, per unit of total weight."""
        return max(self.bound - self.objective, 0.0) / self._weight if self._weight > 0 else 0.0

    @cached_property
    def _listed(self) -> tuple[Ints, Ints, Floats]:
        """Return able row, open column and share of every share above 0."""
        rows, point = self._rows, self._point
        share, level = np.zeros(len(rows)), np.zeros(len(rows))
        expand(rows.rate, rows.size, rows.weight, point.price, point.chosen, share, level)
        return _shares(point, share, self._keep)

    @property
    def level(self) -> Floats:
        """Return T_i·x_i (row,)."""
        level = np.zeros(self.shape[0])
        level[self._row] = _levels(self._rows, self._point, self._keep)
        return level

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Return row, column and share of every share above 0, in order of rows and then columns."""
        row, column, share = self._listed
        return self._row[row], self._column[column], share

    @cached_property
    def x(self) -> Floats:
        """Return the shares, dense (row, column)."""
        row, column, share = self.entries()
        x = np.zeros(self.shape)
        x[row, column] = share
        return x


def fairest_product(rate: Floats, size: Floats, capacity: Floats, weight: Floats) -> NashWelfareResult:
    """Solve the program above. rate (row, column), size, weight (row,), capacity (column,); all ≥ 0, sizes > 0.

    A row whose rate is 0 wherever there is capacity, or whose weight is 0, gets nothing and is left out of the product.
    rate in Fortran order is not copied. Raises NoOptimum unless the gap is at most 1e-6 per unit of total weight.
    """
    row, column, rows = _able(rate, size, capacity, weight)
    if len(row) == 0:
        empty = Point.empty()
        return NashWelfareResult(
            0.0, 0.0, np.zeros(len(capacity)), rate.shape, 0.0, row, column, rows, empty, np.ones(0)
        )
    market = NashMarket.of(capacity[column], float(rows.weight.sum()))
    point, keep, objective, bound = _proven(rows, market)
    price = np.zeros(len(capacity))
    price[column] = np.where(point.price * market.capacity < 1e-12 * market.weight, 0.0, point.price)
    return NashWelfareResult(objective, bound, price, rate.shape, market.weight, row, column, rows, point, keep)


def strategy_proof(rate: Floats, size: Floats, capacity: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return shares (row, column) and payments (row,): row i keeps the part f_i of its share of the fairest product.

    With u the levels of that and u' those of the fairest product among the other rows alone,

        f_i = (Π_{j≠i} u_j^w_j / Π_{j≠i} u'_j^w_j)^(1 / w_i)

    and is in (0, 1]: what i's presence takes from the others. A row that gets nothing has f = 1. One more solve for
    each row, of those rows whose choice its leaving can change.
    """
    best = fairest_product(rate, size, capacity, weight)
    payments = np.ones(len(size))
    if len(best._row):
        rows = best._rows
        market = NashMarket.of(capacity[best._column], float(rows.weight.sum()))
        others = best.objective - rows.weight * elementary.log(best.level[best._row])
        without = totals_without(rows, market, best._point)
        payments[best._row] = rounded(np.minimum(elementary.exp((others - without) / rows.weight), 1.0))
        doubt = 2 * best.gap * float(rows.weight.sum() / rows.weight.min())  # of the logarithm of a payment
        if doubt > _PAYMENT:
            raise NoOptimum(f"a payment is only known to {doubt:.0e} of itself; weights are too many decades apart")
    return best.x * payments[:, None], payments


def _able(rate: Floats, size: Floats, capacity: Floats, weight: Floats) -> tuple[Ints, Ints, NashRows]:
    """Return the rows that can get something, the columns that can serve one, and those rows on those columns."""
    wanted = (capacity > 0) & (rate.max(axis=0, initial=0.0) > 0)
    column = np.flatnonzero(wanted)
    part = rate if wanted.all() else rate[:, column]
    row = np.flatnonzero((part.max(axis=1, initial=0.0) > 0) & (weight > 0))
    whole = len(row) == len(size)
    by_column = np.ascontiguousarray((part if whole else part[row]).T)
    return row, column, NashRows(by_column, size if whole else size[row], weight if whole else weight[row])


def _proven(rows: NashRows, market: NashMarket) -> tuple[Point, Floats, float, float]:
    """Return a point, what to keep of its shares (column,) so that they fit, what that reaches at least, and its bound.

    Raises NoOptimum unless the last two meet.
    """
    why = "none was found"
    for find in (best_point, rougher_point):
        try:
            point = find(rows, market)
        except NoOptimum as failed:
            why = str(failed)
            continue
        keep = _keep(point, rows, market)
        if keep.min() < 1.0 - GAP:
            point = made_to_fit(point, rows, market)
            keep = _keep(point, rows, market)
        objective, bound = totals(point, rows, market)
        if point.doubt > 0.0 or (keep < 1.0).any():
            objective = float(dot(rows.weight, elementary.log(_levels(rows, point, keep))))
        gap = (bound - objective) / market.weight
        if gap <= GAP:
            return point, keep, objective, bound
        why = f"the gap per unit of weight is {gap:.1e}, more than {GAP:.0e}"
    raise NoOptimum(f"proportional fairness: {why}")


def _levels(rows: NashRows, point: Point, keep: Floats) -> Floats:
    """Return what each row gets (row,)."""
    share, level = np.zeros(len(rows)), np.zeros(len(rows))
    expand(rows.rate, rows.size, rows.weight, point.price, point.chosen, share, level)
    level[point.open] = (rows.part(point.open).rate * point.x[1:]).sum(axis=0)
    if (keep < 1.0).any():
        row, column, part = _shares(point, share, keep)
        return np.asarray(np.bincount(row, rows.rate[column, row] * part, len(rows)))
    return level


def _shares(point: Point, share: Floats, keep: Floats) -> tuple[Ints, Ints, Floats]:
    """Return row, column and share of every share above 0; share (row,) is of settled rows' right columns."""
    most = 2 * len(share) + len(point.open) * len(keep)
    row, column, part = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
    count = listed(point.chosen, share, point.x, keep, row, column, part)
    return row[:count], column[:count], part[:count]


def _keep(point: Point, rows: NashRows, market: NashMarket) -> Floats:
    """Return 1 for each column that is not over-full, else its capacity over what is used of it (column,)."""
    used = point.tally.demand(point.price) + dot(point.x[1:], rows.size[point.open])
    full = used / market.capacity
    return np.where(full > 1.0 + _OVERUSE, 1.0 / np.maximum(full, 1.0), 1.0)


def totals_without(rows: NashRows, market: NashMarket, point: Point) -> Floats:
    """Return for each row (row,) the best Σ w log(T·x) of the others, from its dual side, which feels rounding least.

    Rows are taken in classes of like weight: for each class one box of prices around the point's settles all rows whose
    edge no member's leaving can change, and each member then needs only the open ones. Where the new prices leave the
    box the others are solved anew.
    """
    found = np.empty(len(rows))
    octave = np.floor(elementary.log2(rows.weight / market.weight)).astype(np.int64)
    for one in np.unique(octave):
        members = np.flatnonzero(octave == one)
        found[members] = _of_a_class(rows, market, point, members, _REACH * 2.0 ** (float(one) + 1.0))
    return found


def _of_a_class(rows: NashRows, market: NashMarket, point: Point, members: Ints, width: float) -> Floats:
    """Return the totals without each of the members (member,), which move prices by about `width`."""
    found = np.empty(len(members))
    box = width * market.unit(point.price)
    tally, _, open_rows = settled(rows, point.price, box)
    near = market.within(point.price, box, tally)
    for place, member in enumerate(members):
        own, _, own_open = settled(rows.part(np.array([member])), point.price, box)
        less = near if len(own_open) else near.less(own)
        rest = rows.part(open_rows[open_rows != member])
        inner = all_at_once(rest, less, point.price) if width < 0.5 else None
        if inner is not None and less.holds(inner, rest, market):
            found[place] = totals(inner, rest, less)[1]
        else:
            found[place] = _anew(rows, market, member)
    return found


def _anew(rows: NashRows, market: NashMarket, member: int) -> float:
    """Return the total without one row, from nothing."""
    rest = rows.part(np.flatnonzero(np.arange(len(rows)) != member))
    if len(rest) == 0:
        return 0.0
    alone = NashMarket.of(market.capacity, float(rest.weight.sum()))
    return totals(best_point(rest, alone), rest, alone)[1]
