"""What a store committed last, written beside it: so a foreign, older or cut store is noticed before it is used.

The file has two places that are written in turn, each in a sector of its own, so that a power cut spoils one at most.
It is written after each commit and never synced: it may lag behind the store, and is never ahead of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eunomia.service.store.opening import StoreProblem

FILE = "store.head"
SECTOR = 512
_log = logging.getLogger(__name__)
RESTORED = "restored"  # in `meta`: the generation from which a restored store counts on


@dataclass(frozen=True, slots=True)
class Head:
    """Which store, the generation that wrote last, its last moment, the last entry of its audit log and its digest."""

    cluster_id: str
    generation: int
    moment: int
    audit: int
    digest: str

    @classmethod
    def of(cls, execute: Callable[..., Any]) -> Head:
        """Read it from an open store; `execute` runs a statement and returns its cursor."""
        meta = dict(execute("SELECT key, value FROM meta WHERE key IN ('cluster_id', 'generation')").fetchall())
        moment = execute("SELECT coalesce(max(seq), 0) FROM moments").fetchone()[0]
        last = execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone() or (0, "")
        cluster = _short(meta.get("cluster_id", ""))
        return cls(cluster, _whole(meta.get("generation")), moment, _whole(last[0]), _short(last[1]))

    def missing_in(self, execute: Callable[..., Any]) -> str:
        """Return what this head names and an open store lacks; "" where it went on from it, or was restored since."""
        restored = execute("SELECT value FROM meta WHERE key = ?", (RESTORED,)).fetchone()
        if restored is not None and _whole(restored[0]) > self.generation:
            return ""
        found = Head.of(execute)
        if found.cluster_id != self.cluster_id:
            return f"the store is that of another service ({found.cluster_id}; here ran {self.cluster_id})"
        if (found.generation, found.moment) < (self.generation, self.moment):
            return (
                f"the store is older than what was committed last: it ends with moment {found.moment:,} of start "
                f"{found.generation:,}, and moment {self.moment:,} of start {self.generation:,} was there"
            )
        row = execute("SELECT hash FROM audit WHERE seq = ?", (self.audit,)).fetchone()
        if self.audit and (row is None or _short(row[0]) != self.digest):
            return f"the audit log was cut or changed: its entry {self.audit:,} is not the one that was written"
        return ""


def read_head(folder: Path) -> Head | None:
    """Return what was committed last in a state folder; None where that was never written.

    Raises StoreProblem if the file cannot be read.
    """
    path = folder / FILE
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    found = [head for at in (0, SECTOR) if (head := _unpacked(raw[at : at + SECTOR])) is not None]
    if not raw:  # made by a start that ended before it committed anything
        return None
    if not found:
        rule = "the file that says what the store committed last is damaged"
        raise StoreProblem.of(path, rule, "if `eunomia store check` finds the store sound, remove this file")
    return max(found, key=lambda head: (head.generation, head.moment, head.audit))


def check_head(folder: Path, execute: Callable[..., Any]) -> None:
    """Raise StoreProblem for a store that lacks what was committed last in a state folder."""
    head = read_head(folder)
    if head is not None and (rule := head.missing_in(execute)):
        fix = (
            f"type: eunomia store restore BACKUP --state FOLDER; or, to go on from this store as it is, remove "
            f"{folder / FILE}"
        )
        raise StoreProblem.of(folder, rule, fix)


class HeadFile:
    """The file of the service that leads, open for writing."""

    def __init__(self, folder: Path) -> None:
        self._handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._written: Head | None = None
        self._place = 0

    def write(self, head: Head) -> None:
        """Write what was committed last, unless it stands there; where it cannot be written, it lags behind."""
        if head == self._written:
            return
        try:
            os.pwrite(self._handle, _packed(head), self._place)
        except OSError as error:
            _log.warning("%s lags behind the store: %s", FILE, error)
        else:
            self._written, self._place = head, SECTOR - self._place

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _whole(fact: Any) -> int:
    """Return a fact of `meta` that is a whole number; 0, which is before every other, for any other."""
    return int(fact) if str(fact).isascii() and str(fact).isdigit() and len(str(fact)) < 19 else 0


def _packed(head: Head) -> bytes:
    text = json.dumps(asdict(head))
    return f"{_digest(text)} {text}\n".encode().ljust(SECTOR)


def _unpacked(raw: bytes) -> Head | None:
    digest, _, text = raw.decode("ascii", "replace").strip().partition(" ")
    return Head(**json.loads(text)) if text and digest == _digest(text) else None


def _short(text: object) -> str:
    """Return a text that fits into its place, whatever a row of the store holds: itself, or its digest."""
    shown = str(text)
    return shown if len(shown) <= 64 and shown.isascii() and shown.isprintable() else _digest(repr(text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
