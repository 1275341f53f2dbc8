"""The store as the removal reads it: jobs by their end, which ids it knows, and how much goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from eunomia.service.store import audit_log
from eunomia.service.store.audit_log import AuditChanged
from eunomia.service.store.checked_rows import clock_of
from eunomia.service.store.job_sums import in_groups, places
from eunomia.service.store.old_rows import Limits, OldRows, ended_jobs, old_rows
from eunomia.service.store.opening import FILE, StoreProblem
from eunomia.service.store.reader import Reader
from eunomia.service.store.row_sums import selected
from eunomia.service.store.schema import VERSION, StoredClock


class RemovalReader(Reader):
    """Reads what a removal needs to know."""

    def check_version(self) -> None:
        """Raise StoreProblem for a place without a store, or with one of another version."""
        where = str(self._place)
        if isinstance(self._place, Path):
            is_there, text = (self._place / FILE).exists(), "PRAGMA user_version"
        else:
            is_there = self._db.execute("SELECT to_regclass('meta')").fetchone()[0] is not None
            text = "SELECT value FROM meta WHERE key = 'version'"
        if not is_there:
            raise StoreProblem.of(where, "there is no store here", "give the site of a service that ran")
        if (version := int(self._db.execute(text).fetchone()[0])) != VERSION:
            rule = f"the store has version {version}, and this program reads version {VERSION}"
            raise StoreProblem.of(where, rule, "start the service once with this version")

    def clock(self) -> StoredClock | None:
        """Return when the last turn was committed; None where nothing was."""
        found = self._db.execute(f"SELECT {selected('clock')} FROM clock").fetchone()
        return None if found is None else clock_of(found)

    def ended(
        self, since: float, until: float, count: int, after: tuple[float, int] = (-math.inf, 0)
    ) -> list[tuple[float, int, str]]:
        """Return end, number and id of jobs that ended in a span; see `ended_jobs`."""
        return ended_jobs(self._db, since, until, count, after)

    def known(self, job_ids: Sequence[str]) -> set[str]:
        """Return which of the ids are those of stored jobs."""
        found = set[str]()
        for group in in_groups(job_ids):
            rows = self._db.execute(f"SELECT id FROM jobs WHERE id IN ({places(group)})", group)
            found.update(str(job_id) for (job_id,) in rows.fetchall())
        return found

    def check_audit(self, key: bytes | None) -> str:
        """Return what is wrong with the audit log as it is now, also while a service writes; "" if nothing is."""
        try:
            with self.snapshot():
                audit_log.check(self._db, self.cluster_id(), key)
        except AuditChanged as error:
            return str(error)
        return ""

    def old_rows(self, limits: Limits) -> list[OldRows]:
        """Return what goes from the store."""
        return old_rows(self._db, limits)
