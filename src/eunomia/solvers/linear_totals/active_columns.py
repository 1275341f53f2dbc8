"""Which places a row may use at some price of a box: all others are closed for what follows."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats


@kernel()
def in_play(worth: Floats, size: Floats, rate: Floats, floor: Floats, centre: Floats, half: Floats) -> Floats:
    """Return the worths (column, row) of rows, −inf where a place is in no choice of the box; floor −inf: none.

    A mixture of two places is no choice if a third lies above their line at all prices, or the faster is sure to gain
    more than the slower; a place alone is none if another is sure to gain more.
    """
    columns, rows = worth.shape
    left = np.full((columns, rows), -np.inf)
    gain, speed, slack = np.zeros(columns + 1), np.zeros(columns + 1), np.zeros(columns + 1)
    for i in range(rows):
        for k in range(columns):
            gain[k], speed[k], slack[k] = worth[k, i] - size[i] * centre[k], rate[k, i], size[i] * half[k]
        for b in range(columns + 1):
            if speed[b] < floor[i] or gain[b] == -np.inf:
                continue
            if b < columns and _may_be_alone(gain, slack, b):
                left[b, i] = worth[b, i]
            for a in range(columns + 1):
                if speed[a] < floor[i] and gain[a] > -np.inf and _may_mix(gain, speed, slack, a, b):
                    for k in (a, b):
                        if k < columns:
                            left[k, i] = worth[k, i]
    return left


@kernel()
def _may_be_alone(gain: Floats, slack: Floats, b: int) -> bool:
    for k in range(len(gain)):  # noqa: SIM110 - numba compiles no generator
        if k != b and gain[k] - slack[k] > gain[b] + slack[b]:
            return False
    return True


@kernel()
def _may_mix(gain: Floats, speed: Floats, slack: Floats, a: int, b: int) -> bool:
    """Return whether places a and b, a the slower, may be the ends of the best mixture."""
    if gain[b] - slack[b] > gain[a] + slack[a]:
        return False
    for k in range(len(gain)):
        if k not in (a, b) and gain[k] > -np.inf:
            part = (speed[k] - speed[a]) / (speed[b] - speed[a])
            reach = slack[k] + abs(1 - part) * slack[a] + abs(part) * slack[b]
            if gain[k] - (1 - part) * gain[a] - part * gain[b] > reach:
                return False
    return True
