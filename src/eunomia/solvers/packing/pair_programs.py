"""Programs in which two rows may share a column, with one variable for each class, or pair of classes, and column.

    maximise t   subject to   E[c] ≥ a[c] n[c] t                                       for each class c of n[c] rows
    E[c] = Σ_k r[c,k] Y[c,k] + Σ_d,k b[c,d,k] Y[c,d,k]                                 (d = c counts twice)
    Σ_k Y[c,k] + Σ_d,k Y[c,d,k] ≤ n[c],    Σ_c s[c] Y[c,k] + Σ_c≤d s[c] Y[c,d,k] ≤ C[k],    Y ≥ 0

Y[c,k] is the time that rows of class c spend alone on column k, Y[c,d,k] the time that pairs of a row of c and one of
d share it, all summed over the class; r, b rates, s size, a need, C capacity. A pair takes the column once, and only
rows of one size share. The optimum is that of the program with a variable for each row and each pair of rows, and
`expand` gives its point; the cost does not depend on the number of rows.

Few rows and many variables: the simplex method starts with rows alone and is given pairs as prices call for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.packing.activities import ALONE, Activities, activities, fastest, reach
from eunomia.solvers.packing.column_generation import KEEP, Prices, SharingProgram, in_some_units
from eunomia.solvers.program import Infeasible, NoOptimum

GAP = 1e-9
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Shared:
    """Times summed over classes, what they reach, and a bound that no times exceed."""

    objective: float
    bound: float
    price: Floats  # (column,) worth of a unit of capacity; Σ price · capacity = 1, or zeros where no column binds
    time_price: Floats  # (class,) by which the objective rises with the time of one more row; above 0: it binds
    rate: Floats  # (class,) effective rate of each of its rows
    count: Ints  # (class,) rows
    activities: Activities  # those with time
    time: Floats  # (activity,) summed over rows, or over pairs
    scale: float = 0.0  # the size of what the objective is a difference of, if it is
    taken: Floats = field(default_factory=lambda: np.empty(0))  # (column,) capacity in use

    @property
    def gap(self) -> float:
        """Return (bound − objective), relative to the bound or to `scale`."""
        return (self.bound - self.objective) / max(abs(self.bound), self.scale, 1e-300)

    def alone(self, columns: int) -> Floats:
        """Return the time without a partner, (class, column), summed over the class."""
        found = np.zeros((len(self.count), columns))
        single = self.activities.second == ALONE
        found[self.activities.first[single], self.activities.column[single]] = self.time[single]
        return found

    def pairs(self) -> tuple[Ints, Ints, Ints, Floats]:
        """Return first class, second class, column and time of all that share."""
        pair = self.activities.second != ALONE
        chosen = self.activities.take(pair)
        return chosen.first, chosen.second, chosen.column, self.time[pair]


def highest_shared_level(
    rate: Floats,
    beside: Floats,
    size: Floats,
    count: Ints,
    capacity: Floats,
    need: Floats,
    *,
    second: Floats | None = None,
) -> Shared:
    """Return the highest t that gives each row an effective rate of need · t.

    rate (class, column) alone; beside (class, class, column) of the first beside the second, 0 = they do not fit;
    size > 0, count ≥ 1, need ≥ 0 (class,); capacity (column,) ≥ 0. Of all points that reach t (but for 1e-10 of it),
    the one with the highest Σ second · effective rate over rows; left out, second is 1 / the class's best rate, and
    then no row can gain unless another loses. Classes that no column serves, or that need nothing, do not hold t
    down. Many classes that differ in need alone are fewer for `highest_shared_level_own`.
    Raises NoOptimum when the gap is above 1e-9.
    """
    things = activities(rate, beside, size, count, capacity)
    best = fastest(things, len(size))
    slope = np.where(best > 0, need * count, 0.0)
    asks = slope > 0
    together = float(capacity.sum() / (size[asks] * slope[asks] / best[asks]).sum()) if asks.any() else 1.0
    alone = reach(things, size, count, capacity)[asks] / slope[asks]
    unit = float(alone.min(initial=together))  # near t, or above
    limit = float(alone.min()) if asks.any() else 0.0  # without needs t means nothing
    worth = worth_of(things, 1 / np.where(best > 0, best, 1.0) if second is None else second, size)

    def solve(least_step: float) -> Shared:
        none = np.zeros(len(size))
        program = SharingProgram(
            things, size, count, capacity, slope, none, unit=unit, limit=limit, least_step=least_step
        )
        prices, bound = program.raise_level()
        program.raise_worth(worth)
        time = fitting(program)
        done = effective_rate(things, time, count) * count
        return proven(program, time, prices, float((done[asks] / slope[asks]).min()) if asks.any() else 0.0, bound)

    return in_some_units(solve)


def best_shared_total(
    worth: Floats,
    rate: Floats,
    beside: Floats,
    size: Floats,
    count: Ints,
    capacity: Floats,
    *,
    floor: Floats | None = None,
    fee: Floats | None = None,
    scale: float = 0.0,
) -> Shared:
    """Return the times with the highest Σ worth · effective rate over rows, less a fee for the capacity in use.

    worth is (class,), or (class, column) of what is done there; floor (class,) the least effective rate of each row,
    kept but for 1e-10 of it; fee (column,) of a unit of capacity for all the time, which a pair pays once; the gap is
    relative to `scale` at least. The rest as in `highest_shared_level`.
    Raises Infeasible when the floors cannot be met, NoOptimum when the gap is above 1e-9.
    """
    things = activities(rate, beside, size, count, capacity)
    asked = np.zeros(len(size)) if floor is None else floor * count
    if (asked[fastest(things, len(size)) == 0] > 0).any():
        raise Infeasible("a floor is asked of a class that no column serves; leave its rows out")
    values, none = worth_of(things, worth, size, fee), np.zeros(len(size))

    def solve(least_step: float) -> Shared:
        program = SharingProgram(things, size, count, capacity, asked, none, unit=1.0, limit=1.0, least_step=least_step)
        if asked.any() and program.raise_level()[1] < 1 - KEEP:
            raise Infeasible(f"each floor can be met to {program.level:.9g} of it at most; lower floors or drop some")
        prices, bound = program.raise_worth(values)
        time = fitting(program)
        return proven(
            program, time, prices, float(dot(values, time)), bound, whole=largest(program, values), scale=scale
        )

    return in_some_units(solve)


def worth_of(things: Activities, worth: Floats, size: Floats, fee: Floats | None = None) -> Floats:
    """Return the worth of a unit of time of each activity; worth (class,) or (class, column) of effective rate."""
    flat = worth.ndim == 1
    first = worth[things.first] if flat else worth[things.first, things.column]
    second = worth[things.second] if flat else worth[things.second, things.column]
    whole = first * things.first_rate + second * things.second_rate  # the rate of no partner is 0
    return whole if fee is None else whole - size[things.first] * fee[things.column]


def largest(program: SharingProgram, values: Floats) -> float:
    """Return the most that a single activity could be worth, or cost."""
    return float((np.abs(values) * program.most).max(initial=0.0))


def effective_rate(things: Activities, time: Floats, count: Ints) -> Floats:
    """Return the mean effective rate of the rows of each class, (class,)."""
    done = np.bincount(things.first, things.first_rate * time, len(count))
    pair = things.second != ALONE
    done += np.bincount(things.second[pair], (things.second_rate * time)[pair], len(count))
    return done / count


def fitting(program: SharingProgram) -> Floats:
    """Return the program's times, (activity,), shrunk by what roundings overspend of rows' time and of capacity."""
    things, time = program.things, program.time
    pair = things.second != ALONE
    own = np.bincount(things.first, time, program.classes)
    own += np.bincount(things.second[pair], time[pair], program.classes)
    taken = np.bincount(things.column, program.size[things.first] * time, program.columns)
    over = np.maximum(own / program.count, 1.0)  # (class,)
    most = np.maximum(over[things.first], np.where(pair, over[things.second], 1.0))
    return time / np.maximum(most, np.maximum(taken / program.room, 1.0)[things.column])


def proven(
    program: SharingProgram,
    time: Floats,
    prices: Prices,
    objective: float,
    bound: float,
    *,
    whole: float = 0.0,
    scale: float = 0.0,
) -> Shared:
    """Return the answer. Raises NoOptimum when its proof leaves a gap above 1e-9.

    whole: the size of the terms that the objective sums; a bound that is off by a rounding of theirs is met.
    """
    if abs(bound - objective) <= _ROUNDING * whole:
        bound = objective
    found = put_together(program, time, prices, objective, bound, scale)
    if not abs(found.gap) <= GAP:
        message = f"the gap is {found.gap:.1e}, above {GAP:.0e}; bring rates and needs nearer to each other"
        raise NoOptimum(message)
    return found


def put_together(
    program: SharingProgram, time: Floats, prices: Prices, objective: float, bound: float, scale: float = 0.0
) -> Shared:
    """Return times (activity,) with what they reach and with the prices of the whole program, as an answer."""
    things, used = program.things, np.flatnonzero(time > 0)
    scarce = float(dot(prices.capacity, program.capacity))
    return Shared(
        objective=objective,
        bound=bound,
        price=prices.capacity / scarce if scarce > 0 else prices.capacity,
        time_price=prices.time,
        rate=effective_rate(things, time, program.count),
        count=program.count,
        activities=things.take(used),
        time=time[used],
        scale=scale,
        taken=np.bincount(things.column, program.size[things.first] * time, program.columns).astype(float),
    )
