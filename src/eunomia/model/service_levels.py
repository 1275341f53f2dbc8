"""Levels of attained service: ⌊service / quantum⌋, and when a running job falls behind one that waits.

`policies.order.las` ranks by them, and `forecasts.recalled_queue` plays what it would answer, with the same bits.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tolerance import RELATIVE


@kernel(allocates=False, forceinline=True)
def level_of(service: float, quantum: float) -> float:
    """Return the level of accelerator-seconds, which are a sum of products: the tolerance is of a level."""
    return float(np.floor(service / quantum + RELATIVE))


@kernel(allocates=False)
def set_levels(service: Floats, quantum: float, level: Floats) -> None:
    """Write the level of each job, (job,)."""
    for job in range(len(service)):
        level[job] = level_of(service[job], quantum)


@kernel(allocates=False, forceinline=True)
def falls_behind_in(job: int, rival: int, service: float, size: int, rival_level: float, quantum: float) -> float:
    """Return in how many seconds a running job of `size` accelerators falls behind a waiting one.

    Within one level the earlier row is first.
    """
    behind = rival_level + (1.0 if rival > job else 0.0)
    return (behind * quantum - service) / size


@kernel(allocates=False)
def first_fall(order: Ints, running: Bools, level: Floats, service: Floats, size: Ints, quantum: float) -> float:
    """Return in how many seconds a running job first falls behind the next waiting one in `order`; inf = never.

    running … size (job,).
    """
    soonest, rival = np.inf, -1
    for place in range(len(order) - 1, -1, -1):
        job = order[place]
        if not running[job]:
            rival = job
        elif rival >= 0:
            soonest = min(soonest, falls_behind_in(job, rival, service[job], size[job], level[rival], quantum))
    return soonest
