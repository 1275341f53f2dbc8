"""Who owns jobs: a tree of tenants with weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

Inner = Literal["fairness", "fifo"]
INNER: tuple[Inner, ...] = get_args(Inner)
_ROUNDING = 1e-9  # of an accelerator
NOBODY = "-"  # who owns the jobs that name no tenant


@dataclass(frozen=True, slots=True)
class Tenant:
    """What a scenario says of one tenant; its name is a path such as `lab/vision`, its parent the path before."""

    weight: float = 1.0
    inner: Inner = "fairness"  # how its jobs and sub-tenants share what it gets
    quota: float = math.nan  # accelerators that are its own; nan = not said, a part of what is left by weight
    borrows: bool = True  # may use what others leave idle


@dataclass(frozen=True, slots=True)
class Tenants:
    """The tree as arrays; parents stand before their children."""

    names: tuple[str, ...]
    parent: Ints  # (tenant,) row of the parent, -1 = at the top
    weight: Floats  # (tenant,) above 0, among siblings
    inner: Ints  # (tenant,) place in INNER
    said_quota: Floats  # (tenant,) accelerators; nan = not said
    borrows: Bools  # (tenant,)
    _quota: dict[float, Floats] = field(init=False, repr=False, compare=False, default_factory=dict)  # by capacity

    @classmethod
    def of(cls, owners: Iterable[str], said: Mapping[str, Tenant] | None = None) -> Tenants:
        """Build the tree of these owners, their ancestors and all that were said; an unsaid one weighs 1."""
        said = said or {}
        row: dict[str, int] = {}
        parents: list[int] = []
        for owner in [*said, *owners]:
            path = (owner or NOBODY).split("/")
            for depth in range(1, len(path) + 1):
                name = "/".join(path[:depth])
                if name not in row:
                    row[name] = len(row)
                    parents.append(row["/".join(path[: depth - 1])] if depth > 1 else -1)
        known = [said.get(name, Tenant()) for name in row]
        return cls(
            tuple(row),
            np.array(parents, dtype=np.int64),
            np.array([one.weight for one in known], dtype=float),
            np.array([INNER.index(one.inner) for one in known], dtype=np.int64),
            np.array([one.quota for one in known], dtype=float),
            np.array([one.borrows for one in known], dtype=bool),
        )

    def quota(self, capacity: float) -> Floats:
        """Return the accelerators that are each tenant's own, (tenant,), of a cluster with so many.

        Whoever has no quota of its own gets a part of what its siblings leave of their parent's, by weight and rounded
        down: Q_u = ⌊C w_u / Σ w⌋ where nothing is said (Ye et al., ASTRAEA, TPDS 2022).
        """
        if capacity not in self._quota:
            self._quota[capacity] = self._divided(capacity)
        return self._quota[capacity].copy()

    def _divided(self, capacity: float) -> Floats:
        quota = self.said_quota.copy()
        for parent in np.unique(self.parent).tolist():  # those before their children
            whole = capacity if parent < 0 else quota[parent]
            mine = self.parent == parent
            open_ = mine & np.isnan(self.said_quota)
            left = max(whole - np.nansum(self.said_quota[mine]), 0.0)
            if open_.any():
                quota[open_] = np.floor(left * self.weight[open_] / self.weight[open_].sum() + _ROUNDING)
        return quota

    def row_of(self, owner: str) -> int:
        """Return the row of an owner. Raises ValueError for one that is not in the tree."""
        return self.names.index(owner or NOBODY)
