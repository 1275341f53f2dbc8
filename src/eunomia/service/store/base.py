"""What both stores are: the writer's statements, which SQLite and PostgreSQL run alike.

A store is used by one thread; `reader.Reader` opens connections of its own.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from functools import lru_cache
from heapq import merge
from pathlib import Path
from typing import Any, ClassVar, Protocol

from eunomia.service.fault_points import faultpoint
from eunomia.service.job_row import STATES, TERMINAL, JobRow
from eunomia.service.messages import LongSubmission
from eunomia.service.out_of_service import Drain, Maintenance
from eunomia.service.store import audit_log, job_sums, old_rows, usage_sums
from eunomia.service.store.checked_rows import (
    RESTORE,
    WITHOUT_LOG,
    DamagedRow,
    clock_of,
    drain_of,
    ids_of,
    is_finite,
    job_row,
    maintenance_of,
    node_of,
    number,
    tenant_hour_of,
    token_of,
    unfinished_of,
    usable,
)
from eunomia.service.store.disk_room import DiskFull, DiskRoom
from eunomia.service.store.head import FILE as HEAD_FILE
from eunomia.service.store.head import Head, HeadFile, read_head
from eunomia.service.store.opening import StoreProblem
from eunomia.service.store.row_sums import of_row, row_sum, selected
from eunomia.service.store.schema import StoredClock, Token
from eunomia.service.tenant_fairness import HOURS, ActiveTime, TenantHour, TenantSums
from eunomia.service.turn import Turn

KEPT_SNAPSHOTS = 2
JOB = "number, id, tenant, state, body"
TOKENS, CLOCKS, NODES, TENANT_HOURS, DRAINS, MAINTENANCE = (
    f"SELECT {selected(table)} FROM {table}"
    for table in ("tokens", "clock", "nodes", "tenant_hours", "drains", "maintenance")
)
KEYS = f"SELECT {selected('keys')} FROM keys WHERE tenant = ? AND key = ?"
LISTS = (
    'SELECT l.key, l.tenant, l.key, l."user", l.role, l.source, l.body, l.row_sum, '
    "k.tenant, k.key, k.digest, k.ids, k.row_sum FROM lists l LEFT JOIN keys k ON k.tenant = l.tenant AND k.key = l.key"
)
FACTS: dict[str, Callable[[str], object]] = {  # of `meta`, that a start reads
    **dict.fromkeys(
        ("generation", "origin", "era", "era_jobs", "last_job", *usage_sums.FACTS), lambda fact: number(float(fact))
    ),
    **dict.fromkeys(("overrides", "setup", "active_time"), json.loads),
}
# Tables of which nothing but the checksum is checked, and the column by which a row is named.
NAMED = {"moments": "seq", "snapshots": "seq", "keys": "key", "nodes": "node", "meta": "key"}
UNSUMMED = ("generation", "version")  # facts without a checksum: `head` compares the first, a start writes the other
CLOCK = (
    "INSERT INTO clock (one, at, boot, monotonic, wall, row_sum) VALUES (1, ?, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE "
    "SET at = excluded.at, boot = excluded.boot, monotonic = excluded.monotonic, wall = excluded.wall, "
    "row_sum = excluded.row_sum"
)
ADD_KEY = "keys (tenant, key, digest, ids, at, row_sum)"
ROWS_AT_ONCE = (64, 16, 4, 1)  # of an insertion: few texts, so that each is prepared once
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
    refusals: ClassVar[tuple[type[Exception], ...]]  # those of them that are about what was to be written

    def __init__(self, db: Connection, folder: Path) -> None:
        self._db, self.folder = db, folder
        self.generation = 0
        self.commits = 0
        self._head: HeadFile | None = None  # of the service that leads
        self.room = DiskRoom(folder)

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

    def _is_full(self, error: Exception) -> bool:
        raise NotImplementedError

    def _next_generation(self) -> int:
        return int(self.number("generation")) + 1

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All or nothing, on disk when the block ends."""
        self._begin()
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(*self.errors):  # keep the first error
                self._db.execute("ROLLBACK")
            if isinstance(error, self.errors) and self._is_full(error):
                raise DiskFull.of(self.folder, f"the disk is full ({error})", "make room on it") from error
            raise
        self.commits += 1
        if self._head is not None:
            self._head.write(Head.of(self._db.execute))

    def begin_generation(self, incarnation: str = "") -> tuple[int, str]:
        """Count a start of the service; return its generation and a text, drawn if left out, that is new.

        From here on what was committed last is written beside the store.
        """
        incarnation = incarnation or "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(5))
        is_known = read_head(self.folder) is not None
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
        """Write one turn durably; on a full disk with the reserve, and then as soon as there is room.

        Raises DiskFull if the store is closed meanwhile.
        """
        while True:
            try:
                with self.transaction() as db:
                    self.write(db, turn, clock)
            except DiskFull:
                if not self.room.wait():
                    raise
            else:
                self.room.written()
                return

    def write(self, db: Connection, turn: Turn, clock: StoredClock) -> None:
        """Write one turn in an open transaction."""
        _insert(
            db, "moments (at, generation, lines, digest, row_sum)",
            [(one.at, self.generation, one.lines, one.digest, row_sum((one.at, one.lines, one.digest)))
             for one in turn.moments],
        )  # fmt: skip
        rows = list(turn.rows.values())
        job_sums.count_changed(db, rows)
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
        keys = [(tenant, key, body, json.dumps(ids)) for tenant, key, body, ids in turn.keys]
        _insert(db, ADD_KEY, [(*one, turn.at, row_sum(one)) for one in keys])
        for long in turn.long:
            self._write_long(db, long, turn.at)
        _insert(db, "outbox (number, body)", [(order.number, _order(order)) for order in turn.orders])
        db.executemany("DELETE FROM outbox WHERE number = ?", [(number,) for number in turn.taken])
        _insert(db, "news (at, job, tenant, kind, detail)", [(turn.at, *one) for one in turn.news])
        _insert(
            db, "notices (at, target, address, event, job, body)", [(turn.at, *astuple(one)) for one in turn.notices]
        )
        for node, reason in turn.nodes.items():
            db.execute("DELETE FROM nodes WHERE node = ?", (node,))
            if reason:
                _insert(db, "nodes (node, reason, row_sum)", [(node, reason, row_sum((node, reason)))])
        self._write_drains(db, turn)
        hours = [(hour, tenant, *astuple(sums)) for hour, tenant, sums in turn.hours]
        _insert(
            db, "tenant_hours (hour, tenant, received, deserved, succeeded, rho_sum, rho_max, row_sum)",
            [(*one, row_sum(one)) for one in hours],
            "(hour, tenant) DO UPDATE SET received = excluded.received, deserved = excluded.deserved, "
            "succeeded = excluded.succeeded, rho_sum = excluded.rho_sum, rho_max = excluded.rho_max, "
            "row_sum = excluded.row_sum",
        )  # fmt: skip
        if turn.usage:
            usage_sums.add(db, turn.usage)
            self.set_meta(db, usage_sums.COUNTED, repr(turn.usage_counted))
        if turn.active_time is not None:
            self.set_meta(db, "active_time", json.dumps(turn.active_time))
        self.write_audit(db, turn.at, turn.audit)
        db.execute(CLOCK, (*astuple(clock), row_sum(astuple(clock))))

    def _write_drains(self, db: Connection, turn: Turn) -> None:
        """Write what is drained, and spans of maintenance."""
        for key, drain in turn.drains.items():
            db.execute("DELETE FROM drains WHERE node = ? AND place = ?", key)
            if drain is not None:
                ends = (None if not math.isfinite(at) else at for at in (drain.until, drain.empty))
                row = (*key, drain.reason, drain.user, drain.since, *ends, drain.maintenance)
                _insert(
                    db, 'drains (node, place, reason, "user", since, until, empty, maintenance, row_sum)',
                    [(*row, row_sum(row))],
                )  # fmt: skip
        for one in turn.maintenance.values():
            values = (one.number, json.dumps(one.nodes), one.begins, one.ends, one.reason, one.user, one.state)
            db.execute("DELETE FROM maintenance WHERE number = ?", (one.number,))
            columns = 'maintenance (number, nodes, begins, ends, reason, "user", state, row_sum)'
            _insert(db, columns, [(*values, row_sum(values))])

    def _write_long(self, db: Connection, long: LongSubmission, at: float) -> None:
        """Write how far a submission is that takes several turns."""
        who, key, ids = long.request.who, (long.request.who.tenant, long.submit.key), json.dumps(long.spans)
        summed = row_sum((*key, long.submit.digest, ids))
        if len(long.spans) == 1:  # it was accepted in this turn
            _insert(db, ADD_KEY, [(*key, long.submit.digest, ids, at, summed)])
            body = long.submit.body or json.dumps([job.spec() for job in long.submit.jobs])
            values = (*key, who.user, who.role, long.request.source, body)
            _insert(db, 'lists (tenant, key, "user", role, source, body, row_sum)', [(*values, row_sum(values))])
        else:
            db.execute("UPDATE keys SET ids = ?, row_sum = ? WHERE tenant = ? AND key = ?", (ids, summed, *key))
        if long.is_complete:
            db.execute("DELETE FROM lists WHERE tenant = ? AND key = ?", key)

    def _write_seats(self, db: Connection, rows: list[JobRow]) -> None:
        """Insert the live leases; a seat with two holders breaks the table's key, and the whole turn."""
        alone = [(seat, 0, row.id, row.epoch) for row in rows for seat in row.seats if not row.shared]
        _insert(db, "seats (seat, lane, job, epoch)", alone)
        for row in rows:
            for seat in row.seats if row.shared else ():
                taken = db.execute("SELECT count(*) FROM seats WHERE seat = ? AND lane = 0", (seat,)).fetchone()[0]
                values = (seat, taken, row.id, row.epoch)
                db.execute("INSERT INTO seats (seat, lane, job, epoch) VALUES (?, ?, ?, ?)", values)

    def remove_notices(self, seqs: Sequence[int], at: float, given_up: str = "") -> None:
        """Remove notices that were taken, or that are given up, which the audit log says then."""
        with self.transaction() as db:
            db.executemany("DELETE FROM notices WHERE seq = ?", [(seq,) for seq in seqs])
            if given_up:
                self.write_audit(db, at, [("service", "operator", "notify", "notices given up", given_up[:200])])

    def rewrite_seats(self, rows: list[JobRow]) -> None:
        """Write all live leases anew, as the rows of jobs have them."""
        with self.transaction() as db:
            db.execute("DELETE FROM seats")
            self._write_seats(db, rows)

    def write_audit(self, db: Connection, at: float, entries: Iterable[tuple[str, str, str, str, str]]) -> None:
        """Append to the audit log; each entry's digest covers the one before it."""
        entries = list(entries)
        if not entries:
            return
        last = db.execute("SELECT hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        chain = last[0] if last else ""
        rows = list[tuple[Any, ...]]()
        for entry in entries:
            chain = audit_log.next_digest(chain, at, entry)
            rows.append((at, *entry, chain))
        _insert(db, 'audit (at, "user", role, source, action, object, hash)', rows)

    def set_meta(self, db: Connection, key: str, value: str) -> None:
        """Write a fact about the service in an open transaction."""
        values = (key, value, None if key in UNSUMMED else row_sum((key, value)))
        changed = "(key) DO UPDATE SET value = excluded.value, row_sum = excluded.row_sum"
        _insert(db, "meta (key, value, row_sum)", [values], changed)

    def write_snapshot(self, db: Connection, seq: int, digest: str, wake: float, content: bytes) -> None:
        """Write a snapshot of the state after moment `seq` in an open transaction."""
        values = (seq, digest, wake, content, row_sum((seq, digest, wake)))
        _insert(db, "snapshots (seq, digest, wake, content, row_sum)", [values])

    def add_snapshot(self, seq: int, digest: str, wake: float, content: bytes) -> None:
        """Store a snapshot of the state after moment `seq`; the last two are kept."""
        with self.transaction() as db:
            db.execute("DELETE FROM snapshots WHERE seq = ?", (seq,))
            self.write_snapshot(db, seq, digest, wake, content)
            faultpoint("snapshot.half")
            db.execute(
                "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)",
                (KEPT_SNAPSHOTS,),
            )

    def remove_jobs(self, numbers: Sequence[int]) -> int:
        """Remove ended jobs with their labels and forecasts; return how many. Their numbers are not used again."""
        with self.transaction() as db:
            self.set_meta(db, "last_job", str(self.next_job() - 1))
            gone = old_rows.remove_jobs(db, numbers)
            faultpoint("removal.rows")
        return gone

    def remove_aged(self, limits: old_rows.Limits, piece_s: float = old_rows.PIECE_S) -> int:
        """Remove other old rows for so long; return how many, 0 if there are no more."""
        with self.transaction() as db:
            gone = old_rows.remove_aged(db, limits, piece_s)
            faultpoint("removal.rows")
        return gone

    def shrink(self) -> int:
        """Give room that rows have left back to the file system, for a few milliseconds; return how many pages."""
        return 0

    def rewrite(self) -> None:
        """Give all room that rows have left back to the file system, which takes as long as a copy; if there is any."""

    # ---- reading, for the writer -----------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """Return a fact about the service; None where there is none, or one whose checksum is of another."""
        found = self._db.execute(f"SELECT {selected('meta')} FROM meta WHERE key = ?", (key,)).fetchone()
        try:
            return None if found is None else str(of_row(found)[1])
        except ValueError as error:
            self._warn(f"the fact {key!r}", str(error))
            return None

    def has_fact(self, key: str, value: str) -> bool:
        """Say whether that was stored of a fact, also where its value has changed since, but not its checksum."""
        found = self._db.execute("SELECT value, row_sum FROM meta WHERE key = ?", (key,)).fetchone()
        return found is not None and (found[0] == value or found[1] == row_sum((key, value)))

    def number(self, key: str, otherwise: float = 0.0) -> float:
        """Return a fact that is a number; `otherwise` where there is none, or one that cannot be used."""
        found = self.meta(key)
        try:
            return otherwise if found is None else number(float(found))
        except ValueError as error:
            self._warn(f"the fact {key!r}", f"{error}; {otherwise:g} is used instead")
            return otherwise

    def _warn(self, what: str, why: str) -> None:
        """Log that a row cannot be used, and what is done without it."""
        _log.warning("%s: %s cannot be used: %s", self.folder, what, why)

    def clock(self) -> StoredClock | None:
        """Return when the last turn was committed; where that cannot be read, when the last moment was."""
        found = self._db.execute(CLOCKS).fetchone()
        try:
            return None if found is None else clock_of(found)
        except (ValueError, TypeError, OverflowError) as error:
            self._warn("the clock", f"{error}; the time of the last moment is used instead")
            latest = self._db.execute("SELECT at FROM moments ORDER BY seq DESC LIMIT 1").fetchone()
            return StoredClock(float(latest[0]) if latest and is_finite(latest[0]) else 0.0, "", 0.0, time.time())

    def last_seq(self) -> int:
        """Return the number of the last moment."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM moments").fetchone()[0])

    def next_job(self) -> int:
        """Return the number of the next job; numbers of removed jobs are not used again."""
        stored = int(self._db.execute("SELECT coalesce(max(number), 0) FROM jobs").fetchone()[0])
        return max(stored, int(self.number("last_job"))) + 1

    def snapshots(self) -> Iterator[tuple[int, str, float, bytes]]:
        """Yield number, digest, wake time and content of each snapshot, newest first; the log names any other."""
        text = f"SELECT content, {selected('snapshots')} FROM snapshots ORDER BY seq DESC"
        for content, *row in self._db.execute(text).fetchall():
            try:
                seq, digest, wake = of_row(row)
            except ValueError as error:
                self._warn(f"snapshot {row[0]}", str(error))
                continue
            yield seq, digest, wake, content

    def since_snapshot(self) -> tuple[int, int]:
        """Return how many moments a start would replay, and how many characters they have."""
        text = "SELECT count(*), coalesce(sum(length(lines)), 0) FROM moments WHERE seq > "
        found = self._db.execute(f"{text}(SELECT coalesce(max(seq), 0) FROM snapshots)").fetchone()
        return int(found[0]), int(found[1])

    def moments(self, after: int = 0) -> Iterator[tuple[int, str, str | None]]:
        """Yield number, lines and digest of the moments after one, in order.

        Raises StoreProblem for one whose checksum is of another.
        """
        text = f"SELECT seq, {selected('moments')} FROM moments WHERE seq > ? ORDER BY seq"
        for seq, *row in self._db.execute(text, (after,)):
            try:
                _, lines, digest = of_row(row)
            except ValueError as error:
                raise StoreProblem.of(self.folder, f"moment {seq} cannot be read ({error})", WITHOUT_LOG) from None
            yield seq, lines, digest

    def live_jobs(self) -> tuple[list[JobRow], list[DamagedRow]]:
        """Return the rows of live jobs in order of submission, and of those that cannot be used what is known."""
        rows, damaged = list[JobRow](), list[DamagedRow]()
        unmarked = self._unmarked_jobs()
        for one in unmarked:
            self._warn(f"`live` of {one[1]}", "its state or a seat says that it is")
        marked = self._db.execute(f"SELECT {JOB} FROM jobs WHERE live = 1 ORDER BY number")
        for found in merge(marked, unmarked, key=lambda one: int(one[0])) if unmarked else marked:
            try:
                row = job_row(*found)
                if row.is_live:
                    rows.append(row)
                else:
                    self._warn(f"`live` of {row.id}", "it has ended")
            except (ValueError, TypeError, LookupError, OverflowError) as error:
                count, job_id, tenant, _, body = found
                reason = f"its row in the store cannot be used ({error}); eunomia store restore brings back a backup"
                damaged.append(DamagedRow(int(count), str(job_id), str(tenant), reason, str(body)))
        return rows, damaged

    def _unmarked_jobs(self) -> list[Sequence[Any]]:
        """Return the rows of jobs that are live by their states or seats, and not marked so: that bit has flipped."""
        live = [state for state in STATES if state not in TERMINAL]
        found = self._db.execute(
            f"SELECT number FROM jobs WHERE live <> 1 AND state IN ({job_sums.places(live)}) "
            "UNION SELECT number FROM jobs WHERE live <> 1 AND id IN (SELECT job FROM seats) ORDER BY number", live
        ).fetchall()  # fmt: skip
        text = f"SELECT {JOB} FROM jobs WHERE number = ?"
        return [self._db.execute(text, one).fetchone() for one in found]

    def _row(self, found: Sequence[Any]) -> JobRow:
        try:
            return job_row(*found)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            rule = f"the row of job {found[1]} cannot be read ({error})"
            raise StoreProblem.of(self.folder, rule, RESTORE) from None

    def _of_last_jobs(self, field: str, where: str, count: int) -> list[tuple[str, str, Any]]:
        """Return tenant, job type and a field of the last jobs, the newest first.

        Where a row cannot be read it is left out, and the log names it.
        """
        last = f"FROM jobs WHERE {where} ORDER BY number DESC LIMIT ?"
        try:
            taken = f"SELECT tenant, job_type, json_extract(body, '$.{field}') {last}"
            return list(self._db.execute(taken, (count,)).fetchall())
        except self.errors:
            rows = self._db.execute(f"SELECT {JOB} {last}", (count,)).fetchall()
        wrong = list[str]()
        found = usable([(one[1], one) for one in rows], lambda one: job_row(*one[1]), wrong.append)
        self._warn(f"{len(wrong)} rows of jobs", f"{', '.join(wrong[:5])}; nothing is learnt from them")
        return [(row.tenant, row.spec.get("job_type", ""), getattr(row, field)) for row in found]

    def run_times(self, count: int = 10_000) -> list[tuple[str, str, float]]:
        """Return tenant, job type and run time of the last jobs that succeeded, the oldest first."""
        found = self._of_last_jobs("run_s", "state = 'succeeded'", count)
        return [(tenant, kind, run_s or 0.0) for tenant, kind, run_s in reversed(found) if is_finite(run_s or 0.0)]

    def memory_used(self, count: int = 10_000) -> dict[str, float]:
        """Return the most memory in GiB that the last jobs of each type used on one accelerator."""
        most = dict[str, float]()
        for _, kind, used in self._of_last_jobs("used_memory_gib", "1 = 1", count):
            if used is not None and is_finite(used):
                most[kind] = max(float(used), most.get(kind, 0.0))
        return most

    def tenant_hours(self, until: int) -> list[TenantHour]:
        """Return the sums of tenants in the day that ends with hour `until`."""
        found = self._db.execute(f"{TENANT_HOURS} WHERE hour > ? AND hour <= ?", (until - HOURS, until)).fetchall()
        return usable(found, tenant_hour_of, lambda wrong: self._warn("the sums of a tenant in hour", wrong))

    def active_time(self, at: float) -> ActiveTime:
        """Return `TenantFairness.active_time` as it was stored; nothing until `at` where it was not."""
        found = self.meta("active_time")
        try:
            return ActiveTime(at) if found is None else ActiveTime(*map(number, json.loads(found)))
        except (ValueError, TypeError) as error:
            self._warn("the fact 'active_time'", str(error))
            return ActiveTime(at)

    def drained(self, nodes: int) -> dict[int, str]:
        """Return which of so many nodes are drained, and why."""
        found = usable(
            self._db.execute(NODES).fetchall(), node_of, lambda wrong: self._warn("the row of drained node", wrong)
        )
        return {node: reason for node, reason in found if 0 <= node < nodes}

    def drains(self) -> list[Drain]:
        """Return which nodes and accelerators are drained."""
        return usable(
            self._db.execute(DRAINS).fetchall(), drain_of, lambda wrong: self._warn("a row of drained nodes", wrong)
        )

    def maintenance(self) -> list[Maintenance]:
        """Return the spans of maintenance that were planned, also those that are over."""
        return usable(
            self._db.execute(MAINTENANCE).fetchall(), maintenance_of, lambda wrong: self._warn("a maintenance", wrong)
        )

    def key(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        """Return body digest and ids of an earlier submission. Raises StoreProblem if they cannot be read."""
        found = self._db.execute(KEYS, (tenant, key)).fetchone()
        try:
            return None if found is None else ids_of(found)
        except (ValueError, TypeError) as error:
            rule = f"the row of the Idempotency-Key {key!r} cannot be read ({error})"
            raise StoreProblem.of(self.folder, rule, RESTORE) from None

    def unfinished(self, note: Callable[[str], None] | None = None) -> list[LongSubmission]:
        """Return the accepted submissions of which jobs are still to be entered; `note` gets what cannot be used."""
        return usable(
            self._db.execute(LISTS).fetchall(), unfinished_of,
            note or (lambda wrong: self._warn("the rest of an accepted list of jobs, with the key", wrong)),
        )  # fmt: skip

    def job(self, job_id: str) -> JobRow | None:
        """Return any job. Raises StoreProblem if its row cannot be read."""
        found = self._db.execute(f"SELECT {JOB} FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else self._row(found)

    def unsent(self) -> dict[int, dict[str, Any]]:
        """Return the orders that the world has not acknowledged."""
        found = self._db.execute("SELECT number, body FROM outbox ORDER BY number").fetchall()
        return {number: json.loads(body) for number, body in found}

    def last_order(self) -> int:
        """Return the number of the last order that the world has not acknowledged."""
        return int(self._db.execute("SELECT coalesce(max(number), 0) FROM outbox").fetchone()[0])

    def clear_outbox(self) -> None:
        """Forget unacknowledged orders, which the resent ones replace."""
        with self.transaction() as db:
            db.execute("DELETE FROM outbox")

    def tokens(self) -> list[Token]:
        """Return all tokens that can be used."""
        return usable(self._db.execute(TOKENS).fetchall(), token_of, lambda wrong: self._warn("token", wrong))

    def has_audit_parts(self) -> bool:
        """Whether parts of the audit log have been signed."""
        return self._db.execute("SELECT 1 FROM audit_parts LIMIT 1").fetchone() is not None

    def problems(self, audit_key: bytes | None = None) -> list[str]:
        """Return what is wrong with the store, its seats, its audit log, whose signatures are checked with the key."""
        found = self._damage()
        try:
            audit_log.check(self._db, str(self.meta("cluster_id")), audit_key)
        except audit_log.AuditChanged as error:
            found.append(str(error))
        rows = ((one[1], one) for one in self._db.execute(f"SELECT {JOB} FROM jobs ORDER BY number"))
        usable(rows, lambda one: job_row(*one[1]), lambda wrong: found.append(f"the row of job {wrong} cannot be read"))
        found += [f"job {one[1]} is live, and not marked so" for one in self._unmarked_jobs()]
        usable(self._db.execute(TOKENS), token_of, lambda wrong: found.append(f"the token {wrong} cannot be used"))
        self.unfinished(
            lambda wrong: found.append(f"the rest of the accepted list with the key {wrong} cannot be used")
        )
        usable(self._db.execute(CLOCKS), clock_of, lambda wrong: found.append(f"the clock {wrong} cannot be used"))
        usable(
            self._db.execute(TENANT_HOURS), tenant_hour_of,
            lambda wrong: found.append(f"the sums of a tenant in hour {wrong} cannot be used"),
        )  # fmt: skip
        usable(self._db.execute(DRAINS), drain_of, lambda wrong: found.append(f"the drain {wrong} cannot be used"))
        usable(
            self._db.execute(MAINTENANCE), maintenance_of,
            lambda wrong: found.append(f"the maintenance {wrong} cannot be used"),
        )  # fmt: skip
        for table, name in NAMED.items():
            summed, wrong = self._db.execute(f"SELECT {name}, {selected(table)} FROM {table}"), list[str]()
            usable(summed, lambda row: of_row(row[1:]), wrong.append)
            found += [f"the row {one} of {table} cannot be used" for one in wrong]
        for key, read in FACTS.items():
            try:
                read(self.meta(key) or "0")
            except (ValueError, TypeError) as error:
                found.append(f"the fact {key} cannot be used ({error})")
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


def _order(order: Any) -> str:
    """Return an order as JSON, without the job's document, which its row holds."""
    body = {one.name: getattr(order, one.name) for one in fields(order) if one.name != "spec"}
    return json.dumps({"kind": type(order).__name__, **body})
