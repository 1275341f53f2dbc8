"""Water filling of very many rows: after each phase the rows that paid are served, and leave with what they hold.

At the prices that end a phase every row spends its least. A row that pays for its last bit keeps to one edge of its
hull in all that follows, and only as many rows as there are priced columns, less one, stand where edges meet: their
shares are settled by the priced columns being full. So the rows that paid are served for good, the priced columns
are gone, and the next phase is a smaller problem: the rows whose next bit is free, on the columns that are free.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.filling.crowd import Crowd, Sums
from eunomia.solvers.filling.edges import OPEN, cut, keep, mix, serve
from eunomia.solvers.filling.narrow import Settled, rough_price, settle, settle_few
from eunomia.solvers.filling.routing import ties
from eunomia.solvers.filling.tree import Clock, Tree, sums_by_group, unsure
from eunomia.solvers.program import NoOptimum

_SLACK = 1e-9  # load above capacity, relative, that shares are cut by


class Scarce(Exception):
    """Columns taken for free could not serve all who were sent there."""

    def __init__(self, columns: Ints):
        super().__init__(columns)
        self.columns = columns


class Serving:
    """The rows not yet served, the columns not yet full, and the shares of all who have been served."""

    def __init__(self, rate: Floats, load: Floats, capacity: Floats, need: Floats, tree: Tree, paid: Bools):
        """Take rate (column, row), load, need (row,), capacity (column,); `paid` columns are never taken for free."""
        self.rate, self.load, self.need, self.tree, self.paid = rate, load, need, tree, paid
        self.whole, self.capacity = capacity, capacity.copy()
        self.columns = np.flatnonzero(capacity > 0)
        self.waiting = np.arange(rate.shape[1])
        nothing = np.empty(0, dtype=np.int64)
        self.entries: list[tuple[Ints, Ints, Floats]] = [(nothing, nothing, np.empty(0))]
        self.rng = np.random.default_rng([rate.shape[1], len(capacity)])

    def last(self, room: Floats, got: Floats, low: float, high: float) -> Settled:
        """Return the last moment in [low, high] that fits the rows that wait; the others have what they have got."""
        return settle(self._crowd(room, got, high), low, high, self.rng)

    def exactly(self, room: Floats, got: Floats, low: float, high: float) -> Settled:
        """Return the same by the general solver on all rows."""
        return settle_few(self._crowd(room, got, high), low, high)

    def _crowd(self, room: Floats, got: Floats, end: float) -> Crowd:
        rows, columns = self.waiting, self.columns
        return Crowd(
            rate=self._rates(),
            capacity=self.capacity[columns],
            column=np.arange(len(columns)),
            columns=len(columns),
            paid=self.paid[columns],
            least=np.zeros(len(columns)),
            most=np.ones(len(columns)),
            load=self.load[rows],
            need=self.need[rows],
            room=room[rows],
            weight=self.tree.row_weight[rows],
            group=self.tree.group_of[rows],
            tree=self.tree,
            sums=self._served(got),
            end=end,
        )

    def _served(self, got: Floats) -> Sums:
        """Return the sums of the rows that wait no more: they still count in their groups."""
        groups = len(self.tree.parent)
        sums = Sums.nothing(groups, len(self.columns))
        left = np.ones(len(got), dtype=bool)
        left[self.waiting] = False
        if left.any():
            group = self.tree.group_of[left]
            sums.full[:] = sums_by_group(group, got[left], groups + 1)
            sums.full_weight[:] = sums_by_group(group, self.tree.row_weight[left], groups + 1)
        return sums

    def serve(self, settled: Settled, got: Floats) -> None:
        """Serve the rows that pay at the prices that were found; what they take of free columns is gone.

        Raises Scarce where needs do not fit, and NoOptimum where the shares of some that pay are not settled.
        """
        rows, columns = self.waiting, self.columns
        need = got[rows] * self.need[rows]
        if settled.over > _SLACK:
            raise Scarce(columns[settled.price[:-1] > 0])
        free = np.flatnonzero(settled.price[:-1] == 0)
        rate = self._rates()
        best = rate[free].max(axis=0, initial=0.0)
        pays = need > best * (1 + 1e-12)
        fastest = free[rate[free].argmax(axis=0)] if len(free) else np.full(len(rows), -1)
        self._by_edge(rate, need, settled, pays, fastest)
        inside = pays[settled.rows]
        who, share = settled.rows[inside], settled.share[inside]
        priced = len(columns) - len(free)
        if len(free) and ties(np.ascontiguousarray(rate[:, who].T), settled.price[:-1], need[who]) >= max(priced, 1):
            raise NoOptimum(
                f"more than {priced - 1} rows may change between {priced} columns at no cost: many are alike"
            )
        for j in range(len(columns) + 1):
            column = columns[fastest[who]] if j == len(columns) else np.full(len(who), columns[j])
            self._note(rows[who], column, share[:, j])
        self.columns, self.waiting = columns[free], rows[~pays]

    def _rates(self) -> Floats:
        """Return the rates of the rows that wait on the columns that are left, (column, row)."""
        if self.rate.shape == (len(self.columns), len(self.waiting)):
            return self.rate
        return self.rate[np.ix_(self.columns, self.waiting)]

    def _by_edge(self, rate: Floats, need: Floats, settled: Settled, pays: Bools, fastest: Ints) -> None:
        """Serve the rows that keep to one edge; rate (column, row), fastest (row,) an index of these columns."""
        place, column = np.empty((2, 2 * len(need)), dtype=np.int64)
        share, used = np.empty(2 * len(need)), np.zeros(len(rate))
        load = self.load[self.waiting] if len(need) < len(self.load) else self.load
        found = serve(rate, need, load, pays, settled.left, settled.right, fastest, place, column, share, used)
        whole = len(need) == len(self.load)
        row = place[:found] if whole else self.waiting[place[:found]]
        self.entries = [*self.entries, (row, self.columns[column[:found]], share[:found])]
        self.capacity = self.capacity - np.bincount(self.columns, used, len(self.capacity))

    def _note(self, rows: Ints, columns: Ints, share: Floats) -> None:
        """Write shares down and take them from the capacity."""
        some = share > 0
        rows, columns, share = rows[some], columns[some], share[some]
        self.entries = [*self.entries, (rows, columns, share)]
        self.capacity = self.capacity - np.bincount(columns, self.load[rows] * share, len(self.capacity))

    def hold(self, settled: Settled) -> None:
        """Take the shares of all rows as they were found, in place of any from before."""
        row, column = np.nonzero(settled.share[:, :-1])
        self.entries = [(row, self.columns[column], settled.share[row, column])]

    def finish(self, got: Floats) -> None:
        """Serve the rows that wait with what they have got, where columns are least taken; raises Scarce."""
        late = 2 * Clock(self.tree, got).end  # all have what they have got
        if len(self.columns) and len(self.waiting) and self._spread(self._crowd(got, got, late), late):
            return
        while len(self.columns) and (got[self.waiting] * self.need[self.waiting] > 0).any():
            self.serve(self.last(got, got, late, late), got)

    def _spread(self, crowd: Crowd, late: float) -> bool:
        """Serve all by the edges that some prices choose, if columns have room to spare; return whether they had."""
        price = rough_price(crowd, late, self.rng)
        need = crowd.room * crowd.need
        left, right = np.empty((2, len(need)), dtype=np.int8)
        keep(crowd.rate, need, need, tuple(price), tuple(0 * price), left, right)
        if (left == OPEN).any():
            return False
        share = np.empty(len(need))
        mix(crowd.rate, need, left, right, share)
        some = (left >= 0) & (need > 0)
        row, end = np.append(self.waiting, self.waiting[some]), np.append(right, left[some])
        share = np.append(share, 1 - share[some])
        if (np.bincount(end, self.load[row] * share, len(price)) > crowd.capacity).any():
            return False
        self._note(row, self.columns[end], share)
        self.waiting = self.waiting[:0]
        return True

    def fitting(self, got: Floats) -> tuple[Floats, tuple[Ints, Ints, Floats]]:
        """Return what each row gets, (row,), and all entries, cut so that none has more, or than its time.

        What a row gets is lowered by the rounding of its group's sum, see `tree.unsure`. Raises NoOptimum where a row
        falls short of what it should get by more than that, and by more than 1e-9 of its best rate.
        """
        row, column, share = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        got = got.copy()
        short = cut(self.rate, self.load, self.need, self.whole, unsure(self.tree, got), got, row, column, share)
        if short > _SLACK:
            raise NoOptimum(
                f"shares fall short of the levels by {short:.1e}; check the data for entries many decades apart"
            )
        return got, (row, column, share)
