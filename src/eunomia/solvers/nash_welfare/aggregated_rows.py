"""Rows, and the closed form that settled rows are summed into.

With p the prices, a row settled on the edge from idle to k demands w / p_k of column k; on an edge from j to k it
demands w / (p_k − p_j) − s T_j / (T_k − T_j) of k and the rest of its size of j; at a vertex, its size. So all of them
together are K² + 2 K numbers, and their value is −Σ first log p − Σ mixed log(p_k − p_j) − fixed·p + constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import NO_INTS, Floats, Ints
from eunomia.model.products import dot
from eunomia.solvers.nash_welfare.barrier import tallied
from eunomia.solvers.nash_welfare.response import OPEN, Edges, settle
from eunomia.solvers.pricing.rows import draw_some

_HEAVY = 8.0  # draws that one row would take


@dataclass(frozen=True, slots=True)
class NashRows:
    """rate (column, row) in C order, positive somewhere in every row; size and weight (row,), positive."""

    rate: Floats
    size: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.size)

    def __add__(self, other: NashRows) -> NashRows:
        rate = np.concatenate([self.rate, other.rate], axis=1)
        return NashRows(rate, np.concatenate([self.size, other.size]), np.concatenate([self.weight, other.weight]))

    def part(self, rows: Ints, times: Floats | None = None) -> NashRows:
        """Return some rows, in their order, each standing for `times` (row,) rows like itself."""
        if times is None and len(rows) == len(self):
            return self
        size, weight = self.size[rows], self.weight[rows]
        if times is not None:
            size, weight = size * times, weight * times
        return NashRows(np.take(self.rate, rows, axis=1), size, weight)

    def sample(self, count: int) -> NashRows:
        """Return about `count` rows that stand for all, half of them drawn by weight, half by size; always the same.

        A row with many parts of the whole is taken for certain and leaves its draws to others. Weight and size in all
        are the rows' own: where they just about fill the columns, prices hang on those.
        """
        chance = self.size * (0.5 / self.size.sum()) + self.weight * (0.5 / self.weight.sum())
        heavy = chance * count > _HEAVY
        if heavy.all():
            return self
        if heavy.any():
            light = self.part(np.flatnonzero(~heavy)).sample(count - int(heavy.sum()))
            return self.part(np.flatnonzero(heavy)) + light
        rows, times = draw_some(chance, 0.0, float(count), np.random.default_rng(len(self)).random(count + 2))
        found, drawn = self.part(rows, times), times > 1
        for part, whole in ((found.size, self.size.sum()), (found.weight, self.weight.sum())):
            part[drawn] *= (whole - part[~drawn].sum()) / max(part[drawn].sum(), 1e-300)
        return found


@dataclass(frozen=True, slots=True)
class Tally:
    """The sum of settled rows' wishes: first, fixed (column,), mixed (column, column) from left to right."""

    first: Floats
    mixed: Floats
    fixed: Floats
    constant: float

    @staticmethod
    def none(columns: int) -> Tally:
        """Return the tally of no rows."""
        return Tally(np.zeros(columns), np.zeros((columns, columns)), np.zeros(columns), 0.0)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.first + other.first,
            self.mixed + other.mixed,
            self.fixed + other.fixed,
            self.constant + other.constant,
        )

    def __sub__(self, other: Tally) -> Tally:
        first, mixed = self.first - other.first, self.mixed - other.mixed
        return Tally(first, mixed, self.fixed - other.fixed, self.constant - other.constant)

    def demand(self, price: Floats) -> Floats:
        """Return what the rows want of each column (column,)."""
        demand, slope = np.empty_like(price), np.empty_like(self.mixed)
        tallied(self.first, self.mixed, self.fixed, price, demand, slope)
        return demand

    def value(self, price: Floats) -> float:
        """Return Σ max (w log(T·x) − s p·x) over the rows."""
        low, high = np.nonzero(self.mixed)
        mixed = dot(self.mixed[low, high], elementary.log(price[high] - price[low]))
        return self.constant - float(dot(self.first, elementary.log(price)) + mixed + dot(self.fixed, price))


def settled(rows: NashRows, price: Floats, box: Floats) -> tuple[Tally, Edges, Ints]:
    """Return the tally of rows whose edge is sure within price ± box, every row's edge (row,), and which are open.

    A box of minus the prices takes every row as it is at the prices, ties included.
    """
    sums, chosen = _none(len(price)), np.empty(len(rows), dtype=np.int16)
    constant, left = settle(rows.rate, rows.size, rows.weight, price, box, chosen, sums)
    open_rows = np.flatnonzero(chosen == OPEN) if left else NO_INTS
    return _tally(sums, constant), chosen, open_rows


def recounted(rows: NashRows, chosen: Edges) -> Tally:
    """Return the tally of the rows that have an edge (row,); the others are OPEN."""
    some, columns = np.flatnonzero(chosen != OPEN), len(rows.rate)
    code = chosen[some].astype(np.int64)
    left, right, size, weight = code // columns - 1, code % columns, rows.size[some], rows.weight[some]
    vertex, high = left == right, rows.rate[right, some]
    low = np.where(vertex | (left < 0), 0.0, rows.rate[left, some])
    sums = _none(columns)
    for part, each in enumerate((weight, size * low / (high - low), size)):
        sums[:, part] = np.bincount(code, each, len(sums))
    slope = np.where(vertex, high, weight / size * (high - low))
    return _tally(sums, float(dot(weight, elementary.log(slope)) - weight[~vertex].sum()))


def _none(columns: int) -> Floats:
    return np.zeros((columns * (columns + 1), 3))


def _tally(sums: Floats, constant: float) -> Tally:
    columns = int(len(sums) ** 0.5)
    weight, lever, size = (sums[:, part].reshape(columns + 1, columns) for part in range(3))
    vertex = np.diag(size[1:])
    lever, size = lever[1:], size[1:] - np.diag(vertex)
    fixed = vertex - lever.sum(axis=0) + (lever + size).sum(axis=1)
    mixed = weight[1:] - np.diag(np.diag(weight[1:]))
    return Tally(weight[0].copy(), mixed, fixed, constant)
