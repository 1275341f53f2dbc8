"""How rows part the activities of their class when each asks for its own rate and has a time of 1.

It can be done if and only if the rates of the activities, drawn out over time, majorise the rates asked.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats
from eunomia.solvers.sums import total


def parted(asked: Floats, rate: Floats, time: Floats) -> Floats:
    """Return the time of each row in each activity, (row, activity), so that each row reaches what it asks.

    In proportion to what they ask if no row is busy for more than all its time; else stretch by stretch.
    """
    whole, n = asked.sum(), len(asked)
    share = asked / whole if whole > 0 else np.full(n, 1 / n)
    if share.max() * time.sum() <= 1:
        return share[:, None] * time
    order = np.argsort(-rate, kind="stable")
    idle = max(n - float(time.sum()), 0.0)
    part = _stretches(asked, np.append(rate[order], 0.0), np.append(time[order], idle))
    found = np.empty((n, len(rate)))
    found[:, order] = part[:, :-1]
    return found


@kernel()
def _stretches(asked: Floats, rate: Floats, time: Floats) -> Floats:
    """Return the time that each row takes of each activity, (row, activity); rates fall, times sum to the rows.

    Lay the activities along a line, the fastest first. Each row takes the last unit of it whose mean rate is what it
    asks; what remains still majorises what the others ask.
    """
    part = np.zeros((len(asked), len(rate)))
    left = time.copy()
    kinds = len(rate)
    for i in range(len(asked)):
        rest = total(left)  # beyond activity j
        for j in range(kinds):
            rest -= left[j]
            if left[j] > 0.0 and (rest < 1.0 or _mean_from(left, rate, j + 1) < asked[i]):
                _take_from(left, rate, j, asked[i], rest, part[i])
                break
    return part


@kernel()
def _mean_from(left: Floats, rate: Floats, begin: int) -> float:
    """Return the mean rate of the unit of time that starts with activity `begin`."""
    mean, wanting = 0.0, 1.0
    for j in range(begin, len(rate)):
        taken = min(left[j], wanting)
        mean += taken * rate[j]
        wanting -= taken
    return mean


@kernel()
def _take_from(left: Floats, rate: Floats, j: int, asked: float, rest: float, part: Floats) -> None:
    """Take the last unit that starts within activity j and has the mean rate asked; write it to `part`."""
    x = min(max(0.0, 1.0 - rest), left[j])
    wanting, mean, last = 1.0 - x, x * rate[j], j
    for k in range(j + 1, len(rate)):
        part[k] = min(left[k], wanting)
        wanting -= part[k]
        mean += part[k] * rate[k]
        last = k if part[k] > 0.0 else last
    while mean < asked and last > j and x < left[j]:
        gain = rate[j] - rate[last]
        moved = min(part[last], left[j] - x)
        enough = gain > 0.0 and moved * gain >= asked - mean
        if enough:
            moved = (asked - mean) / gain
        x += moved
        part[last] -= moved
        mean += moved * gain
        if enough:
            break
        if part[last] <= 0.0:
            last -= 1
    part[j] = x
    for k in range(j, len(rate)):
        left[k] = max(left[k] - part[k], 0.0)
