"""Rows of one direction as few: a row of the program for each stretch between two speeds, not for each row.

Rows whose rates are multiples of each other (one class) bend at the same prices, so that all of them may be indifferent
at once. At need r, in parts of the best rate, a row's mixes are the x ≥ 0 with Σ x = 1, T · x = r, idle being a column
of speed 0. While r stays between two neighbouring speeds a ≤ r ≤ b, the corners of this set are the pairs (l, u) with
T_l ≤ a, T_u ≥ b, and linear in r. So the mixes of several such rows add up to the mixes of one at their mean need, and
what was found for the one,

    x = Σ_lu λ_lu · corner_lu(mean)      is      x_i = Σ_lu λ_lu · corner_lu(r_i)      for row i, reaching r_i exactly.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.classes import Classes, group
from eunomia.solvers.sums import inner_product, total

_DIGITS = 2.0**40  # rates are multiples of each other if they agree to 1 / _DIGITS of the best
_NEAR = 1e-13  # a need this near to a speed is that speed
_FLAT = 1e-12  # a mean this near to a speed is one of rows that all need it


def directions(rate: Floats) -> Classes:
    """Return which rows, rate (row, column) ≥ 0, are multiples of each other."""
    best = rate.max(axis=1, initial=0.0)
    part = np.divide(rate, best[:, None], out=np.zeros_like(rate), where=best[:, None] > 0)
    return group(*np.rint(part.T * _DIGITS))


class Bundles:
    """Few rows that stand for many: one for each row of a small class, one for each stretch of a large class."""

    def __init__(self, rate: Floats, load: Floats):
        """Take rate (row, column) and load (row,)."""
        columns, classes = rate.shape[1], directions(rate)
        large = np.flatnonzero(classes.count > columns)  # these are more rows than stretches
        number = np.full(len(classes), -1)
        number[large] = np.arange(len(large))
        self._large = number[classes.of]  # (row,) −1 for rows that stand by themselves
        kept = np.flatnonzero(self._large < 0)
        self.best = rate.max(axis=1, initial=0.0)
        part = np.divide(rate, self.best[:, None], out=np.zeros_like(rate), where=self.best[:, None] > 0)
        head = part[classes.representative[large]]
        unit = np.bincount(classes.of, load, len(classes))[large] / np.sqrt(classes.count[large])
        self._speed = np.sort(head, axis=1)  # (large class, column)
        self._alone = len(kept)
        self.gain = np.concatenate((part[kept], np.repeat(head, columns, axis=0)))  # (bundle, column) best 1
        self.load = np.concatenate((load[kept], np.repeat(unit, columns)))  # (bundle,) of a whole share
        self._of = np.empty(len(load), dtype=np.int64)  # (row,) its bundle, at the needs gathered last
        self._of[kept] = np.arange(len(kept))
        self._weight = np.ones(len(load))  # (row,) load, in parts of the bundle's
        self._weight[self._large >= 0] = load[self._large >= 0] / unit[self._large[self._large >= 0]]

    def gather(self, need: Floats) -> tuple[Floats, Floats]:
        """Return what all rows of each bundle need, (bundle,) best rate 1, and what time they have, for needs (row,).

        A need above the row's best rate is taken for that rate.
        """
        part = np.minimum(np.divide(need, self.best, out=np.zeros_like(need), where=self.best > 0), 1.0)
        amount, time = np.zeros((2, len(self.load)))
        _gather(part, self._large, self._weight, self._speed, self._alone, self._of, amount, time)
        self._part, self._amount, self._time = part, amount, time
        return amount, time

    def expand(self, share: Floats) -> Floats:
        """Return the shares of the rows, (row, column), for shares (bundle, column) that give what was gathered."""
        if self._alone == len(self._of):
            return share
        base, tilt = share.copy(), np.zeros_like(share)
        _corners(self.gain, self._speed, self._alone, self._amount, self._time, base, tilt)
        found: Floats = np.clip(base[self._of] + self._part[:, None] * tilt[self._of], 0.0, 1.0)
        return found


@kernel()
def _gather(
    part: Floats, large: Ints, weight: Floats, speed: Floats, alone: int, of: Ints, amount: Floats, time: Floats
) -> None:
    """Add the rows to their bundles, and write down which those are; part (row,) is moved to a speed that is near."""
    columns = speed.shape[1]
    for i in range(len(part)):
        c = large[i]
        if c >= 0:
            q = 0
            while q < columns - 1 and part[i] >= speed[c, q] * (1 - _NEAR):
                part[i] = max(part[i], speed[c, q])
                q += 1
            of[i] = alone + c * columns + q
        amount[of[i]] += weight[i] * part[i]
        time[of[i]] += weight[i]


@kernel()
def _corners(gain: Floats, speed: Floats, alone: int, amount: Floats, time: Floats, base: Floats, tilt: Floats) -> None:
    """Turn the shares in `base` (bundle, column) into shares base + tilt · need of the rows of each stretch."""
    columns = gain.shape[1]
    low, high = np.empty(columns + 1), np.empty(columns)
    for b in range(alone, len(gain)):
        if time[b] == 0.0:
            continue
        q = (b - alone) % columns
        floor = speed[(b - alone) // columns, q - 1] if q > 0 else 0.0
        mean = amount[b] / time[b]
        x = base[b]
        for k in range(columns):
            x[k] /= time[b]
        reached = inner_product(gain[b], x)
        if reached > mean:
            for k in range(columns):
                x[k] *= mean / reached
        for k in range(columns):
            low[k] = x[k] * (mean - gain[b, k]) if gain[b, k] <= floor else 0.0
            high[k] = x[k] * (gain[b, k] - mean) if gain[b, k] > floor else 0.0
        low[columns] = max(1.0 - total(x), 0.0) * mean  # idle
        if floor + _FLAT < mean < speed[(b - alone) // columns, q] - _FLAT:  # else all are at the one speed
            for k in range(columns):
                x[k] = 0.0
            _pair_up(gain[b], mean, low, high, base[b], tilt[b])


@kernel()
def _pair_up(gain: Floats, mean: float, low: Floats, high: Floats, base: Floats, tilt: Floats) -> None:
    """Write the mix of corners (below, above) by which what is below the mean makes up for what is above it."""
    below, above, whole = 0, 0, 0.0
    while below < len(low) and above < len(high):
        flow = min(low[below], high[above])
        if flow > 0.0:
            speed = gain[below] if below < len(gain) else 0.0
            run = gain[above] - speed
            times = flow * run / ((gain[above] - mean) * (mean - speed))
            whole += times
            base[above] -= times * speed / run
            tilt[above] += times / run
            if below < len(gain):
                base[below] += times * gain[above] / run
                tilt[below] -= times / run
        low[below] -= flow
        high[above] -= flow
        if low[below] <= high[above]:
            below += 1
        else:
            above += 1
    base /= whole
    tilt /= whole
