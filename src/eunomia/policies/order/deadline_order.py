"""Common parts of the deadline policies: late jobs, their place in the order, and who may overtake running ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np

from eunomia.model.arrays import NO_INTS, Bools, Floats, Ints
from eunomia.model.wait_reason import Reason, WaitReasons

Late = Annotated[Literal["first", "last"], "'first' (in their place by deadline) or 'last' (behind all others)"]
_DIGITS = 7  # of seconds


def order_by_deadline(key: Floats, is_late: Bools, late: Late) -> Ints:
    """Return the jobs by `key` (job,), seconds, the smallest first; with `last` the late ones behind the others.

    Keys are rounded to tenths of a microsecond, less than the policies' tolerance for times. Ties go by row.
    """
    behind = is_late if late == "last" else np.zeros(len(key), dtype=bool)
    return np.lexsort((np.round(key, _DIGITS), behind))


def late_jobs(is_late: Bools, deadline: Floats, code: str) -> tuple[tuple[int, ...], Mapping[int, Reason]]:
    """Return the late jobs, and the reason of each, with its deadline."""
    why = WaitReasons.of(len(is_late), is_late, Reason(code, numbers=(0.0,)), deadline)
    return tuple(np.flatnonzero(is_late).tolist()), why


def next_behind(order: Ints, running: Bools) -> tuple[Ints, Ints]:
    """Return the running jobs that precede a waiting one in `order`, and for each the next waiting job."""
    waits = np.flatnonzero(~running[order])  # places in the order
    if len(waits) == 0:
        return NO_INTS, NO_INTS
    runs = np.flatnonzero(running[order[: waits[-1]]])
    return order[runs], order[waits[np.searchsorted(waits, runs)]]
