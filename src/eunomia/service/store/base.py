"""What both stores are: the writer's statements, which SQLite and PostgreSQL run alike.

A store is used by one thread; `reader.Reader` opens connections of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from eunomia.service.fault_points import faultpoint
from eunomia.service.job_row import JobRow
from eunomia.service.store.head import FILE as HEAD_FILE
from eunomia.service.store.head import Head, HeadFile
from eunomia.service.store.opening import StoreProblem
from eunomia.service.store.schema import StoredClock, Token
from eunomia.service.tenant_fairness import HISTORY_DAYS, HOUR_S, HOURS, ActiveTime, TenantHour, TenantSums
from eunomia.service.turn import Turn

KEPT_SNAPSHOTS = 2
ROWS_AT_ONCE = (64, 16, 4, 1)  # of an insertion: few texts, so that each is prepared once
RESTORE = "restore a backup: eunomia store restore"
_log = logging.getLogger(__name__)


class Connection(Protocol):
    """A connection to either database; values stand for `?`."""

    def execute(self, text: str, values: Sequence[Any] = ..., /) -> Any:
        """Run one statement, and return its cursor."""
        ...

    def executemany(self, text: str, rows: Sequence[Sequence[Any]], /) -> Any:
        """Run a statement once for each row."""
        ...


class ServiceStore:
    """The writer's side of a store. Subclasses open it, begin transactions, and say what is damaged."""

    errors: ClassVar[tuple[type[Exception], ...]]  # of the database

    def __init__(self, db: Connection, folder: Path) -> None:
        self._db, self.folder = db, folder
        self.generation = 0
        self.commits = 0
        self._head: HeadFile | None = None  # of the service that leads

    def close(self) -> None:
        """Close the connection, and let others have the store."""
        if self._head is not None:
            self._head.close()
            self._head = None

    def leads(self) -> bool:
        """Return whether no other service can have taken the store over."""
        return True

    def _begin(self) -> None:
        raise NotImplementedError

    def _damage(self) -> list[str]:
        raise NotImplementedError

    def _next_generation(self) -> int:
        return int(self.meta("generation") or 0) + 1

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All or nothing, on disk when the block ends."""
        self._begin()
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(*self.errors):  # keep the first error
                self._db.execute("ROLLBACK")
            raise
        self.commits += 1
        if self._head is not None:
            self._head.write(Head.of(self._db.execute))

    def begin_generation(self, incarnation: str = "") -> tuple[int, str]:
        """Count a start of the service; return its generation and a text, drawn if left out, that is new.

        From here on what was committed last is written beside the store.
        """
        incarnation = incarnation or "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(5))
        is_known = (self.folder / HEAD_FILE).exists()
        self._head = self._head or HeadFile(self.folder)
        with self.transaction() as db:
            self.generation = self._next_generation()
            if self.generation > 1 and not is_known:
                _log.warning("%s: there was no %s; whether the store is the one that ran here was not checked",
                             self.folder, HEAD_FILE)  # fmt: skip
                entry = ("service", "operator", "start", "store taken as it is", f"start {self.generation}")
                self.write_audit(db, clock.at if (clock := self.clock()) else 0.0, [entry])
            self.set_meta(db, "generation", str(self.generation))
            self.set_meta(db, "incarnation", incarnation)
        return self.generation, incarnation

    def commit(self, turn: Turn, clock: StoredClock) -> None:
        """Write one turn durably."""
        with self.transaction() as db:
            self.write(db, turn, clock)

    def write(self, db: Connection, turn: Turn, clock: StoredClock) -> None:
        """Write one turn in an open transaction."""
        _insert(
            db, "moments (at, generation, lines, digest)",
            [(one.at, self.generation, one.lines, one.digest) for one in turn.moments],
        )  # fmt: skip
        rows = list(turn.rows.values())
        _insert(
            db, "jobs (number, id, tenant, state, live, ended, job_type, body)",
            [
                (row.number, row.id, row.tenant, row.state, int(row.is_live),
                 None if row.ended != row.ended else row.ended, row.spec.get("job_type", ""), row.body())
                for row in rows
            ],
            "(number) DO UPDATE SET state = excluded.state, live = excluded.live, ended = excluded.ended, "
            "body = excluded.body",
        )  # fmt: skip
        db.executemany("DELETE FROM seats WHERE job = ?", [(row.id,) for row in rows if row.epoch])
        self._write_seats(db, rows)
        labels = [(*one, row.number) for row in rows for one in row.spec.get("labels", {}).items()]
        _insert(db, "labels (key, value, number)", labels, "DO NOTHING")
        keys = [(tenant, key, body, json.dumps(ids), turn.at) for tenant, key, body, ids in turn.keys]
        _insert(db, "keys (tenant, key, digest, ids, at)", keys)
        _insert(db, "outbox (number, body)", [(order.number, _order(order)) for order in turn.orders])
        db.executemany("DELETE FROM outbox WHERE number = ?", [(number,) for number in turn.taken])
        _insert(db, "news (at, job, tenant, kind, detail)", [(turn.at, *one) for one in turn.news])
        for node, reason in turn.nodes.items():
            db.execute("DELETE FROM nodes WHERE node = ?", (node,))
            if reason:
                db.execute("INSERT INTO nodes (node, reason) VALUES (?, ?)", (node, reason))
        _insert(
            db, "tenant_hours (hour, tenant, received, deserved, succeeded, rho_sum, rho_max)",
            [(hour, tenant, *astuple(sums)) for hour, tenant, sums in turn.hours],
            "(hour, tenant) DO UPDATE SET received = excluded.received, deserved = excluded.deserved, "
            "succeeded = excluded.succeeded, rho_sum = excluded.rho_sum, rho_max = excluded.rho_max",
        )  # fmt: skip
        if turn.active_time is not None:
            self.set_meta(db, "active_time", json.dumps(turn.active_time))
        self.write_audit(db, turn.at, turn.audit)
        db.execute("DELETE FROM clock")
        db.execute("INSERT INTO clock VALUES (1, ?, ?, ?, ?)", (clock.at, clock.boot, clock.monotonic, clock.wall))

    def _write_seats(self, db: Connection, rows: list[JobRow]) -> None:
        """Insert the live leases; a seat with two holders breaks the table's key, and the whole turn."""
        alone = [(seat, 0, row.id, row.epoch) for row in rows for seat in row.seats if not row.shared]
        _insert(db, "seats (seat, lane, job, epoch)", alone)
        for row in rows:
            for seat in row.seats if row.shared else ():
                taken = db.execute("SELECT count(*) FROM seats WHERE seat = ? AND lane = 0", (seat,)).fetchone()[0]
                values = (seat, taken, row.id, row.epoch)
                db.execute("INSERT INTO seats (seat, lane, job, epoch) VALUES (?, ?, ?, ?)", values)

    def write_audit(self, db: Connection, at: float, entries: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Append to the audit log; each entry's digest covers the one before it."""
        entries = list(entries)
        if not entries:
            return
        last = db.execute("SELECT hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        chain = last[0] if last else ""
        rows = list[tuple[Any, ...]]()
        for entry in entries:
            chain = _chained(chain, at, entry)
            rows.append((at, *entry, chain))
        _insert(db, 'audit (at, "user", role, source, action, object, hash)', rows)

    def set_meta(self, db: Connection, key: str, value: str) -> None:
        """Write a fact about the service in an open transaction."""
        text = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        db.execute(text, (key, value))

    def add_snapshot(self, seq: int, digest: str, wake: float, content: bytes) -> None:
        """Store a snapshot of the state after moment `seq`; the last two are kept."""
        with self.transaction() as db:
            db.execute("DELETE FROM snapshots WHERE seq = ?", (seq,))
            db.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", (seq, digest, wake, content))
            faultpoint("snapshot.half")
            db.execute(
                "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                (KEPT_SNAPSHOTS,),
            )

    def prune(self, before: float) -> int:
        """Remove what ended before that time: jobs, their news and keys; return how many jobs.

        Moments stay, and what tenants received in the `HISTORY_DAYS` before that time.
        """
        with self.transaction() as db:
            self.set_meta(db, "last_job", str(self.next_job() - 1))
            old = "SELECT number FROM jobs WHERE live = 0 AND ended < ?"
            db.execute(f"DELETE FROM labels WHERE number IN ({old})", (before,))
            gone = int(db.execute("DELETE FROM jobs WHERE live = 0 AND ended < ?", (before,)).rowcount)
            db.execute("DELETE FROM news WHERE at < ?", (before,))
            db.execute("DELETE FROM keys WHERE at < ?", (before,))
            db.execute("DELETE FROM tenant_hours WHERE hour < ?", (int(before // HOUR_S) - 24 * HISTORY_DAYS,))
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
        """Return the rows of live jobs in order of submission. Raises StoreProblem for one that cannot be read."""
        found = self._db.execute("SELECT id, body FROM jobs WHERE live = 1 ORDER BY number")
        return [self._row(job_id, body) for job_id, body in found]

    def _row(self, job_id: str, body: str) -> JobRow:
        try:
            return JobRow.of(body)
        except (ValueError, TypeError) as error:
            rule = f"the row of job {job_id} cannot be read ({error})"
            raise StoreProblem.of(self.folder, rule, RESTORE) from None

    def _ended(self, text: str, count: int) -> list[Any]:
        """Return what a statement finds in the rows of the last jobs; nothing where one of them cannot be read.

        Such a row stays as it is, and the log names it.
        """
        try:
            return list(self._db.execute(text, (count,)).fetchall())
        except self.errors as error:
            rows = self._db.execute("SELECT id, body FROM jobs WHERE live = 0 ORDER BY number DESC").fetchall()
            wrong = [job_id for job_id, body in rows if not _is_readable(body)]
            if not wrong:
                raise
            named = ", ".join(wrong[:5])
            _log.warning("%s: nothing is learnt from earlier jobs, as rows of ended ones cannot be read (%s): %s. "
                         "Restore a backup to have them again", self.folder, error, named)  # fmt: skip
            return []

    def run_times(self, count: int = 10_000) -> list[tuple[str, str, float]]:
        """Return tenant, job type and run time of the last jobs that succeeded, the oldest first."""
        found = self._ended(
            "SELECT tenant, job_type, json_extract(body, '$.run_s') FROM jobs WHERE state = 'succeeded' "
            "ORDER BY number DESC LIMIT ?",
            count,
        )
        return [(tenant, kind, float(run_s or 0.0)) for tenant, kind, run_s in reversed(found)]

    def memory_used(self, count: int = 10_000) -> dict[str, float]:
        """Return the most memory in GiB that the last jobs of each type used on one accelerator."""
        found = self._ended(
            "SELECT job_type, max(json_extract(body, '$.used_memory_gib')) FROM "
            "(SELECT job_type, body FROM jobs ORDER BY number DESC LIMIT ?) AS latest GROUP BY job_type",
            count,
        )
        return {kind: float(most) for kind, most in found if most is not None}

    def tenant_hours(self, until: int) -> list[TenantHour]:
        """Return the sums of tenants in the day that ends with hour `until`."""
        found = hours_of(self._db, until, 1, until - HOURS, until, None)
        return [TenantHour(until - back, name, sums) for back, name, sums in found]

    def active_time(self, at: float) -> ActiveTime:
        """Return `TenantFairness.active_time` as it was stored; nothing until `at` where it was not."""
        found = self.meta("active_time")
        return ActiveTime(at) if found is None else ActiveTime(*map(float, json.loads(found)))

    def drained(self) -> dict[int, str]:
        """Return drained nodes and why."""
        return dict(self._db.execute("SELECT node, reason FROM nodes").fetchall())

    def key(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        """Return body digest and ids of an earlier submission. Raises StoreProblem if they cannot be read."""
        found = self._db.execute("SELECT digest, ids FROM keys WHERE tenant = ? AND key = ?", (tenant, key)).fetchone()
        try:
            return None if found is None else (found[0], json.loads(found[1]))
        except ValueError as error:
            rule = f"the row of the Idempotency-Key {key!r} cannot be read ({error})"
            raise StoreProblem.of(self.folder, rule, RESTORE) from None

    def job(self, job_id: str) -> JobRow | None:
        """Return any job. Raises StoreProblem if its row cannot be read."""
        found = self._db.execute("SELECT body FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else self._row(job_id, found[0])

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
        names = 'id, hash, "user", tenant, role, created, expires, revoked, parent'
        return [Token(*found) for found in self._db.execute(f"SELECT {names} FROM tokens").fetchall()]

    def problems(self) -> list[str]:
        """Return what is wrong with the store, its seats, its audit log."""
        found = self._damage()
        chain = ""
        for seq, at, *entry, stored in self._db.execute(
            'SELECT seq, at, "user", role, source, action, object, hash FROM audit ORDER BY seq'
        ):
            chain = _chained(chain, at, tuple(entry))
            if chain != stored:
                found.append(f"the audit log was changed at entry {seq}")
                break
        for job_id, body in self._db.execute("SELECT id, body FROM jobs ORDER BY number"):
            if not _is_readable(body):
                found.append(f"the row of job {job_id} cannot be read")
        for seat, job in self._db.execute(
            "SELECT seat, job FROM seats WHERE job NOT IN (SELECT id FROM jobs WHERE live = 1)"
        ):
            found.append(f"seat {seat} is held by {job}, which is no live job")
        return found


def hours_of(
    db: Connection, until: int, width: int, after: int, last: int, tenant: str | None
) -> list[tuple[int, str, TenantSums]]:
    """Return the sums of one tenant, or all, in the hours after `after`, until `last`, in periods of `width` hours.

    Each comes with the number of periods between its own and the one that ends with hour `until`, and its tenant.
    """
    mine, values = ("", ()) if tenant is None else ("AND tenant = ? ", (tenant,))
    text = (
        "SELECT (? - hour) / ? AS back, tenant, SUM(received), SUM(deserved), SUM(succeeded), SUM(rho_sum), "
        f"MAX(rho_max) FROM tenant_hours WHERE hour > ? AND hour <= ? {mine}GROUP BY back, tenant"
    )
    found = db.execute(text, (until, width, after, last, *values)).fetchall()
    return [
        (int(back), name, TenantSums(got, due, int(count), total, most))
        for back, name, got, due, count, total, most in found
    ]


def _insert(db: Connection, table: str, rows: Sequence[Sequence[Any]], conflict: str = "") -> None:
    """Insert rows, many by one statement: at each, the thread may have to wait for others to run Python again."""
    begin = 0
    for size in ROWS_AT_ONCE:
        if len(rows) - begin >= size:
            text = _insertion(table, size, conflict)
        while len(rows) - begin >= size:
            db.execute(text, [value for row in rows[begin : begin + size] for value in row])
            begin += size


@lru_cache(maxsize=100)
def _insertion(table: str, rows: int, conflict: str) -> str:
    one = f"({', '.join('?' * (table.count(',') + 1))})"
    return f"INSERT INTO {table} VALUES {', '.join([one] * rows)}{conflict and f' ON CONFLICT {conflict}'}"


def _is_readable(body: str) -> bool:
    try:
        JobRow.of(body)
    except (ValueError, TypeError):
        return False
    return True


def _chained(chain: str, at: float, entry: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps([chain, at, *entry]).encode()).hexdigest()


def _order(order: Any) -> str:
    """Return an order as JSON, without the job's document, which its row holds."""
    body = {one.name: getattr(order, one.name) for one in fields(order) if one.name != "spec"}
    return json.dumps({"kind": type(order).__name__, **body})
