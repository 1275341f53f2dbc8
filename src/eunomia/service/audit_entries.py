"""Entries of the audit log as they are shown: looked for in the store and in files of parts, and verified.

Entries are read in blocks: a part, or some of those that are in no part yet. Each block is read and verified whole, so
what is shown of it is as it was written, or is said not to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput
from eunomia.service.job_row import iso
from eunomia.service.store.audit_files import FOLDER, part_path, read_part
from eunomia.service.store.audit_log import KEY_FILE, MOST, AuditChanged, AuditPart, check_part, follow, read_key, whole
from eunomia.service.store.reader import Reader

MOST_READ = 20_000  # entries that one search reads before it answers with what it has found


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which entries are wanted; times are of the service. "" and inf: all."""

    user: str = ""
    action: str = ""
    object: str = ""  # also one of several, between commas
    source: str = ""
    begin: float = -math.inf
    end: float = math.inf
    limit: int = 50
    before: int = 2**62  # entries with lower numbers, the newest first
    after: int | None = None  # instead of that: entries with higher numbers, the oldest first

    def wants(self, row: Sequence[Any]) -> bool:
        """Say whether an entry is one of them, besides its number."""
        _, at, user, _, source, action, subject, *_ = row
        return (
            self.begin <= at < self.end
            and self.user in ("", user)
            and self.action in ("", action)
            and self.source in ("", source)
            and (self.object in ("", subject) or self.object in str(subject).split(","))
        )


@dataclass(slots=True)
class FoundEntries:
    """Entries, the parts that were taken away and not found, and what is not as it was written."""

    origin: float
    has_key: bool  # or there was nothing signed
    entries: list[dict[str, Any]] = field(default_factory=list)
    taken_away: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    next: str | None = None
    read: int = 0

    def add(self, row: Sequence[Any], file: str, is_verified: bool) -> None:
        """Add an entry as the API shows it."""
        number, at, user, role, source, action, subject, *_ = row
        self.entries.append({
            "number": int(number), "at": iso(self.origin + float(at)), "user": str(user), "role": str(role),
            "source": str(source), "action": str(action), "object": str(subject), "verified": is_verified,
            "file": file or None,
        })  # fmt: skip

    def shown(self) -> dict[str, Any]:
        """Return all of it as the API shows it."""
        return {
            "entries": self.entries, "taken_away": self.taken_away, "problems": self.problems, "next": self.next,
            "signatures_checked": self.has_key,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Block:
    """Entries behind one, until the last; those of a part, or without one."""

    after: int
    last: int
    part: AuditPart | None = None


def find_entries(reader: Reader, state: Path, origin: float, query: AuditQuery) -> FoundEntries:
    """Return entries of the audit log of a store; `state` is the folder of the key and of the files of parts."""
    key = read_key(state / KEY_FILE)
    found = FoundEntries(origin, key is not None)
    with reader.snapshot():
        try:
            parts = reader.audit_parts()
        except AuditChanged as error:
            found.problems.append(str(error))
            parts = []
        found.has_key |= not parts  # there is no signature
        search = _Search(reader, state / FOLDER, key, reader.cluster_id(), parts, found)
        if query.after is None:
            search.backwards(query)
        else:
            search.forwards(query, query.after)
    return found


@dataclass(frozen=True, slots=True)
class _Read:
    """The entries of a block, how many of them are as they were written, and the file that they are in."""

    rows: list[Sequence[Any]]
    verified: int
    file: str = ""


@dataclass(slots=True)
class _Search:
    reader: Reader
    folder: Path
    key: bytes | None
    cluster_id: str
    parts: list[AuditPart]
    found: FoundEntries

    def backwards(self, query: AuditQuery) -> None:
        """Look through the blocks, the newest first, until there are enough or enough was read."""
        found = self.found
        for block in self._blocks():
            if block.after + 1 >= query.before or not _may_have(block.part, query):
                continue
            if len(found.entries) >= query.limit or found.read >= MOST_READ:
                found.next = str(min(query.before, block.last + 1))
                return
            read = self._read(block)
            found.read += len(read.rows)
            for place, row in reversed([*enumerate(read.rows)]):
                if row[0] < query.before and query.wants(row):
                    if len(found.entries) == query.limit:
                        found.next = str(found.entries[-1]["number"])
                        return
                    found.add(row, read.file, place < read.verified)

    def forwards(self, query: AuditQuery, after: int) -> None:
        """Look through the entries of the store behind one; `next` is where to go on."""
        last = min(self.reader.last_audit(), after + MOST_READ)
        read = self._unsigned(_Block(after, last))
        self.found.next = str(max(last, after))
        for place, row in enumerate(read.rows):
            if query.wants(row):
                self.found.add(row, "", place < read.verified)
            if len(self.found.entries) == query.limit:
                self.found.next = str(row[0])
                return

    def _blocks(self) -> Iterator[_Block]:
        begin, last = self.parts[-1].last if self.parts else 0, self.reader.last_audit()
        for first in reversed(range(begin, last, MOST)):
            yield _Block(first, min(first + MOST, last))
        for part in reversed(self.parts):
            yield _Block(part.first - 1, part.last, part)

    def _read(self, block: _Block) -> _Read:
        part = block.part
        if part is None:
            return self._unsigned(block)
        if part.removed is not None:
            return self._of_file(part)
        rows = list(self.reader.audit_entries(block.after, block.last))
        try:
            check_part(part, self.cluster_id, self.key)
        except AuditChanged as error:
            self.found.problems.append(str(error))
            return _Read(rows, 0)
        return self._verified(rows, whole(iter(rows), part))

    def _unsigned(self, block: _Block) -> _Read:
        """Return entries that are in no part; the first must follow what was before it."""
        rows = list(self.reader.audit_entries(block.after, block.last))
        before = next((part.after for part in self.parts if part.last == block.after), None)
        chain = self.reader.audit_digest(block.after) if before is None else before
        return self._verified(rows, follow(iter(rows), chain))

    def _verified(self, rows: list[Sequence[Any]], checked: Iterator[Sequence[Any]]) -> _Read:
        """Count the entries that are as they were written, and name what is not."""
        count = 0
        try:
            for _ in checked:
                count += 1
        except AuditChanged as error:
            self.found.problems.append(str(error))
        return _Read(rows, count)

    def _of_file(self, part: AuditPart) -> _Read:
        """Return the entries of a part that was taken away, if its file is still there."""
        path = part_path(self.folder, self.cluster_id, part)
        try:
            check_part(part, self.cluster_id, self.key)
            cluster_id, there, rows = read_part(path, self.key)
            if cluster_id == self.cluster_id and (there.before, there.after) == (part.before, part.after):
                return _Read(rows, len(rows), path.name)
            self.found.problems.append(f"{path.name}: this is no part of the audit log of this store")
        except InvalidInput as error:
            if path.exists():
                self.found.problems += [f"{path.name}: {one.rule}" for one in error.problems]
        except AuditChanged as error:
            self.found.problems.append(f"{path.name}: {error}")
        self.found.taken_away.append({
            "first": part.first, "last": part.last, "begun_at": iso(self.found.origin + part.begun),
            "ended_at": iso(self.found.origin + part.ended), "file": path.name,
            "removed_at": None if part.removed is None else iso(self.found.origin + part.removed),
        })  # fmt: skip
        return _Read([], 0)


def _may_have(part: AuditPart | None, query: AuditQuery) -> bool:
    """Say whether a part has entries of the span that is asked for."""
    return part is None or (part.begun < query.end and part.ended >= query.begin)
