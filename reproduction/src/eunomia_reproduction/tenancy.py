"""How fairly tenants were served while a run went on, hour by hour, whatever the policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.core.entitlements import Entitlements
from eunomia.model.arrays import Floats
from eunomia.model.decisions import Decision
from eunomia.model.events import Moment
from eunomia.model.tenants import Tenants

HOUR_S = 3600.0


class Tenancy:
    """An observer that keeps what tenants used and deserved in every whole hour. The core must keep the claims."""

    def __init__(self, claims: Entitlements, tenants: Tenants):
        self._claims, self._tenants = claims, len(tenants.names)
        self._hours: list[Floats] = []  # (tenant, 3)

    def observe(self, moment: Moment, decisions: Sequence[Decision]) -> None:
        """Take in the hours that are over."""
        over = int(moment.at // HOUR_S) - len(self._hours)
        if over > 0:
            table = self._claims.hourly(self._tenants)
            self._hours += list(table[-1 - over : -1])

    def fairness(self, hours: int) -> Floats:
        """Return used over deserved accelerator-seconds in the `hours` up to each whole one, (hour, tenant).

        nan = the tenant deserved nothing then.
        """
        sums = np.cumsum(np.concatenate((np.zeros((1, self._tenants, 3)), np.array(self._hours))), axis=0)
        first = np.maximum(np.arange(1, len(sums)) - hours, 0)
        used, deserved = np.moveaxis(sums[1:, :, :2] - sums[first, :, :2], 2, 0)
        rho: Floats = np.divide(used, deserved, out=np.full(used.shape, np.nan), where=deserved > 0)
        return rho
