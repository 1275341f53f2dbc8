"""Rows of equal speeds as one row of the exact program, although each needs another level.

At level t a row needs the speed r_i, and its answers are the mixtures of edges (L, R) with T_L ≤ r_i ≤ T_R. While no
speed lies between the needs of two rows of equal speeds, both choose among the same edges, and the shares of an edge
are affine in r_i: so sums of their answers, weighted by size, are the answers of one row of all their size that
needs their mean. Back again, time at the lower and at the higher speeds is dealt out by what each row needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.alike_rows import Classes, group
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
        rows, of, first = self.rows, self.classes.of, self.classes.representative
        u = np.where(rows.base[first] > 0, np.maximum(1 - x.sum(axis=0), 0.0), u)
        if not self.mixed.any():
            return x[:, of], u[of]
        places = np.concatenate((x, u[None])), np.concatenate((rows.T[:, first], rows.base[None, first]))
        higher = np.concatenate((self.higher[:, first], np.zeros((1, len(first)), dtype=bool)))
        up, down = paces(*places, higher, rows.need(t)[0], of, rows.size)
        up, down, x = np.where(self.mixed, up, 1.0), np.where(self.mixed, down, 1.0), x[:, of]
        fast = np.where(self.higher, x, 0.0)
        return fast * up + (x - fast) * down, u[of] * down


def paces(x: Floats, rate: Floats, fast: Bools, need: Floats, of: Ints, weight: Floats) -> tuple[Floats, Floats]:
    """Return what to multiply a class's shares at fast and at other places by, (row,), that each row has its own need.

    x, rate, fast (place, class), idle time among them; need, class `of`, weight (row,). A row is fast as long as it
    must be, and for the same part of the rest of its time as its class.
    """
    quick = np.where(fast, x, 0.0)
    most, slow = quick.sum(axis=0), x - quick
    rest = np.maximum(1 - most, 0.0)
    above, below = _mean((quick * rate).sum(axis=0), most), _mean((slow * rate).sum(axis=0), rest)
    both, some = ((most > 0) & (rest > 0))[of], (most > 0)[of]
    part = np.divide(need - below[of], (above - below)[of], out=np.ones(len(need)), where=both)
    part = np.where(some, np.clip(part, 0.0, 1.0), 0.0)  # time at fast places that the need itself takes
    mean = np.bincount(of, weight * part) / np.bincount(of, weight)
    more = np.divide(np.maximum(most - mean, 0.0), 1 - mean, out=np.zeros(len(mean)), where=mean < 1)
    part = part + more[of] * (1 - part)
    return _mean(part, most[of]), _mean(1 - part, rest[of])


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
