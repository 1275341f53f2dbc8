"""Levels with sharing when every row asks for its own: rows of a class go alike, but need different rates.

    maximise t   subject to   e[i] ≥ r_i(t) = a[i] t / (b[i] − e[i] t)   for each row i, whose time is at most 1

Σ_i r_i(t) ≤ E[c] is asked of each class c, as for rows that are alike. It is enough unless a row's own time binds.
What binds then is exactly this: rates r_i can be put together from the class's activities, with a time of at most 1
for each row, if and only if for every threshold λ ≥ 0

    Σ_i (r_i − λ)⁺ ≤ Σ_a (rate[a] − λ)⁺ Y[a]

(the rates of the activities, drawn out over time, majorise those asked: Hardy, Littlewood and Pólya, 1934). The left
side is convex in t, the right one linear in Y, and only rates of activities in use matter as thresholds. So demands
are added where they are broken, with tangents in t that follow it from above, and one program over classes remains.
Rows then take, one after the other, the stretch of the activities' time that has the mean rate they ask for.

One thing is left: a row cannot share with itself. Where a row would fill more than half of what its class shares
within, it becomes a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.alike_rows import Classes, group
from eunomia.solvers.packing.activities import ALONE, Activities, activities, fastest, reach
from eunomia.solvers.packing.column_generation import KEEP, Prices, SharingProgram, in_some_units
from eunomia.solvers.packing.pair_programs import GAP, Shared, fitting, largest, proven, worth_of
from eunomia.solvers.packing.row_times import Entries, Parts, expand, parted
from eunomia.solvers.program import INF, Infeasible, NoOptimum

_STILL = 1e-10  # t has settled, and a demand holds, when off by less, relative
_AIM = 1 - 4e-10  # of t is asked when rows are parted, so that roundings of a class do not fall on one row
_HALF = 1e-12  # a row that fills more than half of what is shared within by less fills half, relative
_ROUNDS = 200
_NEAR = 1e-3
_NO_FLOATS: Floats = np.empty(0)


@dataclass(frozen=True, slots=True)
class SharedByRow:
    """An optimum over classes and how their rows part it."""

    shared: Shared
    classes: Classes  # finer than those given where a row had to be set apart
    parts: Parts
    rate: Floats  # (row,) effective

    def entries(self) -> Entries:
        """Return the sparse shares of every row."""
        return expand(self.shared, self.classes, self.parts)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What each row asks for: need · t / (base − age · t), and 0 whatever the others are where need is 0."""

    need: Floats  # (row,)
    base: Floats  # (row,) above 0 where need is
    age: Floats  # (row,)


@dataclass(frozen=True, slots=True)
class _Tables:
    """What is given of each class."""

    rate: Floats  # (class, column)
    beside: Floats  # (class, class, column)
    size: Floats  # (class,)
    capacity: Floats  # (column,)
    worth: Floats | None  # (class,) or (class, column)
    fee: Floats | None = None  # (column,)
    scale: float = 0.0

    def take(self, classes: Ints) -> _Tables:
        """Return the tables of some classes, which may be named more than once."""
        worth = None if self.worth is None else self.worth[classes]
        beside = self.beside[np.ix_(classes, classes)]
        return _Tables(self.rate[classes], beside, self.size[classes], self.capacity, worth, self.fee, self.scale)


@dataclass(frozen=True, slots=True)
class _Asks:
    """What rows ask for at a level: need · t / (base − age · t)."""

    need: Floats  # (row,) rows of a class stand together
    base: Floats  # (row,)
    age: Floats  # (row,)
    start: Ints  # (class + 1,)

    def at(self, t: float, of: Ints, threshold: Floats) -> tuple[Floats, Floats, Floats]:
        """Return Σ (r − λ)⁺, its slope in t, and Σ r over rows with r > λ, all (demand,)."""
        return _asked(self.need, self.base, self.age, self.start, of, threshold, t)

    def of_class(self, each: int, t: float) -> Floats:
        """Return r of the rows of one class."""
        here = slice(self.start[each], self.start[each + 1])
        need, left = self.need[here], self.base[here] - self.age[here] * t
        return np.divide(need * t, left, out=np.zeros(len(need)), where=need > 0)

    def reached(self, rate: Floats) -> float:
        """Return the highest t at which no row asks for more than it gets, rate (row,); 0 if none asks."""
        asks = self.need > 0
        levels = (rate * self.base)[asks] / (self.need + rate * self.age)[asks]
        return float(levels.min()) if len(levels) else 0.0

    def ceiling(self, most: Floats, weight: Floats, room: Floats) -> float:
        """Return a level near the highest at which weight · Σ r ≤ room, and not below it.

        most (row,) the best rate of each row, weight (limit, class) on its rows' sum, room (limit,).
        """
        t = self.reached(most)
        each, none = np.arange(weight.shape[1]), np.zeros(weight.shape[1])
        for _ in range(_ROUNDS if t > 0 else 0):  # Newton's steps on convex functions, from above
            value, slope, _ = self.at(t, each, none)
            over, rise = dot(weight, value) - room, dot(weight, slope)
            step = float((over[over > 0] / rise[over > 0]).max(initial=0.0))
            t -= step
            if step <= _NEAR * t:
                break
        return t


def highest_shared_level_own(
    rate: Floats,
    beside: Floats,
    size: Floats,
    of: Ints,
    capacity: Floats,
    need: Floats,
    *,
    base: Floats | None = None,
    age: Floats | None = None,
    second: Floats | None = None,
) -> SharedByRow:
    """Return the highest t that gives every row i an effective rate of need t / (base − age t).

    of (row,) class of each row; rate (class, column), beside (class, class, column), size (class,), capacity
    (column,) as in `highest_shared_level`, and second (class,) too; need ≥ 0, base > 0 (1 if left out) and age ≥ 0
    (0 if left out) (row,). Rows that no column serves, or that need nothing, do not hold t down; the base of a row
    that needs nothing may be 0.
    Raises NoOptimum when the gap is above 1e-9.
    """
    ones, zeros = np.ones(len(of)), np.zeros(len(of))
    rows = _Rows(need, ones if base is None else base, zeros if age is None else age)
    tables = _Tables(rate, beside, size, capacity, second)
    return _apart(tables, of, rows, INF, _Attempt.highest_level)


def best_shared_total_own(
    worth: Floats,
    rate: Floats,
    beside: Floats,
    size: Floats,
    of: Ints,
    capacity: Floats,
    *,
    floor: Floats,
    fee: Floats | None = None,
    scale: float = 0.0,
) -> SharedByRow:
    """Return the times with the highest Σ worth · effective rate, less fees, where row i reaches its floor, (row,).

    worth, fee and scale as in `best_shared_total`, the rest as in `highest_shared_level_own`. Floors are kept but for
    1e-9 of them. Raises Infeasible when they cannot be, NoOptimum when the gap is above 1e-9.
    """
    rows = _Rows(floor, np.ones(len(of)), np.zeros(len(of)))
    tables = _Tables(rate, beside, size, capacity, worth, fee, scale)
    return _apart(tables, of, rows, 1.0, _Attempt.best_total)


def _apart(
    tables: _Tables, of: Ints, rows: _Rows, limit: float, solve: Callable[[_Attempt], SharedByRow | Ints]
) -> SharedByRow:
    """Solve; as long as rows would share with themselves, set them apart and solve again."""
    apart = np.arange(len(tables.size))  # (class,) row of the tables; a class set apart comes to stand at the end
    while True:
        classes = group(of)
        here = tables.take(apart[of[classes.representative]])
        found = in_some_units(partial(_attempt, solve, here, classes, rows, limit))
        if isinstance(found, SharedByRow):
            return found
        apart = np.append(apart, apart[of[found]])
        of = of.copy()
        of[found] = np.arange(len(apart) - len(found), len(apart))


def _attempt(
    solve: Callable[[_Attempt], SharedByRow | Ints],
    tables: _Tables,
    classes: Classes,
    rows: _Rows,
    limit: float,
    least_step: float,
) -> SharedByRow | Ints:
    return solve(_Attempt(tables, classes, rows, limit, least_step))


class _Attempt:
    """One program over the classes as they are."""

    def __init__(self, tables: _Tables, classes: Classes, rows: _Rows, limit: float, least_step: float):
        size, capacity = tables.size, tables.capacity
        self.tables, self.classes = tables, classes
        self.members, start = classes.members()
        self.things = activities(tables.rate, tables.beside, size, classes.count, capacity)
        self.best = fastest(self.things, len(size))
        best = self.best[classes.of[self.members]]  # (row,)
        need, base, age = (column[self.members] for column in (rows.need, rows.base, rows.age))
        self.asks = _Asks(np.where(best > 0, need, 0.0), base, age, start)
        self.unserved = bool((need[best == 0] > 0).any())
        top = min(self.asks.ceiling(best, *self._limits(size, capacity)), limit)
        whole, slope, _ = self.asks.at(top, np.arange(len(size)), np.zeros(len(size)))
        self.program = SharingProgram(
            self.things,
            size,
            classes.count,
            capacity,
            slope,
            whole - slope * top,
            unit=top or 1.0,
            limit=top,
            least_step=least_step,
        )

    def _limits(self, size: Floats, capacity: Floats) -> tuple[Floats, Floats]:
        """Return weight (limit, class) on the sums of effective rates, and room (limit,), that no point exceeds.

        All together: each rate relative to the best of its class, what columns give at the most; then each class.
        """
        things, best = self.things, np.where(self.best > 0, self.best, 1.0)
        second = np.where(things.second == ALONE, 0.0, things.second_rate / best[things.second])
        most = float((things.first_rate / best[things.first] + second).max(initial=1.0))
        weight = np.concatenate(((size / best)[None], np.eye(len(size))))
        return weight, np.append(most * capacity.sum(), reach(things, size, self.classes.count, capacity))

    def highest_level(self) -> SharedByRow | Ints:
        """Return the answer, or the rows that must be set apart because they would share with themselves."""
        prices, bound = self._settle()
        second = self.tables.worth
        worth = 1 / np.where(self.best > 0, self.best, 1.0) if second is None else second
        self._raise_worth(worth_of(self.things, worth, self.tables.size))
        return self._answer(prices, bound, lambda time, rates: self.asks.reached(rates), 0.0)

    def best_total(self) -> SharedByRow | Ints:
        """Return the same for a total; the floors are a level of which 1 is asked."""
        assert self.tables.worth is not None
        if self.unserved:
            raise Infeasible("a floor is asked of a row that no column serves; leave it out")
        if self.asks.need.any() and self._settle()[1] < 1 - KEEP:
            raise Infeasible(f"each floor can be met to {self.program.level:.9g} of it at most; lower or drop some")
        values = worth_of(self.things, self.tables.worth, self.tables.size, self.tables.fee)
        prices, bound = self._raise_worth(values)
        whole = largest(self.program, values)
        found = self._answer(prices, bound, lambda time, rates: float(dot(values, time)), whole)
        if isinstance(found, SharedByRow) and self.asks.need.any():
            short = 1 - self.asks.reached(found.rate[self.members])
            if short > GAP:
                raise NoOptimum(f"a floor is missed by {short:.1e} of it; bring floors and rates nearer to each other")
        return found

    def _raise_worth(self, worth: Floats) -> tuple[Prices, float]:
        """Raise Σ worth · time at the level reached, with the demands that this breaks added."""
        proof = self.program.raise_worth(worth)
        while self._demand_more(self.program.level * (1 - KEEP)):
            proof = self.program.raise_worth(worth)
        return proof

    def _answer(
        self, prices: Prices, bound: float, objective: Callable[[Floats, Floats], float], whole: float
    ) -> SharedByRow | Ints:
        """Part the times among the rows; the objective is of times (activity,) and effective rates (row,) by class."""
        program = self.program
        time = fitting(program)
        used = np.flatnonzero(time > 0)
        parts, rates, selfish = self._part(self.things.take(used), time[used], program.level * _AIM)
        if len(selfish):
            return selfish
        shared = proven(program, time, prices, objective(time, rates), bound, whole=whole, scale=self.tables.scale)
        by_row = np.empty(len(rates))
        by_row[self.members] = rates
        return SharedByRow(shared, self.classes, parts, by_row)

    def _settle(self) -> tuple[Prices, float]:
        """Follow the demands down to the highest t at which all hold; each program is a relaxation of the next."""
        program = self.program
        for _ in range(_ROUNDS):
            before = program.level
            proof = program.raise_level()
            more = self._demand_more(program.level)
            if not more and abs(before - program.level) <= _STILL * program.level:
                return proof
            value, slope, _ = self.asks.at(program.level, program.of, program.threshold)
            program.put_demands(slope, value - slope * program.level)
        raise NoOptimum(f"the level did not settle in {_ROUNDS} rounds; look for needs that rise steeply with it")

    def _demand_more(self, t: float) -> bool:
        """Add the demands that the present times break at t; return whether there were any."""
        program = self.program
        of, threshold = _thresholds(program)
        value, slope, mass = self.asks.at(t, of, threshold)
        broken = value - program.done_above(of, threshold) > _STILL * mass
        if not broken.any():
            return False
        constant = value - slope * t
        program.add_demands(of[broken], threshold[broken], slope[broken], constant[broken], mass[broken])
        return True

    def _part(self, things: Activities, time: Floats, t: float) -> tuple[Parts, Floats, Ints]:
        """Return how rows part the activities, their effective rates (row,) by class, and rows that meet themselves."""
        first: list[Floats] = [_NO_FLOATS] * len(time)
        second: list[Floats] = [_NO_FLOATS] * len(time)
        rates, selfish = np.zeros(len(self.members)), [NO_INTS]
        for each, (begin, end) in enumerate(pairwise(self.asks.start.tolist())):
            mine, partner = np.flatnonzero(things.first == each), np.flatnonzero(things.second == each)
            within = things.second[mine] == each
            partner = partner[things.first[partner] != each]
            rate = np.append(things.first_rate[mine], things.second_rate[partner])
            total = np.append(time[mine] * np.where(within, 2, 1), time[partner])
            part = parted(self.asks.of_class(each, t), rate, total)
            rates[begin:end] = dot(part, rate)
            alike = part[:, : len(mine)][:, within] > time[mine][within] * (1 + _HALF)
            selfish.append(self.members[begin:end][alike.any(axis=1)])
            for place, a in enumerate(mine.tolist()):
                first[a] = part[:, place]
            for place, a in enumerate(partner.tolist(), len(mine)):
                second[a] = part[:, place]
        return Parts(tuple(first), tuple(second)), rates, np.concatenate(selfish)


def _thresholds(program: SharingProgram) -> tuple[Ints, Floats]:
    """Return class and rate of the activities in use, (threshold,), but for those that a demand speaks of already."""
    things = program.things.take(np.flatnonzero(program.time > 0))
    pair = things.second != ALONE
    of = np.append(things.first, things.second[pair])
    rate = np.append(things.first_rate, things.second_rate[pair])
    known = set(zip(program.of.tolist(), program.threshold.tolist(), strict=True))
    new = sorted(set(zip(of.tolist(), rate.tolist(), strict=True)) - known)
    return np.array([c for c, _ in new], dtype=np.int64), np.array([r for _, r in new])


@kernel()
def _asked(
    need: Floats, base: Floats, age: Floats, start: Ints, of: Ints, threshold: Floats, t: float
) -> tuple[Floats, Floats, Floats]:
    """Return Σ (r − λ)⁺ over the rows of each demand's class, its slope in t, and Σ r over the rows above λ."""
    value, slope, mass = np.zeros(len(of)), np.zeros(len(of)), np.zeros(len(of))
    for d in range(len(of)):
        for i in range(start[of[d]], start[of[d] + 1]):
            if need[i] == 0.0:  # whatever its base: it may have nothing left to do, and be long past its end
                continue
            left = base[i] - age[i] * t
            r = need[i] * t / left
            if r > threshold[d]:
                value[d] += r - threshold[d]
                slope[d] += need[i] * base[i] / (left * left)
                mass[d] += r
    return value, slope, mass
