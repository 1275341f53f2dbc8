"""Greedy allocation of elastic jobs: every job gets its narrowest shape, then each step goes where it gains most.

The policy defines the gain through `worth`, the value of each shape of a job on each type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.answers import Order, Rows
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rounded
from eunomia.model.view import View
from eunomia.placement.selection import replanned
from eunomia.solvers.greedy_marginal import climb

NEEDS = frozenset({"shapes", "shape_throughput", "capacity"})
_NONE = np.iinfo(np.int64).max  # accelerators of a missing shape: more than any other


@dataclass(frozen=True, slots=True)
class MinimumShapes:
    """The narrowest shape of each job on each type, and the feasible shapes."""

    can: Bools  # (job, shape, type)
    shape: Ints  # (job, type)
    size: Ints  # (job, type)
    speed: Floats  # (job, type) steps/s in that shape, 0 = cannot run there

    @classmethod
    def of(cls, view: View) -> MinimumShapes:
        """Build it from a view; of two shapes of one size the first counts."""
        wide, speed = view.shapes[:, :, None], view.shape_throughput
        can = (wide > 0) & (speed > 0) & (wide <= view.capacity)
        for s in range(1, view.shapes.shape[1]):
            can[:, s] &= (view.shapes[:, :s] != view.shapes[:, s, None]).all(axis=1)[:, None]
        size = np.where(can, wide, _NONE)
        shape = size.argmin(axis=1)
        fastest = np.take_along_axis(np.where(can, speed, 0.0), shape[:, None, :], axis=1)[:, 0]
        return cls(can, shape, size.min(axis=1), fastest)


def order_by_gain(view: View, line: Ints, narrowest: MinimumShapes, worth: Floats) -> Order:
    """Return every job in the shape that the greedy allocation gives it.

    Each job in `line` gets its narrowest shape on the fastest type with free accelerators; then wider shapes are chosen
    by worth (job, shape, type). Jobs without accelerators are last, in their narrowest shape.
    """
    if view.jobs == 0:
        return Order(Rows(line, line))
    prefer = np.argsort(-narrowest.speed, axis=1, kind="stable")
    real = np.take_along_axis(narrowest.speed, prefer, axis=1)[line] > 0
    job, type = np.broadcast_to(line[:, None], real.shape)[real], prefer[line][real]
    free = np.floor(view.capacity).astype(np.int64)
    on = replanned(job, type, narrowest.size[job, type], view.jobs, free.copy())
    started = line[on[line] >= 0]
    waits = line[(on[line] < 0) & real.any(axis=1)]
    shape = _widen(view, started, on[started], narrowest, worth, free)
    first = prefer[waits, 0]
    rows = Rows(
        np.concatenate((started, waits)),
        np.concatenate((on[started], first)),
        shape=np.concatenate((shape, narrowest.shape[waits, first])) if view.shapes.shape[1] > 1 else None,
    )
    return Order(rows)


def _widen(view: View, jobs: Ints, on: Ints, narrowest: MinimumShapes, worth: Floats, free: Ints) -> Ints:
    """Return the shapes, (row,), of jobs on types `on` after the accelerators left of `free` went by gain."""
    can = narrowest.can[jobs, :, on]  # (row, shape)
    size = np.where(can, view.shapes[jobs], _NONE)
    ladder = np.argsort(size, axis=1, kind="stable")
    size, value = (np.take_along_axis(table, ladder, axis=1) for table in (size, worth[jobs, :, on]))
    exists = size[:, 1:] < _NONE
    extra = np.where(exists, size[:, 1:] - size[:, :-1], 1)
    gain = np.divide(value[:, 1:] - value[:, :-1], extra, out=np.zeros(extra.shape), where=exists)
    left = free - np.bincount(on, weights=size[:, 0], minlength=len(free)).astype(np.int64)
    step = climb(rounded(gain), extra, on, left)
    return ladder[np.arange(len(jobs)), step]
