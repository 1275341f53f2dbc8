"""Tickets: the accelerators of each type that a tenant gets for its tickets, and the shares of its jobs.

    A[u,j]   accelerators of tenant u, in proportion to tickets S[u], at most what its jobs can hold, D[u] in total and
             D[u,j] on type j, the fastest types first; what is left over is divided again
    X[m,j]   the jobs of u share A[u,j] in proportion to their weights, each at most all of its time

u tenant, S[u] the product of its parts by weight down the tree, m job.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tenants import Tenants
from eunomia.model.tolerance import RELATIVE, is_at_least, is_at_most
from eunomia.model.view import View
from eunomia.policies.order.decayed_usage import whole_shares
from eunomia.policies.shares.share_inputs import NEEDS as _NEEDS
from eunomia.policies.shares.share_inputs import relative_speed, speeds

NEEDS = _NEEDS | {"tenant", "tenants"}


def tickets_of(tenants: Tenants, owner: Ints) -> Floats:
    """Return S (tenant,): fraction of all tickets, by weight among siblings with jobs in their subtrees."""
    active = np.zeros(len(tenants.names), dtype=bool)
    active[owner] = True
    for u in range(len(active) - 1, -1, -1):  # parents precede their children
        if active[u] and tenants.parent[u] >= 0:
            active[tenants.parent[u]] = True
    return whole_shares(np.where(active, tenants.weight, 0.0), tenants.parent)


def level_fill(amount: float, weight: Floats, cap: Floats) -> Floats:
    """Return min(λ w, cap), (row,), with λ such that it adds up to the amount, or cap where all caps add up to less."""
    given, active = np.zeros(len(cap)), (cap > 0) & (weight > 0)
    while active.any():
        level = (amount - given.sum()) / weight[active].sum()
        full = active & is_at_most(cap, level * weight)
        if not full.any():
            given[active] = level * weight[active]
            return given
        given[full] = cap[full]
        active &= ~full
        if is_at_least(given.sum(), amount):
            break
    return given


class TicketDemand:
    """Accelerators that the tenants' jobs can hold, and the worth of each type to them."""

    def __init__(self, view: View) -> None:
        self.T = speeds(view, "aware")
        self.owner, tenants = view.tenant, len(view.tenants.names)
        z, can = view.scale_factor.astype(float), self.T > 0
        self.on_type = np.zeros((tenants, len(view.types)))  # D[u,j] accelerators
        np.add.at(self.on_type, self.owner, z[:, None] * can)
        self.total = np.bincount(self.owner, z * can.any(axis=1), minlength=tenants).astype(float)  # D[u]
        worth = np.zeros_like(self.on_type)
        np.add.at(worth, self.owner, z[:, None] * relative_speed(self.T))
        self.worth = np.divide(worth, self.on_type, out=np.zeros_like(worth), where=self.on_type > 0)
        self.tickets = tickets_of(view.tenants, self.owner)


def allocate(demand: TicketDemand, capacity: Floats) -> Floats:
    """Return A (tenant, type) accelerators."""
    A = np.zeros_like(demand.on_type)
    for _ in range(A.size):
        left, met = capacity - A.sum(axis=0), A.sum(axis=1)
        unmet = np.where(is_at_least(met, demand.total), 0.0, demand.total - met)
        cap = np.where(unmet[:, None] > 0, demand.on_type - A, 0.0)
        more = np.stack([level_fill(left[j], demand.tickets, cap[:, j]) for j in range(len(left))], axis=1)
        more = _fastest_first(more, demand.worth, unmet)
        if more.sum() <= RELATIVE * capacity.sum():
            break
        A += more
    return A


def _fastest_first(offered: Floats, worth: Floats, room: Floats) -> Floats:
    """Return the part of an offer (tenant, type) that fits in room (tenant,), the fastest types first."""
    order = np.argsort(-worth, axis=1, kind="stable")
    sorted_ = np.take_along_axis(offered, order, axis=1)
    before = np.cumsum(sorted_, axis=1) - sorted_
    accepted = np.clip(np.maximum(room, 0.0)[:, None] - before, 0.0, sorted_)
    result = np.zeros_like(offered)
    np.put_along_axis(result, order, accepted, axis=1)
    return result


def split_among_jobs(A: Floats, view: View, demand: TicketDemand) -> Floats:
    """Return X (job, type) of the tenants' accelerators; types that few of a tenant's jobs can use are split first."""
    X, z = np.zeros_like(demand.T), view.scale_factor.astype(float)
    for u in np.flatnonzero(A.sum(axis=1) > 0).tolist():
        owned = demand.owner == u
        for j in np.argsort(demand.on_type[u], kind="stable").tolist():
            able: Bools = owned & (demand.T[:, j] > 0)
            room = np.where(able, z * (1.0 - X.sum(axis=1)), 0.0)
            X[:, j] += level_fill(A[u, j], view.weight, room) / z
    return np.asarray(np.clip(X, 0.0, 1.0))
