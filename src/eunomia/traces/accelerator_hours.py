"""Accelerator-hours of a history by accelerator type and tenant: what its source says, and what was written of it.

A reader of accounting adds up the rows of its source without regard to the jobs that it builds of them, and names the
hours of each row that it leaves out, repeats or reads in another way. Then for each type and tenant

    source + Σ changes = written    within `RELATIVE`

and what remains is an error of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from eunomia.model.arrays import Bools, Floats, Ints

RELATIVE = 1e-3  # by which the sums of source and import may differ
SMALLEST = 1e-6  # accelerator-hours: less than a clock of whole seconds can tell
HOUR_S = 3600.0
MOST_BEYOND = 0.05  # fraction of the accelerator-time that may be beyond the cluster: lists of machines are not exact
Owner: TypeAlias = tuple[str, str]  # accelerator type, tenant


@dataclass(frozen=True, slots=True)
class AcceleratorHours:
    """Accelerator-hours by (accelerator type, tenant); "" is a type or tenant that is not named. May be negative."""

    by_owner: Mapping[Owner, float] = field(default_factory=dict)

    @classmethod
    def summed(cls, types: Iterable[str], tenants: Iterable[str], hours: Iterable[float]) -> AcceleratorHours:
        """Return the sums of entries, added in their order; the three have one value an entry."""
        sums: dict[Owner, float] = {}
        for kind, tenant, each in zip(types, tenants, hours, strict=True):
            if each:
                sums[kind, tenant] = sums.get((kind, tenant), 0.0) + each
        return cls(sums)

    @property
    def total(self) -> float:
        """All hours."""
        return sum(self.by_owner.values())

    def by_type(self) -> dict[str, float]:
        """Return the hours of each type, most first."""
        return self._by(0)

    def by_tenant(self) -> dict[str, float]:
        """Return the hours of each tenant, most first."""
        return self._by(1)

    def _by(self, place: int) -> dict[str, float]:
        sums: dict[str, float] = {}
        for owner, hours in self.by_owner.items():
            sums[owner[place]] = sums.get(owner[place], 0.0) + hours
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))

    def __add__(self, other: AcceleratorHours) -> AcceleratorHours:
        sums = dict(self.by_owner)
        for owner, hours in other.by_owner.items():
            sums[owner] = sums.get(owner, 0.0) + hours
        return AcceleratorHours(sums)

    def __neg__(self) -> AcceleratorHours:
        return AcceleratorHours({owner: -hours for owner, hours in self.by_owner.items()})

    def __sub__(self, other: AcceleratorHours) -> AcceleratorHours:
        return self + -other

    def __bool__(self) -> bool:
        return any(abs(hours) > SMALLEST for hours in self.by_owner.values())

    def renamed(self, type_by_name: Mapping[str, str]) -> AcceleratorHours:
        """Return the same hours with other names of types."""
        owners = self.by_owner
        return AcceleratorHours.summed(
            (type_by_name.get(kind, kind) for kind, _ in owners), (tenant for _, tenant in owners), owners.values()
        )


NO_HOURS = AcceleratorHours()


@dataclass(frozen=True, kw_only=True, eq=False)
class RowHours:
    """What the rows of a source held, one entry for each row and accelerator type. Axes: entry."""

    row: Ints  # of the source
    type: tuple[str, ...]  # the distinct types
    type_code: Ints  # position in `type`
    tenant: tuple[str, ...]  # the distinct tenants
    tenant_code: Ints
    hours: Floats

    @classmethod
    def of_columns(cls, types: Sequence[str], tenants: Sequence[str], hours: Floats) -> RowHours:
        """Return the hours of rows with one type each, (row,) each."""
        kinds, owners = ({name: k for k, name in enumerate(dict.fromkeys(column))} for column in (types, tenants))
        return cls(
            row=np.arange(len(hours)),
            type=tuple(kinds),
            type_code=np.array([kinds[name] for name in types], dtype=np.int64),
            tenant=tuple(owners),
            tenant_code=np.array([owners[name] for name in tenants], dtype=np.int64),
            hours=np.nan_to_num(hours),
        )

    def total(self) -> AcceleratorHours:
        """Return the sum over all rows."""
        return self._sum(self.hours)

    def of(self, rows: Ints | Bools) -> AcceleratorHours:
        """Return the sum over these rows, given as positions or as a mask."""
        chosen = np.zeros(self._rows, dtype=np.bool_)
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        chosen[places[places < self._rows]] = True
        return self._sum(np.where(chosen[self.row], self.hours, 0.0))

    @cached_property
    def _rows(self) -> int:
        return int(self.row.max()) + 1 if len(self.row) else 0

    def _sum(self, hours: Floats) -> AcceleratorHours:
        if not hours.any():
            return NO_HOURS
        owner = self.type_code * len(self.tenant) + self.tenant_code
        sums = np.bincount(owner, weights=hours)  # adds in the order of the rows
        places = np.flatnonzero(sums).tolist()
        many = len(self.tenant)
        return AcceleratorHours({(self.type[k // many], self.tenant[k % many]): float(sums[k]) for k in places})


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursChange:
    """Why an import has other hours than its source: a cause, in words, and what it adds or takes away."""

    what: str
    hours: AcceleratorHours


@dataclass(frozen=True, kw_only=True)
class HoursBalance:
    """The sums of a source and of what was written of it, with every difference that has a name."""

    source: AcceleratorHours
    written: AcceleratorHours
    changes: tuple[HoursChange, ...]

    def unexplained(self) -> AcceleratorHours:
        """Return written less source and changes, where that is more than `RELATIVE` of either: an error."""
        expected = sum((change.hours for change in self.changes), self.source)
        left = (self.written - expected).by_owner
        sizes = [hours.by_owner for hours in (expected, self.written)]
        return AcceleratorHours(
            {
                owner: hours
                for owner, hours in left.items()
                if abs(hours) > max(RELATIVE * max(abs(size.get(owner, 0.0)) for size in sizes), SMALLEST)
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form: sums of source and written in all, by type and by tenant, and each difference."""
        sides = (("source", self.source), ("written", self.written))
        return {
            **{name: hours.total for name, hours in sides},
            **{f"by_{key}": _beside(key, self.source, self.written) for key in ("type", "tenant")},
            "differences": [
                {"what": change.what, "accelerator_hours": change.hours.total, "by_type": change.hours.by_type(),
                 "by_tenant": change.hours.by_tenant()}
                for change in self.changes
            ],
            "unexplained": [
                {"type": kind, "tenant": tenant, "accelerator_hours": hours}
                for (kind, tenant), hours in self.unexplained().by_owner.items()
            ],
        }  # fmt: skip


def _beside(key: str, source: AcceleratorHours, written: AcceleratorHours) -> dict[str, dict[str, float]]:
    """Return the sums of both sides for each type or tenant, most in the source first."""
    pair = [getattr(hours, f"by_{key}")() for hours in (source, written)]
    names = dict.fromkeys([*pair[0], *pair[1]])
    return {name: {"source": pair[0].get(name, 0.0), "written": pair[1].get(name, 0.0)} for name in names}
