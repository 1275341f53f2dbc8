"""Boxes of worth and moments around a guess, and which columns may be taken for free in one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.water_filling.large_instance import FITS, ROUNDING, LargeInstance, ResolvedRows

_LITTLE = 0.1  # part of all the worth, above which a column is not taken for free
_TRADED = 1e-12  # load, relative to capacity, below which a trade is rounding


@dataclass(frozen=True, slots=True)
class MomentEstimate:
    """Where the answer seems to be; columns are numbered as given."""

    moment: float
    worth: Floats  # (column + 1,) price · capacity, sum 1, or zeros
    blur: Floats  # (column + 1,) how far off that may be
    spread: float  # how far off the moment may be, relative
    levels: Floats  # (group + 1,) v of each group at the moment, see tree.py; NaN where nothing is known


@dataclass(frozen=True, slots=True)
class MomentBox:
    """Moments, and for each column its worth, price · capacity."""

    low: float
    high: float
    least: Floats
    most: Floats

    def missed(self, found: ResolvedRows, crowd: LargeInstance, low: float, high: float) -> bool:
        """Return whether a side of the box was in the way that is no side of the crowd's own."""
        traded = found.traded[crowd.column]
        dearer, cheaper = (
            (traded > _TRADED) & (self.most < crowd.most),
            (traded < -_TRADED) & (self.least > crowd.least),
        )
        sooner = found.over > FITS and self.low > low
        later = found.later and self.high < high
        return bool(dearer.any() or cheaper.any() or sooner or later)


@dataclass(frozen=True, slots=True)
class BoxPass:
    """Rows that part, rows that do not, and the box of prices, moments and v within which that is so."""

    left: Array  # (row,) ends of edges by columns as given, the one after them all free ones; anything for rows left
    right: Array
    rows: Ints  # those left
    crowd: LargeInstance  # of the rows left
    box: MomentBox
    outer: LargeInstance  # no row; bounds of worth outside which nothing is looked for
    levels: tuple[Floats, Floats] | None = None  # (group + 1,) bounds of v, if it has been estimated

    def missed(self, found: ResolvedRows, levels: Floats, low: float, high: float) -> bool:
        """Return whether the answer for the rows left may not be that of all; levels (group + 1,) is its v."""
        if self.levels is not None and not ((self.levels[0] <= levels) & (levels <= self.levels[1])).all():
            return True
        return self.box.missed(found, self.outer, low, high)


def around(guess: MomentEstimate, crowd: LargeInstance, times: float, low: float, high: float) -> MomentBox:
    """Return the box of `times` the guess's error, as far as the crowd's own bounds go."""
    worth, width = guess.worth[crowd.column], times * guess.blur[crowd.column]
    least, most = np.maximum(worth - width, crowd.least), np.minimum(worth + width, crowd.most)
    if not worth.any() or least.sum() > 1 or most.sum() < 1:
        least, most = crowd.least, crowd.most
    least, most = _within_one(least, most, np.isfinite(crowd.capacity))
    spread = min(times * guess.spread, 1.0) * guess.moment
    return MomentBox(max(low, guess.moment - spread), min(high, guess.moment + spread), least, np.maximum(most, least))


def _within_one(least: Floats, most: Floats, costly: Bools) -> tuple[Floats, Floats]:
    """Return the bounds of worth that follow from all worth being 1, and that of what is not `costly` 0, (column,).

    The dearest column is known as well as all others together.
    """
    low, high = np.where(costly, least, 0.0), np.where(costly, most, 0.0)
    above, below = 1 - (high.sum() - high), 1 - (low.sum() - low)
    least = np.where(costly & (above > least + ROUNDING), above, least)
    return least, np.where(costly & (below < most - ROUNDING), below, most)


def maybe_free(crowd: LargeInstance, guess: MomentEstimate, times: float) -> Bools:
    """Return which columns, (column,), may be without price and are taken for one.

    One alone may stay: rows choose between it and idle. Of two, rows that need neither much would never part.
    """
    little = (guess.worth <= np.minimum(times * guess.blur, _LITTLE))[crowd.column]
    free = little & ~crowd.paid & (crowd.least <= 0)
    return free if free.sum() >= 2 or free.all() else np.zeros(len(free), dtype=bool)


def without_free(crowd: LargeInstance, free: Bools) -> LargeInstance:
    """Return the crowd in which the free columns are one, the last, with each row's best rate on them."""
    if not free.any():
        return crowd
    best = crowd.rate[free].max(axis=0)
    sums = crowd.sums
    return replace(
        crowd,
        rate=np.concatenate((crowd.rate[~free], best[None])),
        capacity=np.append(crowd.capacity[~free], np.inf),
        column=np.append(crowd.column[~free], crowd.columns),
        least=np.append(crowd.least[~free], 0.0),
        most=np.append(crowd.most[~free], 1.0),
        paid=np.append(crowd.paid[~free], False),
        sums=replace(
            sums,
            base=np.append(sums.base[~free], 0.0),
            rising_load=np.column_stack((sums.rising_load[:, ~free], np.zeros(len(sums.full)))),
        ),
    )
