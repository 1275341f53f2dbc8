"""Who sits where once it is known who runs: those who go on keep their seats, the others sit close together."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import NO_INTS, Ints
from eunomia.model.view import View
from eunomia.placement.free_capacity import FreeCapacity
from eunomia.policies.grants.astraea.seen import Seen, held_by


def seats(view: View, seen: Seen, rows: Rows, put_out: Ints, line: list[int]) -> tuple[Ints, Ints]:
    """Return entry of `rows` and device, by seat. Jobs sit down as they stand in `line`, on as few nodes as they can.

    The seats of `put_out` and of leases that have ended are free, but for those whose holders go on where they are.
    """
    stays, place = np.zeros(view.jobs, dtype=bool), np.full(view.jobs, -1)
    stays[rows.job] = seen.over[rows.job] & (view.on_type[rows.job] == rows.type)
    place[rows.job] = np.arange(len(rows))
    kept = np.flatnonzero(held_by(view, stays)) if stays.any() else NO_INTS
    row, device = [place[view.holder[kept]]], [kept]
    comes = [m for m in line if not stays[m]]
    if comes:
        leaving = seen.over & ~stays
        leaving[put_out] = True
        floor = FreeCapacity(view.topology, (view.holder == -1) | held_by(view, leaving))
    for m in comes:
        found = floor.place(int(rows.type[place[m]]), int(view.scale_factor[m]))
        assert found is not None  # they were counted
        row.append(np.full(len(found), place[m]))
        device.append(found)
    return np.concatenate(row), np.concatenate(device)
