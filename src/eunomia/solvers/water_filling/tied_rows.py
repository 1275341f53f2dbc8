"""Rows whose cheapest mixes are not unique: which ends of edges of their hull cost the same at given prices."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.alike_rows import Classes, group

_DIGITS = 2.0**40  # rates are multiples of each other if they agree to 1 / _DIGITS of the best


def directions(rate: Floats) -> Classes:
    """Return which rows, rate (row, column) ≥ 0, are multiples of each other."""
    best = rate.max(axis=1, initial=0.0)
    part = np.divide(rate, best[:, None], out=np.zeros_like(rate), where=best[:, None] > 0)
    return group(*np.rint(part.T * _DIGITS))


@kernel()
def edge(rate: Floats, price: Floats, level: float) -> tuple[int, int]:
    """Return the ends of the hull edge on which a level, up to the best rate, is cheapest; −1 is idle."""
    right = 0
    for k in range(1, len(rate)):
        better = rate[k] > rate[right] or (rate[k] == rate[right] and price[k] < price[right])
        right = k if better else right
    left, low, paid = -1, 0.0, 0.0
    while True:
        run, rise = rate[right] - low, price[right] - paid
        best, chosen = -1e-14 * run * price[right], -1
        for k in range(len(rate)):
            below = (price[k] - paid) * run - rise * (rate[k] - low)
            if below < best and k not in (left, right):
                best, chosen = below, k
        if chosen < 0:
            return left, right
        if rate[chosen] >= level:
            right = chosen
        else:
            left, low, paid = chosen, rate[chosen], price[chosen]


def ties(rate: Floats, price: Floats, need: Floats) -> int:
    """Return how many ends besides the two of its edge each row, rate (row, column), could mix as cheaply, in sum.

    Rows of one direction and one edge count once: what one of them gives away, only those take.
    """
    return int(_ties(rate, price, need, directions(rate).of))


@kernel()
def _ties(rate: Floats, price: Floats, need: Floats, of: Ints) -> int:
    """Return the number above; of (row,) is the class of each row."""
    columns = len(price)
    seen = np.zeros((of.max() + 1 if len(of) else 0, columns + 1, columns), dtype=np.bool_)
    found, near = 0, 1e-9 * price.max()
    for i in range(len(need)):
        left, right = edge(rate[i], price, need[i])
        if need[i] >= rate[i, right] * (1 - 1e-12) or seen[of[i], left + 1, right]:
            continue
        seen[of[i], left + 1, right] = True
        low, paid = (rate[i, left], price[left]) if left >= 0 else (0.0, 0.0)
        run, rise = rate[i, right] - low, price[right] - paid
        if left >= 0 and rise * low - paid * run <= near * run:
            found += 1
        for k in range(columns):
            serves = rate[i, k] > 0.0  # else it is as good as idle, whatever it costs
            if serves and k not in (left, right) and (price[k] - paid) * run - rise * (rate[i, k] - low) <= near * run:
                found += 1
    return found
