"""Step functions of time: values that hold from one change to the next."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats


def integral(steps: tuple[Floats, Floats], edges: Floats) -> Floats:
    """Return ∫ of a step function from the first edge to each edge; it is 0 before its first step."""
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
