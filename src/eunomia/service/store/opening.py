"""Opens and creates the file of a store: its lock, its checks, its migrations."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from eunomia.inputs.atomic_write import replacing
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.service.fault_points import faultpoint
from eunomia.service.store.job_sums import sum_up
from eunomia.service.store.row_sums import row_sum
from eunomia.service.store.schema import APPLICATION_ID, BASE, MIGRATIONS, SUMMED, USAGE_SUMMED, VERSION
from eunomia.service.store.usage_sums import sum_up_usage

FILE = "store.db"
LOCK = "lock"
BUSY_S = 10.0
TRACES = ("operator.token", "store.head")  # what a service leaves in its folder
MOST_SHOWN = 100  # problems of a damaged file
_INDEX_DIFFERS = re.compile(r"(?:missing from|entries in|non-unique entry in) index (\S+)$")
_log = logging.getLogger(__name__)


class StoreProblem(InvalidInput):
    """A store that cannot be used as it is; the message says what to do. Nothing was changed."""

    @classmethod
    def of(cls, path: Path | str, rule: str, fix: str) -> Self:
        """Return the error about one file, folder or database."""
        return cls([Problem(file=str(path), rule=rule, fix=fix)])


class StoreLost(StoreProblem):
    """Another service has taken the store over."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file for the writer, and create it if needed. Raises StoreProblem if it is damaged."""
    made = not path.exists()
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    if made:
        os.chmod(path, 0o600)
    try:
        if made:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a file with tables only VACUUM changes it
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON",
                       f"busy_timeout = {int(BUSY_S * 1000)}"):  # fmt: skip
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError as error:
        db.close()
        raise _broken(path, str(error)) from error
    return db


def create(db: sqlite3.Connection) -> None:
    """Create the tables of a new store."""
    with _whole(db):
        for statement in filter(str.strip, (BASE + "".join(MIGRATIONS)).split(";")):
            db.execute(statement)
        db.execute("INSERT INTO meta (key, value) VALUES ('cluster_id', ?)", (secrets.token_hex(8),))
        origin = ("origin", repr(time.time()))
        db.execute("INSERT INTO meta (key, value, row_sum) VALUES (?, ?, ?)", (*origin, row_sum(origin)))
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _whole(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # keep the first error
            db.execute("ROLLBACK")
        raise


def check_file(db: sqlite3.Connection, path: Path) -> None:
    """Raise StoreProblem for a file that is no store of ours, of a newer version, or damaged."""
    try:
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        found = damage(db, "integrity_check")
    except sqlite3.DatabaseError as error:
        raise _broken(path, str(error)) from error
    if not ours and (path.parent / TRACES[1]).exists():
        rule = "the file holds no tables of Eunomia, as where its write-ahead log (store.db-wal) was lost"
        raise StoreProblem.of(path, rule, "type: eunomia store restore BACKUP --state FOLDER")
    if not ours:
        raise StoreProblem.of(path, "this is no store of Eunomia", "give another state folder")
    if version > VERSION:
        rule = f"the store has version {version}, and this program knows up to {VERSION}"
        raise StoreProblem.of(path, rule, "start the version that wrote it, or a newer one")
    if found:
        _rebuild_indexes(db, path, found)


def damage(db: sqlite3.Connection, check: str) -> list[str]:
    """Return the first problems that SQLite finds in the file by `quick_check` or `integrity_check`."""
    found = [str(row[0]) for row in db.execute(f"PRAGMA {check}({MOST_SHOWN})").fetchall()]
    return [one for one in found if one != "ok"]


def _rebuild_indexes(db: sqlite3.Connection, path: Path, found: list[str]) -> None:
    """Build indexes anew that lack rows of their tables, where nothing else is wrong. Raises StoreProblem otherwise.

    An index holds nothing that its table does not; pages that are in disorder are left alone.
    """
    indexes = sorted({match[1] for one in found if (match := _INDEX_DIFFERS.search(one))})
    if not all(map(_INDEX_DIFFERS.search, found)):
        raise _broken(path, "; ".join(found[:3]))
    try:
        with _whole(db):
            for index in indexes:
                db.execute(f'REINDEX "{index}"')
        left = damage(db, "integrity_check")
    except sqlite3.DatabaseError as error:
        raise _broken(path, str(error)) from error
    if left:
        raise _broken(path, "; ".join(left[:3]))
    _log.warning("%s: %s; built anew from the table: %s", path, "; ".join(found[:3]), ", ".join(indexes))


def _broken(path: Path, detail: str) -> StoreProblem:
    rule = f"the store is damaged ({detail}); it is never replaced by an empty one"
    return StoreProblem.of(path, rule, "type: eunomia store restore BACKUP --state FOLDER")


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring an older store to this version, each step whole, after a backup beside it."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version == VERSION:
        return
    backup = path.with_name(f"store.version-{version}.backup.db")
    if not backup.exists():
        draft = backup.with_name(backup.name + ".draft")
        draft.unlink(missing_ok=True)
        copy = sqlite3.connect(draft)
        db.backup(copy)
        copy.close()
        os.chmod(draft, 0o600)
        os.replace(draft, backup)
    for number, script in enumerate(MIGRATIONS[version - 1 :], start=version + 1):
        with _whole(db):
            for statement in filter(str.strip, script.split(";")):
                db.execute(statement)
            if number == SUMMED:
                sum_up(db)
            if number == USAGE_SUMMED:
                sum_up_usage(db)
            faultpoint("migrate.half")
            db.execute(f"PRAGMA user_version = {number}")


def is_new_store(folder: Path, path: Path) -> bool:
    """Whether no service has run in this folder. Raises StoreProblem where a store is missing that was there."""
    if path.exists() and path.stat().st_size > 0:
        return False
    if path.exists() or (folder / f"{FILE}-wal").exists():
        raise _lost(path)
    check_unused(folder, path)
    return True


def check_unused(folder: Path, place: Path | str) -> None:
    """Raise StoreProblem where a service has run with this state folder, though its store is not there."""
    if any((folder / name).exists() for name in TRACES) or any(folder.glob("jobs/*")):
        raise _lost(place)


def _lost(place: Path | str) -> StoreProblem:
    rule = "the store is missing or empty, but a service has run in this folder; its jobs would be lost"
    return StoreProblem.of(place, rule, "type: eunomia store restore BACKUP --state FOLDER, or use a new folder")


def check_mode(folder: Path) -> None:
    """Raise StoreProblem if other users may read the folder; those whose jobs root runs pass through it."""
    mode = folder.stat().st_mode & 0o777
    if mode & 0o066:
        rule = f"other users may read the folder (mode {mode:04o}), which holds tokens and jobs"
        raise StoreProblem.of(folder, rule, f"type: chmod 700 {folder}")


def key_in(path: Path, what: str, lost: str) -> bytes:
    """Return the random key in a file, which is made if there is none; never one that was written in part.

    Raises StoreProblem where other users may read it, or where it is empty or no plain file; `lost` says what ends
    without it.
    """
    if not os.path.lexists(path):
        with replacing(path, durable=True) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(secrets.token_bytes(32))
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o077 or not path.stat().st_size:
        rule = f"the key of {what} is no plain file, or empty, or other users may read it"
        raise StoreProblem.of(path, rule, f"remove it, and start again: {lost}")
    return path.read_bytes()


def lock_folder(folder: Path) -> int:
    """Lock the folder; the file says who has it. Raises StoreProblem while another process has the lock."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace").strip()
        os.close(handle)
        rule = f"another service uses this folder ({holder or 'unknown process'})"
        raise StoreProblem.of(folder, rule, "stop it first, or give another state folder") from None
    os.ftruncate(handle, 0)
    text = f"process {os.getpid()} on {socket.gethostname()} since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
    os.write(handle, text.encode())
    return handle
