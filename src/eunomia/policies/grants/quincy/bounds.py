"""How many accelerators a tenant may run at most: its max-min part, as a pool of its own in the network.

    F[u] = max( ⌈A[u]⌉, the widest gang of u )
    A[u] = min(λ S[u], D[u]),   λ the largest number with Σ_u A[u] ≤ what there is

S[u] the part by weight of tenant u, D[u] accelerators of its jobs that can run. All tenants that want more have parts
in proportion to their weights. The widest gang counts since it would never run else. Whole bounds keep the corners of
the linear program whole, where all gangs are single accelerators: tenants hold gangs as racks hold machines.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eunomia.model.arrays import Bools, Floats
from eunomia.model.view import View
from eunomia.policies.grants.quincy.network import Options
from eunomia.policies.shares.tickets import level_fill, tickets_of

_ROUNDING = 1e-9  # of an accelerator


def at_most(view: View, goes_on: Bools) -> Floats:
    """Return F (tenant,) less what gangs hold of which nothing is decided, `goes_on` (job,); at least 0."""
    can, size = (view.throughput > 0).any(axis=1), view.scale_factor.astype(float)
    wants: Floats = np.bincount(view.tenant[can], size[can], len(view.tenants.names)).astype(float)
    part = level_fill(float((view.holder != -2).sum()), tickets_of(view.tenants, view.tenant), wants)
    widest = np.zeros(len(wants))
    np.maximum.at(widest, view.tenant[can], size[can])
    held = np.bincount(view.tenant[goes_on], size[goes_on], len(wants))
    return np.asarray(np.maximum(np.maximum(np.ceil(part - _ROUNDING), widest) - held, 0.0))


def bounded(there: Options, view: View, pools: int) -> Options:
    """Return the options with the pool of its tenant, behind the others, taken by each."""
    option = np.arange(len(there.job))
    return replace(
        there,
        option=np.concatenate((there.option, option)),
        pool=np.concatenate((there.pool, pools + view.tenant[there.job])),
        units=np.concatenate((there.units, view.scale_factor[there.job].astype(float))),
    )
