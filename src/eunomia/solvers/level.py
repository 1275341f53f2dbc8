"""The highest common level that divisible capacity can lift everybody to.

    maximise t   subject to   Σ_j g[i,j] x[i,j] ≥ t,   Σ_j x[i,j] ≤ 1,   Σ_i z[i] x[i,j] ≤ C[j],   x ≥ 0

Rows that are alike are one row with a count: permuting them changes neither constraint nor objective, so their
mean is as good, and the cost grows with the number of distinct rows only. Of all points with the highest level the
one with the most Σ_ij s[i,j] x[i,j] is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from eunomia.model.arrays import Floats, Ints

_TOLERANCE = 1e-9


class NoOptimum(RuntimeError):
    """The general solver stopped without an optimum; its status is in the message."""


@dataclass(frozen=True, slots=True)
class Level:
    """x (row, column), the level t it reaches, and a level that no x can exceed."""

    x: Floats
    objective: float
    bound: float


def highest_level(gain: Floats, size: Floats, capacity: Floats, second: Floats) -> Level:
    """Solve the program above; gain, second (row, column), size (row,), capacity (column,), all ≥ 0.

    Rows whose gain is zero everywhere get nothing and do not hold the others down.
    Raises NoOptimum when the solver fails.
    """
    able = np.flatnonzero((gain > 0).any(axis=1))
    x = np.zeros_like(gain)
    if len(able) == 0:
        return Level(x, 0.0, 0.0)
    alike = np.concatenate((gain[able], second[able], size[able, None]), axis=1)
    distinct, inverse, count = np.unique(alike, axis=0, return_inverse=True, return_counts=True)
    columns = gain.shape[1]
    program = _Program(distinct[:, :columns], distinct[:, columns:-1], distinct[:, -1], count.astype(float), capacity)
    total, objective, bound = program.solve()
    x[able] = (total / count[:, None])[inverse.ravel()]
    return Level(x, objective, bound)


class _Program:
    """The linear program over distinct rows; variables are total shares of each row group, and t."""

    def __init__(self, gain: Floats, second: Floats, size: Floats, count: Floats, capacity: Floats):
        self.count, self.capacity, self.shape = count, capacity, gain.shape
        self.scale = float((gain.max(axis=1)).min())  # a level near 1 keeps the tolerances meaningful
        self.group, self.column = np.nonzero(gain > 0)
        self.gain = gain[self.group, self.column] / self.scale
        self.second = second[self.group, self.column]
        self.size = size[self.group]
        self.highs = self._model()

    def _model(self) -> Any:
        groups, columns = self.shape
        n = len(self.group)
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(option, _TOLERANCE)
        # Rows: level of each group, time of each group, capacity of each column. Columns: shares, then t.
        starts, rows, values = self._columns(groups)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n + 1, 2 * groups + columns
        lp.col_cost_ = np.append(np.zeros(n), 1.0)
        lp.col_lower_, lp.col_upper_ = np.zeros(n + 1), np.full(n + 1, highspy.kHighsInf)
        lp.row_lower_ = np.concatenate((np.zeros(groups), np.full(groups + columns, -highspy.kHighsInf)))
        lp.row_upper_ = np.concatenate((np.full(groups, highspy.kHighsInf), self.count, self.capacity))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = starts, rows, values
        lp.sense_ = highspy.ObjSense.kMaximize
        highs.passModel(lp)
        return highs

    def _columns(self, groups: int) -> tuple[Ints, Ints, Floats]:
        """Return the matrix by columns: every share has a level, a time and a capacity entry."""
        n = len(self.group)
        rows = np.stack((self.group, groups + self.group, 2 * groups + self.column), axis=1).ravel()
        values = np.stack((self.gain, np.ones(n), self.size), axis=1).ravel()
        starts = np.append(3 * np.arange(n + 1), 3 * n + groups)
        return starts, np.append(rows, np.arange(groups)), np.append(values, -self.count)

    def solve(self) -> tuple[Floats, float, float]:
        """Return total shares (group, column), the level, and its bound from the dual prices."""
        n, groups = len(self.group), self.shape[0]
        self._run()
        solution = self.highs.getSolution()
        level = solution.col_value[n]
        prices = np.abs(np.array(solution.row_dual)[groups:])
        bound = float(prices @ np.concatenate((self.count, self.capacity)))
        self.highs.changeColBounds(n, max(level * (1 - _TOLERANCE), 0.0), highspy.kHighsInf)
        self.highs.changeColsCost(n + 1, np.arange(n + 1, dtype=np.int32), np.append(self.second, 0.0))
        self._run()
        total = np.zeros(self.shape)
        total[self.group, self.column] = np.maximum(self.highs.getSolution().col_value[:n], 0.0)
        return total, level * self.scale, bound * self.scale

    def _run(self) -> None:
        self.highs.run()
        status = self.highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise NoOptimum(f"HiGHS stopped with {self.highs.modelStatusToString(status)!r}")
