"""Lexicographic water filling: raise the lowest level as far as it goes, then the next, until nothing can rise.

    level[i] = Σ_k T[i,k] x[i,k] / a[i]     subject to   Σ_k x[i,k] ≤ 1,   Σ_i s[i] x[i,k] ≤ N[k],   x ≥ 0

T rate, a need, s size, N capacity; the tree (tree.py) gives how fast each row rises. One phase finds the
last moment U at which the needs r(U) fit, and prices p of the columns (Σ p N = 1) at which they cost all there is.
Every later answer costs as much, so no row ever spends more than its cheapest mix. Hence a row whose next bit costs
something is stopped for good, and a row whose next bit is free keeps to the free columns, whose best rate is from now
on its room. Each phase takes at least one column from those that remain: there are at most as many phases as columns.

Inside a phase U comes down from above: any prices give a moment that cannot be passed, the root of
Σ_i cost_i(p, r_i(U)) = p·N, and the needs at that moment give better prices, until they fit.
Reference: D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020, section 4.3, where each level takes a linear and a mixed-integer program.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.water_filling.large_instance import ResolvedRows
from eunomia.solvers.water_filling.shares import Entries, rise, room_of, stop
from eunomia.solvers.water_filling.tree import Clock, Tree, end_of, flat
from eunomia.solvers.water_filling.waterfill_many import Scarce, Serving

_BLOCK = 1_024
_MOST = 3_000  # rows looked at to tell whether many are alike


@dataclass(frozen=True)
class Filled:
    """Where every row stopped, and the prices that prove it could not rise further."""

    level: Floats  # (row,) Σ_k T x / a; 0 for rows that no column serves
    frozen_in: Array  # (row,) the phase, from 1, in which it stopped; 0 for rows that no column serves
    own: Bools  # (row,) stopped at its own cap or full speed, not by a price
    price: tuple[Floats, ...]  # of each phase, (column,), Σ price · capacity = 1; zeros where nothing was scarce
    gap: float  # the most by which the needs of any phase exceeded capacity, relative, before shares were cut to fit
    columns: int
    write: Callable[[], Entries] = field(repr=False, compare=False)  # the shares that are not zero

    @property
    def phases(self) -> int:
        """Return how many times prices were found and rows stopped."""
        return len(self.price)

    def entries(self) -> Entries:
        """Return the shares that are not zero: row, column, share; no place twice."""
        return self._written

    @cached_property
    def _written(self) -> Entries:
        return self.write()

    def spread(self, of: Ints, count: Floats) -> Filled:
        """Return the same for rows each of which is like the row `of` it here, (row,), where that stands for count."""
        share = self.x[of]
        row, column = np.nonzero(share)
        own, frozen_in, level = self.own[of], self.frozen_in[of], (self.level / count)[of]
        entries = row, column, share[row, column]
        return replace(self, level=level, own=own, frozen_in=frozen_in, write=lambda: entries)

    @cached_property
    def x(self) -> Floats:
        """Return the shares, (row, column)."""
        row, column, share = self.entries()
        dense = np.zeros((len(self.level), self.columns))
        dense[row, column] = share
        return dense


def fill(
    rate: Floats, size: Floats, capacity: Floats, need: Floats, *, cap: Floats | None = None, tree: Tree | None = None
) -> Filled:
    """Fill to the last row; rate (row, column) ≥ 0, size, need (row,) > 0, capacity (column,) ≥ 0.

    cap (row,) is the rate that a row may not exceed, none if it is left out. Without a tree all levels rise alike.
    Rate in Fortran order costs no copy. Raises NoOptimum when a phase cannot be proven to 1e-9.
    """
    tree = flat(len(rate)) if tree is None else tree
    room = _room(rate.T, np.flatnonzero(capacity > 0), need)
    room = room if cap is None else np.minimum(room, cap / need)
    alike = _alike(rate, size, need, room, tree)
    if alike is None:
        return _fill_many((rate.T, size, capacity, need, room, tree))
    of, first, count = alike
    fewer = replace(tree, group_of=tree.group_of[first], row_weight=tree.row_weight[first] * count)
    problem = (rate[first].T, size[first] * count, capacity, need[first] / count, room[first] * count, fewer)
    return _fill_many(problem).spread(of, count)


@kernel(error_model="numpy")
def _room(rate: Floats, usable: Ints, need: Floats) -> Floats:
    """Return the highest level that each row could have, (row,), on the `usable` columns; rate (column, row)."""
    room = np.zeros(len(need))
    for begin in range(0, len(need), _BLOCK):
        here = slice(begin, begin + _BLOCK)
        rooms, needs = room[here], need[here]
        for k in usable:
            T = rate[k, here]
            for j in range(len(rooms)):
                rooms[j] = max(rooms[j], T[j])
        for j in range(len(rooms)):
            rooms[j] = room_of(rooms[j], needs[j])
    return room


def _alike(rate: Floats, size: Floats, need: Floats, room: Floats, tree: Tree) -> tuple[Ints, Ints, Floats] | None:
    """Return class of each row, first row and count of each class, or None where few rows have a twin.

    Rows that a group serves one after the other have none.
    """
    first = np.array([False, *(inner == "first" for inner in tree.inner)])

    def classes(some: slice) -> Classes:
        of = tree.group_of[some]
        alone = np.where(first[of + 1], np.arange(len(of)), -1)
        return group(*rate[some].T, size[some], need[some], room[some], tree.row_weight[some], of, alone)

    if len(size) > _MOST and len(classes(slice(_MOST))) > _MOST // 2:
        return None
    found = classes(slice(None))
    return found.of, found.representative, found.count.astype(float)


_Problem: TypeAlias = tuple[Floats, Floats, Floats, Floats, Floats, Tree]


def _fill_many(problem: _Problem) -> Filled:
    """Fill by phases in which the rows that paid leave; by phases of all rows where that leads nowhere.

    Where neither does, the error says why the first did not.
    """
    try:
        return _Filling(*problem).run_many()
    except NoOptimum as first:
        try:
            return _Filling(*problem).run_few()
        except NoOptimum:
            raise first from None


class _Filling:
    """The state between phases: what room each row has, and the columns that are still free."""

    def __init__(self, rate: Floats, load: Floats, capacity: Floats, need: Floats, room: Floats, tree: Tree):
        """Take rate (column, row), load, need, room (row,), capacity (column,)."""
        self.rate, self.load, self.capacity, self.need, self.tree = rate, load, capacity, need, tree
        self.room = room
        self.free = capacity > 0
        self.own = np.ones(len(load), dtype=bool)
        self.frozen_in = np.zeros(len(load), dtype=np.int8)
        self.prices: list[Floats] = []
        self.gap, self.moment = 0.0, 0.0
        self.got = np.zeros(len(load))

    def run_few(self) -> Filled:
        """Run phases until no row can rise, all rows in each."""
        serving = Serving(self.rate, self.load, self.capacity, self.need, self.tree, self.capacity < 0)
        while (self.got < self.room).any():
            settled = serving.exactly(self.room, self.moment, end_of(self.tree, self.room))
            self._stop(settled, serving.columns)
            serving.hold(settled)
        return self._filled(serving)

    def run_many(self) -> Filled:
        """Run phases until no row can rise, each without the rows that paid in those before.

        A phase that took columns for free which cannot serve those left to them is run again.
        """
        none = np.zeros(len(self.capacity), dtype=bool)
        filling, serving = self, Serving(self.rate, self.load, self.capacity, self.need, self.tree, none)
        begun: list[tuple[_Filling, Serving]] = []
        while True:
            begun.append((copy(filling), copy(serving)))
            try:
                if not (filling.got < filling.room).any():
                    serving.finish(filling.got)
                    return filling._filled(serving)
                filling._phase(serving)
                serving.paid = none
            except Scarce as scarce:
                begun.pop()
                filling, serving = _last_without(scarce.columns, begun)

    def _phase(self, serving: Serving) -> None:
        """Find the next moment at which rows stop, and serve those that pay."""
        settled = serving.last(self.room, self.moment, end_of(self.tree, self.room))
        self._stop(settled, serving.columns)
        serving.serve(settled, self.got)

    def _stop(self, settled: ResolvedRows, columns: Ints) -> None:
        """Take the room of rows that are full or whose next bit costs something; the others keep to free columns."""
        self.moment, self.gap = settled.moment, max(self.gap, settled.over)
        if settled.levels is None:
            self.got, _ = Clock(self.tree, self.room).at(self.moment)
        else:
            self.got = rise(self.room, self.tree.row_weight, self.tree.group_of, settled.levels)
        price = np.zeros(len(self.capacity))
        price[columns] = settled.price[:-1]
        price /= max(float(dot(price, self.capacity)), 1e-300)  # they were of what other phases have left
        self.prices = [*self.prices, price]
        left = self.free & (price == 0)
        if (left == self.free).all() and (self.got < self.room).any():
            raise NoOptimum("water filling came to a halt: prices stop no row; check for entries many decades apart")
        self.free = left
        room = np.empty_like(self.room) if left.any() else self.got  # with no column free, all rows stop where they are
        after = room, np.empty_like(self.own), np.empty_like(self.frozen_in)
        before = self.got, self.room, self.own, self.frozen_in
        stop(self.rate, self.need, np.flatnonzero(left), *before, len(self.prices), after)
        self.room, self.own, self.frozen_in = after

    def _filled(self, serving: Serving) -> Filled:
        got, write = serving.fitting(self.got)
        return Filled(got, self.frozen_in, self.own, tuple(self.prices), self.gap, len(self.capacity), write)


def _last_without(paid: Ints, begun: list[tuple[_Filling, Serving]]) -> tuple[_Filling, Serving]:
    """Return the last phase begun, taken from the list, that took one of the columns `paid` for free; it will not."""
    while begun:
        filling, serving = begun.pop()
        if not serving.paid[paid].all():
            serving.paid = serving.paid.copy()
            serving.paid[paid] = True
            return filling, serving
    raise NoOptimum("the free columns cannot serve the rows that need no other")
