"""Entitlements of jobs and tenants, in accelerators, by ASTRAEA's long-term accelerator-time fairness.

    job       min(z_m, w_m / Σ w of the tenant's jobs · O_u)
    tenant    min(demand_u, O_u)
    O_u       S_u − Σ entitlements of the tenants below u; its share S_u where there are none
    S_u       its quota where one is declared, asked for or not, but no more than S_parent
              else w_u / Σ w · (S_parent − Σ declared quotas of its siblings), Σ over such siblings with demand, itself
              included; 0 without demand

Entitlements are accelerator time, so shares are fractions: of nine equal tenants on eight accelerators each has 8/9.
The demand of a tenant includes that of the tenants below it. The paper has no nested tenants and rounds shares by
weight down to whole accelerators, as whole accelerators are what its scheduler places (`model.tenants.Tenants.quota`).
Here the children's entitlements are subtracted from the parent's share, so that all entitlements within u add up to at
most S_u.

Reference: Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for
Multi-Tenant GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.tenants import Tenants
from eunomia.model.tolerance import RELATIVE


def of_jobs(size: Array | float, weight: Array | float, together: Array, own: Floats) -> Floats:
    """Return min(z, w / Σ w · O); `together` is Σ w over the tenant's pending and running jobs."""
    return np.asarray(np.minimum(size, weight / together * own))


def of_tenants(demand: Array, own: Floats) -> Floats:
    """Return min(demand, O)."""
    return np.asarray(np.minimum(demand, own))


def left(share: Array, owed: Array) -> Floats:
    """Return O: the share less what is owed to the tenants below."""
    over = np.asarray(share - owed)
    return np.where(over > RELATIVE * np.abs(share), over, 0.0)


def rows_below(parent: Ints) -> dict[int, Ints]:
    """Return the rows of all tenants below each that has any, deeper tenants first; `parent` is of `Tenants`."""
    rows: dict[int, list[int]] = {}
    for u in range(len(parent) - 1, -1, -1):  # children follow their parents
        if parent[u] >= 0:
            rows.setdefault(int(parent[u]), []).extend((u, *rows.get(u, ())))
    return {u: np.array(rows[u], dtype=np.int64) for u in sorted(rows, reverse=True)}


class FairShares:
    """The shares of one tree of tenants, S and O, as their demand changes."""

    def __init__(self, tree: Tenants) -> None:
        self.tree, self.below = tree, rows_below(tree.parent)
        declared = ~np.isnan(tree.said_quota)
        self._families: list[tuple[int, Ints, Ints, float]] = []  # parent, children without and with quotas, their sum
        for parent in np.unique(tree.parent).tolist():  # parents precede their children
            children = tree.parent == parent
            promised = np.flatnonzero(children & declared)
            reserved = float(tree.said_quota[promised].sum())
            self._families.append((parent, np.flatnonzero(children & ~declared), promised, reserved))
        self._last: tuple[float, Bools, Floats] | None = None  # capacity, tenants with demand, shares

    def shares(self, capacity: float, present: Bools) -> Floats:
        """Return S, (tenant,), in a cluster of `capacity` accelerators; not to be changed.

        `present` (tenant,): whether its own jobs ask for any.
        """
        last = self._last
        if last is None or last[0] != capacity or (last[1] != present).any():
            self._last = last = capacity, present, self._divide(capacity, present)
        return last[2]

    def owned(self, capacity: float, demand: Array) -> Floats:
        """Return O, (tenant,), from the accelerators that each tenant's own jobs ask for."""
        own = self.shares(capacity, demand > 0)
        own = own.copy() if self.below else own
        for u, rows in self.below.items():
            own[u] = left(own[u], of_tenants(demand[rows], own[rows]).sum())
        return own

    def _divide(self, capacity: float, present: Bools) -> Floats:
        present = present.copy()
        for u, rows in self.below.items():
            present[u] |= present[rows].any()
        share = self.tree.said_quota.copy()
        for parent, rows, declared, reserved in self._families:
            whole = capacity if parent < 0 else share[parent]
            weight = np.where(present[rows], self.tree.weight[rows], 0.0)
            total = weight.sum()
            if parent >= 0:
                share[declared] = np.minimum(share[declared], whole)
            share[rows] = max(whole - reserved, 0.0) * weight / total if total > 0 else 0.0
        return share
