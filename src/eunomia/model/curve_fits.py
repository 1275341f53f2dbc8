"""Learning curves fitted to reported losses after k steps, for many runs at a time.

    l(k) = d + exp(s k) / (a k² + b k + c)

first order:    s = 0 and a, b, d ≥ 0, c > 0; Optimus has a = 0, SLAQ has all four
second order:   a = b = 0, s ≤ 0, c > 0 and d ≥ 0; that is μ^(k − h) + d with μ = exp(s), h = ln(c) / s

For a given floor d both are linear in the other parameters: 1 / (l − d) is a polynomial with coefficients of at least
0, log (l − d) a line. The floor is searched on a grid that is refined where the squares are least.

Later losses weigh more. Optimus divides the standard errors of the second third of the history by 4, those of the last
third by 16, so that squares weigh 16 and 256 times as much as those of the first. SLAQ's weights decay exponentially,
at a rate that is not known: here a square weighs exp(-0.1) times as much as that of the next loss.

References: Y. Peng et al., "Optimus", EuroSys 2018, section 3.1, and the authors' code (github.com/pengyanghua/optimus,
scheduler/estimator.py); H. Zhang et al., "SLAQ", SoCC 2017, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eunomia.model import elementary
from eunomia.model.arrays import Array, Bools, Floats
from eunomia.model.equations import solve
from eunomia.model.products import row_dots
from eunomia.model.rounding import rounded

TEN = 10  # epochs over which Optimus' curve is to be flat
FEWEST = 4  # least number of losses of a fit
PARTS = ("floor", "a", "b", "c", "s")  # columns of a fitted curve
_GRID, _REFINEMENTS = 21, 7  # floors of a grid, and how many grids
_TAIL = 0.2  # part of the history, at its end, on which families are compared
_DECAY = 0.05  # of the residuals of SLAQ's fits, for each later loss
_RIDGE = 1e-13  # keeps systems of equations solvable; relative


class _History(NamedTuple):
    """Losses in units of the largest, steps in units of the last; missing losses have weight 0."""

    x: Floats  # (run, loss)
    loss: Floats
    weight: Floats  # factor of the residuals
    tail: Bools  # the last fifth
    steps: Floats  # (run,) unit of x
    most: Floats  # (run,) unit of the losses


_Family = Callable[[_History, Floats], Floats]  # floors (run, floor) → curves (run, floor, 5)


def losses_at(curves: Floats, k: Floats) -> Floats:
    """Return the losses after k steps, shape of k; curves (…, 5) have the columns of `PARTS`."""
    floor, a, b, c, s = np.moveaxis(curves, -1, 0)
    return np.asarray(floor + elementary.exp(s * k) / ((a * k + b) * k + c))


def to_fitted_form(curves: Floats, total: Floats) -> Floats:
    """Return curves, (run, 3) as in `model.curves`, with the columns of `PARTS`; total (run,) steps."""
    start, floor, rate = curves.T
    c = 1.0 / np.maximum(start - floor, 1e-300)
    return np.stack((floor, np.zeros(len(c)), c * rate / total, c, np.zeros(len(c))), axis=1)


def fit_curves(losses: Floats, *, slaq: bool = True) -> Floats:
    """Return the curves, (run, 5), of losses (run, loss, 2): ascending steps and loss, nan = missing.

    With `slaq` the family that is nearer to the last fifth of a run's losses, else Optimus' form. The curve of a run
    with fewer than four losses, finite and above 0, is nan.
    """
    curves = np.full((len(losses), len(PARTS)), np.nan)
    valid = np.isfinite(losses).all(axis=2) & (losses[:, :, 1] > 0)
    rows = np.flatnonzero(valid.sum(axis=1) >= FEWEST)
    if len(rows):
        curves[rows] = _fit(_normalised(losses[rows], valid[rows], slaq=slaq), slaq=slaq)
    return curves


def _normalised(losses: Floats, valid: Bools, *, slaq: bool) -> _History:
    count, place = valid.sum(axis=1)[:, None], np.cumsum(valid, axis=1) - 1
    k, loss = np.where(valid, losses[:, :, 0], 0.0), np.where(valid, losses[:, :, 1], 0.0)
    steps, most = np.maximum(k.max(axis=1), 1e-300), loss.max(axis=1)
    by_age = elementary.exp(-_DECAY * (count - 1 - place)) if slaq else np.ldexp(1.0, 2 * (place // -(-count // 3)))
    weight = np.where(valid, by_age, 0.0)
    tail = valid & (place >= count - np.maximum(1, np.round(_TAIL * count)))
    return _History(k / steps[:, None], np.where(valid, loss / most[:, None], 1.0), weight, tail, steps, most)


def _fit(history: _History, *, slaq: bool) -> Floats:
    families: tuple[_Family, ...] = (_slaq_first_order, _second_order) if slaq else (_optimus_first_order,)
    curves = np.stack([_best(history, family) for family in families])  # (family, run, 5)
    errors = [np.where(history.tail, losses_at(curve[:, None], history.x) - history.loss, 0.0) for curve in curves]
    nearest = _total(np.square(errors)).argmin(axis=0)
    floor, a, b, c, s = curves[nearest, np.arange(len(history.steps))].T
    k, unit = history.steps, history.most
    return np.stack((floor * unit, a / k**2 / unit, b / k / unit, c / unit, s / k), axis=1)


def _best(history: _History, family: _Family) -> Floats:
    """Return the curves with the least weighted squares over floors from 0 to below the lowest loss, (run, 5)."""
    runs = np.arange(len(history.steps))
    low, high = np.zeros(len(runs)), history.loss.min(axis=1) * (1 - 1e-6)
    for _ in range(_REFINEMENTS):
        floors = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _GRID)
        curves = family(history, floors)
        error = history.weight[:, None] * (losses_at(curves[:, :, None], history.x[:, None]) - history.loss[:, None])
        best = _total(np.square(error)).argmin(axis=1)
        low, high = floors[runs, np.maximum(best - 1, 0)], floors[runs, np.minimum(best + 1, _GRID - 1)]
    return np.asarray(curves[runs, best])


def _slaq_first_order(history: _History, floors: Floats) -> Floats:
    return _first_order(history, floors, ((2,), (1, 2), (0, 2), (0, 1, 2)))


def _optimus_first_order(history: _History, floors: Floats) -> Floats:
    return _first_order(history, floors, ((2,), (1, 2)))


def _first_order(history: _History, floors: Floats, uses: tuple[tuple[int, ...], ...]) -> Floats:
    """Return curves of first order with these floors: the least squares over all sets of powers in use."""
    above = history.loss[:, None] - floors[:, :, None]  # (run, floor, loss)
    weight = history.weight[:, None] * above**2  # an error of 1/x is x² times one of x
    powers = np.stack((history.x**2, history.x, np.ones_like(history.x)), axis=2)  # (run, loss, power)
    weighted = powers[:, None] * weight[..., None]
    gram = _total(weighted[..., :, None] * weighted[..., None, :])  # (run, floor, power, power)
    right = _total(weighted * (weight / above)[..., None])  # (run, floor, power)
    coefficients, least = np.zeros((*floors.shape, 3)), np.full(floors.shape, np.inf)
    for used in uses:
        part = np.array(used)
        x = np.zeros_like(coefficients)
        x[..., part] = _solve_ridge(gram[..., part[:, None], part], right[..., part])
        square = _total(np.square(row_dots(powers[:, None], x[:, :, None]) * weight - weight / above))
        better = (x >= 0).all(axis=2) & (x[..., 2] > 0) & (square < least)
        coefficients[better], least[better] = x[better], square[better]
    return np.concatenate((floors[..., None], coefficients, np.zeros((*floors.shape, 1))), axis=2)


def _total(terms: Floats) -> Floats:
    """Return sums over losses, the third axis, in their order, so that missing losses change no digit."""
    return np.asarray(np.cumsum(terms, axis=2)[:, :, -1])


def _solve_ridge(gram: Array, right: Array) -> Floats:
    size = gram.shape[-1]
    ridge = _RIDGE * np.trace(gram, axis1=2, axis2=3)[..., None, None] * np.eye(size)
    return solve(gram + ridge + 1e-300 * np.eye(size), right)


def _second_order(history: _History, floors: Floats) -> Floats:
    """Return curves of second order with these floors, constant where the losses do not fall."""
    above = history.loss[:, None] - floors[:, :, None]
    mass, y = np.square(history.weight[:, None] * above), elementary.log(above)
    whole = _total(mass)
    mean_x, mean_y = (_total(mass * values) / whole for values in (history.x[:, None], y))
    across = history.x[:, None] - mean_x[..., None]
    spread = _total(mass * across**2)
    slope = np.divide(_total(mass * across * y), spread, out=np.zeros_like(spread), where=spread > 0)
    s = np.minimum(slope, 0.0)
    zeros = np.zeros_like(floors)
    return np.stack((floors, zeros, zeros, elementary.exp(s * mean_x - mean_y), s), axis=2)


def largest_change(curves: Floats, done: Floats) -> Floats:
    """Return the largest fall of the loss in one step so far, (run,), by curves (run, 5); of the first one at least.

    Curves fall fastest at their beginning, but for those of first order with b² < a c, whose slope is steepest where
    3 a² k² + 3 a b k = a c − b².
    """
    _, a, b, c, s = curves.T
    root = np.sqrt(np.maximum(12 * a * c - 3 * b * b, 0.0))
    steepest = np.divide(root - 3 * b, 6 * a, out=np.zeros(len(done)), where=a > 0)
    k = np.clip(steepest - 0.5, 0.0, np.maximum(done - 1.0, 0.0))
    now, then = (a * k + b) * k + c, (a * (k + 1.0) + b) * (k + 1.0) + c
    # Without the difference of two losses, whose digits would be few where steps are many.
    return np.asarray(elementary.exp(s * k) * (a * (2.0 * k + 1.0) + b - now * elementary.expm1(s)) / (now * then))


def until_flat(curves: Floats, epoch: Floats, least: float) -> Floats:
    """Return the steps, (run,), to the end of the first epoch at which Optimus' curve is flat.

    That is when it has fallen by no more than `least`, in units of the loss, over the last ten epochs, of epoch (run,)
    steps each: from the end of the ninth before to its own. With x = b k + c and e = 9 b epoch it falls by
    e / (x (x + e)) in the nine epochs after k. The first ten epochs are never flat; 0 for a constant curve, nan for a
    nan curve.
    """
    _, _, b, c, _ = curves.T
    e = (TEN - 1) * b * epoch
    x = (np.sqrt(e * e + 4 * e / least) - e) / 2
    start = np.divide(x - c, b, out=np.where(np.isnan(b), np.nan, 0.0), where=b > 0)
    ends = np.ceil(rounded(np.maximum(start, 0.0) / epoch)) + (TEN - 1)
    return np.asarray(np.where(b > 0, ends * epoch, start))
