"""Who sits where once it is known who runs: those who go on keep their seats, the others sit close together."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import Ints
from eunomia.model.view import View
from eunomia.placing.floor import Floor
from eunomia.policies.grants.astraea.seen import Seen, held_by


def seats(view: View, seen: Seen, rows: Rows, put_out: Ints, line: list[int]) -> tuple[Ints, Ints]:
    """Return entry of `rows` and device, by seat. Jobs sit down as they stand in `line`, on as few nodes as they can.

    The seats of `put_out` and of leases that have ended are free, but for those whose holders go on where they are.
    """
    stays, leaving, place = (np.full(view.jobs, value) for value in (False, False, -1))
    stays[rows.job] = seen.over[rows.job] & (view.on_type[rows.job] == rows.type)
    leaving[put_out] = True
    leaving |= seen.over & ~stays
    place[rows.job] = np.arange(len(rows))
    kept = np.flatnonzero(held_by(view, stays))
    row, device = [place[view.holder[kept]]], [kept]
    floor = Floor(view.topology, (view.holder == -1) | held_by(view, leaving))
    for m in line:
        if not stays[m]:
            found = floor.place(int(rows.type[place[m]]), int(view.scale_factor[m]))
            assert found is not None  # they were counted
            row.append(np.full(len(found), place[m]))
            device.append(found)
    return np.concatenate(row), np.concatenate(device)
