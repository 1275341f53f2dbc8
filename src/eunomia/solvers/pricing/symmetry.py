"""Rows of equal speeds as one row of the exact program, although each needs another level.

At level t a row needs the speed r_i, and its answers are the mixtures of edges (L, R) with T_L ≤ r_i ≤ T_R. While no
speed lies between the needs of two rows of equal speeds, both choose among the same edges, and the shares of an edge
are affine in r_i: so sums of their answers, weighted by size, are the answers of one row of all their size that
needs their mean. Back again, time at the lower and at the higher speeds is dealt out by what each row needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.solvers.classes import Classes, group
from eunomia.solvers.pricing.needs import FIXED
from eunomia.solvers.pricing.rows import NeedRows

_INSPECTED = 512  # rows looked at to tell whether few sorts of speeds occur


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """Rows, which of them are one, and the speeds next to what each needs."""

    rows: NeedRows
    classes: Classes
    higher: Bools  # (column, row) whether a column is faster than what the row needs
    mixed: Bools  # (row,) whether rows of its sort differ in what they need

    @property
    def size(self) -> Floats:
        """Return the size of all rows of a sort, (sort,)."""
        return np.bincount(self.classes.of, self.rows.size, len(self.classes)).astype(float)

    def merged(self, t: float) -> NeedRows:
        """Return one row for each sort, with curves that have its need and slope at level t."""
        some = self.rows.some(self.classes.representative)
        need, slope = self.need(t)
        if some.cap is not None:
            return some._replace(size=self.size, cap=np.where(some.a < FIXED, some.cap, need))
        if some.b is None:
            return some._replace(size=self.size, a=slope)
        room = np.divide(need, t * slope, out=np.ones(len(need)), where=slope > 0)
        return some._replace(size=self.size, a=need * room / t, b=np.ones(len(need)), e=(1 - room) / t)

    def need(self, t: float) -> tuple[Floats, Floats]:
        """Return the mean need of each sort at level t and its derivative, (sort,)."""
        size, of, sorts = self.size, self.classes.of, len(self.classes)
        need, slope = self.rows.need(t)
        mean, rise = (np.bincount(of, self.rows.size * v, sorts) / size for v in (need, slope))
        return mean, rise

    def dealt(self, x: Floats, u: Floats, t: float) -> tuple[Floats, Floats]:
        """Return shares (column, row) and free alternative (row,) of all rows, from those of the sorts at level t."""
        rows, of = self.rows, self.classes.of
        x, u = x[:, of], np.where(rows.base > 0, np.maximum(1 - x.sum(axis=0), 0.0)[of], u[of])
        if not self.mixed.any():
            return x, u
        fast = np.where(self.higher, x, 0.0)
        slow = x - fast
        most, rest = fast.sum(axis=0), np.maximum(1 - fast.sum(axis=0), 0.0)
        above = _mean((fast * rows.T).sum(axis=0), most)
        below = _mean((slow * rows.T).sum(axis=0) + u * rows.base, rest)
        need = rows.need(t)[0]
        part = np.divide(need - below, above - below, out=np.ones(rows.count), where=(most > 0) & (rest > 0))
        part = np.where(most > 0, np.clip(part, 0.0, 1.0), 0.0)  # time at the higher speeds that the need itself takes
        mean = (np.bincount(of, rows.size * part) / self.size)[of]
        more = np.divide(np.maximum(most - mean, 0.0), 1 - mean, out=np.zeros(rows.count), where=mean < 1)
        part = part + more * (1 - part)
        up = np.where(self.mixed, _mean(part, most), 1.0)
        down = np.where(self.mixed, _mean(1 - part, rest), 1.0)
        return fast * up + slow * down, u * down


def count_distinct(*facts: Floats) -> tuple[int, int]:
    """Return how many distinct rows a sample has, by all facts (row,) together, and in how many rows."""
    rows = len(facts[0])
    places = np.linspace(0, max(rows - 1, 0), min(rows, _INSPECTED)).astype(np.int64)
    seen = np.stack([fact[places] for fact in facts], axis=1)
    return len({row.tobytes() for row in seen}), len(places)


def few_speeds(rows: NeedRows) -> bool:
    """Return whether few sorts of speeds seem to occur among many rows."""
    seen, looked_at = count_distinct(*rows.T)
    return seen <= looked_at // 4


def sorts(rows: NeedRows, least: float, most: float) -> DistinctRows:
    """Return the sorts of rows between two levels. Rows whose need passes a speed are of one sort if alike in all."""
    low, high = rows.need(least)[0], rows.need(most)[0]
    higher = low < rows.T
    over = (high <= rows.T).sum(axis=0)
    mixed = (higher.sum(axis=0) == over) & (over > 0) & (rows.base < low)
    if rows.cap is not None:
        mixed &= rows.a >= FIXED
    facts = [np.where(mixed, 0.0, fact) for fact in (rows.a, rows.b, rows.e, rows.cap) if fact is not None]
    return DistinctRows(rows, group(*rows.T, rows.base, np.where(mixed, over, -1), *facts), higher, mixed)


def _mean(total: Floats, weight: Floats) -> Floats:
    """Return total / weight, 0 where there is no weight."""
    return np.divide(total, weight, out=np.zeros(len(total)), where=weight > 0)
