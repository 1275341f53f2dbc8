"""What ASTRAEA reads from a view: the jobs that compete, what tenants hold, and their order, the least served first.

Long-term fairness is what was used over what was due, for tenants over a window that slides by hours (LTGF):

    ρ[m] = U[m] / D[m]            job: used over deserved accelerator-seconds, over all of its life
    σ[u] = Σ U[u] / Σ W[u]        tenant: used over entitled (quota × time) in the last hours; 1 where there is none
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.model.view import View
from eunomia.placement.grants_builder import FREE, held_by

HOUR_S = 3600.0
NEVER = -1.0  # when a lease was given of which nothing is remembered
YOUNGEST_S = 120.0  # a job's first lease is not fresh before that age


@dataclass(frozen=True, slots=True)
class TenantOrder:
    """Tenants are numbered by what they used over what they were entitled to, the least first."""

    tenant: Ints  # (job,)
    quota: Ints  # (tenant,) whole accelerators
    used: Floats  # (tenant,) accelerator-seconds within the window
    entitled: Floats  # (tenant,)
    competes: Bools  # (job,) pending, or its lease has ended; not too wide for its tenant
    over: Bools  # (job,) its lease has ended
    too_wide: Bools  # (job,) never ran, and its tenant's quota could never hold it
    never_ran: Bools  # (job,)
    held: Ints  # (tenant,) accelerators under leases that continue
    free: Ints  # (type,) accelerators that may be given now, those of ended leases included

    @classmethod
    def of(cls, view: View, hours: int) -> TenantOrder:
        """Read a view."""
        said = view.tenants.quota(view.topology.devices).astype(np.int64)
        sums = (
            last_hours(view.tenant_hourly_usage, view.at, hours)
            if len(view.tenant_hourly_usage)
            else np.zeros((len(said), 3))
        )
        order = rising(ratio(sums[:, 0], sums[:, 2], unknown=1.0))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        running, never_ran = view.on_type >= 0, np.isinf(view.first_started)
        too_wide = never_ran & (view.scale_factor > said[view.tenant])
        over = running & (view.lease_end <= view.at)
        going_on = running & ~over
        tenant = place[view.tenant]
        held = np.bincount(tenant[going_on], view.scale_factor[going_on], len(order)).astype(np.int64)
        open_ = (view.holder == FREE) | held_by(view.holder, over)
        free = np.bincount(view.topology.type[open_], minlength=len(view.types))
        competes = (~running | over) & ~too_wide
        return cls(tenant, said[order], sums[order, 0], sums[order, 2], competes, over, too_wide, never_ran, held, free)


def given_at(view: View) -> Floats:
    """Return when each job's present lease was given, (job,): as remembered, or later if it has run on since."""
    remembered = view.memory["leased_at"]
    if np.isinf(view.longest_lease):
        return remembered.copy()
    runs_on = (view.on_type >= 0) & np.isfinite(view.lease_end)
    return np.where(runs_on, np.maximum(remembered, view.lease_end - view.longest_lease), remembered)


def fresh(view: View, seen: TenantOrder, leased_at: Floats, delay: float) -> Ints:
    """Return the jobs whose present lease may end early for a new job; `leased_at` (job,) is when it was given."""
    age, first = view.at - leased_at, leased_at <= view.first_started
    young = (leased_at != NEVER) & (age < delay) & (~first | (age >= YOUNGEST_S))
    return np.flatnonzero(young & (view.on_type >= 0) & ~seen.over)


def wishes(view: View, rows: Ints) -> Ints:
    """Return types by job, (job, rank), the one it runs on first, then the fastest; -1 = no more."""
    speed = view.throughput[rows]
    if speed.shape[1] == 1:
        return np.where(speed > 0, 0, -1)
    wish = speed.copy()
    runs = np.flatnonzero(view.on_type[rows] >= 0)
    wish[runs, view.on_type[rows[runs]]] = np.inf
    order = np.argsort(-wish, axis=1, kind="stable")
    return np.where(np.take_along_axis(speed, order, axis=1) > 0, order, -1)


def refusal(view: View, seen: TenantOrder, job: int) -> str:
    """Say why a job that is wider than its tenant's quota is not admitted."""
    owner, quota = view.tenants.names[view.tenant[job]], seen.quota[seen.tenant[job]]
    size = view.scale_factor[job]
    asks = f"it asks for {size} accelerator{'' if size == 1 else 's'}, and the quota of its tenant {owner!r} is {quota}"
    by_weight = np.isnan(view.tenants.said_quota[view.tenant[job]])
    more = "a larger quota" if not by_weight else "more weight" if quota else "a quota, and others less"
    return f"{asks}; give {owner!r} {more}, or ask for fewer"


def ratio(used: Floats, due: Floats, unknown: float) -> Floats:
    """Return used over due; `unknown` where nothing is due yet."""
    rho: Floats = np.divide(used, due, out=np.full(np.shape(due), unknown), where=due > 0)
    return rho


def last_hours(hourly: Floats, at: float, hours: int) -> Floats:
    """Return the sums of the last `hours`, (tenant, column), of sums by hour whose last one is the present hour.

    Of the hour in which the window begins only the part counts that lies within it.
    """
    part = math.fmod(at, HOUR_S) / HOUR_S
    recent = hourly[-(hours + 1) :]
    whole = recent[1:] if len(recent) > hours else recent
    begun = recent[0] * (1.0 - part) if len(recent) > hours else 0.0
    return np.asarray(whole.sum(axis=0) + begun)
