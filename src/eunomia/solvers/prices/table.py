"""A whole problem as the engine sees it, and a first guess of its prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.prices.alike import few_speeds
from eunomia.solvers.prices.narrow import FEW, Centre, Search
from eunomia.solvers.prices.newton import widths
from eunomia.solvers.prices.rows import Rows, sample, survey
from eunomia.solvers.program import NoOptimum

_AFFORDABLE = 30_000  # rows that are looked at one and all to tell whether the top is out of reach
_SURELY = 2.0  # standard errors of a sample
_PROVEN = 1e-9  # relative: beyond rounding
_WARM = 0.005  # half width of the box around the prices of an earlier answer
_ASTRAY = 1.5  # half widths of a small sample's box beyond which an earlier answer is out of date
_MANY = 8 * FEW  # rows from which an earlier answer saves time


class Unserved(ValueError):
    """A row has a need that no column with capacity serves: there is no level."""


@dataclass(frozen=True, slots=True)
class Table:
    """A whole problem over all columns: rows (base 0), capacity N, open columns, what is settled, top level."""

    rows: Rows
    limit: Floats
    open: Ints
    fixed: Floats  # (3, column): Σ_d fixed[d] t^d is asked for by others
    top: float
    weight: Floats  # (row,) what rows ask for, for drawing samples
    alike: bool  # whether many rows have equal speeds


def table_of(rows: Rows, limit: Floats, fixed: Floats | None, top: float) -> Table:
    """Look once at all rows."""
    weight = np.empty(rows.count)
    opened = np.flatnonzero(limit > 0)
    full, lack = survey(rows.T, rows.size, *rows.curve, opened, weight)
    if lack:
        raise Unserved
    total = weight.sum()
    if fixed is None:
        fixed = np.zeros((3, len(limit)))
        if rows.b is None and rows.cap is None and total > 0:  # all capacity at best speed is not enough for more
            top = min(top, 1.5 * float(limit.sum() / total))
    top = min(top, 1 / full) if full > 0 else top
    if not np.isfinite(top):
        raise NoOptimum("no row has a need that grows: every level can be reached")
    return Table(rows, limit, opened, fixed, float(top), weight, few_speeds(rows))


def guess(
    table: Table, start: Floats | None = None, *, rough: bool = False
) -> tuple[Centre, float, bool, Floats | None]:
    """Return where the values of the open columns seem to be, on all columns, and the half width of a box for them.

    Third, whether at these prices the top seems to cost more than all capacity: then it is out of reach. A rough guess
    takes the smallest sample only.
    """
    rows, opened = table.rows, table.open
    search = Search(table.limit[opened], table.top)
    count = FEW if rough else max(4 * FEW, rows.count // 64)
    warm = None if start is None or rows.count < _MANY else _warm(table, search, start)
    if warm is not None:
        some, centre, spread, slope = warm
    elif rows.count <= FEW:
        some = rows.some(np.flatnonzero(table.weight > 0)).over(opened)
        centre, spread, slope = search.approach(some, table.fixed[:, opened], whole=True)
    else:
        some = sample(rows, table.weight, count).over(opened)
        centre, spread, slope = search.approach(some, table.fixed[:, opened], whole=False)
    value = np.zeros(len(table.limit))
    value[opened] = centre.value
    return Centre(value, centre.t), spread, _scarce(table, search, some, centre.value), slope


def _warm(table: Table, search: Search, start: Floats) -> tuple[Rows, Centre, float, Floats | None] | None:
    """Return a sample, the earlier values of the open columns with their level, and the half width of a box for them.

    Returns None where a small sample says that they are out of date.
    """
    some, fixed = sample(table.rows, table.weight, 4 * FEW).over(table.open), table.fixed[:, table.open]
    value = start[table.open] / max(start[table.open].sum(), 1e-300)
    t = search.level_at(some, value, fixed)
    near = search.steps(some, fixed, Centre(value, t))
    few = some if near else some.some(np.arange(0, some.count, 4), 4.0)
    seeming, spread, slope = near or search.approach(few, fixed, whole=False)
    far = np.abs(value - seeming.value) > _ASTRAY * spread * widths(seeming.value)
    if far.any() or not seeming.value.any():
        return None
    return some, Centre(value, t), _WARM, slope


def _scarce(table: Table, search: Search, some: Rows, value: Floats) -> bool:
    """Return whether the top costs more than all capacity at these values (column,), by all rows or a sample."""
    doubt = _SURELY / float(np.sqrt(max(some.count, 1)))
    if table.rows.count <= _AFFORDABLE:
        some, doubt = table.rows.over(table.open), _PROVEN
    return search.over(some, value, table.fixed[:, table.open], table.top)[0] > doubt


def cheap(table: Table, centre: Centre, spread: float) -> Ints:
    """Return the open columns whose value cannot be told from zero."""
    value = centre.value[table.open]
    return table.open[value <= spread * np.maximum(value, 0.5 / len(table.open))]
