"""What tenants own over time, as their demand and the accelerators in service change: `model.fair_share` S and O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.metrics.step_functions import Steps, combined, summed
from eunomia.model import fair_share
from eunomia.model.arrays import Floats, Ints
from eunomia.model.tenants import Tenants
from eunomia.model.tolerance import RELATIVE

_NOTHING: Steps = np.zeros(1), np.zeros(1)


class OwnedShares:
    """Shares S and O of each tenant, in accelerators.

    A share changes with the demand of each sibling, so the step functions are made one at a time, for the time in which
    the tenant has demand, and those of tenants without children are not kept.
    """

    def __init__(self, tree: Tenants, capacity: Steps, demand: Sequence[Steps]) -> None:
        """Prepare for `capacity` accelerators in service, of which each tenant's own jobs ask for `demand` (tenant)."""
        self._tree, self._demand = tree, demand
        below = fair_share.rows_below(tree.parent)
        self._present = [
            _presence(summed([demand[u], *(demand[v] for v in below[u].tolist())]) if u in below else demand[u])
            for u in range(len(tree.names))
        ]
        self._per_weight: dict[int, Steps] = {}  # accelerators per weight, by parent
        for parent in np.unique(tree.parent).tolist():  # parents precede their children
            self._per_weight[parent] = self._divide(parent, capacity if parent < 0 else self.share(parent))
        self._of_parents: dict[int, Steps] = {}  # O
        for u, rows in below.items():
            owed = summed([self.deserved(v) for v in rows.tolist()])
            self._of_parents[u] = combined(fair_share.left, self.share(u), owed)

    def _divide(self, parent: int, whole: Steps) -> Steps:
        """Return what a unit of weight gets of the parent's share, among children with demand and without a quota."""
        children = self._tree.parent == parent
        declared = ~np.isnan(self._tree.said_quota)
        reserved = float(self._tree.said_quota[children & declared].sum())
        rows = [u for u in np.flatnonzero(children & ~declared).tolist() if len(self._present[u][0])]
        if not rows:
            return _NOTHING
        count = summed([self._present[u] for u in rows])
        weight = summed([(self._present[u][0], self._present[u][1] * self._tree.weight[u]) for u in rows])[1]
        weight[count[1] < 0.5] = np.inf  # not the rounding error that a sum of weights leaves

        def per_weight(of: Floats, weights: Floats) -> Floats:
            amount = np.maximum(of - reserved, 0.0)
            return np.divide(amount, weights, out=np.zeros_like(amount), where=weights > 0)

        return combined(per_weight, whole, (count[0], weight))

    def share(self, u: int) -> Steps:
        """Return S of a tenant."""
        parent, quota = int(self._tree.parent[u]), self._tree.said_quota[[u]]
        if not np.isnan(quota[0]):
            declared = np.zeros(1), quota
            return declared if parent < 0 else combined(np.minimum, declared, self.share(parent))
        if not len(self._present[u][0]):
            return _NOTHING
        times, amount = self._per_weight[parent]
        place, is_last = _places(times, self._present[u])
        return times[place], np.where(is_last, 0.0, amount[place] * self._tree.weight[u])

    def owned(self, u: int) -> Steps:
        """Return O of a tenant."""
        return self._of_parents[u] if u in self._of_parents else self.share(u)

    def deserved(self, u: int) -> Steps:
        """Return the part of O that the tenant's own jobs ask for."""
        return combined(fair_share.of_tenants, self._demand[u], self.owned(u))


def _presence(demand: Steps) -> Steps:
    """Return 1 while there is demand, else 0; only the changes, so 1 is first."""
    times, value = demand
    there = value > RELATIVE * value.max(initial=0.0)
    changes = np.flatnonzero(np.diff(there, prepend=False))
    return times[changes], there[changes].astype(float)


def _places(times: Floats, presence: Steps) -> tuple[Ints, np.ndarray]:
    """Return which of the times lie in spans of presence, both ends included, and which of these end a span."""
    at = np.searchsorted(times, presence[0])
    begin, end = at[0::2], at[1::2]
    if len(end) < len(begin):  # present for ever
        end = np.append(end, len(times))
    count = end - begin + 1
    place = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(count.sum())
    is_last = np.zeros(len(place), dtype=bool)
    is_last[np.cumsum(count) - 1] = True
    inside = place < len(times)
    return place[inside], is_last[inside]
