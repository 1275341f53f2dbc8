"""The quota that lends: what tenants leave idle goes to others, up to `most` of their quota, and is taken back.

    reclaim    while claims within quotas are more than what is free:  stop the newest of the jobs above a quota
    lend       give what is still free, but no more than unused quota, to others in drawn order, up to most · Q[u]

A tenant's jobs above its quota are those that do not fit into it by order of submission.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Ints
from eunomia.model.view import View
from eunomia.policies.grants.astraea.seen import Seen


def reclaimed(view: View, seen: Seen, short: int) -> Ints:
    """Return jobs to stop so that `short` accelerators come free, as far as tenants are above their quotas."""
    going_on = np.flatnonzero((view.on_type >= 0) & ~seen.over)
    line = going_on[np.lexsort((view.submitted[going_on], seen.tenant[going_on]))]
    size, tenant = view.scale_factor[line], seen.tenant[line]
    before = np.cumsum(size) - size
    first = np.searchsorted(tenant, tenant)
    held = before - before[first] + size if len(line) else size  # by the tenant up to and with this job
    above = line[held > seen.quota[tenant]]
    newest = above[np.argsort(-view.submitted[above], kind="stable")]
    gives = np.cumsum(view.scale_factor[newest])
    return newest[: int(np.searchsorted(gives, short) + 1)] if short > 0 else newest[:0]


def lent(free: Ints, unused: int) -> Ints:
    """Return what may be lent by type: what is free, but no more than unused quota in all."""
    return np.diff(np.minimum(np.cumsum(free), unused), prepend=0)
