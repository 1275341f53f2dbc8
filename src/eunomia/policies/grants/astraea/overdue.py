"""Phase 0: the gang that has starved longest is seated first, or has seats set aside until enough have come free.

Leases that end one by one leave a wide gang no moment at which enough seats are free. Once it has waited for the
threshold, and its tenant's quota has room for it, seats that come free are nobody's until it sits, and nobody else of
its tenant sits down. So it waits for one lease more at most. Where quotas lend, what its tenant holds is no obstacle:
those are leases that end too.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools
from eunomia.model.view import View
from eunomia.policies.grants.astraea.seen import Seen

NOBODY = (-1, -1)


def overdue(view: View, seen: Seen, starving: Bools, *, lends: bool) -> tuple[int, int]:
    """Return the job that seats are for, and their type; NOBODY when there is none."""
    if not starving.any():
        return NOBODY
    room = seen.quota if lends else seen.quota - seen.held
    waits = np.flatnonzero(starving & (view.scale_factor <= room[seen.tenant]))
    capacity = np.bincount(view.topology.type[view.holder != -2], minlength=len(view.types))
    for m in waits[np.argsort(-view.wait[waits], kind="stable")].tolist():
        able = (view.throughput[m] > 0) & (view.scale_factor[m] <= capacity)
        if able.any():
            return m, int(np.argmax(np.where(able, seen.free, -1)))
    return NOBODY
