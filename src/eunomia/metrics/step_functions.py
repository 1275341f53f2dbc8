"""Step functions of time: values that hold from one change to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eunomia.model.arrays import Floats

Steps = tuple[Floats, Floats]  # times, (step,), and the value from each on; 0 before the first


def at_times(steps: Steps, times: Floats) -> Floats:
    """Return the value at each time."""
    return np.concatenate(([0.0], steps[1]))[np.searchsorted(steps[0], times, side="right")]


def combined(of: Callable[[Floats, Floats], Floats], one: Steps, other: Steps) -> Steps:
    """Return a function of two step functions."""
    times = np.union1d(one[0], other[0])
    return times, of(at_times(one, times), at_times(other, times))


def summed(every: Sequence[Steps]) -> Steps:
    """Return the sum of step functions."""
    times, place = np.unique(np.concatenate([at for at, _ in every]), return_inverse=True)
    change = np.concatenate([np.diff(value, prepend=0.0) for _, value in every])
    return times, np.cumsum(np.bincount(place.reshape(-1), change, len(times)))


def integral(steps: Steps, edges: Floats) -> Floats:
    """Return ∫ of a step function from the first edge to each edge, in any order; it is 0 before its first step."""
    at, value = steps
    total = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(at))))
    place = np.searchsorted(at, edges, side="right") - 1
    inside = np.maximum(place, 0)
    whole = np.where(place >= 0, total[inside] + value[inside] * (edges - at[inside]), 0.0)
    return np.asarray(whole - whole[0])


def overlap(times: Floats, begin: Floats, end: Floats) -> Floats:
    """Return, for each [begin, end], ∫ of how many of the sorted `times` have passed."""
    total = np.concatenate(([0.0], np.cumsum(times)))

    def passed(at: Floats) -> Floats:
        count = np.searchsorted(times, at, side="right")
        return np.asarray(count * at - total[count])

    return passed(end) - passed(begin)
