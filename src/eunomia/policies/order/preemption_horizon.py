"""The waiting jobs that may overtake running ones."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints


def next_behind(order: Ints, running: Bools) -> tuple[Ints, Ints]:
    """Return the running jobs that precede a waiting one in `order`, and for each the next waiting job."""
    waits = np.flatnonzero(~running[order])  # places in the order
    if len(waits) == 0:
        return NO_INTS, NO_INTS
    runs = np.flatnonzero(running[order[: waits[-1]]])
    return order[runs], order[waits[np.searchsorted(waits, runs)]]
