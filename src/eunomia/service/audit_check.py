"""The audit log verified from outside of a service: what is in the store, and parts that were taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eunomia.service.store.audit_files import check_file
from eunomia.service.store.audit_log import AuditChanged
from eunomia.service.store.removal_reader import RemovalReader

LAST_S = 253_402_300_799.0  # the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """A part of the audit log: its first and last entry, its day in UTC, and the file in which it was found."""

    first: int
    last: int
    day: str
    is_removed: bool
    file: str = ""


@dataclass(slots=True)
class AuditFindings:
    """The parts of an audit log, and what is not as it was written."""

    has_key: bool  # otherwise no signature was checked
    parts: list[ShownPart] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as a command prints it."""
        parts = [{name.removeprefix("is_"): value for name, value in asdict(one).items()} for one in self.parts]
        return {"signatures_checked": self.has_key, "parts": parts, "problems": self.problems}


def audited(place: Path | str, key: bytes | None, files: Sequence[Path]) -> AuditFindings:
    """Verify the audit log of a store, and that files are parts of it.

    Raises StoreProblem if there is no store, and InvalidInput for a file that is no part of an audit log.
    """
    found = AuditFindings(key is not None)
    with closing(RemovalReader(place)) as reader:
        reader.check_version()
        if wrong := reader.check_audit(key):
            found.problems.append(wrong)
        origin, cluster_id = reader.fact("origin", 0.0), reader.cluster_id()
        try:
            known = {(one.first, one.last): one for one in reader.audit_parts()}
        except AuditChanged:  # named already
            known = {}
    for one in known.values():
        day = datetime.fromtimestamp(min(max(origin + one.begun, 0.0), LAST_S), UTC).date().isoformat()
        found.parts.append(ShownPart(first=one.first, last=one.last, day=day, is_removed=one.removed is not None))
    for path in files:
        try:
            cluster, part = check_file(path, key)
        except AuditChanged as error:
            found.problems.append(f"{path}: {error}")
            continue
        mine = known.get((part.first, part.last))
        if cluster != cluster_id or mine is None or (mine.before, mine.after) != (part.before, part.after):
            found.problems.append(f"{path}: this is no part of the audit log of this store")
            continue
        found.parts = [
            replace(shown, file=str(path)) if (shown.first, shown.last) == (part.first, part.last) else shown
            for shown in found.parts
        ]
    return found
