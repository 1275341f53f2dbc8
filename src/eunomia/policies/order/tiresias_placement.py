"""Consolidated gangs do not preempt jobs whose seats are spread over too many machines."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows
from eunomia.model.arrays import Bools, Ints
from eunomia.model.view import View
from eunomia.placing.choose import would_sit
from eunomia.placing.floor import Floor
from eunomia.policies.order.type_choice import by_fastest


def order_with_placement(view: View, order: Ints, consolidated: Bools) -> tuple[Rows, Bools]:
    """Return the candidates, and whether each job would run, (job,), if all seats were allocated anew.

    A waiting gang that must be `consolidated` (job,), with enough accelerators but not on few enough machines, moves to
    the end of the line.
    """
    last = np.zeros(view.jobs, dtype=bool)
    while True:
        line = np.concatenate((order[~last[order]], order[last[order]]))
        rows = by_fastest(view, line)
        size, free = view.scale_factor[rows.job], view.capacity.astype(np.int64)
        type = would_sit(rows.job, rows.type, size, view.jobs, free)
        spread = _spread(view, type, consolidated & ~last) if consolidated.any() else ()
        if not len(spread):
            within = np.where(consolidated[rows.job], ONE_MACHINE, ANYWHERE) if consolidated.any() else None
            return Rows(rows.job, rows.type, within=within), type >= 0
        last[spread] = True


def _spread(view: View, type: Ints, consolidated: Bools) -> list[int]:
    """Return the gangs that could not be consolidated if each job moved to its `type` (job,), -1 = none."""
    moves = np.flatnonzero((type >= 0) & (type != view.on_type))
    if not consolidated[moves].any():
        return []
    holder = view.holder
    floor = Floor(view.topology, (holder == -1) | ((holder >= 0) & (type != view.on_type)[holder]))
    widest_first = moves[np.argsort(-view.scale_factor[moves], kind="stable")]
    placed = (
        (m, floor.place(int(type[m]), int(view.scale_factor[m]), one_machine=bool(consolidated[m])))
        for m in widest_first.tolist()
    )
    return [m for m, seats in placed if seats is None]
