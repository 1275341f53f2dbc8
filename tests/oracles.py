"""The programs as the papers write them: one variable per row and column, slow and obvious, solved by HiGHS.

Nothing here shares code with the engines that it judges. Also the random problems on which they are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import highspy
import numpy as np
from hypothesis import strategies as st

from eunomia.model.arrays import Array, Floats

INF = highspy.kHighsInf


@dataclass(frozen=True, slots=True)
class Instance:
    """One problem; rows whose rate is zero everywhere can run nowhere."""

    rate: Floats  # (row, column) ≥ 0
    size: Floats  # (row,) whole, ≥ 1
    capacity: Floats  # (column,) ≥ 0
    need: Floats  # (row,) > 0; the level of a row is rate·x / need
    weight: Floats  # (row,) > 0


@st.composite
def problems(draw: st.DrawFn, most_rows: int = 60, most_columns: int = 6, decades: float = 12) -> Instance:
    """Draw sizes first, so that a failure shrinks to few rows; then ties, zeros and spread by chance."""
    rows, columns = draw(st.integers(1, most_rows)), draw(st.integers(1, most_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    zeros, dead_rows, dead_columns, ties, twins, spread = (draw(st.booleans()) for _ in range(6))
    rate = rng.uniform(0.1, 10, (rows, columns))
    size = rng.choice([1.0, 2.0, 4.0, 8.0], rows)
    if ties:
        rate = np.ceil(rate / 3)
    if zeros:
        rate[rng.random(rate.shape) < 0.3] = 0.0
    if dead_rows:
        rate[rng.random(rows) < 0.2] = 0.0
    if dead_columns:
        rate[:, rng.random(columns) < 0.3] = 0.0
    if twins:
        alike = rng.integers(0, rows, rows)
        rate, size = rate[alike], size[alike]
    capacity = np.round(rng.uniform(0, 2, columns) * size.sum() / columns)
    need, weight = rng.uniform(0.5, 2, rows), rng.choice([1.0, 2.0, 5.0], rows)
    if spread:
        need, weight = (v * 10.0 ** rng.uniform(-decades / 2, decades / 2, rows) for v in (need, weight))
    return Instance(rate, size, capacity, need, weight)


class Textbook:
    """A dense linear program, put together constraint by constraint."""

    def __init__(self, cost: Floats, upper: float = INF):
        self.cost, self.upper = np.asarray(cost, dtype=float), upper
        self.left: list[Floats] = []
        self.sides: list[tuple[float, float]] = []

    def demand(self, left: Floats, low: float, high: float) -> None:
        """Add low ≤ left · x ≤ high, in a unit in which the largest coefficient is 1."""
        unit = float(np.abs(left).max()) or 1.0
        self.left.append(left / unit)
        self.sides.append((low / unit, high / unit))

    def maximum(self) -> tuple[float, Floats] | None:
        """Return the largest cost · x over x ≥ 0 and a point that has it; None where no point satisfies all."""
        n, unit = len(self.cost), float(np.abs(self.cost).max()) or 1.0
        highs: Any = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(option, 1e-10)
        for variable in range(n):
            highs.addVar(0.0, self.upper)
            highs.changeColCost(variable, self.cost[variable] / unit)
        for left, (low, high) in zip(self.left, self.sides, strict=True):
            entries = np.flatnonzero(left).astype(np.int32)
            highs.addRow(low, high, len(entries), entries, left[entries])
        highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            highs.clearSolver()
            highs.setOptionValue("presolve", "off")
            highs.run()
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, highs.modelStatusToString(status)
        x = np.array(highs.getSolution().col_value)
        return float(self.cost @ x), x


def _base(program: Textbook, size: Floats, capacity: Floats) -> None:
    """Demand Σ_k x_ik ≤ 1 of each row and Σ_i s_i x_ik ≤ N_k of each column; x_ik is variable i · columns + k."""
    rows, columns = len(size), len(capacity)
    for i in range(rows):
        left = np.zeros(len(program.cost))
        left[i * columns : (i + 1) * columns] = 1
        program.demand(left, -INF, 1.0)
    for k in range(columns):
        left = np.zeros(len(program.cost))
        left[k : rows * columns : columns] = size
        program.demand(left, -INF, float(capacity[k]))


def highest_level(rate: Floats, size: Floats, capacity: Floats, need: Floats) -> float:
    """Return max t with rate_i · x_i ≥ need_i t for each row that can run somewhere; 0 where there is none."""
    able = (rate > 0).any(axis=1) & (need > 0)
    rate, size, need = rate[able], size[able], need[able]
    rows, columns = rate.shape
    if rows == 0:
        return 0.0
    unit = float((rate.max(axis=1) / need).min())  # no level is higher
    program = Textbook(np.append(np.zeros(rows * columns), 1.0))
    for i in range(rows):
        left = np.zeros(rows * columns + 1)
        left[i * columns : (i + 1) * columns] = rate[i]
        left[-1] = -need[i] * unit
        program.demand(left, 0.0, INF)
    _base(program, size, capacity)
    found = program.maximum()
    assert found is not None
    return found[0] * unit


def shortest_makespan(rate: Floats, size: Floats, capacity: Floats, steps: Floats) -> float:
    """Return the least M in which all can do their steps: rate_i · x_i ≥ steps_i / M."""
    return 1 / highest_level(rate, size, capacity, steps)


def least_unfairness(rate: Floats, size: Floats, capacity: Floats, steps: Floats, age: Floats, alone: Floats) -> float:
    """Return the least ρ with age_i + steps_i / (rate_i · x_i) ≤ ρ alone_i for each row that can run, by bisection."""
    able = (rate > 0).any(axis=1)
    rate, size, steps, age, alone = rate[able], size[able], steps[able], age[able], alone[able]

    def possible(rho: float) -> bool:
        return highest_level(rate, size, capacity, steps / (rho * alone - age)) >= 1

    low = float(((age + steps / rate.max(axis=1)) / alone).max()) * (1 - 1e-12)  # all at full speed
    high = 2 * low
    while not possible(high):
        low, high = high, 2 * high
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if possible(middle) else (middle, high)
    return high


def _total(worth: Floats, size: Floats, capacity: Floats, rate: Floats | None, floor: Floats | None) -> Textbook:
    program = Textbook(worth.ravel())
    _base(program, size, capacity)
    for i in range(len(size)) if rate is not None and floor is not None else ():
        left = np.zeros(worth.shape)
        left[i] = rate[i]  # type: ignore[index]
        program.demand(left.ravel(), float(floor[i]), INF)  # type: ignore[index]
    return program


def best_total(
    worth: Floats, size: Floats, capacity: Floats, rate: Floats | None = None, floor: Floats | None = None
) -> float | None:
    """Return max Σ worth x with rate_i · x_i ≥ floor_i; None where the floors cannot all be met.

    Least cost is this with worth = −cost; throughput per cost with worth = throughput / price.
    """
    found = _total(worth, size, capacity, rate, floor).maximum()
    return None if found is None else found[0]


def best_ratio(
    top: Floats, bottom: Floats, size: Floats, capacity: Floats, rate: Floats, floor: Floats, base: float
) -> float | None:
    """Return max Σ top x / (base + Σ bottom x) by the change of variables of Charnes and Cooper (1962): y = u x."""
    rows, columns = top.shape
    n = rows * columns
    program = Textbook(np.append(top.ravel(), 0.0))  # y, then u = 1 / (base + Σ bottom x)
    for i in range(rows):
        for left, side in ((np.ones(columns), -1.0), (-rate[i], float(floor[i]))):
            whole = np.zeros(n + 1)
            whole[i * columns : (i + 1) * columns] = left
            whole[-1] = side
            program.demand(whole, -INF, 0.0)
    for k in range(columns):
        whole = np.zeros(n + 1)
        whole[k:n:columns] = size
        whole[-1] = -capacity[k]
        program.demand(whole, -INF, 0.0)
    program.demand(np.append(bottom.ravel(), base), 1.0, 1.0)
    found = program.maximum()
    return None if found is None else found[0]


def least_late(rate: Floats, size: Floats, capacity: Floats, floor: Floats, weight: Floats) -> float:
    """Return the least total weight of rows whose floors are given up, by trying all sets of rows."""
    rows = [i for i in range(len(floor)) if floor[i] > 0]
    best = float(weight[rows].sum())
    for count in range(len(rows)):
        for late in combinations(rows, count):
            given_up = floor.copy()
            given_up[list(late)] = 0.0
            lost = float(weight[list(late)].sum())
            if lost < best and best_total(np.zeros(rate.shape), size, capacity, rate, given_up) is not None:
                best = lost
    return best


def _pair_program(
    beside: Array, size: Floats, capacity: Floats, extra: int
) -> tuple[list[tuple[int, int]], Any, Textbook]:
    """Return the pairs of equal size, the coefficients (row) -> left side of its rate, and the base constraints.

    Variables: rows alone, then pairs, each on each column; then `extra` more. beside (row, row, column): rate of the
    first while it shares with the second; on the diagonal the rate alone. Where it has more columns than there are
    capacities, these are the same columns once more: other places on what the first have.
    """
    rows, columns, rooms = len(size), beside.shape[2], len(capacity)
    pairs = [(i, i) for i in range(rows)]
    pairs += [(i, j) for i, j in combinations(range(rows), 2) if size[i] == size[j]]
    program = Textbook(np.zeros(len(pairs) * columns + extra))

    def lefts(i: int) -> tuple[Floats, Floats]:
        """Return row i's rate and its time as functions of the variables."""
        rate, time = np.zeros(len(program.cost)), np.zeros(len(program.cost))
        for place, pair in enumerate(pairs):
            if i in pair:
                other = pair[1] if pair[0] == i else pair[0]
                rate[place * columns : (place + 1) * columns] = beside[i, other]
                time[place * columns : (place + 1) * columns] = 1
        return rate, time

    for i in range(rows):
        program.demand(lefts(i)[1], -INF, 1.0)
    for k in range(rooms):
        left = np.zeros(len(program.cost))
        left[k : len(pairs) * columns : rooms] = np.repeat([size[i] for i, _ in pairs], columns // rooms)
        program.demand(left, -INF, float(capacity[k]))
    return pairs, lefts, program


def highest_shared_level(beside: Array, size: Floats, capacity: Floats, need: Floats) -> float:
    """Return the highest level when two rows of one size may share: a variable for each pair of rows and column."""
    able = beside.max(axis=(1, 2)) > 0
    beside, size, need = beside[able][:, able], size[able], need[able]
    if len(size) == 0:
        return 0.0
    unit = float((beside.max(axis=(1, 2)) / need).min())
    _, lefts, program = _pair_program(beside, size, capacity, 1)
    for i in range(len(size)):
        left = lefts(i)[0]
        left[-1] = -need[i] * unit
        program.demand(left, 0.0, INF)
    program.cost[-1] = 1.0
    found = program.maximum()
    assert found is not None
    return found[0] * unit


def best_shared_total(worth: Floats, beside: Array, size: Floats, capacity: Floats) -> float:
    """Return max Σ_i worth_i · rate of i when two rows of one size may share."""
    _, lefts, program = _pair_program(beside, size, capacity, 0)
    program.cost[:] = sum(worth[i] * lefts(i)[0] for i in range(len(size)))
    found = program.maximum()
    assert found is not None
    return found[0]


def best_shared_bill(
    worth: Floats, beside: Array, size: Floats, capacity: Floats, fee: Floats, floor: Floats
) -> float | None:
    """Return max Σ_i worth_i · rate of i − Σ_k fee_k · use of k with rate of i ≥ floor_i; None where floors clash."""
    pairs, lefts, program = _pair_program(beside, size, capacity, 0)
    program.cost[:] = sum(worth[i] * lefts(i)[0] for i in range(len(size)))
    program.cost -= np.outer([size[i] for i, _ in pairs], fee).ravel()
    for i in np.flatnonzero(floor > 0):
        program.demand(lefts(i)[0], float(floor[i]), INF)
    found = program.maximum()
    return None if found is None else found[0]


def cheapest_assignment(cost: Floats) -> float:
    """Return the least Σ cost with each row on one column of its own, as a linear program (its vertices are whole)."""
    rows, columns = cost.shape
    program = Textbook(-cost.ravel(), upper=1.0)
    for i in range(rows):
        left = np.zeros(cost.shape)
        left[i] = 1
        program.demand(left.ravel(), 1.0, 1.0)
    for k in range(columns):
        left = np.zeros(cost.shape)
        left[:, k] = 1
        program.demand(left.ravel(), -INF, 1.0)
    found = program.maximum()
    assert found is not None
    return -found[0]


def least_late_shared(beside: Array, size: Floats, capacity: Floats, floor: Floats, weight: Floats) -> float:
    """Return the least weight of rows whose floors are given up when rows may share, by trying all sets of rows."""
    rows = np.flatnonzero(floor > 0)

    def possible(late: tuple[int, ...]) -> bool:
        _, lefts, program = _pair_program(beside, size, capacity, 0)
        for i in np.setdiff1d(rows, late):
            program.demand(lefts(i)[0], float(floor[i]), INF)
        return program.maximum() is not None

    sets = [late for count in range(len(rows) + 1) for late in combinations(rows.tolist(), count)]
    for late in sorted(sets, key=lambda late: float(weight[list(late)].sum())):
        if possible(late):
            return float(weight[list(late)].sum())
    raise AssertionError("giving up all floors must be possible")


def shared_product_bound(beside: Array, size: Floats, capacity: Floats, weight: Floats, around: Floats) -> float:
    """Return a Σ weight · log rate that no sharing exceeds, near the least such where the best rates are `around`.

    Each logarithm lies below its tangents, drawn at rates (row,) near and far, so one linear program gives a bound.
    Rows that can run nowhere are left out.
    """
    able = beside.max(axis=(1, 2)) > 0
    beside, size, weight, around = beside[able][:, able], size[able], weight[able], around[able]
    rows = len(size)
    if rows == 0:
        return 0.0
    _, lefts, program = _pair_program(beside, size, capacity, rows)
    n = len(program.cost) - rows  # after these stand log(rate / around) + 100, which are above 0
    program.cost[n:] = weight
    near = np.append(0.0, np.outer([-1.0, 1.0], 10.0 ** np.arange(-5, 1)))
    for i in range(rows):
        rate = lefts(i)[0] / around[i]
        for at in np.exp(near):
            left = -rate / at
            left[n + i] = 1.0
            program.demand(left, -INF, 100 + float(np.log(at)) - 1)
    found = program.maximum()
    assert found is not None
    return found[0] + float(weight @ (np.log(around) - 100))


def isolated_share(size: Floats, capacity: Floats) -> Floats:
    """Return the equal part of each of m jobs as time of its gang, (job, type); at most all of its time."""
    share = np.array([[accelerators / len(size) / gang for accelerators in capacity] for gang in size])
    return np.array([row / sum(row) if sum(row) > 1 else row for row in share]).reshape(len(size), len(capacity))


def isolated_speed(rate: Floats, size: Floats, capacity: Floats) -> Floats:
    """Return the steps/s of each job on its equal part, (job,): nothing on types with fewer accelerators than it."""
    share = isolated_share(size, capacity)
    return np.array(
        [
            sum(rate[m, j] * share[m, j] for j in range(len(capacity)) if gang <= capacity[j])
            for m, gang in enumerate(size)
        ],
        dtype=float,
    )
