"""Learning curves fitted to losses that were seen, k steps done.

    first order:    l(k) = 1 / (a k² + b k + c) + d      a, b, c, d ≥ 0; Optimus has a = 0, SLAQ has all four
    second order:   l(k) = exp(s k + t) + d              s ≤ 0, d ≥ 0; that is μ^(k − h) + d with μ = exp(s), h = −t / s

For a given floor d both are linear in the rest: 1 / (l − d) is a polynomial with coefficients of at least 0, log (l −
d) a line. The floor itself is found by looking closer and closer where the squares are least. Later losses tell more:
those of the second third of the history weigh 4 times, those of the last third 16 times as much as those of the first.

References: Y. Peng et al., "Optimus", EuroSys 2018, section 3.1; H. Zhang et al., "SLAQ", SoCC 2017, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np

from eunomia.model.arrays import Array, Floats
from eunomia.model.curves import Curve

FEWEST = 4  # losses that a curve can be fitted to
_GRID, _LOOKS = 41, 8  # floors tried at a time, and how often closer
_TAIL = 0.2  # part of the history, its end, by which families are compared


class FirstOrder(NamedTuple):
    """1 / (a k² + b k + c) + d."""

    a: float
    b: float
    c: float
    d: float

    def loss(self, k: Floats) -> Floats:
        """Return the loss after k steps, shape of k."""
        return np.asarray(1.0 / (self.a * k**2 + self.b * k + self.c) + self.d)


class SecondOrder(NamedTuple):
    """exp(s k + t) + d."""

    s: float
    t: float
    d: float

    def loss(self, k: Floats) -> Floats:
        """Return the loss after k steps, shape of k."""
        return np.asarray(np.exp(self.s * k + self.t) + self.d)


Fit = FirstOrder | SecondOrder
Found = TypeVar("Found", FirstOrder, SecondOrder)


def fit(k: Floats, loss: Floats) -> Fit:
    """Return the curve of the family that is nearer to the last fifth of the losses seen; steps k ascend.

    Raises ValueError for fewer than four losses, or for one that is not a finite number above 0.
    """
    tail = slice(-max(1, round(_TAIL * len(k))), None)
    families: tuple[Fit, Fit] = (first_order(k, loss), second_order(k, loss))
    return min(families, key=lambda curve: float(np.square(curve.loss(k[tail]) - loss[tail]).sum()))


def first_order(k: Floats, loss: Floats, *, squared: bool = True) -> FirstOrder:
    """Return the curve 1 / (a k² + b k + c) + d; a = 0 unless `squared`. Raises ValueError as `fit`."""
    _check(k, loss)
    powers = [k**2, k, np.ones(len(k))] if squared else [k, np.ones(len(k))]
    scale = np.array([np.abs(power).max() or 1.0 for power in powers])
    table = np.stack(powers, axis=1) / scale

    def with_floor(d: float) -> FirstOrder:
        above = loss - d
        found = (
            _nonnegative(table, 1.0 / above, _weights(len(k)) * above**2) / scale
        )  # an error of 1/x is x² times one of x
        return FirstOrder(*np.concatenate((np.zeros(4), found, [d]))[-4:].tolist())

    return _best(with_floor, k, loss)


def second_order(k: Floats, loss: Floats) -> SecondOrder:
    """Return the curve exp(s k + t) + d. Raises ValueError as `fit`."""
    _check(k, loss)

    def with_floor(d: float) -> SecondOrder:
        above = loss - d
        weight = _weights(len(k)) * above
        s, t = np.polynomial.polynomial.polyfit(k, np.log(above), 1, w=weight)[::-1]
        if s > 0:  # it does not fall: a constant is nearest
            s, t = 0.0, float(np.average(np.log(above), weights=weight**2))
        return SecondOrder(float(s), float(t), d)

    return _best(with_floor, k, loss)


def curve(steps: Floats, loss: Floats, total: float) -> Curve:
    """Return what a run of `total` steps is believed to do, from its losses after so many steps (Optimus' form)."""
    _, b, c, d = first_order(steps, loss, squared=False)
    return Curve(start=1.0 / c + d, floor=d, rate=b / c * total)


def _check(k: Floats, loss: Floats) -> None:
    if len(k) < FEWEST:
        raise ValueError(f"{len(k)} losses were seen; a curve is fitted to at least {FEWEST}")
    if not (np.isfinite(loss) & (loss > 0)).all():
        raise ValueError("a loss is not a finite number above 0; leave such losses out")


def _weights(n: int) -> Floats:
    """Return by what residuals are multiplied: 1, 4 and 16 in squares by thirds."""
    return np.asarray(2.0 ** (3 * np.arange(n) // n))


def _best(with_floor: Callable[[float], Found], k: Floats, loss: Floats) -> Found:
    """Return the curve with the least weighted squares over floors from 0 to below the lowest loss."""
    low, high = 0.0, float(loss.min()) * (1 - 1e-6)
    for _ in range(_LOOKS):
        floors = np.linspace(low, high, _GRID)
        found = [with_floor(float(d)) for d in floors]
        squares = [float(np.square(_weights(len(k)) * (one.loss(k) - loss)).sum()) for one in found]
        best = int(np.argmin(squares))
        low, high = float(floors[max(best - 1, 0)]), float(floors[min(best + 1, _GRID - 1)])
    return found[best]


def _nonnegative(table: Array, wanted: Floats, weight: Floats) -> Floats:
    """Return the weighted least squares x ≥ 0 of table · x = wanted: the best over all sets of columns in use."""
    columns, least = table.shape[1], np.inf
    best = np.zeros(columns)
    for used in (some for n in range(1, columns + 1) for some in combinations(range(columns), n)):
        if columns - 1 not in used:
            continue  # the loss at the first step is finite
        x = np.zeros(columns)
        x[list(used)] = np.linalg.lstsq(table[:, used] * weight[:, None], wanted * weight, rcond=None)[0]
        square = float(np.square((table @ x - wanted) * weight).sum())
        if (x >= 0).all() and x[-1] > 0 and square < least:
            best, least = x, square
    return best
