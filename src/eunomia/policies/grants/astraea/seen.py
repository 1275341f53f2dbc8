"""What ASTRAEA reads off a view: who competes, who holds what, and how tenants stand, the least served first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.rounding import rising
from eunomia.model.view import View
from eunomia.policies.grants.astraea.window import last_hours, ratio

NEVER = -1.0  # when a lease was given of which nothing is remembered
YOUNGEST_S = 120.0  # a job's first lease is not fresh before that age


@dataclass(frozen=True, slots=True)
class Seen:
    """Tenants stand by what they used over what they were entitled to, the least first."""

    tenant: Ints  # (job,)
    quota: Ints  # (tenant,) whole accelerators
    used: Floats  # (tenant,) accelerator-seconds within the window
    entitled: Floats  # (tenant,)
    competes: Bools  # (job,) waits, or its lease has ended; not too wide for its tenant
    over: Bools  # (job,) its lease has ended
    too_wide: Bools  # (job,) never ran, and its tenant's quota could never hold it
    never_ran: Bools  # (job,)
    held: Ints  # (tenant,) accelerators under leases that go on
    free: Ints  # (type,) accelerators that may be given now, those of ended leases included

    @classmethod
    def of(cls, view: View, hours: int) -> Seen:
        """Read a view."""
        said = view.tenants.quota(view.topology.devices).astype(np.int64)
        sums = last_hours(view.hourly, view.at, hours) if len(view.hourly) else np.zeros((len(said), 3))
        order = rising(ratio(sums[:, 0], sums[:, 2], unknown=1.0))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        running, never_ran = view.on_type >= 0, np.isinf(view.first_started)
        too_wide = never_ran & (view.scale_factor > said[view.tenant])
        over = running & (view.until <= view.at)
        going_on = running & ~over
        tenant = place[view.tenant]
        held = np.bincount(tenant[going_on], view.scale_factor[going_on], len(order)).astype(np.int64)
        open_ = (view.holder == -1) | held_by(view, over)
        free = np.bincount(view.topology.type[open_], minlength=len(view.types))
        competes = (~running | over) & ~too_wide
        return cls(tenant, said[order], sums[order, 0], sums[order, 2], competes, over, too_wide, never_ran, held, free)


def held_by(view: View, who: Bools) -> Bools:
    """Return the accelerators that some jobs (job,) hold, (device,)."""
    nobody_nor_lost = False, False  # -1 and -2
    return np.append(who, nobody_nor_lost)[view.holder]


def given_at(view: View) -> Floats:
    """Return when each job's present lease was given, (job,): as remembered, or later if it has run on since."""
    remembered = view.memory["leased_at"]
    if np.isinf(view.lease):
        return remembered.copy()
    runs_on = (view.on_type >= 0) & np.isfinite(view.until)
    return np.where(runs_on, np.maximum(remembered, view.until - view.lease), remembered)


def fresh(view: View, seen: Seen, leased_at: Floats, delay: float) -> Ints:
    """Return the jobs whose present lease may end early for a new job; `leased_at` (job,) is when it was given."""
    age, first = view.at - leased_at, leased_at <= view.first_started
    young = (leased_at != NEVER) & (age < delay) & (~first | (age >= YOUNGEST_S))
    return np.flatnonzero(young & (view.on_type >= 0) & ~seen.over)


def wishes(view: View, rows: Ints) -> Ints:
    """Return types by job, (job, rank), the one it sits on first, then the fastest; -1 = no more."""
    speed = view.throughput[rows]
    wish = speed.copy()
    sitting = np.flatnonzero(view.on_type[rows] >= 0)
    wish[sitting, view.on_type[rows[sitting]]] = np.inf
    order = np.argsort(-wish, axis=1, kind="stable")
    return np.where(np.take_along_axis(speed, order, axis=1) > 0, order, -1)


def refusal(view: View, seen: Seen, job: int) -> str:
    """Say why a job that is wider than its tenant's quota is not admitted."""
    owner, quota = view.tenants.names[view.tenant[job]], seen.quota[seen.tenant[job]]
    size = view.scale_factor[job]
    asks = f"it asks for {size} accelerator{'' if size == 1 else 's'}, and the quota of its tenant {owner!r} is {quota}"
    by_weight = np.isnan(view.tenants.said_quota[view.tenant[job]])
    more = "a larger quota" if not by_weight else "more weight" if quota else "a quota, and others less"
    return f"{asks}; give {owner!r} {more}, or ask for fewer"
