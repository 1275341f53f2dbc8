"""What tenants received of what they deserved in the last day (LTGF), while the service runs.

    LTGF_u = ∫ accelerators held by u dt / ∫ min(demand_u, O_u) dt        O_u as `model.fair_share` has it

It is `metrics.sharing.ltgf_over_time` of the living: the same entitlement, over the present hour and the 23 before it.
What was before the start of the service is not counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from eunomia.core.scheduler import Scheduler
from eunomia.model import fair_share
from eunomia.model.arrays import Floats
from eunomia.model.tenants import Tenants

HOURS = 24
_HOUR = 3600.0
_LEAST = 1e-6  # accelerator-seconds; less is a rounding error


class TenantFairness:
    """Sums of each hour by tenant; `advance` is called before anything changes."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._hours: deque[tuple[int, dict[str, Floats]]] = deque(maxlen=HOURS)  # number of the hour, sums by tenant

    def advance(self, scheduler: Scheduler, at: float) -> None:
        """Add up the time since the last call, in which the state was as it is."""
        since = self._at
        self._at = at if since is None else max(at, since)
        if since is None or at <= since:
            return
        tree, rates = _rates(scheduler)
        first, last = int(since // _HOUR), int(at // _HOUR)
        for hour in range(max(first, last - HOURS), last + 1):
            part = min(at, (hour + 1) * _HOUR) - max(since, hour * _HOUR)
            if not self._hours or self._hours[-1][0] != hour:
                self._hours.append((hour, {}))
            sums = self._hours[-1][1]
            for name, rate in zip(tree.names, rates, strict=True):
                sums[name] = sums.get(name, 0.0) + rate * part

    def sums(self) -> Mapping[str, tuple[float, float]]:
        """Return the accelerator-seconds that each tenant received and deserved in the last day."""
        found: dict[str, Floats] = {}
        for _, sums in self._hours:
            for name, both in sums.items():
                found[name] = found.get(name, 0.0) + both
        return {name: (float(both[0]), float(both[1])) for name, both in found.items()}

    def by_hour(self, name: str) -> list[tuple[float, float]]:
        """Return what a tenant received and deserved in each of the last 24 hours, the oldest first."""
        found, last = dict(self._hours), self._hours[-1][0] if self._hours else 0
        hours = (found.get(hour, {}).get(name, (0.0, 0.0)) for hour in range(last - HOURS + 1, last + 1))
        return [(float(both[0]), float(both[1])) for both in hours]

    def ltgf(self) -> dict[str, float]:
        """Return the LTGF of each tenant that deserved anything in the last day."""
        return {name: got / due for name, (got, due) in self.sums().items() if due > _LEAST}


def _rates(scheduler: Scheduler) -> tuple[Tenants, Floats]:
    """Return the tenants, and the accelerators that each holds and deserves now, (tenant, 2)."""
    state, tree = scheduler.state, scheduler.state.owners.tree
    rows, count = state.active, len(tree.names)
    owner = state.jobs.owner[rows]
    demand = np.bincount(owner, state.jobs.scale_factor[rows], minlength=count)
    held = np.bincount(owner, scheduler.ledger.width[rows], minlength=count)
    own = fair_share.owned(demand, tree.quota(float(state.capacity.sum())), fair_share.rows_below(tree.parent))
    return tree, np.stack((held, fair_share.of_tenants(demand, own)), axis=1)
