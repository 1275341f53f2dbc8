"""The general program, for what no engine of its own solves: linear, or with whole numbers, by HiGHS.

    optimise  c·x   subject to   low ≤ A x ≤ high,   lower ≤ x ≤ upper,   some x whole

Tolerances are 1e-10, and the objective is put in a unit in which they mean something: a program whose objective is
one variable among thousands of rows has prices of a thousandth each. The solver object is kept, so that a program
solved again with other costs, bounds or sides starts from its last basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import highspy
import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.products import dot

TOLERANCE = 1e-10
_OFF = 1e-9  # by how much an answer may miss its sides, relative to them or to 1
_IPM_STEPS, _SIMPLEX_STEPS = 500, 10_000_000
INF = float("inf")
Method: TypeAlias = Literal["simplex", "interior"]
_Status = highspy.HighsModelStatus
_MAGNIFIED = 2.0**20
_SCALING = "simplex_scale_strategy"
_NO_POINT = "no point satisfies all constraints; loosen a side or a bound"


class NoOptimum(RuntimeError):
    """A solver stopped without a proven optimum; the message says how it stopped and what to do."""


class Infeasible(NoOptimum):
    """No point satisfies the constraints."""


@dataclass(frozen=True, slots=True)
class Solved:
    """An optimum and its proof. Prices say how much the objective rises per unit by which a side is raised."""

    x: Floats  # (variable,)
    objective: float
    bound: float  # of the dual point (or of the search, with whole numbers): no x does better
    row_price: Floats  # (row,) zeros with whole numbers
    reduced: Floats  # (variable,) price of each variable's own bound

    @property
    def gap(self) -> float:
        """Return |bound − objective| relative to the larger of the two."""
        return abs(self.bound - self.objective) / max(abs(self.bound), abs(self.objective), 1e-300)


class Program:
    """A program that can be changed and solved again."""

    def __init__(
        self,
        cost: Floats,
        start: Ints,
        index: Ints,
        value: Floats,
        low: Floats,
        high: Floats,
        *,
        lower: Floats | float = 0.0,
        upper: Floats | float = INF,
        whole: Bools | None = None,
        maximise: bool = True,
    ):
        """Take the matrix by columns: variable v has entries start[v]:start[v + 1] of index (row) and value.

        cost, lower, upper, whole (variable,), start (variable + 1,), low, high (row,); ±inf where there is no side.
        """
        self.columns, self.rows = len(cost), len(low)
        self.sign = -1.0 if maximise else 1.0
        self.whole = whole is not None and bool(whole.any())
        self.lower, self.upper = _wide(lower, self.columns), _wide(upper, self.columns)
        self.low, self.high = _wide(low, self.rows), _wide(high, self.rows)
        self.cost = np.asarray(cost, dtype=float)
        self.unit = _unit(self.cost, self.rows)
        self.highs = _quiet()
        self.highs.passModel(self._model(start, index, value, whole))

    @classmethod
    def of_entries(
        cls, cost: Floats, row: Array, column: Array, value: Floats, low: Floats, high: Floats, **rest: Any
    ) -> Program:
        """Take the matrix as (row, column, value) triples in any order, each place at most once."""
        order = np.argsort(column, kind="stable")
        start = np.searchsorted(column[order], np.arange(len(cost) + 1))
        return cls(cost, start, row[order], value[order], low, high, **rest)

    def _model(self, start: Ints, index: Ints, value: Floats, whole: Bools | None) -> Any:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = self.columns, self.rows
        lp.col_cost_ = self.sign * self.cost / self.unit
        lp.col_lower_, lp.col_upper_ = self.lower, self.upper
        lp.row_lower_, lp.row_upper_ = self.low, self.high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = _narrow(start), _narrow(index)
        lp.a_matrix_.value_ = np.asarray(value, dtype=float)
        if self.whole:
            kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
            lp.integrality_ = [kinds[int(w)] for w in whole]  # type: ignore[union-attr]
        return lp

    def change_costs(self, cost: Floats) -> None:
        """Put another objective, (variable,)."""
        self.cost, self.unit = np.asarray(cost, dtype=float), _unit(cost, self.rows)
        scaled = self.sign * self.cost / self.unit
        self.highs.changeColsCost(self.columns, np.arange(self.columns, dtype=np.int32), scaled)

    def change_bounds(self, variables: Array, lower: Floats | float, upper: Floats | float) -> None:
        """Put other bounds on the variables listed."""
        places, n = _narrow(variables), len(variables)
        self.lower[variables], self.upper[variables] = lower, upper
        self.highs.changeColsBounds(n, places, self.lower[variables], self.upper[variables])

    def change_sides(self, rows: Array, low: Floats | float, high: Floats | float) -> None:
        """Put other sides on the rows listed."""
        self.low[rows], self.high[rows] = low, high
        self.highs.changeRowsBounds(len(rows), _narrow(rows), self.low[rows], self.high[rows])

    def add_columns(
        self, cost: Floats, start: Ints, index: Ints, value: Floats, lower: Floats | float, upper: Floats | float
    ) -> None:
        """Add variables at the end, laid out as in the constructor; the basis stays."""
        n = len(cost)
        more_lower, more_upper = _wide(lower, n), _wide(upper, n)
        scaled, entries = self.sign * np.asarray(cost, dtype=float) / self.unit, np.asarray(value, dtype=float)
        self.highs.addCols(
            n, scaled, more_lower, more_upper, len(entries), _narrow(start[:-1]), _narrow(index), entries
        )
        self.columns += n
        self.cost = np.concatenate((self.cost, cost))
        self.lower, self.upper = np.append(self.lower, more_lower), np.append(self.upper, more_upper)

    def add_rows(self, low: Floats, high: Floats, start: Ints, index: Ints, value: Floats) -> None:
        """Add rows at the end: row r has entries start[r]:start[r + 1] of index (variable) and value."""
        more_low, more_high, entries = _wide(low, len(low)), _wide(high, len(low)), np.asarray(value, dtype=float)
        self.highs.addRows(len(low), more_low, more_high, len(entries), _narrow(start[:-1]), _narrow(index), entries)
        self.rows += len(low)
        self.low, self.high = np.append(self.low, more_low), np.append(self.high, more_high)

    def solve(self, method: Method = "simplex", *, crossover: bool = True, nodes: int | None = None) -> Solved:
        """Return an optimum: a vertex, or without crossover a point inside the optimal face.

        With whole numbers the search ends after `nodes` nodes, if given; then the gap says what is not proven.
        Raises Infeasible where no point satisfies the constraints, and NoOptimum where the program has no end or the
        solver stops for another reason.
        """
        if self.columns == 0:
            return self._nothing()
        self.highs.setOptionValue("mip_max_nodes", 2**31 - 1 if nodes is None else nodes)
        scaling = self.highs.getOptionValue(_SCALING)[1]
        try:
            return self._tried(_attempts(method, crossover), nodes)
        finally:
            self.highs.setOptionValue(_SCALING, scaling)

    def refined(self, x: Floats) -> Floats:
        """Return the optimum x, (variable,), without the rounding that entries many decades apart have left in it.

        The program of the difference is solved, with its sides magnified, from the last basis.
        """
        model = self.highs.getLp()
        matrix = model.a_matrix_
        entries = np.array(matrix.value_, dtype=float).astype(np.longdouble)
        of = np.repeat(np.arange(self.columns), np.diff(np.array(matrix.start_)))
        reached = np.zeros(self.rows, dtype=np.longdouble)
        np.add.at(reached, np.array(matrix.index_), entries * x[of])
        sides = [np.asarray((side - reached) * _MAGNIFIED, dtype=float) for side in (self.low, self.high)]
        ends = [(end - x) * _MAGNIFIED for end in (self.lower, self.upper)]
        try:
            self._put_bounds(sides, ends)
            self.highs.run()
            off = np.array(self.highs.getSolution().col_value, dtype=float) / _MAGNIFIED
            optimal = self.highs.getModelStatus() == _Status.kOptimal
        finally:
            self._put_bounds([self.low, self.high], [self.lower, self.upper])
        return np.clip(x + off, self.lower, self.upper) if optimal else x

    def _put_bounds(self, sides: list[Floats], ends: list[Floats]) -> None:
        """Give the solver sides of all rows and bounds of all variables, low and high."""
        self.highs.changeRowsBounds(self.rows, np.arange(self.rows, dtype=np.int32), *sides)
        self.highs.changeColsBounds(self.columns, np.arange(self.columns, dtype=np.int32), *ends)

    def _tried(self, attempts: list[dict[str, Any]], nodes: int | None) -> Solved:
        """Return the first answer that keeps its sides; HiGHS's scaling may lose them though it reports an optimum.

        That no point satisfies the constraints is believed when two attempts say so, or all there are: from the basis
        of another solve HiGHS may say it of a program that has an optimum.
        """
        denied = 0
        for attempt in attempts:
            for option, setting in attempt.items():
                self.highs.setOptionValue(option, setting)
            self.highs.run()
            status = self.highs.getModelStatus()
            if (status == _Status.kOptimal and self._kept()) or (nodes is not None and self._found_some(status)):
                return self._solved()
            denied += status == _Status.kInfeasible
            if denied == min(2, len(attempts)):
                raise Infeasible(_NO_POINT)
            if status == _Status.kUnbounded:
                raise NoOptimum("the objective has no end; bound the variables that carry it")
            self.highs.clearSolver()
        name = self.highs.modelStatusToString(status)
        raise NoOptimum(f"the general solver stopped with {name!r}; check the data for entries many decades apart")

    def _kept(self) -> bool:
        """Return whether the rows of the point found are within their sides; a search has tolerances of its own."""
        if self.whole:
            return True
        at = np.array(self.highs.getSolution().row_value, dtype=float)
        over, under = at - self.high, self.low - at
        far = (over > _OFF * np.maximum(np.abs(self.high), 1)) | (under > _OFF * np.maximum(np.abs(self.low), 1))
        return not far.any()

    def _found_some(self, status: Any) -> bool:
        """Return whether the search ended at its limit with a point in hand."""
        point = self.highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return bool(status == _Status.kSolutionLimit and point)

    def _nothing(self) -> Solved:
        """Answer a program without variables: the solver has no word for it."""
        if (self.low > TOLERANCE).any() or (self.high < -TOLERANCE).any():
            raise Infeasible(_NO_POINT)
        return Solved(np.empty(0), 0.0, 0.0, np.zeros(self.rows), np.empty(0))

    def _solved(self) -> Solved:
        solution = self.highs.getSolution()
        x = np.clip(np.array(solution.col_value, dtype=float), self.lower, self.upper)
        if self.whole:
            zeros = np.zeros(self.rows), np.zeros(self.columns)
            bound = self.highs.getInfo().mip_dual_bound * self.unit * self.sign
            return Solved(x, float(dot(self.cost, x)), float(bound), *zeros)
        price = self.sign * self.unit * np.array(solution.row_dual, dtype=float)
        reduced = self.sign * self.unit * np.array(solution.col_dual, dtype=float)
        bound = self._reach(price, self.low, self.high) + self._reach(reduced, self.lower, self.upper)
        return Solved(x, float(dot(self.cost, x)), bound, price, reduced)

    def _reach(self, price: Floats, low: Floats, high: Floats) -> float:
        """Return Σ price · side, each price at the side that it holds; at a missing side a price is rounding."""
        side = np.where(price * self.sign < 0, high, low)
        holds = np.isfinite(side)
        return float(dot(price[holds], side[holds]))


def _unit(cost: Floats, rows: int) -> float:
    """Return what one unit of the solver's objective is worth: few costs among many rows make small prices."""
    priced = np.abs(cost[np.nonzero(cost)])
    if len(priced) == 0:
        return 1.0
    return float(priced.max() / max(1.0, rows / len(priced)))


def _wide(values: Floats | float, length: int) -> Floats:
    return np.array(np.broadcast_to(np.asarray(values, dtype=float), (length,)))


def _narrow(places: Array) -> Array:
    return np.asarray(places, dtype=np.int32)


class _Silent(highspy.Highs):
    """HiGHS without its messages, from its first step on: later versions print who they are while they are made."""

    def enableCallbacks(self) -> None:
        """Go on with what HiGHS does first, silently."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def _quiet() -> Any:
    """Return a silent solver of one thread with tight tolerances."""
    highs: Any = _Silent()  # type: ignore[no-untyped-call]
    settings = {"output_flag": False, "threads": 1, "mip_rel_gap": TOLERANCE, "mip_abs_gap": TOLERANCE}
    settings |= {"ipm_iteration_limit": _IPM_STEPS, "simplex_iteration_limit": _SIMPLEX_STEPS}  # it may circle for ever
    for side in ("primal_feasibility", "dual_feasibility", "ipm_optimality", "mip_feasibility"):
        settings[f"{side}_tolerance"] = TOLERANCE
    for option, setting in settings.items():
        highs.setOptionValue(option, setting)
    return highs


def _attempts(method: Method, crossover: bool) -> list[dict[str, Any]]:
    """Return the settings to try in turn; all but the first are for programs on which the first gives up."""
    simplex = {"solver": "simplex", "presolve": "choose", "simplex_strategy": 1, "run_crossover": "on"}
    interior = {"solver": "ipm", "presolve": "choose", "run_crossover": "on"}
    inside = {"solver": "ipm", "presolve": "off", "run_crossover": "off"}  # presolve would choose among equal points
    if method == "interior" and not crossover:
        return [inside, {**inside, "presolve": "choose"}, simplex]  # a corner is better than no answer
    again = [{**simplex, "presolve": "off"}, {**simplex, "presolve": "off", "simplex_strategy": 4}]
    unscaled = {**simplex, "presolve": "off", _SCALING: 0}
    return [interior, unscaled, *again] if method == "interior" else [simplex, unscaled, *again, interior]
