"""A crowd of rows that rise by a tree: the last moment at which their needs fit, found exactly on the few that matter.

At prices within a box, and at moments within it, most rows keep to one edge of their hull, and their load is a
constant plus a multiple of what they get. They become sums: a base load, and for each group one follower that rises
with the group. The rows left choose. Prices of a sample, right to 1/√size, give the first box; the rows left in it,
sampled again, a box that is smaller by the part of rows left; until those left are few enough to be looked at one and
all. An answer inside the box is exact for all rows; one outside moves the box.

Columns without price are one column that costs nothing, with each row's best rate on them: which of them serves which
row is settled afterwards, when those that are scarce have been filled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.pricing.newton import answers
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.water_filling.least_load import LeastLoad, least_load
from eunomia.solvers.water_filling.tree import Clock, Tree

FITS = 1e-11  # load above capacity, relative, below which needs fit
_SLACK = 1e-9  # the same, where no prices prove that they do not
ROUNDING = 1e-11  # part of all the value, Σ price · capacity = 1, below which a column's is rounding
OPEN = -2  # as left end of a row's edge: more than one edge is possible
_STEPS = 200  # moments tried; a dozen is many


@dataclass(frozen=True, slots=True)
class ResolvedRows:
    """The last moment and the mix of every row. Columns are numbered as given; the one after them is all free ones."""

    moment: float
    price: Floats  # (column + 1,) at which the needs cost all there is; zeros where everything fits to the end
    worth: Floats  # (column + 1,) price · capacity
    over: float  # load above capacity, relative
    later: bool  # more would fit if `high` were not in the way
    left: Array  # (row,) left end of the row's edge, −1 idle; OPEN for `rows`
    right: Array  # (row,) right end
    rows: Ints  # those whose shares stand by themselves
    share: Floats  # (row of `rows`, column + 1)
    traded: Floats  # (column + 1,) not 0 where a bound of its worth was in the way, see least_load.LeastLoad
    levels: Floats | None = None  # (group + 1,) v of each group at the moment, if that is known and all serve by share


@dataclass(frozen=True, slots=True)
class Sums:
    """What the rows that keep to one edge amount to."""

    base: Floats  # (column,) load that does not change
    full: Floats  # (group + 1,) what stopped rows have; the root is first
    full_weight: Floats  # (group + 1,)
    rising_weight: Floats  # (group + 1,)
    rising_room: Floats  # (group + 1,) a bound on what they can get
    rising_load: Floats  # (group + 1, column) load, per unit of what a weight of 1 gets

    @classmethod
    def nothing(cls, groups: int, columns: int) -> Sums:
        """Return the sums of no row."""
        full, full_weight, rising_weight, rising_room = np.zeros((4, groups + 1))
        return cls(np.zeros(columns), full, full_weight, rising_weight, rising_room, np.zeros((groups + 1, columns)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeInstance:
    """Rows that choose, and sums of those that need not."""

    rate: Floats  # (column, row)
    capacity: Floats  # (column,) infinite for the column that stands for all free ones
    column: Ints  # (column,) the number it was given; `columns` for the one that stands for all free ones
    columns: int  # how many were given
    paid: Bools  # (column,) may not be taken for free, whatever a sample says
    least: Floats  # (column,) bounds of its worth, price · capacity, where all worth is 1
    most: Floats  # (column,)
    load: Floats  # (row,) of a whole share
    need: Floats  # (row,) rate per unit of what the row gets
    room: Floats  # (row,) the most that it can get
    weight: Floats  # (row,)
    group: Ints  # (row,) or −1
    tree: Tree  # its rows are not used
    sums: Sums
    end: float  # nothing rises after it
    part: float = 1.0  # of all rows, by number, that these stand for

    def clock(self) -> tuple[Clock, Floats]:
        """Return the clock of followers and rows, and the load of each per unit that it gets, (follower, column)."""
        sums = self.sums
        full, rising = np.flatnonzero(sums.full_weight), np.flatnonzero(sums.rising_weight)
        if len(full) + len(rising) == 0:
            return Clock(self.tree, self.room, self.group, self.weight), np.zeros((0, len(self.capacity)))
        group = np.concatenate((full - 1, rising - 1, self.group))
        weight = np.concatenate((sums.full_weight[full], sums.rising_weight[rising], self.weight))
        room = np.concatenate((sums.full[full], sums.rising_room[rising], self.room))
        load = np.zeros((len(full) + len(rising), len(self.capacity)))
        load[len(full) :] = sums.rising_load[rising] / sums.rising_weight[rising, None]
        return Clock(self.tree, room, group, weight), load

    def gather(self, rows: Array, times: Floats | float = 1.0) -> LargeInstance:
        """Return the crowd of these rows, each standing for `times` rows like it."""
        return replace(
            self,
            rate=self.rate[:, rows],
            load=self.load[rows] * times,
            need=self.need[rows] / times,
            room=self.room[rows] * times,
            weight=self.weight[rows] * times,
            group=self.group[rows],
        )


class NeedCosts:
    """What a crowd's needs cost at given prices and moments."""

    def __init__(self, crowd: LargeInstance):
        self.clock, self.follow = crowd.clock()
        self.rate, self.load, self.need = np.ascontiguousarray(crowd.rate), crowd.load, crowd.need  # rate (column, row)
        self.capacity, self.base, self.idle = crowd.capacity, crowd.sums.base, np.zeros(len(crowd.load))

    def at(self, moment: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return needs and their pace, (row,), and the followers' load and its pace, (column,)."""
        got, pace = self.clock.at(moment)
        ahead = len(self.follow)
        load, rising = self.base + dot(got[:ahead], self.follow), dot(pace[:ahead], self.follow)
        return got[ahead:] * self.need, pace[ahead:] * self.need, load, rising

    def passed(self, price: Floats, low: float, high: float) -> float:
        """Return the moment in [low, high] after which the needs cost more than there is, or high if they never do.

        Where rates nearly agree, the last digit of a moment can cost much: then it is the one before.
        """
        over, slope = self.over(price, high)
        if over <= 0:
            return high
        for _ in range(_STEPS):
            moment = high - over / slope if slope > 0 else low
            if not low < moment < high:
                moment = 0.5 * (low + high)
                if not low < moment < high:
                    break
            here, tilt = self.over(price, moment)
            if abs(here) < 1e-15:
                return moment
            if here > 0:
                high, over, slope = moment, here, tilt
            else:
                low = moment
        apart = high - low < 4e-16 * high
        return low if apart and (over > FITS or self.over(price, low)[0] > 0) else high

    def over(self, price: Floats, moment: float) -> tuple[float, float]:
        """Return what the needs cost above what there is, Σ price · capacity = 1, and its slope."""
        load, rising = self._loads(price, moment)
        return float(dot(load, price)) - 1.0, float(dot(rising, price))

    def demand(self, price: Floats, moment: float) -> Floats:
        """Return the load of each column when every row takes its cheapest mix, (column,)."""
        return self._loads(price, moment)[0]

    def _loads(self, price: Floats, moment: float) -> tuple[Floats, Floats]:
        """Return the load of each column and how fast it grows, (column,) each."""
        need, pace, load, rising = self.at(moment)
        loads = np.stack((load, rising))
        answers(self.rate, self.idle, self.load, need, pace, price, loads)
        return loads[0], loads[1]


def last_moment(crowd: LargeInstance, low: float, high: float, start: Floats | None = None) -> ResolvedRows:
    """Return the last moment in [low, high] that fits, by looking at all rows again and again; low if none does.

    It comes down from above: prices give a moment that cannot be passed, and the needs at that moment better prices.
    start (column,): worths to begin with.
    """
    costs = NeedCosts(crowd)
    inverse = np.divide(1.0, crowd.capacity, out=np.zeros(len(crowd.capacity)), where=crowd.capacity > 0)
    moment, worth = high, None
    tries = (_inside(crowd) if start is None or not start.any() else start)[None]
    if low < high and tries.any():
        moment = costs.passed(tries[0] * inverse, low, high)
        worth = tries[0] if moment < high else None
    for _ in range(_STEPS):
        need, _, load, _ = costs.at(moment)
        rows, bounds = (costs.rate, costs.load, need), (crowd.least, crowd.most)
        found = least_load(rows, costs.capacity, load, bounds, tries)
        sooner = moment if found.over <= FITS else costs.passed(found.worth * inverse, low, moment)
        if sooner >= moment:
            if found.over > _SLACK and moment > low:
                raise NoOptimum(f"needs {found.over:.1e} above capacity cost no more than there is; rescale them")
            later = worth is None and found.over <= FITS and high < crowd.end
            if worth is None and found.over <= FITS and low < high and not later:
                worth = np.zeros(len(inverse))
            if worth is None:
                worth = found.worth
            elif moment <= low:  # both prove that nothing rises, so their mean does, which prices all columns of either
                worth = 0.5 * (worth + found.worth)
            return _resolved(crowd, moment, worth, found, later)
        moment, worth, tries = sooner, found.worth, np.concatenate((found.worth[None], found.answers))
    raise NoOptimum(f"no moment fits after {_STEPS} steps; check the data for entries many decades apart")


def _inside(crowd: LargeInstance) -> Floats:
    """Return worths (column,) inside the crowd's bounds."""
    costly = np.isfinite(crowd.capacity)
    least, most = np.where(costly, crowd.least, 0.0), np.where(costly, crowd.most, 0.0)
    room = most.sum() - least.sum()
    return np.asarray(least + (most - least) * ((1 - least.sum()) / room if room > 0 else 0.0))


def _resolved(crowd: LargeInstance, moment: float, worth: Floats, found: LeastLoad, later: bool) -> ResolvedRows:
    """Return the moment, and the shares found for it, by the columns as given."""
    n, columns = len(crowd.load), crowd.columns + 1
    price, worths, traded, share = np.zeros(columns), np.zeros(columns), np.zeros(columns), np.zeros((n, columns))
    some = (worth > ROUNDING) & (crowd.capacity > 0)
    price[crowd.column[some]], worths[crowd.column[some]] = worth[some] / crowd.capacity[some], worth[some]
    share[:, crowd.column], traded[crowd.column] = found.share.T, found.traded
    no_edge = np.full(n, OPEN, dtype=np.int8)
    return ResolvedRows(moment, price, worths, found.over, later, no_edge, no_edge.copy(), np.arange(n), share, traded)
