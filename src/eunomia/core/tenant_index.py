"""The tree of tenants as it grows: every owner gets a row when its first job comes, and keeps it."""

from __future__ import annotations

from collections.abc import Mapping

from eunomia.model.tenants import Tenant, Tenants


class TenantIndex:
    """Tenants that have owned a job so far, and their declarations."""

    def __init__(self, declared: Mapping[str, Tenant]):
        self._declared = declared
        self._row: dict[str, int] = {}
        self.tree = Tenants.of((), declared)

    def row_of(self, owner: str) -> int:
        """Return the row of an owner in `tree`, which grows if it is new."""
        if owner not in self._row:
            self.tree = Tenants.of([*self._row, owner], self._declared)
            self._row[owner] = self.tree.row_of(owner)
        return self._row[owner]

    def change(self, name: str, tenant: Tenant) -> None:
        """Give a tenant other options; all rows stay as they are."""
        declared = {other: self._declared.get(other, Tenant()) for other in self.tree.names}
        self._declared = {**declared, name: tenant}
        self.tree = Tenants.of(self._row, self._declared)

    @property
    def known(self) -> Mapping[str, int]:
        """Return the row of each owner so far."""
        return self._row
