"""What jobs and tenants deserve at one time: accelerators, by ASTRAEA's long-term accelerator-time fairness.

    job       min(z_m, w_m / Σ w of the tenant's jobs · O_u)
    tenant    min(demand_u, O_u)
    O_u       Q_u − Σ of what is owed to the tenants below u; its quota Q_u where there are none

The paper knows no tenants within tenants. Here a quota is owned once, so the children's jobs come first and those of
the parent have what they leave: all that is owed within u is at most Q_u.
Reference: Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for Multi-Tenant GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints

_ROUNDING = 1e-9  # of an accelerator


def of_jobs(size: Array | float, weight: Array | float, together: Array, own: Floats) -> Floats:
    """Return min(z, w / Σ w · O): what a job asks for, or its part of what its tenant owns.

    `together` is Σ w, the weight of all jobs of the tenant that wait or run.
    """
    return np.asarray(np.minimum(size, weight / together * own))


def of_tenants(demand: Array, own: Floats) -> Floats:
    """Return min(demand, O): what all jobs of a tenant ask for, or what it owns."""
    return np.asarray(np.minimum(demand, own))


def left(quota: Array, owed: Array) -> Floats:
    """Return what tenants below leave of a quota when so much is owed to them: what its owner's own jobs have."""
    over = np.asarray(quota - owed)
    return np.where(over > _ROUNDING, over, 0.0)


def owned(demand: Array, quota: Floats, below: Mapping[int, Ints]) -> Floats:
    """Return O, (tenant,), from what the jobs of each tenant ask for and its quota; `below` is of `rows_below`."""
    own = quota.copy()
    for u, rows in below.items():
        own[u] = left(quota[u], of_tenants(demand[rows], own[rows]).sum())
    return own


def rows_below(parent: Ints) -> dict[int, Ints]:
    """Return the rows of all tenants below each that has any, whoever lies deeper first; `parent` is of `Tenants`."""
    rows: dict[int, list[int]] = {}
    for u in range(len(parent) - 1, -1, -1):  # children stand after their parents
        if parent[u] >= 0:
            rows.setdefault(int(parent[u]), []).extend((u, *rows.get(u, ())))
    return {u: np.array(rows[u], dtype=np.int64) for u in sorted(rows, reverse=True)}
