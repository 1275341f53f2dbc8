"""Steps up many ladders that share what is free: each step goes to whoever gains most by it.

A row stands on its first step. Going from step s to s + 1 takes `extra` more of one resource and is worth `gain`, per
unit of it. Greedy: of all next steps the one with the largest gain above 0 is taken, if there is room for it; a ladder
whose next step has no room ends there. Ties go to the lower row. If gains fall along each ladder and all steps are
equally long this is the best total.

Steps are sorted once, by the least gain up to them: a larger gain behind a smaller one is taken right after that one.
"""

from __future__ import annotations

import numpy as np

from eunomia.kernels import kernel
from eunomia.model.arrays import Floats, Ints


def climb(gain: Floats, extra: Ints, resource: Ints, free: Ints) -> Ints:
    """Return the step that each row ends on, (row,), 0 = its first.

    gain and extra (row, step) of the way up from each step, gain 0 or less = no further; resource (row,) names an entry
    of free (resource,).
    """
    least = np.minimum.accumulate(gain, axis=1)
    row, step = np.nonzero(least > 0)
    line = np.lexsort((step, row, -least[row, step]))
    return _taken(row[line], step[line], extra, resource, free.astype(np.int64))


@kernel()
def _taken(row: Ints, step: Ints, extra: Ints, resource: Ints, free: Ints) -> Ints:
    reached = np.zeros(len(resource), dtype=np.int64)
    left = free.sum()
    for place in range(len(row)):
        if left == 0:
            break
        m, s = row[place], step[place]
        if reached[m] == s and extra[m, s] <= free[resource[m]]:
            reached[m] = s + 1
            free[resource[m]] -= extra[m, s]
            left -= extra[m, s]
    return reached
