"""The constraints that all programs here share, written for the general solver over distinct rows.

    Σ_k x_ik ≤ 1,   Σ_i s_i x_ik ≤ N_k,   x ≥ 0,   and where asked   Σ_k T_ik x_ik ≥ f_i

Rows that are alike are one group with a count: permuting them changes nothing, so their mean is as good as any point,
and the cost grows with the number of distinct rows only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.solvers.program import INF


@dataclass(frozen=True, slots=True)
class Groups:
    """Which rows are alike: group of each row, the number of rows in each group, and one row of each."""

    of: Ints  # (row,)
    count: Floats  # (group,)
    first: Ints  # (group,)

    @classmethod
    def alike(cls, *columns: Array) -> Groups:
        """Group rows that agree in every array, each (row,) or (row, something)."""
        wide = np.column_stack(columns)
        _, first, of, count = np.unique(wide, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return cls(of.ravel(), count.astype(float), first)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Triples of a program whose variable v is the total share of group[v] on column[v].

    Its rows are the time of each group, then the capacity of each column, then the floors of the groups in `floored`.
    """

    group: Ints  # (variable,)
    column: Ints  # (variable,)
    row: Ints  # (entry,)
    variable: Ints  # (entry,)
    value: Floats  # (entry,)
    low: Floats  # (row of the program,)
    high: Floats  # (row of the program,)
    floored: Ints  # (floor,) groups
    floor_unit: Floats  # (floor,) what the floor's row was divided by

    def spread(self, total: Floats, groups: Groups, columns: int) -> Floats:
        """Return x (row, column) in which rows of one group share its totals evenly."""
        x = np.zeros((len(groups.count), columns))
        x[self.group, self.column] = total / groups.count[self.group]
        return np.ascontiguousarray(x[groups.of])


def blocks_of(
    usable: Bools, size: Floats, count: Floats, capacity: Floats, rate: Floats | None, floor: Floats | None
) -> Blocks:
    """Write the constraints; usable, rate (group, column), size, count, floor (group,), capacity (column,)."""
    groups, columns = usable.shape
    group, column = np.nonzero(usable)
    places = np.arange(len(group))
    parts: list[tuple[Array, Array, Array]] = [
        (group, places, np.ones(len(group))),
        (groups + column, places, size[group]),
    ]
    low, high = np.full(groups + columns, -INF), np.concatenate((count, capacity))
    floored, unit = np.empty(0, dtype=np.int64), np.empty(0)
    if rate is not None and floor is not None:
        floored = np.flatnonzero((floor > 0) | ((rate < 0) & usable).any(axis=1))
        speed = np.abs(np.where(usable, rate, 0.0)).max(axis=1, initial=0.0)[floored]
        unit = np.where(speed > 0, speed, np.maximum(np.abs(floor[floored]), 1.0))
        place = np.full(groups, -1)
        place[floored] = groups + columns + np.arange(len(floored))
        held = np.flatnonzero((place[group] >= 0) & (rate[group, column] != 0))
        by = unit[place[group[held]] - groups - columns]
        parts.append((place[group[held]], held, rate[group[held], column[held]] / by))
        low = np.append(low, count[floored] * floor[floored] / unit)
        high = np.append(high, np.full(len(floored), INF))
    row, variable, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Blocks(group, column, row, variable, value, low, high, floored, unit)


def lifted(x: Floats, rate: Floats, floor: Floats, gain: Floats) -> Floats:
    """Return x (row, column) with the last billionth that a floor may lack, added where the row gains most."""
    lacks = np.flatnonzero(((rate * x).sum(axis=1) < floor) & (rate > 0).any(axis=1))
    if len(lacks) == 0:
        return x
    column = np.where(rate[lacks] > 0, gain[lacks], -np.inf).argmax(axis=1)
    missing = floor[lacks] - (rate[lacks] * x[lacks]).sum(axis=1)
    lifted = x.copy()
    lifted[lacks, column] += missing / rate[lacks, column]
    return lifted
