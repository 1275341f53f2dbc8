"""The store in one SQLite file: one writer, write-ahead log, synced to disk before a commit returns."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from eunomia.service.store.base import ServiceStore
from eunomia.service.store.disk_room import START_BYTES
from eunomia.service.store.head import check_head
from eunomia.service.store.opening import (
    FILE,
    StoreProblem,
    check_file,
    check_mode,
    connect,
    create,
    damage,
    is_new_store,
    lock_folder,
    migrate,
)

INCREMENTAL = 2  # of the pragma auto_vacuum: pages are given back when that is asked for
PAGES_AT_ONCE = 200
_log = logging.getLogger(__name__)


class SqliteStore(ServiceStore):
    """The writer's side. Open it with `SqliteStore.open`, which locks the folder; close it at the end."""

    errors = (sqlite3.Error,)
    refusals = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)

    def __init__(self, db: sqlite3.Connection, folder: Path, lock: int) -> None:
        super().__init__(db, folder)
        self._db: sqlite3.Connection = db
        self._lock = lock

    @classmethod
    def open(cls, folder: Path, *, must_exist: bool = False) -> SqliteStore:
        """Open or create the store of a folder. Raises StoreProblem if another process has it, or it is broken."""
        path = folder / FILE
        if not folder.exists():
            if must_exist:
                raise StoreProblem.of(folder, "there is no such folder", "give the state folder of a service")
            folder.mkdir(mode=0o700, parents=True)
        check_mode(folder)
        lock = lock_folder(folder)
        try:
            is_new = is_new_store(folder, path)
            if is_new and must_exist:
                raise StoreProblem.of(path, "there is no store here", "give the state folder of a service")
            db = connect(path)
            try:
                if is_new:
                    create(db)
                else:
                    check_file(db, path)
                    check_head(folder, db.execute)
                    migrate(db, path)
            except BaseException:
                db.close()
                raise
        except BaseException:
            os.close(lock)
            raise
        return cls(db, folder, lock)

    def close(self) -> None:
        """Close the file and release the folder."""
        super().close()
        self._db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def _is_full(self, error: Exception) -> bool:
        """Say whether a write failed for want of room; at the file that connections share this is an I/O error."""
        code = getattr(error, "sqlite_errorcode", 0)
        is_io = code & 0xFF == sqlite3.SQLITE_IOERR
        return code == sqlite3.SQLITE_FULL or (is_io and self.room.free_bytes() < START_BYTES)

    def _damage(self) -> list[str]:
        return damage(self._db, "integrity_check")

    def shrink(self) -> int:
        """Give room that rows have left back to the file system, for a few milliseconds; return how many pages.

        A tenth of the file stays for new rows. A file of an earlier version keeps its size.
        """
        pragma = self._pragmas()
        count = min(pragma["freelist_count"] - pragma["page_count"] // 10, PAGES_AT_ONCE)
        if pragma["auto_vacuum"] != INCREMENTAL or count <= 0:
            return 0
        with self.transaction() as db:
            db.execute(f"PRAGMA incremental_vacuum({count})").fetchall()
        return count

    def _pragmas(self) -> dict[str, int]:
        names = ("auto_vacuum", "freelist_count", "page_count", "page_size")
        return {name: int(self._db.execute(f"PRAGMA {name}").fetchone()[0]) for name in names}

    def rewrite(self) -> None:
        """Write the file anew without the room that rows have left, if that is much and the disk has room for a copy.

        From then on it gives it back in pieces.
        """
        pragma = self._pragmas()
        size = pragma["page_count"] * pragma["page_size"]
        if pragma["freelist_count"] <= pragma["page_count"] // 10 and pragma["auto_vacuum"] == INCREMENTAL:
            return
        if self.room.free_bytes() < 2 * size + START_BYTES:
            _log.warning("%s: no room on the disk to write the store anew", self.folder)
            return
        self._db.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        self._db.execute("VACUUM")

    def backup(self, target: Path) -> None:
        """Copy the store as it is now into another file."""
        copy = sqlite3.connect(target)
        try:
            self._db.backup(copy)
        finally:
            copy.close()
        os.chmod(target, 0o600)
