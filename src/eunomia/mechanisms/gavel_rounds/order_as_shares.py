"""An order as shares: jobs that would run on an empty cluster get x = 1 there, the others 0."""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Bools, Floats, Ints


@kernel()
def whole_shares(job: Ints, type: Ints, size: Ints, capacity: Floats, stops: bool) -> Bools:
    """Return which rows get all of their time, (row,); rows of one job stand together, the best first.

    With `stops` no job passes one for which no type has enough accelerators left. A job that finds room only on types
    that its rows do not name, where it cannot run, gets nothing and delays no other: so the published queue does it.
    """
    free = capacity.copy()
    given = np.zeros(len(job), np.bool_)
    row = 0
    while row < len(job):
        last = row
        while last < len(job) and job[last] == job[row]:
            last += 1
        if stops and (free < size[row]).all():
            break
        for k in range(row, last):
            if free[type[k]] >= size[k]:
                free[type[k]] -= size[k]
                given[k] = True
                break
        row = last
    return given
