"""The audit log: entries chained by digests, in parts that are signed, so that old ones can be taken away.

An entry's digest covers the entry before it. A part is the entries of one day, at most `MOST`, with the digests of the
chain before and after them, signed with a key that is in no store and no backup. The signature says whether the entries
have been taken away, so the rest of the log is verified without them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.service.store.checked_rows import number, text
from eunomia.service.store.job_sums import Database

KEY_FILE = "audit.key"  # of the state folder
ENTRY = 'seq, at, "user", role, source, action, object, hash'
MOST = 10_000  # entries of a part
PAGE = 1000  # entries that are read at once
DAY_S = 86_400.0
TAKEN = "seq <= (SELECT coalesce(max(last), 0) FROM audit_parts WHERE removed IS NOT NULL)"
KEPT_LAST = "seq < (SELECT max(seq) FROM audit)"  # the next entry's digest covers it


class AuditChanged(Exception):
    """An entry or a part of the log is not as it was written; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPart:
    """Numbers and times of the first and last entry, and the digests of the chain before and after them.

    `key` is the beginning of the digest of the key with which it was signed. `removed` is when its entries were taken
    away, by the service's time; None while they are in the store.
    """

    first: int
    last: int
    begun: float
    ended: float
    before: str
    after: str
    removed: float | None = None
    key: str = ""
    signature: str = ""

    @classmethod
    def of(cls, row: Sequence[Any]) -> AuditPart:
        """Return a part of its row. Raises AuditChanged for one that cannot be used."""
        first, last, begun, ended, before, after, removed, key, signature = row
        try:
            return cls(
                first=int(number(first)), last=int(number(last)), begun=number(begun), ended=number(ended),
                before=text(before), after=text(after), removed=None if removed is None else number(removed),
                key=text(key), signature=text(signature),
            )  # fmt: skip
        except ValueError as error:
            raise AuditChanged(f"a part of the audit log cannot be read ({error})") from None

    def signed(self, cluster_id: str, key: bytes) -> AuditPart:
        """Return it with the signature of a service."""
        named = replace(self, key=key_name(key), signature="")
        content = json.dumps([cluster_id, asdict(named)])
        return replace(named, signature=hmac.new(key, content.encode(), hashlib.sha256).hexdigest())

    def has_signature_of(self, cluster_id: str, key: bytes) -> bool:
        """Whether a service has signed it, and nothing of it was changed since."""
        return hmac.compare_digest(self.signature.encode(), self.signed(cluster_id, key).signature.encode())

    def add_to(self, db: Database) -> None:
        """Write its row, or that its entries are taken away."""
        values = astuple(self)
        db.execute(
            f"INSERT INTO audit_parts (first, last, begun, ended, before, after, removed, key, signature) "
            f"VALUES ({', '.join('?' * len(values))}) ON CONFLICT (last) DO UPDATE SET "
            "removed = excluded.removed, key = excluded.key, signature = excluded.signature", values
        )  # fmt: skip


def key_name(key: bytes) -> str:
    """Return the beginning of the digest of a key, which parts name."""
    return hashlib.sha256(key).hexdigest()[:16]


def next_digest(chain: str, at: float, entry: Sequence[str]) -> str:
    """Return the digest of an entry that follows one with the digest `chain`."""
    return hashlib.sha256(json.dumps([chain, at, *entry], default=repr).encode()).hexdigest()


def parts(db: Database) -> list[AuditPart]:
    """Return the parts in order. Raises AuditChanged for one that cannot be read."""
    rows = db.execute(
        "SELECT first, last, begun, ended, before, after, removed, key, signature FROM audit_parts ORDER BY last"
    )
    return [AuditPart.of(row) for row in rows.fetchall()]


def entries(db: Database, after: int, last: int) -> Iterator[Sequence[Any]]:
    """Yield the entries behind one of them, until the last."""
    while rows := db.execute(
        f"SELECT {ENTRY} FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (after, last, PAGE)
    ).fetchall():
        yield from rows
        after = rows[-1][0]


def follow(rows: Iterable[Sequence[Any]], chain: str) -> Iterator[Sequence[Any]]:
    """Yield entries that follow one with the digest `chain`. Raises AuditChanged at the first that does not."""
    for row in rows:
        seq, at, *entry, stored = row
        chain = next_digest(chain, at, entry)
        if chain != stored:
            raise AuditChanged(f"the audit log was changed at entry {seq}")
        yield row


def cut(rows: Iterable[Sequence[Any]], before: str, until: float) -> Iterator[AuditPart]:
    """Yield the parts of entries that follow one with the digest `before`, of days that ended by a time; not signed."""
    part: AuditPart | None = None
    count = 0
    for seq, at, *_, stored in rows:
        day = at // DAY_S
        if part is not None and (count == MOST or day != part.begun // DAY_S):
            yield part
            before, part = part.after, None
        if (day + 1) * DAY_S > until:
            return
        count = 1 if part is None else count + 1
        first, begun = (seq, at) if part is None else (part.first, part.begun)
        part = AuditPart(first=first, last=seq, begun=begun, ended=at, before=before, after=stored)
    if part is not None:
        yield part


def whole(rows: Iterable[Sequence[Any]], part: AuditPart) -> Iterator[Sequence[Any]]:
    """Yield the entries of a part. Raises AuditChanged where one of them was changed or is missing."""
    chain = part.before
    for row in follow(rows, chain):
        yield row
        chain = row[-1]
    if chain != part.after:
        raise AuditChanged(f"the audit log lacks entries between {part.first} and {part.last}")


def check(db: Database, cluster_id: str, key: bytes | None) -> None:
    """Raise AuditChanged for a log that is not as it was written; signatures are checked where there is a key."""
    last, chain = 0, ""
    for part in parts(db):
        check_part(part, cluster_id, key)
        if part.before != chain or not last < part.first <= part.last:
            raise AuditChanged(f"the audit log lacks what was before entry {part.first}")
        if part.removed is None:
            for _ in whole(entries(db, last, part.last), part):
                pass
        last, chain = part.last, part.after
    for _ in follow(entries(db, last, 2**62), chain):
        pass


def check_part(part: AuditPart, cluster_id: str, key: bytes | None) -> None:
    """Raise AuditChanged for a part without the signature of a service."""
    if key is not None and not part.has_signature_of(cluster_id, key):
        rule = "was changed, or signed with another key or by another service"
        raise AuditChanged(f"the part of the audit log with the entries {part.first} to {part.last} {rule}")


def read_key(path: Path) -> bytes | None:
    """Return the key with which parts are signed; None where there is none."""
    try:
        return path.read_bytes() or None
    except FileNotFoundError:
        return None
