"""The optimum of a market after each of its rows in turn has left."""

from __future__ import annotations

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.nash_welfare.aggregated_rows import NashRows, settled
from eunomia.solvers.nash_welfare.box_refinement import all_at_once, best_point
from eunomia.solvers.nash_welfare.market import NashMarket, Point, totals

_REACH = 4.0  # a row of a part f of all weight is taken to move prices by no more than 4 f of themselves


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
