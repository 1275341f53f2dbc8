"""Gangs that must be consolidated do not preempt others for accelerators that are too far apart."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows
from eunomia.model.arrays import Bools, Ints
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.grants_builder import FREE, held_by
from eunomia.policies.order.type_choice import by_fastest, types_if_replanned


def order_with_placement(view: View, order: Ints, consolidated: Bools) -> tuple[Rows, Bools]:
    """Return the candidates, and whether each job would run, (job,), if all accelerators were allocated anew.

    A waiting gang that must be `consolidated` (job,), with enough accelerators free but too far apart, moves to the end
    of the line: there it takes what others leave.
    """
    last = np.zeros(view.jobs, dtype=bool)
    while True:
        line = np.concatenate((order[~last[order]], order[last[order]]))
        rows = by_fastest(view, line)
        type = types_if_replanned(view, rows)
        spread = _spread(view, type, consolidated & ~last) if consolidated.any() else ()
        if not len(spread):
            near = np.where(consolidated[rows.job], ONE_MACHINE, ANYWHERE) if consolidated.any() else None
            return Rows(rows.job, rows.type, within=near), type >= 0
        last[spread] = True


def _spread(view: View, type: Ints, consolidated: Bools) -> list[int]:
    """Return the gangs that could not be consolidated if each job moved to its `type` (job,), -1 = none."""
    moves = np.flatnonzero((type >= 0) & (type != view.on_type))
    if not consolidated[moves].any():
        return []
    free = FreeCapacity(view.topology, (view.holder == FREE) | held_by(view.holder, type != view.on_type))
    widest_first = moves[np.argsort(-view.scale_factor[moves], kind="stable")]
    return [
        m
        for m in widest_first.tolist()
        if free.place(int(type[m]), int(view.scale_factor[m]), one_machine=bool(consolidated[m])) is None
    ]
