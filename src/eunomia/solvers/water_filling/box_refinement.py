"""The last moment of a crowd of very many rows: boxes of prices and moments, each inside the last.

See large_instance.py for the idea. `settle` returns the exact answer for all rows, and the mix of each.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.equations import pseudo_inverse
from eunomia.solvers.pricing.rows import draw_some
from eunomia.solvers.water_filling.boxes import BoxPass, MomentEstimate
from eunomia.solvers.water_filling.large_instance import LargeInstance, NeedCosts, ResolvedRows, last_moment
from eunomia.solvers.water_filling.screen import screened

_SAMPLE = 4_096  # rows of a first sample, and about as many as are looked at one and all
_SPREAD = 2.0  # standard errors of a sample's answer that a box is wide to either side
_TIMES = (1.0, 1.0, 2.0, 6.0, 18.0)  # widths of boxes; the second lies around where the first was left
_PARTED = 0.8  # of the rows, open in a box: too many for it to be of use
_SEEN = 16  # rows of a group from which on a sample says how far it is


def settle(crowd: LargeInstance, low: float, high: float, rng: np.random.Generator) -> ResolvedRows:
    """Return the last moment in [low, high] that fits. Raises NoOptimum when no prices prove it."""
    size = min(max(_SAMPLE, len(crowd.load) // 16), 4 * _SAMPLE)
    while 2 * size < len(crowd.load):
        found = _settle_from(_guess(crowd, size, low, high, rng), crowd, low, high, rng)
        if found is not None:
            return found
        size *= 8
    return last_moment(crowd, low, high)


def _settle_from(
    guess: MomentEstimate, crowd: LargeInstance, low: float, high: float, rng: np.random.Generator
) -> ResolvedRows | None:
    """Return the same from a first guess, or None where its boxes lead nowhere."""
    shared = "first" not in crowd.tree.inner
    for times in _TIMES:
        look = screened(crowd, guess, times, low, high)
        if len(look.rows) > _PARTED * len(crowd.load):
            return None
        found = settle(look.crowd, look.box.low, look.box.high, rng)
        levels = look.crowd.clock()[0].levels(found.moment)
        if not look.missed(found, levels, low, high):
            return _beside(found, look, levels if shared else None)
        worth = found.worth if found.worth.any() else guess.worth  # none is known where all fits to the box's end
        levels = np.where(np.isfinite(levels), levels, guess.levels)
        guess = replace(guess, moment=found.moment, worth=worth, levels=levels)
    return None


def _beside(found: ResolvedRows, look: BoxPass, levels: Floats | None) -> ResolvedRows:
    """Return what was found for the rows left open, with the edges of all others."""
    look.left[look.rows], look.right[look.rows] = found.left, found.right
    return replace(found, left=look.left, right=look.right, rows=look.rows[found.rows], levels=levels)


def _guess(crowd: LargeInstance, size: int, low: float, high: float, rng: np.random.Generator) -> MomentEstimate:
    """Return the answer of about `size` rows, and how far off it may be."""
    some, noise = _sample(crowd, size, rng), crowd.part / np.sqrt(size)
    width = 0.5 * (crowd.most - crowd.least)  # so that an answer beyond the crowd's bounds shows as one
    wider = replace(some, least=np.maximum(crowd.least - width, 0.0), most=np.minimum(crowd.most + width, 1.0))
    start = None
    if size > _SAMPLE:
        start = _guess(crowd, _SAMPLE // 2, low, high, rng).worth[some.column]
    found = last_moment(wider, low, high, start)
    error, spread = _errors(some, found.worth[some.column], found.moment, noise, float(some.load.mean()))
    blur = np.zeros(crowd.columns + 1)
    blur[crowd.column] = _SPREAD * error
    return MomentEstimate(found.moment, found.worth, blur, _SPREAD * spread, _levels(some, found.moment))


def _levels(crowd: LargeInstance, moment: float) -> Floats:
    """Return v of each group, (group + 1,), the last stop of any row where all have stopped, NaN of few rows."""
    levels = crowd.clock()[0].levels(moment)
    stop = np.zeros(len(levels))
    np.maximum.at(stop, crowd.group + 1, crowd.room / crowd.weight)
    known = np.bincount(crowd.group + 1, minlength=len(levels)) >= _SEEN
    return np.where(known, np.minimum(levels, stop), np.nan)


def _sample(crowd: LargeInstance, size: int, rng: np.random.Generator) -> LargeInstance:
    """Return about `size` rows that stand for all, drawn at even steps, half of them by load."""
    even, by_load = 0.5 * size / len(crowd.load), 0.5 * size / float(crowd.load.sum())
    return crowd.gather(*draw_some(crowd.load, even, by_load, rng.random(size + 2)))


def _errors(crowd: LargeInstance, worth: Floats, moment: float, noise: float, one: float) -> tuple[Floats, float]:
    """Return by how much worth (column,) and the moment, relative, are off if the crowd is a sample.

    Loads that a sample gives are off by about √(load of `one` row · load) each, and the answer by as much as undoes
    that: loads are looked at again at prices and moments that differ by twice the noise.
    """
    costs = NeedCosts(crowd)
    inverse = np.divide(1.0, crowd.capacity)
    some = np.flatnonzero(worth > 0)
    if len(some) == 0:
        return np.zeros(len(worth)), noise
    step = 2 * noise
    price = worth * inverse
    tilt = np.empty((len(some), len(some) + 1))
    for at, k in enumerate(some):
        factor = np.ones(len(worth))
        factor[k] = 1 + step
        change = costs.demand(price * factor, moment) - costs.demand(price / factor, moment)
        tilt[:, at] = (change * inverse)[some] / (2 * step)
    change = costs.demand(price, moment * (1 + step)) - costs.demand(price, moment / (1 + step))
    tilt[:, -1] = (change * inverse)[some] / (2 * step)
    chosen = np.maximum(costs.demand(price, moment) - costs.at(moment)[2], 0.0) * inverse
    answer = pseudo_inverse(tilt, rcond=1e-4) * np.sqrt(chosen * one * inverse)[some]
    off = np.minimum(np.sqrt((answer**2).sum(axis=1)), 1.0)
    error = np.zeros(len(worth))
    error[some] = worth[some] * off[:-1]
    return error, float(off[-1])
