"""Lexicographic water filling when two rows may share a column: levels rise by a tree, over classes of alike rows.

    level[c] = E[c] / (n[c] · need[c])   with E the effective rates of `sharing`; the tree gives the rates of rise

One phase finds the last moment U at which what all classes should have by then, r(U), fits. It comes down from above:
at a moment that does not fit, max t with E ≥ t · r(U) gives demand prices λ ≥ 0, no point has Σ λ E above what they
prove, and so no moment is possible after the root of Σ λ r(U) = that. At the last moment a class with λ > 0 is stopped
for good: what all with a price have together is the most there can be, and no class falls later. Each phase stops one
class at least. Rows that are alike have one level, since the levels of the optimum are unique.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.packing.activities import activities, fastest, reach
from eunomia.solvers.packing.column_generation import Prices, SharingProgram, in_some_units
from eunomia.solvers.packing.pair_programs import GAP, Shared, fitting, put_together
from eunomia.solvers.program import NoOptimum
from eunomia.solvers.water_filling.tree import Clock, Tree

_FITS = 1e-11  # of what is asked may lack where it fits
_PAYS = 1e-7  # part of the dearest class's cost, above which a class is stopped by its price
_ROUNDING = 1e-15  # of a cost
_STEPS = 200  # moments tried in a phase; a dozen is many
_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class SharedFilling:
    """Where every class stopped, what it does, and by how much what was asked may lack."""

    shared: Shared  # its objective and bound are those of the last phase: the part of what is asked that fits
    level: Floats  # (class,) 0 for classes that no column serves
    served: Bools  # (class,) some column serves it
    own: Bools  # (class,) goes at its full speed; the others were stopped by a price
    price: tuple[Floats, ...]  # of each phase, (column,), Σ price · capacity = 1; zeros where nothing was scarce
    gap: float  # the most by which what was asked in a phase exceeded what there is, relative


def fill_shared(
    rate: Floats, beside: Floats, size: Floats, count: Ints, capacity: Floats, need: Floats, tree: Tree
) -> SharedFilling:
    """Fill to the last class; need > 0 (class,), the other arrays as in `highest_shared_level`.

    The tree's rows are classes, and its weights those of all rows of a class together. Raises NoOptimum when a phase
    cannot be proven to 1e-9.
    """
    return in_some_units(lambda least_step: _Filling(rate, beside, size, count, capacity, need, tree, least_step).run())


class _Filling:
    """The state between phases. A class's amount is the sum of its rows' levels."""

    def __init__(
        self,
        rate: Floats,
        beside: Floats,
        size: Floats,
        count: Ints,
        capacity: Floats,
        need: Floats,
        tree: Tree,
        least_step: float,
    ):
        things = activities(rate, beside, size, count, capacity)
        self.count, self.need, self.tree = count, need, tree
        self.room = reach(things, size, count, capacity) / need
        self.served = self.room > 0
        self.got, self.moment, self.gap = np.zeros(len(need)), 0.0, 0.0
        self.full = fastest(things, len(size)) * (1 - GAP)  # (class,) rate from which a row is at full speed
        self.prices: list[Floats] = []
        none = np.zeros(len(need))
        begin = self._first_guess(float(capacity.sum()), size)
        self.program = SharingProgram(
            things, size, count, capacity, begin, none, unit=1.0, limit=1.0, least_step=least_step
        )

    def _first_guess(self, capacity: float, size: Floats) -> Floats:
        """Return about what is asked at the end, (class,): all that there is room for, as far as capacity goes."""
        load = float((size * self.count)[self.room > 0].sum())
        return self.room * self.need * min(1.0, capacity / load if load > 0 else 1.0)

    def run(self) -> SharedFilling:
        """Run phases until no class can rise."""
        while (self.got < self.room).any():
            clock = Clock(self.tree, self.room)
            prices = self._last_moment(clock)
            self._stop(clock, prices)
        self._ask(self.got)
        prices, bound = self.program.raise_level()
        self.gap = max(self.gap, 1 - self.program.level)
        shared = put_together(self.program, fitting(self.program), prices, self.program.level, bound)
        level = np.where(self.served, shared.rate / self.need, 0.0)
        own = self.served & (shared.rate >= self.full)
        return SharedFilling(shared, level, self.served, own, tuple(self.prices), self.gap)

    def _last_moment(self, clock: Clock) -> Prices | None:
        """Move to the last moment that fits; return the prices that stop it, None where all fits to the end."""
        moment, prices = clock.end, None
        for _ in range(_STEPS):
            self._ask(clock.at(moment)[0])
            found, bound = self.program.raise_level()
            over = 1 - self.program.level
            if over <= _FITS or moment <= self.moment:
                if over > GAP:
                    raise NoOptimum(f"what was reached in one phase is missed in the next by {over:.1e} of it")
                self.moment, self.gap = moment, max(self.gap, over)
                return prices
            prices = found
            moment = self._root(
                clock, found.demand * self.need, bound * float(dot(found.demand, self.program.slope)), moment
            )
        raise NoOptimum(f"no moment fits after {_STEPS} steps; check the data for entries many decades apart")

    def _ask(self, got: Floats) -> None:
        self.program.put_demands(got * self.need, np.zeros(len(got)))

    def _root(self, clock: Clock, price: Floats, whole: float, high: float) -> float:
        """Return the last moment up to `high` at which what all have costs no more than `whole`; price (class,).

        Newton's steps from above, halved where they leave the moments in question.
        """
        low = self.moment
        for _ in range(_HALVINGS):
            got, pace = clock.at(high)
            over, slope = float(dot(price, got)) - whole, float(dot(price, pace))
            sooner = high - over / slope if slope > 0 else low
            if not low < sooner < high:
                sooner = 0.5 * (low + high)
            if over <= _ROUNDING * whole or not low < sooner < high:
                return high
            if float(dot(price, clock.at(sooner)[0])) <= whole * (1 - _ROUNDING):
                low = sooner
            else:
                high = sooner
        return high

    def _stop(self, clock: Clock, prices: Prices | None) -> None:
        """Stop the classes that are full or whose next bit costs something, risen or not."""
        before = self.room > self.got
        self.got = np.minimum(clock.at(self.moment)[0], self.room)
        paid, price = np.zeros(len(self.got), dtype=bool), np.zeros(len(self.program.capacity))
        if prices is not None:
            cost = prices.demand * self.program.asked
            paid = (self.got < self.room) & (cost > _PAYS * cost.max(initial=0.0))
            worth = float(dot(prices.capacity, self.program.capacity))
            price = prices.capacity / worth if worth > 0 else prices.capacity
        self.prices = [*self.prices, price]
        self.room = np.where(paid, self.got, self.room)
        if ((self.room > self.got) == before).all():
            raise NoOptimum("water filling came to a halt: prices stop no class; check for entries many decades apart")
