"""The store in one SQLite file: one writer, write-ahead log, synced to disk before a commit returns.

`SqliteStore` is used by one thread; `Reader` opens connections of its own that cannot write.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.service.controller import Turn
from eunomia.service.fault_points import faultpoint
from eunomia.service.job_row import JobRow
from eunomia.service.store.schema import APPLICATION_ID, BASE, MIGRATIONS, VERSION

FILE = "store.db"
LOCK = "lock"
KEPT_SNAPSHOTS = 2
BUSY_S = 10.0


class StoreProblem(InvalidInput):
    """A store that cannot be used as it is; the message says what to do. Nothing was changed."""

    @classmethod
    def of(cls, path: Path, rule: str, fix: str) -> StoreProblem:
        """Return the error about one file."""
        return cls([Problem(file=str(path), rule=rule, fix=fix)])


@dataclass(frozen=True, slots=True)
class StoredClock:
    """When the last turn was committed: service time, boot of the machine, its monotonic clock, wall clock."""

    at: float
    boot: str
    monotonic: float
    wall: float


@dataclass(frozen=True, slots=True)
class Token:
    """A credential as it is stored: never the secret, only its digest."""

    id: str
    hash: str
    user: str
    tenant: str
    role: str
    created: float
    expires: float | None
    revoked: float | None


class SqliteStore:
    """The writer's side. Open it with `SqliteStore.open`, which locks the folder; close it at the end."""

    def __init__(self, db: sqlite3.Connection, folder: Path, lock: int) -> None:
        self._db, self.folder, self._lock = db, folder, lock
        self.generation = 0
        self.commits = 0

    @classmethod
    def open(cls, folder: Path, *, must_exist: bool = False) -> SqliteStore:
        """Open or create the store of a folder. Raises StoreProblem if another process has it, or it is broken."""
        path = folder / FILE
        if not folder.exists():
            if must_exist:
                raise StoreProblem.of(folder, "there is no such folder", "give the state folder of a service")
            folder.mkdir(mode=0o700, parents=True)
        _check_mode(folder)
        lock = lock_folder(folder)
        try:
            is_new = _is_new(folder, path)
            if is_new and must_exist:
                raise StoreProblem.of(path, "there is no store here", "give the state folder of a service")
            db = _connect(path)
            try:
                if is_new:
                    _create(db)
                else:
                    _check(db, path)
                    _migrate(db, path)
            except BaseException:
                db.close()
                raise
        except BaseException:
            os.close(lock)
            raise
        return cls(db, folder, lock)

    def close(self) -> None:
        """Close the file and release the folder."""
        self._db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, on disk when the block ends."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # keep the first error
                self._db.execute("ROLLBACK")
            raise
        self.commits += 1

    def begin_generation(self, incarnation: str = "") -> tuple[int, str]:
        """Count a start of the service; return its generation and a text, drawn if left out, that is new."""
        incarnation = incarnation or "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(5))
        with self.transaction() as db:
            self.generation = int(self.meta("generation") or 0) + 1
            self._set(db, "generation", str(self.generation))
            self._set(db, "incarnation", incarnation)
        return self.generation, incarnation

    def commit(self, turn: Turn, clock: StoredClock) -> None:
        """Write one turn durably."""
        with self.transaction() as db:
            self.write(db, turn, clock)

    def write(self, db: sqlite3.Connection, turn: Turn, clock: StoredClock) -> None:
        """Write one turn in an open transaction."""
        many = db.executemany
        many(
            "INSERT INTO moments (at, generation, lines, digest) VALUES (?, ?, ?, ?)",
            [(one.at, self.generation, one.lines, one.digest) for one in turn.moments],
        )
        rows = list(turn.rows.values())
        many(
            "INSERT INTO jobs (number, id, tenant, state, live, ended, job_type, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (number) DO UPDATE SET state = excluded.state, live = excluded.live, ended = excluded.ended, "
            "body = excluded.body",
            [
                (row.number, row.id, row.tenant, row.state, int(row.is_live),
                 None if row.ended != row.ended else row.ended, row.spec.get("job_type", ""), row.body())
                for row in rows
            ],
        )  # fmt: skip
        many("DELETE FROM seats WHERE job = ?", [(row.id,) for row in rows if row.epoch])
        self._write_seats(db, rows)
        labelled = [row for row in rows if row.spec.get("labels")]
        many(
            "INSERT OR IGNORE INTO labels (key, value, number) VALUES (?, ?, ?)",
            [(key, value, row.number) for row in labelled for key, value in row.spec["labels"].items()],
        )
        many(
            "INSERT INTO keys (tenant, key, digest, ids, at) VALUES (?, ?, ?, ?, ?)",
            [(tenant, key, body, json.dumps(ids), turn.at) for tenant, key, body, ids in turn.keys],
        )
        many("INSERT INTO outbox (number, body) VALUES (?, ?)", [(o.number, _order(o)) for o in turn.orders])
        many("DELETE FROM outbox WHERE number = ?", [(number,) for number in turn.taken])
        many(
            "INSERT INTO news (at, job, tenant, kind, detail) VALUES (?, ?, ?, ?, ?)",
            [(turn.at, *one) for one in turn.news],
        )
        for node, reason in turn.nodes.items():
            db.execute("DELETE FROM nodes WHERE node = ?", (node,))
            if reason:
                db.execute("INSERT INTO nodes (node, reason) VALUES (?, ?)", (node, reason))
        self.write_audit(db, turn.at, turn.audit)
        db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?)",
                   (clock.at, clock.boot, clock.monotonic, clock.wall))  # fmt: skip

    def _write_seats(self, db: sqlite3.Connection, rows: list[JobRow]) -> None:
        """Insert the live leases; a seat with two holders breaks the table's key, and the whole turn."""
        alone = [(seat, 0, row.id, row.epoch) for row in rows for seat in row.seats if not row.shared]
        db.executemany("INSERT INTO seats (seat, lane, job, epoch) VALUES (?, ?, ?, ?)", alone)
        for row in rows:
            for seat in row.seats if row.shared else ():
                taken = db.execute("SELECT count(*) FROM seats WHERE seat = ? AND lane = 0", (seat,)).fetchone()[0]
                values = (seat, taken, row.id, row.epoch)
                db.execute("INSERT INTO seats (seat, lane, job, epoch) VALUES (?, ?, ?, ?)", values)

    def write_audit(self, db: sqlite3.Connection, at: float, entries: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Append to the audit log; each entry's digest covers the one before it."""
        entries = list(entries)
        if not entries:
            return
        last = db.execute("SELECT hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        chain = last[0] if last else ""
        for entry in entries:
            chain = _chained(chain, at, entry)
            db.execute(
                "INSERT INTO audit (at, user, role, source, action, object, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (at, *entry, chain),
            )

    def _set(self, db: sqlite3.Connection, key: str, value: str) -> None:
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def add_snapshot(self, seq: int, digest: str, wake: float, content: bytes) -> None:
        """Store a snapshot of the state after moment `seq`; the last two are kept."""
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (seq, digest, wake, content))
            faultpoint("snapshot.half")
            db.execute(
                "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                (KEPT_SNAPSHOTS,),
            )

    def prune(self, before: float) -> int:
        """Remove what ended before that time: jobs, their news and keys; return how many jobs. Moments stay."""
        with self.transaction() as db:
            self._set(db, "last_job", str(self.next_job() - 1))
            old = "SELECT number FROM jobs WHERE live = 0 AND ended < ?"
            db.execute(f"DELETE FROM labels WHERE number IN ({old})", (before,))
            gone = db.execute("DELETE FROM jobs WHERE live = 0 AND ended < ?", (before,)).rowcount
            db.execute("DELETE FROM news WHERE at < ?", (before,))
            db.execute("DELETE FROM keys WHERE at < ?", (before,))
        return gone

    # ---- reading, for the writer -----------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """Return a fact about the service."""
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def clock(self) -> StoredClock | None:
        """Return when the last turn was committed."""
        found = self._db.execute("SELECT at, boot, monotonic, wall FROM clock").fetchone()
        return None if found is None else StoredClock(*found)

    def last_seq(self) -> int:
        """Return the number of the last moment."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM moments").fetchone()[0])

    def next_job(self) -> int:
        """Return the number of the next job; numbers of removed jobs are not used again."""
        stored = int(self._db.execute("SELECT coalesce(max(number), 0) FROM jobs").fetchone()[0])
        return max(stored, int(self.meta("last_job") or 0)) + 1

    def snapshots(self) -> Iterator[tuple[int, str, float, bytes]]:
        """Yield number, digest, wake time and content of each snapshot, newest first."""
        yield from self._db.execute("SELECT seq, digest, wake, content FROM snapshots ORDER BY seq DESC").fetchall()

    def moments(self, after: int = 0) -> Iterator[tuple[int, str, str | None]]:
        """Yield number, lines and digest of the moments after one, in order."""
        yield from self._db.execute("SELECT seq, lines, digest FROM moments WHERE seq > ? ORDER BY seq", (after,))

    def live_jobs(self) -> list[JobRow]:
        """Return the rows of live jobs in order of submission."""
        found = self._db.execute("SELECT body FROM jobs WHERE live = 1 ORDER BY number")
        return [JobRow.of(body) for (body,) in found]

    def run_times(self, count: int = 10_000) -> list[tuple[str, str, float]]:
        """Return tenant, job type and run time of the last jobs that succeeded, the oldest first."""
        found = self._db.execute(
            "SELECT tenant, job_type, json_extract(body, '$.run_s') FROM jobs WHERE state = 'succeeded' "
            "ORDER BY number DESC LIMIT ?",
            (count,),
        ).fetchall()
        return [(tenant, kind, float(run_s or 0.0)) for tenant, kind, run_s in reversed(found)]

    def drained(self) -> dict[int, str]:
        """Return drained nodes and why."""
        return dict(self._db.execute("SELECT node, reason FROM nodes").fetchall())

    def key(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        """Return body digest and ids of an earlier submission."""
        found = self._db.execute("SELECT digest, ids FROM keys WHERE tenant = ? AND key = ?", (tenant, key)).fetchone()
        return None if found is None else (found[0], json.loads(found[1]))

    def job(self, job_id: str) -> JobRow | None:
        """Return any job."""
        found = self._db.execute("SELECT body FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else JobRow.of(found[0])

    def unsent(self) -> dict[int, dict[str, Any]]:
        """Return the orders that the world has not acknowledged."""
        found = self._db.execute("SELECT number, body FROM outbox ORDER BY number").fetchall()
        return {number: json.loads(body) for number, body in found}

    def clear_outbox(self) -> None:
        """Forget unacknowledged orders, which the resent ones replace."""
        with self.transaction() as db:
            db.execute("DELETE FROM outbox")

    def tokens(self) -> list[Token]:
        """Return all tokens."""
        names = "id, hash, user, tenant, role, created, expires, revoked"
        return [Token(*found) for found in self._db.execute(f"SELECT {names} FROM tokens").fetchall()]

    def backup(self, target: Path) -> None:
        """Copy the store as it is now into another file."""
        copy = sqlite3.connect(target)
        try:
            self._db.backup(copy)
        finally:
            copy.close()
        os.chmod(target, 0o600)

    def problems(self) -> list[str]:
        """Return what is wrong with the file, its seats, its audit log."""
        found = [row[0] for row in self._db.execute("PRAGMA quick_check").fetchall() if row[0] != "ok"]
        chain = ""
        for seq, at, *entry, stored in self._db.execute(
            "SELECT seq, at, user, role, source, action, object, hash FROM audit ORDER BY seq"
        ):
            chain = _chained(chain, at, tuple(entry))
            if chain != stored:
                found.append(f"the audit log was changed at entry {seq}")
                break
        for seat, job in self._db.execute(
            "SELECT seat, job FROM seats WHERE job NOT IN (SELECT id FROM jobs WHERE live = 1)"
        ):
            found.append(f"seat {seat} is held by {job}, which is no live job")
        return found


class Reader:
    """Connections that cannot write, one a thread."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._local = threading.local()

    @property
    def _db(self) -> sqlite3.Connection:
        if not hasattr(self._local, "db"):
            self._local.db = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, isolation_level=None)
            self._local.db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
        connection: sqlite3.Connection = self._local.db
        return connection

    def job(self, job_id: str) -> JobRow | None:
        """Return a job; None for an unknown id."""
        found = self._db.execute("SELECT body FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else JobRow.of(found[0])

    def jobs(
        self,
        *,
        tenant: str | None,
        states: Iterable[str],
        label: tuple[str, str] | None,
        before: int | None,
        limit: int,
    ) -> list[JobRow]:
        """Return jobs, the newest first, submitted before job number `before`."""
        where, values = ["1"], list[Any]()
        if tenant is not None:
            where.append("tenant = ?")
            values.append(tenant)
        if states := list(states):
            where.append(f"state IN ({', '.join('?' * len(states))})")
            values += states
        if label is not None:
            where.append("number IN (SELECT number FROM labels WHERE key = ? AND value = ?)")
            values += label
        if before is not None:
            where.append("number < ?")
            values.append(before)
        text = f"SELECT body FROM jobs WHERE {' AND '.join(where)} ORDER BY number DESC LIMIT ?"
        return [JobRow.of(body) for (body,) in self._db.execute(text, (*values, limit))]

    def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Return how many jobs are in each state."""
        if tenant is None:
            found = self._db.execute("SELECT state, count(*) FROM jobs GROUP BY state")
        else:
            found = self._db.execute("SELECT state, count(*) FROM jobs WHERE tenant = ? GROUP BY state", (tenant,))
        return dict(found.fetchall())

    def tenants(self) -> list[tuple[str, str, int]]:
        """Return tenant, state and number of jobs."""
        return self._db.execute("SELECT tenant, state, count(*) FROM jobs GROUP BY tenant, state").fetchall()

    def news(self, after: int, tenant: str | None, limit: int = 1000) -> list[tuple[int, float, str, str, str]]:
        """Return number, time, job, kind and detail of what happened after an event."""
        mine = "" if tenant is None else "AND tenant = ? "
        values = (after, *(() if tenant is None else (tenant,)), limit)
        text = f"SELECT seq, at, job, kind, detail FROM news WHERE seq > ? {mine}ORDER BY seq LIMIT ?"
        return self._db.execute(text, values).fetchall()

    def job_news(self, job_id: str) -> list[tuple[int, float, str, str]]:
        """Return what happened to a job, in order."""
        text = "SELECT seq, at, kind, detail FROM news WHERE job = ? ORDER BY seq"
        return self._db.execute(text, (job_id,)).fetchall()

    def news_range(self) -> tuple[int, int]:
        """Return the numbers of the oldest event that is kept and of the newest one; 0 if there is none."""
        found = self._db.execute("SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM news").fetchone()
        return int(found[0]), int(found[1])

    def decisions(self, count: int = 20) -> list[tuple[float, str]]:
        """Return time and lines of the last moments, the newest first."""
        return self._db.execute("SELECT at, lines FROM moments ORDER BY seq DESC LIMIT ?", (count,)).fetchall()


def _connect(path: Path) -> sqlite3.Connection:
    made = not path.exists()
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    if made:
        os.chmod(path, 0o600)
    try:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON",
                       f"busy_timeout = {int(BUSY_S * 1000)}"):  # fmt: skip
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError as error:
        db.close()
        raise _broken(path, str(error)) from error
    return db


def _create(db: sqlite3.Connection) -> None:
    with _whole(db):
        for statement in filter(str.strip, (BASE + "".join(MIGRATIONS)).split(";")):
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('cluster_id', ?)", (secrets.token_hex(8),))
        db.execute("INSERT INTO meta VALUES ('origin', ?)", (repr(time.time()),))
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


def _check(db: sqlite3.Connection, path: Path) -> None:
    """Raise StoreProblem for a file that is no store of ours, of a newer version, or damaged."""
    try:
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        found = [row[0] for row in db.execute("PRAGMA quick_check(3)").fetchall() if row[0] != "ok"]
    except sqlite3.DatabaseError as error:
        raise _broken(path, str(error)) from error
    if not ours:
        raise StoreProblem.of(path, "this is no store of Eunomia", "give another state folder")
    if version > VERSION:
        rule = f"the store has version {version}, and this program knows up to {VERSION}"
        raise StoreProblem.of(path, rule, "start the version that wrote it, or a newer one")
    if found:
        raise _broken(path, "; ".join(found))


def _broken(path: Path, detail: str) -> StoreProblem:
    rule = f"the store is damaged ({detail}); it is never replaced by an empty one"
    return StoreProblem.of(path, rule, "type: eunomia store restore BACKUP --state FOLDER")


def _migrate(db: sqlite3.Connection, path: Path) -> None:
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
            faultpoint("migrate.half")
            db.execute(f"PRAGMA user_version = {number}")


def _is_new(folder: Path, path: Path) -> bool:
    """Whether no service has run in this folder. Raises StoreProblem where a store is missing that was there."""
    if path.exists() and path.stat().st_size > 0:
        return False
    if (folder / "operator.token").exists() or path.exists() or (folder / f"{FILE}-wal").exists():
        rule = "the store is missing or empty, but a service has run in this folder; its jobs would be lost"
        raise StoreProblem.of(path, rule, "type: eunomia store restore BACKUP --state FOLDER, or use a new folder")
    return True


def _check_mode(folder: Path) -> None:
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        rule = f"other users may read the folder (mode {mode:04o}), which holds tokens and jobs"
        raise StoreProblem.of(folder, rule, f"type: chmod 700 {folder}")


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


def _chained(chain: str, at: float, entry: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps([chain, at, *entry]).encode()).hexdigest()


def _order(order: Any) -> str:
    """Return an order as JSON, without the job's document, which its row holds."""
    body = {key: value for key, value in asdict(order).items() if key != "spec"}
    return json.dumps({"kind": type(order).__name__, **body})
