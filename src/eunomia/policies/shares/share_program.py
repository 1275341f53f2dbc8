"""A linear program over the shares of time of a view, for policies of one's own.

    maximise_X   Σ_mj value[m,j] X[m,j],   or   min_m Σ_j value[m,j] X[m,j]
    subject to   Σ_j X[m,j] ≤ 1 for each job m,   Σ_m z_m X[m,j] ≤ C[j] for each type j,   X ≥ 0,
                 X[m,j] = 0 where T[m,j] = 0 or z_m > C[j],   and what `at_least` and `at_most` add

T throughput, z scale factor, C capacity of the view. Solved by HiGHS; policies that are shipped have faster solvers of
their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eunomia.model.answers import Shares
from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import build_answer
from eunomia.solvers.program import INF, Program, Solved


class ShareProgram:
    """Chooses shares of time by linear programming. The policy needs throughput, scale_factor and capacity."""

    def __init__(self, view: View):
        """Begin with the constraints that every allocation keeps: each job's time, and each type's capacity."""
        self.jobs, self.types = view.jobs, len(view.types)
        size = view.scale_factor.astype(float)
        can_run = (view.throughput > 0) & (size[:, None] <= view.capacity)
        self._job, self._type = np.nonzero(can_run)
        self._row: list[Ints] = []
        self._column: list[Ints] = []
        self._value: list[Floats] = []
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        columns = np.arange(len(self._job))
        self._add(self._job, columns, np.ones(len(columns)), np.full(self.jobs, -INF), np.ones(self.jobs))
        capacity = np.asarray(view.capacity, dtype=float)
        self._add(self._type, columns, size[self._job], np.full(self.types, -INF), capacity)

    def at_least(self, gain: Floats, level: Floats | float) -> ShareProgram:
        """Demand Σ_j gain[m,j] X[m,j] ≥ level[m] of every job, or of those whose level is above −inf.

        gain (job, type), level (job,) or one number. Returns the program.
        """
        return self._per_job(gain, np.broadcast_to(np.asarray(level, dtype=float), (self.jobs,)), INF)

    def at_most(self, gain: Floats, level: Floats | float) -> ShareProgram:
        """Demand Σ_j gain[m,j] X[m,j] ≤ level[m] of every job; inf is no limit. Returns the program."""
        return self._per_job(gain, -INF, np.broadcast_to(np.asarray(level, dtype=float), (self.jobs,)))

    def maximise(self, value: Floats) -> Shares:
        """Return the shares, (job, type), with the largest Σ_mj value[m,j] X[m,j].

        Raises `Infeasible` (a `NoOptimum`) where no shares keep what `at_least` and `at_most` demand.
        """
        worth = self._entries(value)
        return self._answer(self._program(worth).solve())

    def maximise_least(self, value: Floats) -> Shares:
        """Return the shares, (job, type), with the largest min_m Σ_j value[m,j] X[m,j] over the jobs that can run.

        Raises as `maximise`.
        """
        worth, able = self._entries(value), np.unique(self._job)
        rows = len(able)
        if not rows:
            return self.maximise(value)
        level = len(self._job)  # the column of the least value, behind the shares
        place = np.searchsorted(able, self._job)
        program = self._program(
            np.append(np.zeros(level), 1.0),
            row=np.concatenate((place, np.arange(rows))),
            column=np.concatenate((np.arange(level), np.full(rows, level))),
            entry=np.concatenate((worth, np.full(rows, -1.0))),
            low=np.zeros(rows),
            lower=np.append(np.zeros(level), -INF),
        )
        return self._answer(program.solve())

    def _entries(self, table: Floats) -> Floats:
        """Return a table (job, type) at the places that may have a share. Raises ValueError for another shape."""
        found = np.asarray(table, dtype=float)
        if found.shape != (self.jobs, self.types):
            raise ValueError(
                f"the table has shape {found.shape}; a share program has (job, type) {self.jobs, self.types}"
            )
        if not np.isfinite(found[self._job, self._type]).all():
            raise ValueError("the table has an entry that is not finite, on a type that the job can run on")
        return np.asarray(found[self._job, self._type])

    def _per_job(self, gain: Floats, low: Array | float, high: Array | float) -> ShareProgram:
        entries = self._entries(gain)
        sides = (np.broadcast_to(np.asarray(side, dtype=float), (self.jobs,)) for side in (low, high))
        self._add(self._job, np.arange(len(entries)), entries, *sides)
        return self

    def _add(self, row: Ints, column: Ints, value: Floats, low: Floats, high: Floats) -> None:
        """Add rows, low ≤ … ≤ high; `row` counts from the first of them."""
        before = sum(map(len, self._low))
        self._row.append(row + before)
        self._column.append(column)
        self._value.append(value)
        self._low.append(low)
        self._high.append(high)

    def _program(self, cost: Floats, **more: Any) -> Program:
        """Return the program with this objective; `more` are rows besides, and lower bounds of the variables."""
        rows = sum(map(len, self._low))
        none: Ints = np.empty(0, dtype=np.int64)
        low = more.get("low", np.empty(0))
        return Program.of_entries(
            cost,
            np.concatenate((*self._row, more.get("row", none) + rows)),
            np.concatenate((*self._column, more.get("column", none))),
            np.concatenate((*self._value, more.get("entry", np.empty(0)))),
            np.concatenate((*self._low, low)),
            np.concatenate((*self._high, np.full(len(low), INF))),
            lower=more.get("lower", 0.0),
        )

    def _answer(self, solved: Solved) -> Shares:
        x = np.zeros((self.jobs, self.types))
        x[self._job, self._type] = solved.x[: len(self._job)]
        return build_answer(x, solved.objective, solved.bound)
