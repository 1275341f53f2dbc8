"""Who comes next behind whom: when time alone lets a waiting job overtake a running one."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Ints


def next_behind(order: Ints, running: Bools) -> tuple[Ints, Ints]:
    """Return the running jobs with somebody waiting behind them in `order`, and for each the first who does."""
    waits = np.flatnonzero(~running[order])  # places in the order
    if len(waits) == 0:
        return NO_INTS, NO_INTS
    runs = np.flatnonzero(running[order[: waits[-1]]])
    return order[runs], order[waits[np.searchsorted(waits, runs)]]
