"""A whole problem as the engine sees it, and a first guess of its prices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.pricing.box_refinement import FEW, Centre, SamplePrices
from eunomia.solvers.pricing.rows import NeedRows, sample, survey
from eunomia.solvers.pricing.symmetry import few_speeds
from eunomia.solvers.program import NoOptimum

_AFFORDABLE = 30_000  # rows that are looked at one and all to tell whether the top is out of reach
_SURELY = 2.0  # standard errors of a sample
_PROVEN = 1e-9  # relative: beyond rounding


class NoServingColumn(ValueError):
    """A row has a need that no column with capacity serves: there is no level."""


@dataclass(frozen=True, slots=True)
class Table:
    """A whole problem over all columns: rows (base 0), capacity N, open columns, what is settled, top level."""

    rows: NeedRows
    limit: Floats
    open: Ints
    fixed: Floats  # (3, column): Σ_d fixed[d] t^d is asked for by others
    top: float
    weight: Floats  # (row,) what rows ask for, for drawing samples
    total: float  # of the weights
    alike: bool  # whether many rows have equal speeds

    def part(self, places: Ints) -> float:
        """Return the part of all that is asked for which these rows ask for."""
        return float(self.weight[places].sum() / max(self.total, 1e-300))


@dataclass(frozen=True, slots=True)
class PriceEstimate:
    """About where the values of all columns are, and the half width of a box for them."""

    centre: Centre
    spread: float
    scarce: bool  # at these prices the top seems to cost more than all capacity: then it is out of reach
    slope: Floats | None  # (open column, open column) derivative of what all ask for in the values, if it is known


def table_of(rows: NeedRows, limit: Floats, fixed: Floats | None, top: float) -> Table:
    """Look once at all rows."""
    weight = np.empty(rows.count)
    opened = np.flatnonzero(limit > 0)
    full, lack, total = survey(rows, opened, weight)
    if lack:
        raise NoServingColumn
    if fixed is None:
        fixed = np.zeros((3, len(limit)))
        if rows.b is None and rows.cap is None and total > 0:  # all capacity at best speed is not enough for more
            top = min(top, 1.5 * float(limit.sum() / total))
    top = min(top, 1 / full) if full > 0 else top
    if not np.isfinite(top):
        raise NoOptimum("no row has a need that grows: every level can be reached")
    return Table(rows, limit, opened, fixed, float(top), weight, total, few_speeds(rows))


def guess(table: Table, *, rough: bool = False) -> PriceEstimate:
    """Return where the values seem to be. A rough guess takes the smallest sample only."""
    rows, opened = table.rows, table.open
    search = SamplePrices(table.limit[opened], table.top)
    if rows.count <= FEW:
        some = rows.some(np.flatnonzero(rows.a > 0)).over(opened)
    else:
        count = FEW if rough else max(4 * FEW, rows.count // 64)
        some = sample(rows, table.weight, count, total=table.total).over(opened)
    whole = rows.count <= FEW
    centre, spread, slope = search.approach(some, table.fixed.take(opened, axis=1), whole=whole)
    value = np.zeros(len(table.limit))
    value[table.open] = centre.value
    return PriceEstimate(replace(centre, value=value), spread, _scarce(table, search, some, centre.value), slope)


def _scarce(table: Table, search: SamplePrices, some: NeedRows, value: Floats) -> bool:
    """Return whether the top costs more than all capacity at these values (column,), by all rows or a sample."""
    doubt = _SURELY / float(np.sqrt(max(some.count, 1)))
    if table.rows.count <= _AFFORDABLE:
        some, doubt = table.rows.over(table.open), _PROVEN
    return search.over(some, value, table.fixed.take(table.open, axis=1), table.top)[0] > doubt


def cheap(table: Table, centre: Centre, spread: float) -> Ints:
    """Return the open columns whose value cannot be distinguished from zero."""
    value = centre.value[table.open]
    return table.open[value <= spread * np.maximum(value, 0.5 / len(table.open))]
