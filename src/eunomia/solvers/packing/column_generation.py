"""The program over activities, solved by the simplex method on the few that its own prices call for.

    maximise t, or Σ worth · Y   subject to   Σ_a (r[a] − λ)⁺ Y[a] ≥ slope · t + constant     for each demand
    time of each class ≤ its rows,    size · Y of each column ≤ its capacity,    Y ≥ 0

A demand speaks of one class and of what its rows do faster than a threshold λ; each class has one with λ = 0, and
`per_job_needs` adds others. Rows are few and activities many, so only those alone are there from the start; a pair is
taken in when the prices say that it pays, and at the end no pair left out does. That is the proof of optimality, and
the bound is summed from the prices over all activities, in the program or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.packing.activities import ALONE, Activities, fastest
from eunomia.solvers.program import INF, Infeasible, NoOptimum, Program, Solved

Found = TypeVar("Found")

KEEP = 1e-10  # what the level may lose while a second objective is raised, relative
_BATCH = 4  # pairs taken in at once, for each class
_SMALL = 1e-12  # entries below are left out
# No unit of time is less of what there is: what needs little may serve a partner that needs much. Tried in turn.
LEAST_STEPS = (1e-6, 1e-3, 1e-9, 0.0)
_PAYS = 1e-12  # a gain below, relative to the objective, is rounding
_T = np.zeros(1, dtype=np.int64)  # the variable t stands first
_NOTHING = 1e-13  # a time below, relative to what the level takes, is rounding


@dataclass(frozen=True, slots=True)
class Prices:
    """By what the objective rises with a unit of each side; none is negative."""

    demand: Floats  # (demand,) of a unit less that is asked
    time: Floats  # (class,) of one more row
    capacity: Floats  # (column,)
    gain: Floats  # (activity,) what a unit of its time gains at these prices: 0 but for rounding


class SharingProgram:
    """Times of activities under demands; asked again, it starts from where it ended."""

    def __init__(
        self,
        things: Activities,
        size: Floats,
        count: Ints,
        capacity: Floats,
        slope: Floats,
        constant: Floats,
        *,
        unit: float,
        limit: float = INF,
        least_step: float = LEAST_STEPS[0],
    ):
        """Take the demand slope · t + constant of each class, (class,); t is near `unit`, and at most `limit`."""
        self.things, self.size, self.count, self.capacity = things, size, count, capacity
        self.unit, self.limit = unit, limit
        self.classes, self.columns = len(size), len(capacity)
        self.of, self.threshold = np.arange(self.classes), np.zeros(self.classes)  # (demand,)
        self.slope, self.constant = slope, constant
        self.most = things.most(size, count, capacity)
        asked = slope * unit + constant
        self.asked = np.where(asked > 0, asked, fastest(things, self.classes) * count)  # (demand,) typical
        self.asked[self.asked <= 0] = 1.0
        self.room = np.where(capacity > 0, capacity, 1.0)
        self.step = self._steps(least_step)
        self.within = np.zeros(len(things), dtype=bool)
        self.taken = NO_INTS
        self.places: dict[int, Ints] = {}
        self.program = self._start()
        self.ahead = self.program.columns  # variables that stand before those of activities; t is the first
        alone = np.flatnonzero(things.second == ALONE)
        self._take(alone, np.zeros(len(alone)))
        self.time, self.point = np.zeros(len(things)), np.zeros(1)
        self.level = self.reached = 0.0

    def _steps(self, least_step: float) -> Floats:
        """Return the unit in which each time is counted: about what the level takes, or all there is, (activity,)."""
        mine, partners = self._asked_time(self.asked)
        least = np.where(self.things.second == ALONE, mine, np.minimum(mine, partners))
        return np.minimum(self.most, np.maximum(least, least_step * self.most))

    def _asked_time(self, asked: Floats) -> tuple[Floats, Floats]:
        """Return the time in which an activity does all that is asked of its class, and of the partner's (or 0)."""
        things = self.things
        mine, second = asked[things.first] / things.first_rate, things.second
        rate = np.where(second == ALONE, 1.0, things.second_rate)
        return mine, np.where(second == ALONE, 0.0, asked[second] / rate)

    # Rows of the program: the demand of each class, its time, capacity of each column, then further demands.

    def _row_of(self, demand: Ints) -> Ints:
        return np.where(demand < self.classes, demand, demand + self.classes + self.columns)

    def _start(self) -> Program:
        """Return the program with all its rows and t alone."""
        sides = self.classes + self.columns
        program = Program(
            np.ones(1),
            np.array([0, self.classes]),
            np.arange(self.classes),
            -self.slope * self.unit / self.asked,
            np.append(self.constant / self.asked, np.full(sides, -INF)),
            np.append(np.full(self.classes, INF), np.ones(sides)),
            upper=self.limit / self.unit,
        )
        program.highs.setOptionValue("small_matrix_value", _SMALL)
        return program

    def _entries(self, chosen: Ints) -> tuple[Ints, Ints, Floats]:
        """Return start, row and value of the matrix's columns of some activities."""
        some, step = self.things.take(chosen), self.step[chosen]
        within, pair = some.first == some.second, some.second != ALONE
        twice = np.where(within, 2.0, 1.0) * step
        time_row, place = self.classes + some.first, 2 * self.classes + some.column
        rows = np.stack((some.first, some.second, time_row, self.classes + some.second, place), axis=1)
        values = np.stack(
            (
                some.first_rate * twice / self.asked[some.first],
                some.second_rate * step / self.asked[some.second],
                twice / self.count[some.first],
                step / self.count[some.second],
                self.size[some.first] * step / self.capacity[some.column],
            ),
            axis=1,
        )
        there = np.ones(rows.shape, dtype=bool)
        there[:, 1] = there[:, 3] = pair & ~within
        further = np.arange(self.classes, len(self.of))
        if len(further):
            speed = self._above(further, chosen) * step[:, None] / self.asked[further]  # (activity, demand)
            rows = np.concatenate((rows, np.broadcast_to(self._row_of(further), speed.shape)), axis=1)
            values, there = np.concatenate((values, speed), axis=1), np.concatenate((there, speed > 0), axis=1)
        return np.append(0, np.cumsum(there.sum(axis=1))), rows[there], values[there]

    def _above(self, demands: Ints, chosen: Ints) -> Floats:
        """Return Σ (rate − λ)⁺ over the rows of the demand's class that an activity has, (activity, demand)."""
        return self.things.take(chosen).above(self.of[demands], self.threshold[demands])

    def put_demands(self, slope: Floats, constant: Floats) -> None:
        """Put other slopes and constants, (demand,)."""
        self.slope, self.constant = slope, constant
        rows = self._row_of(np.arange(len(slope)))
        self.program.change_sides(rows, constant / self.asked, INF)
        for row, value in zip(rows.tolist(), (-slope * self.unit / self.asked).tolist(), strict=True):
            self.program.highs.changeCoeff(row, 0, value)

    def add_demands(self, of: Ints, threshold: Floats, slope: Floats, constant: Floats, typical: Floats) -> None:
        """Ask more: of each class, of what it does faster than a threshold; `typical` > 0 is its unit, (more,)."""
        further = np.arange(len(self.of), len(self.of) + len(of))
        self.of, self.threshold = np.append(self.of, of), np.append(self.threshold, threshold)
        self.slope, self.constant = np.append(self.slope, slope), np.append(self.constant, constant)
        self.asked = np.append(self.asked, typical)
        speed = self._above(further, self.taken) * self.step[self.taken, None] / self.asked[further]
        demand, place = np.nonzero(speed.T)
        t = -slope * self.unit / self.asked[further]
        index = np.concatenate([np.append(0, self.ahead + place[demand == row]) for row in range(len(of))])
        value = np.concatenate([np.append(t[row], speed[place[demand == row], row]) for row in range(len(of))])
        start = np.append(0, np.cumsum(1 + np.bincount(demand, minlength=len(of))))
        self.program.add_rows(constant / self.asked[further], np.full(len(of), INF), start, index, value)

    def done_above(self, of: Ints, threshold: Floats) -> Floats:
        """Return Σ (rate − λ)⁺ · time over what rows of a class do faster than λ, (threshold,)."""
        things, pair = self.things, self.things.second != ALONE
        time = np.append(self.time, self.time[pair])
        side = np.append(things.first, things.second[pair])
        rate = np.append(things.first_rate, things.second_rate[pair])
        used = time > 0
        above = np.maximum(rate[used] - threshold[:, None], 0.0) * (side[used] == of[:, None])
        done: Floats = dot(above, time[used])
        return done

    def raise_level(self) -> tuple[Prices, float]:
        """Find the highest t, kept as `level` with its `time`; return the prices and the bound that they prove."""
        self.program.change_bounds(_T, 0.0, self.limit / self.unit)
        cost = np.append(1.0, np.zeros(self.ahead - 1 + len(self.taken)))
        prices = self._raise(cost, np.zeros(len(self.things)), self.unit)
        self.level = self.reached
        weight = float(dot(prices.demand, self.slope))  # 1, or less where the limit binds
        whole = self._worth_of_sides(prices, 0.0) + float(dot(prices.gain, self._longest()))
        return prices, min(self.limit, whole / weight if weight > 0 else INF)

    def raise_worth(self, worth: Floats) -> tuple[Prices, float]:
        """Find the highest Σ worth · time, (activity,), while t stays where it is but for a 1e-10th."""
        kept = self.level * (1 - KEEP)
        self.program.change_bounds(_T, kept / self.unit, kept / self.unit)
        cost = np.append(np.zeros(self.ahead), (worth * self.step)[self.taken])
        unit = float(np.abs(cost).max(initial=0.0)) or 1.0
        prices = self._raise(cost / unit, worth, unit)
        if self._short(kept) > KEEP:
            self._put_point(self.program.refined(self.point))
        return prices, self._worth_of_sides(prices, kept) + float(dot(prices.gain, self.most))

    def _longest(self) -> Floats:
        """Return a time of each activity that need not be exceeded while only the level counts, (activity,).

        What gives both rows more than is asked can be cut short, where no demand asks for speed.
        """
        if len(self.of) > self.classes:
            return self.most
        mine, partners = self._asked_time(self.slope * self.limit + self.constant)
        return np.minimum(self.most, np.maximum(mine, partners))

    def _worth_of_sides(self, prices: Prices, level: float) -> float:
        """Return what the sides are worth when t is given: no feasible point is worth more, but for roundings."""
        asked = self.slope * level + self.constant
        return float(dot(prices.capacity, self.capacity) + dot(prices.time, self.count) - dot(prices.demand, asked))

    def _raise(self, cost: Floats, worth: Floats, unit: float) -> Prices:
        """Solve, price and take in until nothing left out pays; 1 of the program's objective is `unit` of ours."""
        self.program.change_costs(cost)
        pays = _PAYS * float(np.abs(cost).max(initial=0.0))
        while True:
            solved = _vertex(self.program)
            prices = self._prices(solved.row_price * unit)
            gain = worth + self._gain(prices)
            chosen = self._best(gain * self.step / unit, pays)
            if len(chosen) == 0:
                break
            self._take(chosen, worth[chosen] * self.step[chosen] / unit)
        self._put_point(solved.x)
        return replace(prices, gain=np.maximum(gain, 0.0))

    def _put_point(self, x: Floats) -> None:
        """Take a point of the program, (variable,)."""
        self.point, self.reached = x, float(x[0]) * self.unit
        share = np.where(x[self.ahead :] > _NOTHING, x[self.ahead :], 0.0)
        self.time = np.zeros(len(self.things))
        self.time[self.taken] = share * self.step[self.taken]

    def _short(self, level: float) -> float:
        """Return by how much the times miss what is asked of a class at a level, relative, at most."""
        asked = (self.slope * level + self.constant)[: self.classes]
        rate, second = self.things.first_rate * self.time, np.maximum(self.things.second, 0)
        done = np.bincount(self.things.first, rate, self.classes)
        done += np.bincount(second, self.things.second_rate * self.time, self.classes)  # the rate of no partner is 0
        some = asked > 0
        return float((1 - done[some] / asked[some]).max(initial=0.0))

    def _prices(self, row_price: Floats) -> Prices:
        """Return what a unit of each true side is worth, from the prices of the program's rows."""
        demand = -row_price[self._row_of(np.arange(len(self.of)))] / self.asked
        time, place = np.split(row_price[self.classes : 2 * self.classes + self.columns], [self.classes])
        return Prices(
            demand=np.maximum(demand, 0.0),
            time=np.maximum(time, 0.0) / self.count,
            capacity=np.maximum(place, 0.0) / self.room,
            gain=np.empty(0),
        )

    def _gain(self, prices: Prices) -> Floats:
        """Return by how much a unit of time of each activity is worth more, in demands, than it takes, (activity,)."""
        things = self.things
        level, time = np.append(prices.demand[: self.classes], 0.0), np.append(prices.time, 0.0)
        gain = level[things.first] * things.first_rate + level[things.second] * things.second_rate
        gain -= time[things.first] + time[things.second] + (self.size[things.first] * prices.capacity[things.column])
        for demand in self.classes + np.flatnonzero(prices.demand[self.classes :]):
            chosen = self._of_class(int(self.of[demand]))
            gain[chosen] += prices.demand[demand] * self._above(np.array([demand]), chosen)[:, 0]
        return gain

    def _of_class(self, each: int) -> Ints:
        """Return the activities in which rows of a class take part."""
        if each not in self.places:
            self.places[each] = np.flatnonzero((self.things.first == each) | (self.things.second == each))
        return self.places[each]

    def _best(self, gain: Floats, pays: float) -> Ints:
        """Return the activities left out that pay best, at most a few for each class."""
        able = np.flatnonzero((gain > pays) & ~self.within)
        most = _BATCH * self.classes
        if len(able) > most:
            able = np.sort(able[np.argsort(-gain[able], kind="stable")[:most]])
        return able

    def _take(self, chosen: Ints, cost: Floats) -> None:
        # No time is longer than the most; the bound is never met, but entries many decades apart hide those that are.
        self.program.add_columns(cost, *self._entries(chosen), 0.0, 2 * self.most[chosen] / self.step[chosen])
        self.taken = np.append(self.taken, chosen)
        self.within[chosen] = True


def in_some_units(solve: Callable[[float], Found]) -> Found:
    """Return what `solve` finds with the first least step with which its proof closes; needs may be decades apart."""
    for least_step in LEAST_STEPS[:-1]:
        try:
            return solve(least_step)
        except Infeasible:
            raise
        except NoOptimum:
            continue
    return solve(LEAST_STEPS[-1])


def _vertex(program: Program) -> Solved:
    """Return an optimum by the primal simplex method: variables that were added leave its last point feasible."""
    for option, setting in (("solver", "simplex"), ("presolve", "off"), ("simplex_strategy", 4)):
        program.highs.setOptionValue(option, setting)
    program.highs.run()
    return program.solve()
