"""Tickets: what part of each type a tenant may have for its tickets, and how its jobs share that.

    A[u,j]   accelerators of tenant u, in proportion to tickets S[u]; nobody gets more than its jobs can hold, D[u] in
             all and D[u,j] on type j, and of what it could have it keeps the fastest; what is left goes round again
    X[m,j]   the jobs of u share A[u,j] in proportion to their weights, each at most all of its time

u tenant, S[u] the product of its parts by weight down the tree, m job.
"""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tenants import Tenants
from eunomia.model.view import View
from eunomia.policies.shares.share_inputs import NEEDS as _NEEDS
from eunomia.policies.shares.share_inputs import relative_speed, speeds

NEEDS = _NEEDS | {"tenant", "tenants"}
_ROUNDING = 1e-9  # of an accelerator


def tickets_of(tenants: Tenants, owner: Ints) -> Floats:
    """Return S (tenant,): each one's part of all, by weight among the siblings that own jobs or are above who does."""
    there = np.zeros(len(tenants.names), dtype=bool)
    there[owner] = True
    for u in range(len(there) - 1, -1, -1):  # parents stand before their children
        if there[u] and tenants.parent[u] >= 0:
            there[tenants.parent[u]] = True
    weight = np.where(there, tenants.weight, 0.0)
    together = np.bincount(tenants.parent + 1, weight, minlength=len(there) + 1)[tenants.parent + 1]
    share = np.divide(weight, together, out=np.zeros_like(weight), where=together > 0)
    for u in np.flatnonzero(there & (tenants.parent >= 0)).tolist():
        share[u] *= share[tenants.parent[u]]
    return share


def level_fill(amount: float, weight: Floats, cap: Floats) -> Floats:
    """Return min(λ w, cap), (taker,), with the λ at which it adds up to the amount, or all caps where they are less."""
    given, open_ = np.zeros(len(cap)), (cap > 0) & (weight > 0)
    while open_.any():
        level = (amount - given.sum()) / weight[open_].sum()
        full = open_ & (cap <= level * weight + _ROUNDING)
        if not full.any():
            given[open_] = level * weight[open_]
            return given
        given[full] = cap[full]
        open_ &= ~full
        if amount - given.sum() <= _ROUNDING:
            break
    return given


class TicketDemand:
    """What the tenants' jobs could hold, and how much each type is worth to them."""

    def __init__(self, view: View) -> None:
        self.T = speeds(view, "aware")
        self.owner, tenants = view.tenant, len(view.tenants.names)
        z, can = view.scale_factor.astype(float), self.T > 0
        self.on_type = np.zeros((tenants, len(view.types)))  # D[u,j] accelerators
        np.add.at(self.on_type, self.owner, z[:, None] * can)
        self.in_all = np.bincount(self.owner, z * can.any(axis=1), minlength=tenants).astype(float)  # D[u]
        worth = np.zeros_like(self.on_type)
        np.add.at(worth, self.owner, z[:, None] * relative_speed(self.T))
        self.worth = np.divide(worth, self.on_type, out=np.zeros_like(worth), where=self.on_type > 0)
        self.tickets = tickets_of(view.tenants, self.owner)


def entitled(wants: TicketDemand, capacity: Floats) -> Floats:
    """Return A (tenant, type) accelerators."""
    A = np.zeros_like(wants.on_type)
    for _ in range(A.size):
        left, unmet = capacity - A.sum(axis=0), wants.in_all - A.sum(axis=1)
        cap = np.where(unmet[:, None] > _ROUNDING, wants.on_type - A, 0.0)
        more = np.stack([level_fill(left[j], wants.tickets, cap[:, j]) for j in range(len(left))], axis=1)
        more = _fastest_first(more, wants.worth, unmet)
        if more.sum() <= _ROUNDING:
            break
        A += more
    return A


def _fastest_first(offered: Floats, worth: Floats, room: Floats) -> Floats:
    """Return what is kept of an offer (tenant, type) where there is room (tenant,): of the fastest types first."""
    order = np.argsort(-worth, axis=1, kind="stable")
    sorted_ = np.take_along_axis(offered, order, axis=1)
    before = np.cumsum(sorted_, axis=1) - sorted_
    kept = np.clip(np.maximum(room, 0.0)[:, None] - before, 0.0, sorted_)
    result = np.zeros_like(offered)
    np.put_along_axis(result, order, kept, axis=1)
    return result


def spread(A: Floats, view: View, wants: TicketDemand) -> Floats:
    """Return X (job, type) of what the tenants have; types that few of a tenant's jobs can use are given first."""
    X, z = np.zeros_like(wants.T), view.scale_factor.astype(float)
    for u in np.flatnonzero(A.sum(axis=1) > 0).tolist():
        mine = wants.owner == u
        for j in np.argsort(wants.on_type[u], kind="stable").tolist():
            able: Bools = mine & (wants.T[:, j] > 0)
            room = np.where(able, z * (1.0 - X.sum(axis=1)), 0.0)
            X[:, j] += level_fill(A[u, j], view.weight, room) / z
    return np.asarray(np.clip(X, 0.0, 1.0))
