"""Step functions of time: values that hold from one change to the next, and the points of many of them in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints

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


class CurveBlock(NamedTuple):
    """The points of all curves in an interval of time."""

    times: Floats  # (instant,)
    instant: Array  # (point,) index of its time; points by curve, then by time
    value: Array  # (point,)
    first: Ints  # (curve + 1,) where the points of each curve begin

    @classmethod
    def of(cls, points: Array, curves: int) -> CurveBlock:
        """Return a block of points `at`, `value` and `curve`, which are in order of time."""
        order = np.argsort(points["curve"], kind="stable")
        times, instant = np.unique(points["at"], return_inverse=True)
        first = np.searchsorted(points["curve"][order], np.arange(curves + 1))
        value = points["value"]
        whole = np.result_type(
            *(np.min_scalar_type(int(most)) for most in (value.min(initial=0), value.max(initial=0)))
        )
        instant = instant.astype(np.min_scalar_type(len(times)))
        return cls(times, instant[order], value.astype(whole)[order], first)


def steps_of(curve: int, blocks: Sequence[CurveBlock]) -> Steps:
    """Return the points of a curve; blocks are in order of time, early ones may not have the curve yet."""
    own = [(block, slice(*block.first[curve : curve + 2])) for block in blocks if curve + 1 < len(block.first)]
    at = [block.times[block.instant[points]] for block, points in own]
    value = [block.value[points] for block, points in own]
    return (np.concatenate(at), np.concatenate(value).astype(float)) if own else (np.empty(0), np.empty(0))
