"""Gangs that must sit closely do not have others stopped for seats that lie too far apart."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import ANYWHERE, ONE_MACHINE, Rows
from eunomia.model.arrays import Bools, Ints
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.placement.selection import would_sit
from eunomia.policies.order.preference import by_fastest


def in_line(view: View, order: Ints, closely: Bools) -> tuple[Rows, Bools]:
    """Return the candidates, and who would run, (job,), if all seats were given anew.

    A waiting gang that must sit `closely` (job,) and could not, though by count it would have seats, goes to the end of
    the line: there it takes what others leave.
    """
    last = np.zeros(view.jobs, dtype=bool)
    while True:
        line = np.concatenate((order[~last[order]], order[last[order]]))
        rows = by_fastest(view, line)
        size, free = view.scale_factor[rows.job], view.capacity.astype(np.int64)
        type = would_sit(rows.job, rows.type, size, view.jobs, free)
        scattered = _scattered(view, type, closely & ~last) if closely.any() else ()
        if not len(scattered):
            near = np.where(closely[rows.job], ONE_MACHINE, ANYWHERE) if closely.any() else None
            return Rows(rows.job, rows.type, within=near), type >= 0
        last[scattered] = True


def _scattered(view: View, type: Ints, closely: Bools) -> list[int]:
    """Return who of those that must sit closely could not, if each job moved to its `type` (job,), -1 = none."""
    moves = np.flatnonzero((type >= 0) & (type != view.on_type))
    if not closely[moves].any():
        return []
    holder = view.holder
    floor = FreeCapacity(view.topology, (holder == -1) | ((holder >= 0) & (type != view.on_type)[holder]))
    widest_first = moves[np.argsort(-view.scale_factor[moves], kind="stable")]
    seated = (
        (m, floor.place(int(type[m]), int(view.scale_factor[m]), one_machine=bool(closely[m])))
        for m in widest_first.tolist()
    )
    return [m for m, seats in seated if seats is None]
