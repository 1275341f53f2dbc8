"""When an auction can say only one thing: nobody waits, and whoever bids sits where it is done soonest.

Then each app's best row keeps the seats that its gangs have, these fit together, and so nobody forfeits anything.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.answers import Grants, Rows
from eunomia.model.arrays import Bools
from eunomia.model.view import View
from eunomia.policies.grants.themis.granting import remembered
from eunomia.policies.grants.themis.ground import ground_of
from eunomia.policies.grants.themis.seen import HOLDS, levels


def undisturbed(view: View, ended: Bools) -> bool:
    """Say whether all jobs sit, and no seats are better for those whose leases have ended, (job,)."""
    if not (view.on_type >= 0).all():
        return False
    m = np.flatnonzero(ended)
    size, type = view.scale_factor[m], view.on_type[m]
    usable = np.where(size[:, None] <= view.capacity, view.throughput[m], 0.0)
    here = usable[np.arange(len(m)), type]
    seats = np.bincount(view.holder[view.holder >= 0], minlength=view.jobs)
    if not ((here > 0) & (here == usable.max(axis=1)) & (seats[m] == size)).all():
        return False
    if (view.slowdown[m] == 1).all():
        return True
    level = levels(ground_of(view.topology), view.holder, view.jobs)
    return bool((view.slowdown[m, level[m]] <= view.slowdown[m].min(axis=1)).all())


def renewed(view: View, ended: Bools) -> Grants:
    """Return the answer where all whose leases have ended keep their seats for a whole lease.

    It has no certificate: nothing was optimised.
    """
    device = np.flatnonzero(view.holder >= 0)
    device = device[ended[view.holder[device]]]
    job = np.flatnonzero(ended)
    row = np.searchsorted(job, view.holder[device])
    memory = remembered(view.at, np.full(view.jobs, HOLDS))
    return Grants(Rows(job, view.on_type[job]), row, device, np.full(len(job), np.nan), memory=memory)
