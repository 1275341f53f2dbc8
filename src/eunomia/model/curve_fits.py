"""Learning curves fitted to losses that were seen, k steps done; many runs at a time.

    l(k) = d + exp(s k) / (a k² + b k + c)

first order:    s = 0 and a, b, d ≥ 0, c > 0; Optimus has a = 0, SLAQ has all four
second order:   a = b = 0, s ≤ 0, c > 0 and d ≥ 0; that is μ^(k − h) + d with μ = exp(s), h = ln(c) / s

For a given floor d both are linear in the rest: 1 / (l − d) is a polynomial with coefficients of at least 0, log (l −
d) a line. The floor itself is found by looking closer and closer where the squares are least. Later losses tell more:
those of the second third of the history weigh 4 times, those of the last third 16 times as much as those of the first.

References: Y. Peng et al., "Optimus", EuroSys 2018, section 3.1; H. Zhang et al., "SLAQ", SoCC 2017, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.equations import solve
from eunomia.model.products import row_dots

FEWEST = 4  # losses that a curve can be fitted to
PARTS = ("floor", "a", "b", "c", "s")  # columns of a fitted curve
_GRID, _LOOKS = 21, 7  # floors tried at a time, and how often closer
_TAIL = 0.2  # part of the history, its end, by which families are compared
_RIDGE = 1e-13  # keeps systems of equations solvable; relative


class _Seen(NamedTuple):
    """Losses in units of the largest, steps in units of the last; what was not seen weighs nothing."""

    x: Floats  # (run, loss)
    loss: Floats
    weight: Floats  # by which residuals are multiplied: 1, 2 and 4 by thirds
    tail: Bools  # the last fifth
    steps: Floats  # (run,) unit of x
    most: Floats  # (run,) unit of the losses


_Family = Callable[[_Seen, Floats], Floats]  # floors (run, floor) → curves (run, floor, 5)


def losses_at(curves: Floats, k: Floats) -> Floats:
    """Return the losses after k steps, shape of k; curves (…, 5) have the columns of `PARTS`."""
    floor, a, b, c, s = np.moveaxis(curves, -1, 0)
    return np.asarray(floor + elementary.exp(s * k) / ((a * k + b) * k + c))


def known_curves(curves: Floats, total: Floats) -> Floats:
    """Return curves that are told, (run, 3) as in `model.curves`, of so many steps in all, (run,), as fitted ones."""
    start, floor, rate = curves.T
    c = 1.0 / np.maximum(start - floor, 1e-300)
    return np.stack((floor, np.zeros(len(c)), c * rate / total, c, np.zeros(len(c))), axis=1)


def fitted(seen: Floats, *, slaq: bool = True) -> Floats:
    """Return the curves, (run, 5), of losses (run, loss, 2): steps, ascending, and loss; nan = nothing was seen.

    With `slaq` that of the two families which is nearer to the last fifth of a run's losses, else Optimus' form. A run
    with fewer than four losses, finite and above 0, has none: nan.
    """
    found = np.full((len(seen), len(PARTS)), np.nan)
    there = np.isfinite(seen).all(axis=2) & (seen[:, :, 1] > 0)
    rows = np.flatnonzero(there.sum(axis=1) >= FEWEST)
    if len(rows):
        found[rows] = _fitted(_ready(seen[rows], there[rows]), slaq=slaq)
    return found


def _ready(seen: Floats, there: Bools) -> _Seen:
    count, place = there.sum(axis=1)[:, None], np.cumsum(there, axis=1) - 1
    k, loss = np.where(there, seen[:, :, 0], 0.0), np.where(there, seen[:, :, 1], 0.0)
    steps, most = np.maximum(k.max(axis=1), 1e-300), loss.max(axis=1)
    weight = np.where(there, np.ldexp(1.0, 3 * place // count), 0.0)
    tail = there & (place >= count - np.maximum(1, np.round(_TAIL * count)))
    return _Seen(k / steps[:, None], np.where(there, loss / most[:, None], 1.0), weight, tail, steps, most)


def _fitted(seen: _Seen, *, slaq: bool) -> Floats:
    families: tuple[_Family, ...] = (_squared, _second) if slaq else (_straight,)
    curves = np.stack([_best(seen, family) for family in families])  # (family, run, 5)
    errors = [np.where(seen.tail, losses_at(one[:, None], seen.x) - seen.loss, 0.0) for one in curves]
    nearest = _total(np.square(errors)).argmin(axis=0)
    floor, a, b, c, s = curves[nearest, np.arange(len(seen.steps))].T
    k, unit = seen.steps, seen.most
    return np.stack((floor * unit, a / k**2 / unit, b / k / unit, c / unit, s / k), axis=1)


def _best(seen: _Seen, family: _Family) -> Floats:
    """Return the curves with the least weighted squares over floors from 0 to below the lowest loss, (run, 5)."""
    runs = np.arange(len(seen.steps))
    low, high = np.zeros(len(runs)), seen.loss.min(axis=1) * (1 - 1e-6)
    for _ in range(_LOOKS):
        floors = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _GRID)
        curves = family(seen, floors)
        error = seen.weight[:, None] * (losses_at(curves[:, :, None], seen.x[:, None]) - seen.loss[:, None])
        best = _total(np.square(error)).argmin(axis=1)
        low, high = floors[runs, np.maximum(best - 1, 0)], floors[runs, np.minimum(best + 1, _GRID - 1)]
    return np.asarray(curves[runs, best])


def _squared(seen: _Seen, floors: Floats) -> Floats:
    return _first(seen, floors, ((2,), (1, 2), (0, 2), (0, 1, 2)))


def _straight(seen: _Seen, floors: Floats) -> Floats:
    return _first(seen, floors, ((2,), (1, 2)))


def _first(seen: _Seen, floors: Floats, uses: tuple[tuple[int, ...], ...]) -> Floats:
    """Return curves of first order with these floors: the least squares over all sets of powers in use."""
    above = seen.loss[:, None] - floors[:, :, None]  # (run, floor, loss)
    weight = seen.weight[:, None] * above**2  # an error of 1/x is x² times one of x
    powers = np.stack((seen.x**2, seen.x, np.ones_like(seen.x)), axis=2)  # (run, loss, power)
    weighed = powers[:, None] * weight[..., None]
    gram = _total(weighed[..., :, None] * weighed[..., None, :])  # (run, floor, power, power)
    wanted = _total(weighed * (weight / above)[..., None])  # (run, floor, power)
    found, least = np.zeros((*floors.shape, 3)), np.full(floors.shape, np.inf)
    for used in uses:
        part = np.array(used)
        x = np.zeros_like(found)
        x[..., part] = _solved(gram[..., part[:, None], part], wanted[..., part])
        square = _total(np.square(row_dots(powers[:, None], x[:, :, None]) * weight - weight / above))
        better = (x >= 0).all(axis=2) & (x[..., 2] > 0) & (square < least)
        found[better], least[better] = x[better], square[better]
    return np.concatenate((floors[..., None], found, np.zeros((*floors.shape, 1))), axis=2)


def _total(terms: Floats) -> Floats:
    """Return sums over losses, the third axis, in their order: what is not there adds 0 and changes no digit."""
    return np.asarray(np.cumsum(terms, axis=2)[:, :, -1])


def _solved(gram: Array, wanted: Array) -> Floats:
    size = gram.shape[-1]
    ridge = _RIDGE * np.trace(gram, axis1=2, axis2=3)[..., None, None] * np.eye(size)
    return solve(gram + ridge + 1e-300 * np.eye(size), wanted)


def _second(seen: _Seen, floors: Floats) -> Floats:
    """Return curves of second order with these floors; one whose losses do not fall is constant."""
    above = seen.loss[:, None] - floors[:, :, None]
    mass, y = np.square(seen.weight[:, None] * above), elementary.log(above)
    whole = _total(mass)
    mean_x, mean_y = (_total(mass * values) / whole for values in (seen.x[:, None], y))
    across = seen.x[:, None] - mean_x[..., None]
    spread = _total(mass * across**2)
    slope = np.divide(_total(mass * across * y), spread, out=np.zeros_like(spread), where=spread > 0)
    s = np.minimum(slope, 0.0)
    nothing = np.zeros_like(floors)
    return np.stack((floors, nothing, nothing, elementary.exp(s * mean_x - mean_y), s), axis=2)


def until_flat(curves: Floats, window: Floats, part: float) -> Floats:
    """Return after how many steps, (run,), Optimus' curve falls by less than `part` of its first loss in `window`.

    With x = b k + c and e = b · window it falls by e / (x (x + e)). 0 for one that does not fall, nan for no curve.
    """
    floor, _, b, c, _ = curves.T
    e, least = b * window, part * (floor + 1.0 / c)
    x = (np.sqrt(e * e + 4 * e / least) - e) / 2
    steps = np.divide(x - c, b, out=np.where(np.isnan(b), np.nan, 0.0), where=b > 0)
    return np.asarray(np.maximum(steps, 0.0))
