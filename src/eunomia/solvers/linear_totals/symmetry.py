"""Rows that are alike, taken together: those with equal entries.

A row with a floor may be multiplied, so that its fastest place has rate 1. And floors may differ: as long as they
lie between the same two rates, the vertices of

    {x ≥ 0,  Σ_k x_k ≤ 1,  Σ_k T_k x_k ≥ f}

are linear in f and each stays the best in its directions, so the sum of these sets is a multiple of that of the mean
floor. Its shares go to the rows in this way: each row uses the places slower than its floor in proportion to what its
own floor lets it use of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import group
from eunomia.solvers.linear_totals.rows import LinearRows
from eunomia.solvers.pricing.symmetry import paces

_WORTHWHILE = 0.8  # classes per row below which rows are counted
_ABOVE_IDLE = 1 << 16  # marks classes whose floors idling does not reach


@dataclass(frozen=True, slots=True)
class SymmetricRows:
    """The classes of some rows, and how to give each row its part of what its class gets."""

    of: Ints  # (row,) class
    rows: LinearRows  # one for each class
    floor: Floats  # (row,) in the unit of its class; (0,) where no row has one
    count: Floats  # (row,) how many rows each stands for

    def shares(self, row: Ints, column: Ints, share: Floats) -> tuple[Ints, Ints, Floats]:
        """Return row, column and share of every row's places, given those of one row of each class."""
        x = np.zeros((len(self.rows.size), len(self.rows.worth)))
        x[row, column] = share
        if len(self.floor):
            x = self._parted(np.column_stack((x, np.maximum(1 - x.sum(axis=1), 0.0))).T)
            where, what = np.nonzero(x)
            return where, what, x[where, what]
        return _repeated(x, self.of)

    def _parted(self, x: Floats) -> Floats:
        """Return shares (row, column) from those of the classes, idle time last (place, class)."""
        rate = np.concatenate((self.rows.rate, np.zeros((1, x.shape[1]))))
        fast = rate >= self.rows.floor
        pace = np.stack(paces(x, rate, fast, self.floor, self.of, self.count))
        pace[:, self.floor == self.rows.floor[self.of]] = 1.0
        found = np.empty((len(self.of), len(x) - 1))
        for k in range(len(x) - 1):
            found[:, k] = x[k, self.of] * np.where(fast[k, self.of], *pace)
        return found


def alike(rows: LinearRows) -> SymmetricRows | None:
    """Return the classes of the rows; None where a look at some of them does not promise that they are far fewer."""
    some = rows.some()
    return _classes(rows) if len(_classes(some).rows.size) <= _WORTHWHILE * len(some.size) else None


def _classes(part: LinearRows) -> SymmetricRows:
    """Return the classes of the rows."""
    if part.free:
        found = group(*part.worth, part.size)
        rate, floor, mean = part.rate, part.floor, part.floor
        held = rate[:, :0]
    else:
        rate, floor = part.in_own_unit()
        slower = (rate < floor).sum(axis=0) + np.where(floor > 0, _ABOVE_IDLE, 0)
        found = group(*part.worth, part.size, *rate, slower)
        mean = _mean(floor, found.of, part.counts(), rate.max(axis=0)[found.representative])
        held = np.ascontiguousarray(rate[:, found.representative])
    first = found.representative
    count = np.bincount(found.of, part.count, minlength=len(found)).astype(float)
    return SymmetricRows(
        found.of,
        LinearRows(np.ascontiguousarray(part.worth[:, first]), part.size[first], held, mean, part.ceiling, count),
        floor,
        part.counts(),
    )


def _mean(floor: Floats, of: Ints, count: Floats, most: Floats) -> Floats:
    """Return the mean floor of each class, not above the rate of its fastest place by rounding; −inf where none."""
    asked = np.isfinite(floor)
    total = np.bincount(of[asked], (count * floor)[asked], minlength=len(most))
    members = np.bincount(of[asked], count[asked], minlength=len(most))
    mean = np.minimum(total / np.maximum(members, 1.0), np.maximum(most, 0.0))
    return np.where(members > 0, mean, -np.inf)


@kernel()
def _repeated(x: Floats, of: Ints) -> tuple[Ints, Ints, Floats]:
    """Return row, column and share of the places of rows that all do as their class does, x (class, column)."""
    classes, columns = x.shape
    places = np.zeros(classes, np.int64)
    for c in range(classes):
        for k in range(columns):
            places[c] += 1 if x[c, k] != 0.0 else 0
    total = 0
    for i in range(len(of)):
        total += places[of[i]]
    row, column, share = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total)
    at = 0
    for i in range(len(of)):
        c = of[i]
        for k in range(columns):
            if x[c, k] != 0.0:
                row[at], column[at], share[at] = i, k, x[c, k]
                at += 1
    return row, column, share
