"""The rows of a program in the layout that the kernels read, and how some of them stand for all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.pricing.needs import FIXED, Curve, fullness
from eunomia.solvers.sums import greatest, summed

_BLOCK = 256
_STRIDE = 16  # rows looked at together to tell that none of them is drawn


class NeedRows(NamedTuple):
    """T (column, row), contiguous by column; base f (row,) speed of the free alternative; size (row,); need curves."""

    T: Floats
    base: Floats
    size: Floats
    a: Floats
    b: Curve
    e: Curve
    cap: Curve

    @property
    def count(self) -> int:  # type: ignore[override]  # of rows, not of entries of the tuple
        """Return the number of rows."""
        return int(self.T.shape[1])

    def some(self, chosen: Ints, times: Floats | float = 1.0) -> NeedRows:
        """Return the rows listed (ascending), each standing for `times` of its like."""
        if len(chosen) == self.count and isinstance(times, float) and times == 1.0:
            return self
        b, e, cap = (None if v is None else v[chosen] for v in (self.b, self.e, self.cap))
        T = self.T.take(chosen, axis=1)  # contiguous by column, which T[:, chosen] is not
        return NeedRows(T, self.base[chosen], self.size[chosen] * times, self.a[chosen], b, e, cap)

    def over(self, columns: Ints) -> NeedRows:
        """Return the rows with these columns alone (ascending); no copy where that is all of them."""
        return self if len(columns) == len(self.T) else self._replace(T=self.T[columns])

    def in_any_form(self) -> NeedRows:
        """Return the rows with arrays of no rows where curves are None, which have one type whatever the form."""
        b, e, cap = (np.empty(0) if v is None else v for v in (self.b, self.e, self.cap))
        return self._replace(b=b, e=e, cap=cap)

    def need(self, t: float) -> tuple[Floats, Floats]:
        """Return r(t) and dr/dt (row,)."""
        if self.b is not None and self.e is not None:
            room = 1 / (self.b - self.e * t)
            return self.a * t * room, self.a * self.b * room**2
        if self.cap is not None:
            below = (self.a < FIXED) & (self.a * t < self.cap)
            return np.where(below, self.a * t, self.cap), np.where(below, self.a, 0.0)
        return self.a * t, self.a


@kernel(error_model="numpy")
def survey(rows: NeedRows, columns: Ints, weight: Floats) -> tuple[float, int, float]:
    """Write size / t (row,), t the level at which a row is full; return the largest 1 / t, how many rows lack, the sum.

    Of capped rows the share of size that the cap takes is written. A row lacks if it has a need that no column serves;
    its weight is 0.
    """
    T, best, full = rows.T, np.empty(_BLOCK), np.empty(_BLOCK)
    most, total, lack = np.zeros(_BLOCK), np.zeros(_BLOCK), 0
    for o in range(0, T.shape[1], _BLOCK):
        nb = min(_BLOCK, T.shape[1] - o)
        weights, sizes, asked = weight[o : o + nb], rows.size[o : o + nb], rows.a[o : o + nb]
        for j in range(nb):
            best[j] = 0.0
        for k in columns:
            Tk = T[k, o : o + nb]
            for j in range(nb):
                best[j] = Tk[j] if Tk[j] > best[j] else best[j]
        fullness(best, rows.a, rows.b, rows.e, rows.cap, o, nb, full)
        for j in range(nb):
            most[j] = full[j] if full[j] > most[j] else most[j]
            weights[j] = full[j] * sizes[j]
        _capped_weight(rows.cap, sizes, best, o, nb, weights)
        for j in range(nb):
            lack += 1 if (asked[j] > 0.0) & (best[j] <= 0.0) else 0
            total[j] += weights[j]
    lanes = min(_BLOCK, T.shape[1])
    return greatest(most, lanes), lack, summed(total, lanes)


@kernel(error_model="numpy")
def _capped_weight(cap: Curve, size: Floats, best: Floats, o: int, nb: int, weight: Floats) -> None:
    """Write the share of size that the cap takes, if rows have caps."""
    if cap is not None:
        for j in range(nb):
            weight[j] = size[j] * cap[o + j] / best[j] if best[j] > 0.0 else 0.0


@kernel(error_model="numpy")
def reach(T: Floats, columns: Ints, need: Floats, capped: Floats) -> float:
    """Write the need, or the best rate on the columns where that is less (row,); return the worst of need / rate.

    A need above 0 that no column serves counts as 1e300.
    """
    best, worst = np.empty(_BLOCK), np.zeros(_BLOCK)
    for o in range(0, T.shape[1], _BLOCK):
        nb = min(_BLOCK, T.shape[1] - o)
        needs, ends = need[o : o + nb], capped[o : o + nb]
        for j in range(nb):
            best[j] = 0.0
        for k in columns:
            Tk = T[k, o : o + nb]
            for j in range(nb):
                best[j] = Tk[j] if Tk[j] > best[j] else best[j]
        for j in range(nb):
            ends[j] = min(needs[j], best[j])
            part = needs[j] / best[j] if best[j] > 0.0 else (1e300 if needs[j] > 0.0 else 0.0)
            worst[j] = part if part > worst[j] else worst[j]
    found: float = greatest(worst, min(_BLOCK, T.shape[1]))
    return found


@kernel(error_model="numpy")
def draw(weight: Floats, even: float, per_weight: float, dice: Floats, chosen: Ints, times: Floats) -> int:
    """Draw rows along the running sum of even + per_weight · weight, one at a random place of each unit of it.

    A row stands for `times` rows, so that sums over the drawn estimate sums over all without bias; one whose chance
    is 1 or more is taken as it is, one without weight never.
    Returns the number of drawn rows.
    """
    total, found = 0.0, 0
    unit, point = 0, dice[0]
    for o in range(0, len(weight), _STRIDE):
        some = weight[o : o + _STRIDE]
        ahead = even * len(some) + per_weight * summed(some, len(some))
        if ahead < 1.0 and total + ahead <= point:  # none of them is drawn
            total += ahead
            continue
        for j in range(len(some)):
            chance = even + per_weight * some[j]
            total += chance
            hits = 0
            while point < total and unit + 1 < len(dice):
                hits += 1
                unit += 1
                point = unit + dice[unit]
            if (chance >= 1.0 or hits > 0) and some[j] > 0.0:
                chosen[found] = o + j
                times[found] = 1.0 if chance >= 1.0 else hits / chance
                found += 1
    return found


def sample(rows: NeedRows, weight: Floats, count: int, attempt: int = 0, total: float | None = None) -> NeedRows:
    """Return about `count` rows that stand for all, half of them drawn by weight, `total` in all; always the same."""
    dice = np.random.default_rng((rows.count, count, attempt)).random(count + 2)
    return rows.some(*draw_some(weight, *_chances(weight, count, total), dice))


def draw_some(weight: Floats, even: float, per_weight: float, dice: Floats) -> tuple[Ints, Floats]:
    """Return the rows that `draw` draws, ascending, and for how many rows each stands, (drawn row,)."""
    chosen, times = np.empty(2 * len(dice), dtype=np.int64), np.empty(2 * len(dice))
    found = draw(weight, even, per_weight, dice, chosen, times)
    return chosen[:found], times[:found]


def drawn(weight: Floats, count: int) -> float:
    """Return the part of the weight that such a sample draws for; the other rows it takes as they are."""
    even, per_weight = _chances(weight, count)
    return float(weight[even + per_weight * weight < 1].sum() / max(weight.sum(), 1e-300))


def _chances(weight: Floats, count: int, total: float | None = None) -> tuple[float, float]:
    """Return the chance of each row to be drawn, and the one that it has per weight."""
    total = float(weight.sum()) if total is None else total
    return 0.5 * count / len(weight), 0.5 * count / total if total > 0 else 0.0
