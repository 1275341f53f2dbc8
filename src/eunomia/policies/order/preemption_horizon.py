"""The jobs that would run, and the waiting jobs that may overtake them."""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Rows
from eunomia.model.arrays import NO_INTS, Bools, Ints
from eunomia.model.view import View
from eunomia.placing.choose import would_run


def would_run_in(view: View, rows: Rows) -> Bools:
    """Return whether each job would run, (job,), if all accelerators were allocated anew to candidates in order."""
    size, free = view.scale_factor[rows.job], view.capacity.astype(np.int64)
    return would_run(rows.job, rows.type, size, view.jobs, free)


def next_behind(order: Ints, running: Bools) -> tuple[Ints, Ints]:
    """Return the running jobs that precede a waiting one in `order`, and for each the next waiting job."""
    waits = np.flatnonzero(~running[order])  # places in the order
    if len(waits) == 0:
        return NO_INTS, NO_INTS
    runs = np.flatnonzero(running[order[: waits[-1]]])
    return order[runs], order[waits[np.searchsorted(waits, runs)]]
