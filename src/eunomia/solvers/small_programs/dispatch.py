"""The small programs of this folder with their proofs; None where a proof is lacking and the general solver is next."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.products import dot
from eunomia.solvers.pricing.final_lp import Vertex
from eunomia.solvers.pricing.rows import NeedRows
from eunomia.solvers.small_programs.linear_total import largest
from eunomia.solvers.small_programs.max_min import highest

FEW = 300  # rows up to which this road is the fastest
_PROVEN = 1e-10  # relative: what an answer here must prove and may overstep
_NEWTON = 60
_SAME = 1e-9  # relative: a tangent so close is exact to the square of it


def few_level(rows: NeedRows, capacity: Floats, top: float) -> Vertex | None:
    """Return the highest level ≤ top of these rows, all with a need; capacity (column,) above 0."""
    T = np.ascontiguousarray(rows.T)
    none = np.zeros(rows.count)
    t, straight = top, rows.b is None and rows.cap is None
    for _ in range(_NEWTON):
        if straight:
            rise, rest = rows.a, none
        else:
            need, rise = rows.need(t)
            rest = np.minimum(need - rise * t, 0.0)
        x, reached, bound, value = highest(T, rows.size, rise, rest, capacity, top)
        if not _fits(x, rows.size, capacity) or not bound - reached <= _PROVEN * bound:
            return None
        if straight or abs(reached - t) <= _SAME * reached:
            if not ((T * x).sum(axis=0) >= (rise * reached + rest) * (1 - _PROVEN)).all():
                return None
            return Vertex(x, none, reached, bound, value if reached < top else np.zeros_like(value), 0.0)
        t = reached
    return None


def few_total(worth: Floats, size: Floats, capacity: Floats, rate: Floats, floor: Floats, x: Floats) -> Floats | None:
    """Return x (row, column) with the largest Σ worth · x above the floors; x given keeps every side."""
    opened = np.flatnonzero(capacity > 0)
    by_column = (np.ascontiguousarray(values[:, opened].T) for values in (worth, rate, x))
    c, T, start = by_column
    if len(opened) == 0 or not _fits(start, size, capacity[opened]):
        return None
    best, total, bound = largest(c, T, size, floor, capacity[opened], start)
    proven = np.isfinite(bound) and bound - total <= _PROVEN * np.abs(c * best).sum()
    kept = ((T * best).sum(axis=0) >= floor - _PROVEN * np.abs(floor)).all()
    if not (proven and kept and _fits(best, size, capacity[opened])):
        return None
    found = np.zeros_like(worth)
    found[:, opened] = best.T
    return found


def _fits(x: Floats, size: Floats, capacity: Floats) -> bool:
    return bool((dot(x, size) <= capacity * (1 + _PROVEN)).all() and (x.sum(axis=0) <= 1 + _PROVEN).all())
