"""Gangs that must be consolidated do not preempt others for accelerators that are too far apart."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows
from eunomia.model.arrays import Bools, Ints
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, held_by
from eunomia.policies.order.type_choice import by_fastest, types_if_replanned


def in_line(view: View, order: Ints, closely: Bools) -> tuple[Rows, Bools]:
    """Return the candidates, and the jobs that would run, (job,), if all accelerators were given anew.

    A pending gang that must be placed `closely` (job,) and cannot be, though enough accelerators are free, goes to the
    end of the line: there it takes what others leave.
    """
    last = np.zeros(view.jobs, dtype=bool)
    while True:
        line = np.concatenate((order[~last[order]], order[last[order]]))
        rows = by_fastest(view, line)
        type = types_if_replanned(view, rows)
        scattered = _scattered(view, type, closely & ~last) if closely.any() else ()
        if not len(scattered):
            near = np.where(closely[rows.job], ONE_MACHINE, ANYWHERE) if closely.any() else None
            return Rows(rows.job, rows.type, within=near), type >= 0
        last[scattered] = True


def _scattered(view: View, type: Ints, closely: Bools) -> list[int]:
    """Return the jobs that find no close place where they need one, if each moved to its `type` (job,), -1 = none."""
    moves = np.flatnonzero((type >= 0) & (type != view.on_type))
    if not closely[moves].any():
        return []
    free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, type != view.on_type))
    widest_first = moves[np.argsort(-view.scale_factor[moves], kind="stable")]
    return [
        m
        for m in widest_first.tolist()
        if free.place(int(type[m]), int(view.scale_factor[m]), one_machine=bool(closely[m])) is None
    ]
