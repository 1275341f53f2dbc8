"""What each tenant used, was entitled to and deserved, by hours of which only whole ones count."""

from __future__ import annotations

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.policies.grants.astraea.tenant_order import ratio

HOUR_S, HOURS = 3600, 24


def deserved_rate(size: Ints, tenant: Ints, quota: Ints) -> Floats:
    """Return min(z, Q / n), (job,) accelerators: what each of the n present jobs of a tenant deserves."""
    present = np.bincount(tenant, minlength=len(quota))
    return np.minimum(size, (1.0 / present[tenant]) * quota[tenant])


class UsageAccounts:
    """Accelerator-seconds by tenant over the last 24 whole hours, (tenant,) each.

    Oddity: an hour counts when it is over, so during the first one no tenant has used anything.
    """

    def __init__(self, quota: Ints):
        self._quota = quota
        self._now = np.zeros((3, len(quota)))  # used, entitled, deserved in this hour
        self._past: list[Floats] = []
        self._sums = np.zeros((3, len(quota)))

    @property
    def used(self) -> Floats:
        return np.asarray(self._sums[0])

    @property
    def entitled(self) -> Floats:
        return np.asarray(self._sums[1])

    @property
    def fairness(self) -> Floats:
        """What they used over what they deserved; 1 for tenants that deserved nothing."""
        return ratio(self._sums[0], self._sums[2], unknown=1.0)

    def turn(self) -> None:
        """Begin another hour."""
        self._past = [*self._past, self._now][-HOURS:]
        self._now = np.zeros_like(self._now)
        self._sums = np.sum(self._past, axis=0)

    def add(self, running: Ints, demand: Ints, seconds: float) -> None:
        """Count what tenants held and asked for, accelerators, in the last seconds."""
        self._now += np.stack((running, self._quota, np.minimum(demand, self._quota))) * seconds
