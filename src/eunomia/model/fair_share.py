"""Entitlements of jobs and tenants, in accelerators, by ASTRAEA's long-term accelerator-time fairness.

    job       min(z_m, w_m / Σ w of the tenant's jobs · O_u)
    tenant    min(demand_u, O_u)
    O_u       Q_u − Σ entitlements of the tenants below u; its quota Q_u where there are none

The paper has no nested tenants. Here the children's entitlements are subtracted from the parent's quota, so that all
entitlements within u add up to at most Q_u.

Reference: Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for
Multi-Tenant GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints

_ROUNDING = 1e-9  # of an accelerator


def of_jobs(size: Array | float, weight: Array | float, together: Array, own: Floats) -> Floats:
    """Return min(z, w / Σ w · O); `together` is Σ w over the tenant's pending and running jobs."""
    return np.asarray(np.minimum(size, weight / together * own))


def of_tenants(demand: Array, own: Floats) -> Floats:
    """Return min(demand, O)."""
    return np.asarray(np.minimum(demand, own))


def left(quota: Array, owed: Array) -> Floats:
    """Return O: the quota less what is owed to the tenants below."""
    over = np.asarray(quota - owed)
    return np.where(over > _ROUNDING, over, 0.0)


def owned(demand: Array, quota: Floats, below: Mapping[int, Ints]) -> Floats:
    """Return O, (tenant,), from each tenant's demand and quota; `below` is of `rows_below`."""
    own = quota.copy()
    for u, rows in below.items():
        own[u] = left(quota[u], of_tenants(demand[rows], own[rows]).sum())
    return own


def rows_below(parent: Ints) -> dict[int, Ints]:
    """Return the rows of all tenants below each that has any, deeper tenants first; `parent` is of `Tenants`."""
    rows: dict[int, list[int]] = {}
    for u in range(len(parent) - 1, -1, -1):  # children follow their parents
        if parent[u] >= 0:
            rows.setdefault(int(parent[u]), []).extend((u, *rows.get(u, ())))
    return {u: np.array(rows[u], dtype=np.int64) for u in sorted(rows, reverse=True)}
