"""Owners of jobs: a tree of tenants with weights. A name is a path such as `lab/vision`, below its parent `lab`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.model.tolerance import RELATIVE
from eunomia.model.value_equality import PlainValue

Inner = Literal["fairness", "fifo"]
INNER: tuple[Inner, ...] = get_args(Inner)
NO_TENANT = "-"  # owner of the jobs that name no tenant


@dataclass(frozen=True, slots=True, eq=False)
class Tenant(PlainValue):
    """Options of one tenant in a scenario."""

    weight: float = 1.0
    inner: Inner = "fairness"  # how its jobs and sub-tenants share what it gets
    quota: float = math.nan  # accelerators; nan = not declared: a part, by weight, of the remaining ones
    borrows: bool = True  # may use idle quota of others


@dataclass(frozen=True, slots=True)
class Tenants:
    """The tree as arrays; parents precede their children."""

    names: tuple[str, ...]
    parent: Ints  # (tenant,) row of the parent, -1 = at the top
    weight: Floats  # (tenant,) above 0, among siblings
    inner: Ints  # (tenant,) place in INNER
    said_quota: Floats  # (tenant,) accelerators; nan = not declared
    borrows: Bools  # (tenant,)
    _quota: dict[float, Floats] = field(init=False, repr=False, compare=False, default_factory=dict)  # by capacity

    @classmethod
    def of(cls, owners: Iterable[str], declared: Mapping[str, Tenant] | None = None) -> Tenants:
        """Build the tree of these owners, their ancestors and all in `declared`; the default weight is 1."""
        declared = declared or {}
        row: dict[str, int] = {}
        parents: list[int] = []
        for owner in [*declared, *owners]:
            path = (owner or NO_TENANT).split("/")
            for depth in range(1, len(path) + 1):
                name = "/".join(path[:depth])
                if name not in row:
                    row[name] = len(row)
                    parents.append(row["/".join(path[: depth - 1])] if depth > 1 else -1)
        options = [declared.get(name, Tenant()) for name in row]
        return cls(
            tuple(row),
            np.array(parents, dtype=np.int64),
            np.array([tenant.weight for tenant in options], dtype=float),
            np.array([INNER.index(tenant.inner) for tenant in options], dtype=np.int64),
            np.array([tenant.quota for tenant in options], dtype=float),
            np.array([tenant.borrows for tenant in options], dtype=bool),
        )

    def quota(self, capacity: float) -> Floats:
        """Return the quota of each tenant, (tenant,) accelerators, in a cluster of `capacity` accelerators.

        Tenants without a declared quota share, by weight and rounded down, what their siblings leave of the parent's
        quota: Q_u = ⌊C w_u / Σ w⌋ where none is declared (Ye et al., ASTRAEA, TPDS 2022).
        """
        if capacity not in self._quota:
            self._quota[capacity] = self._divide(capacity)
        return self._quota[capacity].copy()

    def _divide(self, capacity: float) -> Floats:
        quota = self.said_quota.copy()
        for parent in np.unique(self.parent).tolist():  # parents precede their children
            whole = capacity if parent < 0 else quota[parent]
            siblings = self.parent == parent
            undeclared = siblings & np.isnan(self.said_quota)
            left = max(whole - np.nansum(self.said_quota[siblings]), 0.0)
            if undeclared.any():
                weight = self.weight[undeclared]
                quota[undeclared] = np.floor(left * weight / weight.sum() * (1 + RELATIVE))
        return quota

    def row_of(self, owner: str) -> int:
        """Return the row of an owner. Raises ValueError for an owner that is not in the tree."""
        return self.names.index(owner or NO_TENANT)
