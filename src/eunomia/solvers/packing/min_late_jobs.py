"""Which floors to give up when not all can be met though rows may share columns: as little weight of rows as possible.

    minimise Σ_i w[i] z[i]   over z ∈ {0, 1} and the times Y of `sharing` of those kept, with for each class and λ ≥ 0
    Σ_i (f[i] − λ)⁺ (1 − z[i]) ≤ Σ_a (rate[a] − λ)⁺ Y[a]

Rows of one class part what it gets by exactly these conditions (`per_job_needs`), and they are linear in z, so those
that an answer breaks are added until it can be carried out. What that leaves open, such as rows that would share with
themselves, and problems of very many floors are settled by trying: late is then the smallest set found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.products import dot
from eunomia.model.tolerance import RELATIVE, is_at_least
from eunomia.solvers.alike_rows import Classes, group, later_members
from eunomia.solvers.min_late_jobs import SLACK, LateRows, late_rows, needed
from eunomia.solvers.packing.activities import Activities, activities
from eunomia.solvers.packing.per_job_needs import best_shared_total_own
from eunomia.solvers.program import INF, NoOptimum, Program

_FEW = 300  # sorts of floors up to which their number is searched
_NODES = 20_000
_ROUNDS = 30


@dataclass(frozen=True, slots=True)
class _Asked:
    """The rows whose floors could be met if they were alone."""

    rate: Floats  # (class, column)
    beside: Floats  # (class, class, column)
    size: Floats  # (class,)
    capacity: Floats  # (column,)
    of: Ints  # (row,) class
    floor: Floats  # (row,) above 0
    weight: Floats  # (row,)

    def possible(self, late: Bools) -> bool:
        """Return whether all floors can be met but those of the rows that are late, (row,)."""
        kept, nothing = np.where(late, 0.0, self.floor), np.zeros(len(self.size))
        try:
            best_shared_total_own(
                nothing, self.rate, self.beside, self.size, self.of, self.capacity, floor=kept, scale=1.0
            )
        except NoOptimum:
            return False
        return True


def late_shared_rows(
    rate: Floats, beside: Floats, size: Floats, of: Ints, capacity: Floats, floor: Floats, weight: Floats
) -> LateRows:
    """Return the rows whose floors are given up; of (row,) class, floor ≥ 0, weight > 0 (row,), the rest by class.

    Of rows that are alike the later ones are given up.
    """
    best = np.maximum(rate, beside.max(axis=1, initial=0.0))[:, capacity > 0].max(axis=1, initial=0.0)
    able = is_at_least(best[of], floor)
    floor = np.minimum(floor, best[of]) * (1 - SLACK)
    lost, some = np.flatnonzero(~able), np.flatnonzero(able & (floor > 0))
    asked = _Asked(rate, beside, size, capacity, of[some], floor[some], weight[some])
    late, bound = np.zeros(len(some), dtype=bool), 0.0
    if not asked.possible(late):
        late, bound = _found(asked)
    rows = np.sort(np.concatenate((lost, some[late])))
    whole, certain = float(weight[rows].sum()), float(weight[lost].sum())
    return LateRows(rows, whole, min(certain + bound, whole))


def _found(asked: _Asked) -> tuple[Bools, float]:
    """Return the late rows, (row,), and a weight that no smaller set has."""
    sorts = group(asked.of, asked.floor, asked.weight)
    late, bound = _searched(asked, sorts) if len(sorts) <= _FEW else (None, 0.0)
    if late is None:
        late = np.zeros(len(asked.of), dtype=bool)
        late[
            late_rows(asked.rate[asked.of], asked.size[asked.of], asked.capacity, asked.floor, weight=asked.weight).rows
        ] = True
        late = _fewer(asked, late)
    return needed(late, asked.weight, asked.possible), bound


def _searched(asked: _Asked, sorts: Classes) -> tuple[Bools | None, float]:
    """Return the late rows by a search over how many of each sort are late, None where it cannot tell; and a bound."""
    search = _Search(asked, sorts)
    bound = 0.0
    for _ in range(_ROUNDS):
        number, bound, time = search.fewest()
        late = search.later < number[sorts.of]
        if asked.possible(late):
            return late, bound
        if not search.demand_more(number, time):
            break
    return None, bound


class _Search:
    """The program over times of activities and over how many rows of each sort are late."""

    def __init__(self, asked: _Asked, sorts: Classes):
        self.asked, self.sorts = asked, sorts
        first = sorts.representative
        self.of, self.floor, self.count = asked.of[first], asked.floor[first], sorts.count.astype(float)
        self.rows = np.bincount(asked.of, minlength=len(asked.size))  # (class,)
        self.things = activities(asked.rate, asked.beside, asked.size, self.rows, asked.capacity)
        self.most = self.things.most(asked.size, self.rows, asked.capacity)
        kept = np.flatnonzero(self.most > 0)
        self.things, self.most = self.things.take(kept), self.most[kept]
        self.later = later_members(sorts.of, sorts.count)  # (row,)
        self.threshold = [(each, 0.0) for each in np.unique(self.of).tolist()]

    def fewest(self) -> tuple[Ints, float, Floats]:
        """Return how many of each sort are late, a bound on the weight, and the times, (activity,)."""
        n = len(self.things)
        solved = self._program().solve(nodes=_NODES)
        number = np.rint(solved.x[n:]).astype(np.int64)
        return number, max(solved.bound, 0.0), solved.x[:n] * self.most

    def _program(self) -> Program:
        """Write the program; its rows are the time of each class, capacity, and the thresholds, in parts of each."""
        n, sorts = len(self.things), len(self.count)
        matrix: list[Floats] = []
        low: list[float] = []
        high: list[float] = []
        for each in np.unique(self.of).tolist():
            matrix.append(np.append(_members(self.things, each) * self.most, self.of == each) / self.rows[each])
            low, high = [*low, -INF], [*high, 1.0]
        for k in np.flatnonzero(self.asked.capacity > 0).tolist():
            used = self.asked.size[self.things.first] * (self.things.column == k) * self.most
            matrix.append(np.append(used, np.zeros(sorts)) / self.asked.capacity[k])
            low, high = [*low, -INF], [*high, 1.0]
        for each, level in self.threshold:
            asks = self._asks(each, level)
            done = self.things.above(np.array([each]), np.array([level]))[:, 0] * self.most
            matrix.append(np.append(done, asks) / float(dot(asks, self.count)))
            low, high = [*low, 1.0], [*high, INF]
        row, column = np.nonzero(np.array(matrix))
        return Program.of_entries(
            np.append(np.zeros(n), self.asked.weight[self.sorts.representative]),
            row,
            column,
            np.array(matrix)[row, column],
            np.array(low),
            np.array(high),
            upper=np.append(np.ones(n), self.count),
            whole=np.arange(n + sorts) >= n,
            maximise=False,
        )

    def _asks(self, each: int, level: float) -> Floats:
        """Return what a row of each sort asks of a class above a threshold, (sort,)."""
        return np.where(self.of == each, np.maximum(self.floor - level, 0.0), 0.0)

    def demand_more(self, number: Ints, time: Floats) -> bool:
        """Add the thresholds that the times break for rows that are not late; return whether there were any."""
        known, kept = len(self.threshold), self.count - number
        for each in np.unique(self.of).tolist():
            rates = np.append(self.things.first_rate, self.things.second_rate)
            used = np.append((self.things.first == each) & (time > 0), (self.things.second == each) & (time > 0))
            for level in np.unique(rates[used]).tolist():
                asked = float(dot(self._asks(each, level), kept))
                done = float(dot(self.things.above(np.array([each]), np.array([level]))[:, 0], time))
                if asked - done > RELATIVE * (asked + level * kept.sum()) and (each, level) not in self.threshold:
                    self.threshold.append((each, level))
        return len(self.threshold) > known


def _members(things: Activities, each: int) -> Floats:
    """Return how many rows of a class each activity has, (activity,)."""
    return np.asarray((things.first == each).astype(float) + (things.second == each))


def _fewer(asked: _Asked, late: Bools) -> Bools:
    """Return the late rows without as many of the heaviest as can be kept together: halving."""
    order = np.flatnonzero(late)[np.argsort(-asked.weight[late], kind="stable")]
    kept, lost = 0, len(order)
    while lost - kept > 1:
        tried = late.copy()
        tried[order[: (kept + lost) // 2]] = False
        kept, lost = ((kept + lost) // 2, lost) if asked.possible(tried) else (kept, (kept + lost) // 2)
    fewer = late.copy()
    fewer[order[:kept]] = False
    return fewer
