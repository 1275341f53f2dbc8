"""Closes the days of the audit log as signed parts, and moves old parts from the store into files of their own.

A part is in its file, on the disk, before the store says that it is taken away, and only then its rows go. Whatever is
interrupted is done again by the next removal. A part that is not as it was written stays where it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from eunomia.service.fault_points import faultpoint
from eunomia.service.store import ServiceStore
from eunomia.service.store.audit_files import FOLDER, write_part
from eunomia.service.store.audit_log import DAY_S, KEY_FILE, AuditChanged, AuditPart, check_part, cut, follow, whole
from eunomia.service.store.opening import StoreProblem, key_in
from eunomia.service.store.removal_reader import RemovalReader

_log = logging.getLogger("eunomia.service")


@dataclass(frozen=True, slots=True)
class AuditRemoval:
    """What a removal does to the audit log of a state folder; `paced` pauses as in `Removal`."""

    reader: RemovalReader
    folder: Path
    change: Callable[[Callable[[ServiceStore], int]], int]
    paced: Callable[[float], float]

    def sweep(self, now: float, until: float) -> int:
        """Close the parts of days that are over, and take away those that ended before a time; return how many went.

        What stands in the way is logged.
        """
        try:
            key = self._key()
            self._close(key, now)
            return self._take_away(key, now, until)
        except (AuditChanged, StoreProblem, OSError) as error:
            _log.warning("the audit log stays as it is, and is tried again: %s", error)
            return 0

    def _key(self) -> bytes:
        """Return the key that signs, which is made before the first part. Raises StoreProblem where it is lost."""
        path = self.folder / KEY_FILE
        if not path.exists() and self.reader.audit_parts():
            rule = "the key that signed the parts of the audit log is not there"
            fix = "put it back; if it is lost, stop the service: eunomia store new-audit-key site.toml"
            raise StoreProblem.of(path, rule, fix)
        return key_in(path, "the audit log", "parts that it signed cannot be verified any more")

    def _close(self, key: bytes, now: float) -> None:
        """Write the rows of the parts that are complete, once their entries follow each other."""
        closed, cluster_id = self.reader.audit_parts(), self.reader.cluster_id()
        last, chain = (closed[-1].last, closed[-1].after) if closed else (0, "")
        rows = follow(self._in_pieces(self.reader.audit_entries(last)), chain)
        for part in cut(rows, chain, now // DAY_S * DAY_S):
            if not self.change(partial(_write, part=part.signed(cluster_id, key))):
                return

    def _take_away(self, key: bytes, now: float, until: float) -> int:
        """Write old parts into files, and then that they are taken away; return how many."""
        count, cluster_id = 0, self.reader.cluster_id()
        for part in self.reader.audit_parts():
            if part.removed is not None:
                continue
            if part.ended >= until:
                break
            check_part(part, cluster_id, key)
            rows = self._in_pieces(self.reader.audit_entries(part.first - 1, part.last))
            write_part(self.folder / FOLDER, cluster_id, part, whole(rows, part))
            faultpoint("audit.written")
            count += self.change(partial(_write, part=replace(part, removed=now).signed(cluster_id, key)))
        return count

    def _in_pieces(self, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        begun = time.perf_counter()
        for row in rows:
            yield row
            begun = self.paced(begun)


def _write(store: ServiceStore, part: AuditPart) -> int:
    with store.transaction() as db:
        part.add_to(db)
        faultpoint("audit.closed")
    return 1
