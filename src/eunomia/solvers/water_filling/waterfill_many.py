"""Water filling of very many rows: after each phase the rows that paid are served, and leave with what they hold.

At the prices that end a phase every row spends its least. A row that pays for its last bit keeps to one edge of its
hull in all that follows, and only as many rows as there are priced columns, less one, stand where edges meet: their
shares are settled by the priced columns being full. So the rows that paid are served for good, the priced columns
are gone, and the next phase is a smaller problem: the rows whose next bit is free, on the columns that are free.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.water_filling.box_refinement import settle
from eunomia.solvers.water_filling.large_instance import LargeInstance, ResolvedRows, Sums, last_moment
from eunomia.solvers.water_filling.screen import LARGE
from eunomia.solvers.water_filling.shares import Entries, WaterFillingShares, serve
from eunomia.solvers.water_filling.tree import Tree, end_of

_DIGITS = 2.0**40  # rates are multiples of each other if they agree to 1 / _DIGITS of the best
_SLACK = 1e-9  # load above capacity, relative, that shares are cut by


def directions(rate: Floats) -> Classes:
    """Return which rows, rate (row, column) ≥ 0, are multiples of each other."""
    best = rate.max(axis=1, initial=0.0)
    part = np.divide(rate, best[:, None], out=np.zeros_like(rate), where=best[:, None] > 0)
    return group(*np.rint(part.T * _DIGITS))


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


class Scarce(Exception):
    """Columns taken for free could not serve all rows sent there."""

    def __init__(self, columns: Ints):
        super().__init__(columns)
        self.columns = columns


class Serving:
    """The rows not yet served, the columns not yet full, and the shares of the served rows."""

    def __init__(self, rate: Floats, load: Floats, capacity: Floats, need: Floats, tree: Tree, paid: Bools):
        """Take rate (column, row), load, need (row,), capacity (column,); `paid` columns are never taken for free."""
        self.rate, self.load, self.need, self.tree, self.paid = rate, load, need, tree, paid
        self.whole, self.capacity = capacity, capacity.copy()
        self.columns = np.flatnonzero(capacity > 0)
        self.waiting = np.arange(rate.shape[1])
        self.left, self.right = np.full((2, rate.shape[1]), -1, dtype=np.int8)
        nothing = np.empty(0, dtype=np.int64)
        self.entries: list[Entries] = [(nothing, nothing, np.empty(0))]
        self.served = np.zeros((3, len(tree.parent) + 1))  # got by those served, their weight, rounding
        self.rng = np.random.default_rng([rate.shape[1], len(capacity)])

    def last(self, room: Floats, low: float, high: float) -> ResolvedRows:
        """Return the last moment in [low, high] that fits the rows that wait; the others have what they have got."""
        return settle(self._crowd(room, high), low, high, self.rng)

    def exactly(self, room: Floats, low: float, high: float) -> ResolvedRows:
        """Return the same without boxes, and the shares of all rows."""
        return last_moment(self._crowd(room, high), low, high)

    def _crowd(self, room: Floats, end: float) -> LargeInstance:
        columns = self.columns
        rows = slice(None) if len(self.waiting) == len(self.load) else self.waiting
        return LargeInstance(
            rate=self.rate if len(columns) == len(self.rate) and isinstance(rows, slice) else self._rates(),
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
            sums=self._served(),
            end=end,
        )

    def _served(self) -> Sums:
        """Return the sums of the rows that wait no more: they still count in their groups."""
        sums = Sums.nothing(len(self.tree.parent), len(self.columns))
        sums.full[:], sums.full_weight[:] = self.served[:2]
        return sums

    def serve(self, settled: ResolvedRows, got: Floats) -> None:
        """Serve the rows that pay at the prices that were found; what they take of free columns is gone.

        Raises Scarce where needs do not fit, and NoOptimum where the shares of some that pay are not settled.
        """
        columns = self.columns
        if settled.over > _SLACK:
            raise Scarce(columns[settled.price[:-1] > 0])
        free = columns[settled.price[:-1] == 0]
        served_rows = self.waiting[settled.rows]
        rate, need = self.rate[:, served_rows], got[served_rows] * self.need[served_rows]
        inside = need > rate[free].max(axis=0, initial=0.0) * (1 + 1e-12)
        served_rows, share, rate, need = served_rows[inside], settled.share[inside], rate[:, inside], need[inside]
        priced = len(columns) - len(free)
        across = np.ascontiguousarray(rate[columns].T)
        if len(free) and ties(across, settled.price[:-1], need) >= max(priced, 1):
            raise NoOptimum(
                f"more than {priced - 1} rows may change between {priced} columns at no cost: many are alike"
            )
        self._by_edge(settled.left, settled.right, got, free)
        fastest = free[rate[free].argmax(axis=0)] if len(free) else np.full(len(served_rows), -1)
        for j in range(len(columns) + 1):
            column = fastest if j == len(columns) else np.full(len(served_rows), columns[j])
            self._note(served_rows, column, share[:, j])
        self.columns = free

    def _rates(self) -> Floats:
        """Return the rates of the rows that wait on the columns that are left, (column, row)."""
        return self.rate[np.ix_(self.columns, self.waiting)]

    def _by_edge(self, left: Array, right: Array, got: Floats, free: Ints) -> None:
        """Serve the waiting rows that pay where columns are `free`, by their edges, unless those are OPEN."""
        self.left, self.right, self.served = self.left.copy(), self.right.copy(), self.served.copy()
        used, still = np.zeros(len(self.rate)), np.empty(len(self.waiting), dtype=np.int64)
        rows = self.rate, self.load, self.need, got, self.tree.row_weight, self.tree.group_of
        full, full_weight, lost = self.served
        ends, sums = (left, right, self.left, self.right), (full, full_weight, lost)
        found = serve(rows, self.waiting, self.columns, free, ends, used, sums, still)
        self.waiting, self.capacity = still[:found].copy(), self.capacity - used

    def _note(self, rows: Ints, columns: Ints, share: Floats) -> None:
        """Write shares down and take them from the capacity."""
        some = share > 0
        rows, columns, share = rows[some], columns[some], share[some]
        self.entries = [*self.entries, (rows, columns, share)]
        self.capacity = self.capacity - np.bincount(columns, self.load[rows] * share, len(self.capacity))

    def hold(self, settled: ResolvedRows) -> None:
        """Take the shares of all rows as they were found, in place of any from before."""
        row, column = np.nonzero(settled.share[:, :-1])
        self.entries = [(row, self.columns[column], settled.share[row, column])]

    def finish(self, got: Floats) -> None:
        """Serve the rows that wait with what they have got, where columns are least taken; raises Scarce."""
        if len(self.columns) == 0 or not (got[self.waiting] > 0).any():
            return
        late = 2 * end_of(self.tree, got)  # all have what they have got
        while len(self.columns) and (got[self.waiting] * self.need[self.waiting] > 0).any():
            before = self.columns
            self.serve(self.last(got, late, late), got)
            if len(self.columns) == len(before):  # none of them has capacity left
                raise Scarce(before)

    def fitting(self, got: Floats) -> tuple[Floats, Callable[[], Entries]]:
        """Return what each row gets, (row,), and how to write all entries, cut so that none has more, or than its time.

        What a row gets is lowered by the rounding of its group's sum, see `tree.unsure`, unless rows are very many: the
        sums then are those of shares, which lose nothing. Raises NoOptimum where a row falls short of what it should
        get by more than that, and by more than 1e-9 of its best rate.
        """
        row, column, share = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        facts = self.rate, self.load, self.need, self.whole, self.left, self.right
        shares = WaterFillingShares(*facts, (row, column, share))
        if len(got) >= LARGE and "first" not in self.tree.inner:
            short, written = shares.short(got, self.capacity), None
        else:
            got = got.copy()
            written, short = shares.entries(self.tree, got)
        if short > _SLACK:
            raise NoOptimum(
                f"shares fall short of the levels by {short:.1e}; check the data for entries many decades apart"
            )
        return got, lambda: shares.entries(self.tree, got.copy())[0] if written is None else written
