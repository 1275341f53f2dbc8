"""Points of many curves over time, kept in blocks: an instant is stored once for all curves that change at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eunomia.metrics.step_functions import Steps
from eunomia.model.arrays import Array, Floats, Ints


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
