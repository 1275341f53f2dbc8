"""The store as the API reads it: connections of its own that cannot write."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

from eunomia.service.job_row import STATES, JobRow
from eunomia.service.store import audit_log, usage_sums
from eunomia.service.store.audit_log import AuditPart
from eunomia.service.store.base import Connection, hours_of
from eunomia.service.store.checked_rows import number, state_of
from eunomia.service.store.job_sums import in_groups, places
from eunomia.service.store.opening import BUSY_S, FILE
from eunomia.service.store.row_sums import of_row, selected
from eunomia.service.tenant_fairness import HOUR_S, HOURS, TenantSums
from eunomia.service.usage import UsageKey, UsageSums

KEPT_MOMENTS = 500
_ROW = "number, id, tenant, state, body"


def _row(number: int, job_id: str, tenant: str, state: str, body: str) -> JobRow:
    """Return a job; of a damaged row what stands beside its body, so that lists and pages go on."""
    try:
        return JobRow.of(body)
    except (ValueError, TypeError, LookupError, OverflowError):
        reason = "its row in the store cannot be read; eunomia store restore brings back that of a backup"
        return JobRow(id=str(job_id), number=number, tenant=str(tenant), owner="", name=str(job_id),
                      spec={"command": []}, submitted=math.nan, since=math.nan, state=state_of(state),
                      reason=reason)  # fmt: skip


def detail_of(text: str) -> dict[str, Any]:
    """Return what an event says; of a damaged one that it cannot be read."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"reason": "this event cannot be read in the store", "epoch": 0}


@dataclass(frozen=True, slots=True)
class ShownMoment:
    """When something happened, what, and what was decided."""

    at: float
    events: tuple[tuple[str, int], ...]  # kinds in order, and how many of each followed each other
    decisions: tuple[dict[str, Any], ...]


class EndedSum(NamedTuple):
    """Jobs of a user that have ended so, their accelerator-seconds, and how many of them waited how long to start."""

    tenant: str
    user: str
    state: str
    jobs: int
    accelerator_s: float
    waits: int
    wait_s: float


class _FileConnection(sqlite3.Connection):
    """A connection that is closed when the thread that read with it has ended."""

    def __del__(self) -> None:
        """Close it."""
        self.close()


class Reader:
    """Connections that cannot write, one a thread. Close it at the end."""

    def __init__(self, place: Path | str) -> None:
        self._place = place  # the state folder, or the address of a database
        self._local = threading.local()
        self._opened: WeakSet[Any] = WeakSet()  # of all threads
        self._moments: dict[int, ShownMoment] = {}

    @property
    def _db(self) -> Connection:
        if not hasattr(self._local, "db"):
            self._local.db = self._connect()
            self._opened.add(self._local.db)
        connection: Connection = self._local.db
        return connection

    def _connect(self) -> Connection:
        if isinstance(self._place, str):
            from eunomia.service.store.postgres import connect

            return connect(self._place, read_only=True)
        db = sqlite3.connect(f"file:{self._place / FILE}?mode=ro", uri=True, isolation_level=None,
                             check_same_thread=False, factory=_FileConnection)  # fmt: skip
        db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
        return db

    def close(self) -> None:
        """Close the connections of all threads."""
        for db in list(self._opened):
            db.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread read the store as it is now, until the block ends."""
        self._db.execute("BEGIN")
        try:
            self._db.execute("SELECT at FROM clock").fetchone()  # from here on
            yield
        finally:
            self._db.execute("COMMIT")

    def job(self, job_id: str) -> JobRow | None:
        """Return a job; None for an unknown id."""
        found = self._db.execute(f"SELECT {_ROW} FROM jobs WHERE id = ?", (job_id,)).fetchone()
        return None if found is None else _row(*found)

    def notice_addresses(self, target: str) -> list[tuple[str, float]]:
        """Return for which addresses of a target notices wait, and since when."""
        text = "SELECT address, min(at) FROM notices WHERE target = ? GROUP BY address ORDER BY min(seq)"
        return [(str(address), float(at)) for address, at in self._db.execute(text, (target,)).fetchall()]

    def notices(self, target: str, address: str, most: int) -> list[tuple[int, float, str, str, str]]:
        """Return the first notices that wait for an address of a target: number, time, event, job and body."""
        text = "SELECT seq, at, event, job, body FROM notices WHERE target = ? AND address = ? ORDER BY seq LIMIT ?"
        return [
            (int(seq), float(at), str(event), str(job), str(body))
            for seq, at, event, job, body in self._db.execute(text, (target, address, most))
        ]

    def ended_jobs(self, most: int) -> list[JobRow]:
        """Return the last jobs that are over and whose processes have ended, in order of submission."""
        text = f"SELECT {_ROW} FROM jobs WHERE live = 0 ORDER BY number DESC LIMIT ?"
        return [_row(*found) for found in reversed(self._db.execute(text, (most,)).fetchall())]

    def jobs(
        self,
        *,
        tenant: str | None,
        states: Iterable[str],
        label: tuple[str, str] | None,
        before: int | None,
        limit: int,
        first: bool = False,
    ) -> list[JobRow]:
        """Return jobs, the newest first, submitted before job number `before`; or those submitted first."""
        where, values, order = ["1 = 1"], list[Any](), "ASC" if first else "DESC"
        tables, number = "jobs j", "j.number"
        if label is not None:  # in the order of the index of labels
            tables, number = "labels l CROSS JOIN jobs j", "l.number"
            where.append("l.key = ? AND l.value = ? AND j.number = l.number")
            values += label
        if before is not None:
            where.append(f"{number} < ?")
            values.append(before)
        states = tuple(dict.fromkeys(states))
        if tenant is not None:
            where.append("j.tenant = ?")
            values.append(tenant)
            states = states or tuple(STATES) if label is None else states
        if states:
            where.append("j.state = ?")
        part = f"SELECT {number} AS n FROM {tables} WHERE {' AND '.join(where)} ORDER BY {number} {order} LIMIT ?"
        # Each state by itself, as an index has its jobs in their order; all at once, as jobs change states meanwhile.
        parts = [[*values, *one, limit] for one in [[state] for state in states] or [[]]]
        text = " UNION ALL ".join(f"SELECT n FROM ({part}) AS part{i}" for i in range(len(parts)))
        found = self._db.execute(text, tuple(chain(*parts))).fetchall()
        numbers = sorted((n for (n,) in found), reverse=not first)[:limit]
        rows = list[JobRow]()
        for group in in_groups(numbers):
            text = f"SELECT {_ROW} FROM jobs WHERE number IN ({places(group)}) ORDER BY number {order}"
            rows += (_row(*found) for found in self._db.execute(text, group).fetchall())
        return rows

    def counts(self, tenant: str | None = None) -> dict[str, int]:
        """Return how many jobs are in each state."""
        mine, values = ("", ()) if tenant is None else ("WHERE tenant = ? ", (tenant,))
        found = self._db.execute(f"SELECT state, sum(jobs) FROM job_counts {mine}GROUP BY state", values)
        return {state: int(count) for state, count in found.fetchall() if count}

    def news(self, after: int, last: int = 2**62, limit: int = 1000) -> list[tuple[int, float, str, str, str, str]]:
        """Return number, time, job, tenant, kind and detail of what happened after an event, up to another one."""
        text = "SELECT seq, at, job, tenant, kind, detail FROM news WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        return list(self._db.execute(text, (after, last, limit)))

    def job_news(self, job_id: str) -> list[tuple[int, float, str, str]]:
        """Return what happened to a job, in order."""
        text = "SELECT seq, at, kind, detail FROM news WHERE job = ? ORDER BY seq"
        return list(self._db.execute(text, (job_id,)))

    def news_range(self) -> tuple[int, int]:
        """Return the numbers of the oldest event that is kept and of the newest one; 0 if there is none."""
        text = "SELECT (SELECT min(seq) FROM news), (SELECT max(seq) FROM news)"  # two look-ups, no scan
        oldest, newest = self._db.execute(text).fetchone()
        return int(oldest or 0), int(newest or 0)

    def ended_since(self, at: float, tenant: str | None = None) -> tuple[list[EndedSum], list[JobRow]]:
        """Return what is known of the jobs that ended from a time on and are not live; of one tenant, or all.

        That is the sums of whole hours, by tenant, user and state, and the jobs that ended before the first of them.
        """
        mine, values = ("", ()) if tenant is None else (" AND tenant = ?", (tenant,))
        first = math.ceil(max(at, 0.0) / HOUR_S)
        sums = self._db.execute(
            'SELECT tenant, "user", state, sum(jobs), sum(accelerator_s), sum(waits), sum(wait_s) FROM ended_hours '
            f'WHERE hour >= ?{mine} GROUP BY tenant, "user", state ORDER BY tenant, "user", state', (first, *values)
        )  # fmt: skip
        found = [
            EndedSum(name, user, state, int(jobs), taken, int(waits), wait_s)
            for name, user, state, jobs, taken, waits, wait_s in sums.fetchall()
        ]
        text = f"SELECT {_ROW} FROM jobs WHERE live = 0 AND ended >= ? AND ended < ?{mine} ORDER BY ended, number"
        rows = self._db.execute(text, (at, first * HOUR_S, *values))
        return found, [_row(*one) for one in rows.fetchall()]

    def fact(self, key: str, otherwise: float) -> float:
        """Return a fact about the service that is a number."""
        found = self._db.execute(f"SELECT {selected('meta')} FROM meta WHERE key = ?", (key,)).fetchone()
        try:
            return otherwise if found is None else number(float(of_row(found)[1]))
        except ValueError:
            return otherwise

    def cluster_id(self) -> str:
        """Return which store it is."""
        return str(self._db.execute("SELECT value FROM meta WHERE key = 'cluster_id'").fetchone()[0])

    def audit_parts(self) -> list[AuditPart]:
        """Return the parts of the audit log in order. Raises AuditChanged for one that cannot be read."""
        return audit_log.parts(self._db)

    def audit_entries(self, after: int, last: int | None = None) -> Iterator[Sequence[Any]]:
        """Yield the entries of the audit log behind one of them, until the last, or the one before the newest."""
        yield from audit_log.entries(self._db, after, self.last_audit() - 1 if last is None else last)

    def last_audit(self) -> int:
        """Return the number of the newest entry of the audit log, 0 without any."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()[0])

    def audit_digest(self, last: int) -> str:
        """Return the digest of the newest entry of the audit log with at most this number; "" without any."""
        text = "SELECT hash FROM audit WHERE seq <= ? ORDER BY seq DESC LIMIT 1"
        found = self._db.execute(text, (last,)).fetchone()
        return "" if found is None else str(found[0])

    def usage(
        self, begin: float, end: float, tenant: str | None = None, user: str | None = None
    ) -> list[tuple[UsageKey, UsageSums]]:
        """Return what was used in the hours that begin between two wall-clock times; of a tenant and a user, or all."""
        return usage_sums.read(self._db, begin, end, tenant, user)

    def tenant_hours(self, until: int, width: int, count: int, tenant: str | None) -> list[tuple[int, str, TenantSums]]:
        """Return the sums of one tenant, or all, before the day that ends with hour `until`; see `hours_of`."""
        return hours_of(self._db, until, width, until - width * count, until - HOURS, tenant)

    def decisions(self, count: int = 20, until: float | None = None) -> list[ShownMoment]:
        """Return the last moments, or the last ones until a time, the newest first."""
        last = 2**62 if until is None else self._last_moment(until)
        text = "SELECT seq FROM moments WHERE seq <= ? ORDER BY seq DESC LIMIT ?"
        found = (self._moment(seq) for (seq,) in self._db.execute(text, (last, count)).fetchall())
        return [moment for moment in found if moment is not None]

    def _moment(self, seq: int) -> ShownMoment | None:
        """Return one moment; None if it has been removed meanwhile.

        Those of the last calls are kept, as a long list of jobs takes a while to read.
        """
        found = self._moments.get(seq)
        if found is None:
            stored = self._db.execute("SELECT at, lines FROM moments WHERE seq = ?", (seq,)).fetchone()
            if stored is None:
                return None
            at, lines = stored
            first, *decisions = map(json.loads, lines.splitlines())
            runs = [(str(kind), len(list(events))) for kind, events in groupby(one["is"] for one in first["events"])]
            found = ShownMoment(at, tuple(runs), tuple(one["decision"] for one in decisions))
            if len(self._moments) >= KEPT_MOMENTS:
                self._moments.clear()
            self._moments[seq] = found
        return found

    def _last_moment(self, until: float) -> int:
        """Return the number of the last moment until a time, 0 if there is none: times rise with the numbers."""
        low, high = 0, int(self._db.execute("SELECT coalesce(max(seq), 0) FROM moments").fetchone()[0])
        while low < high:
            middle = (low + high + 1) // 2
            first = "SELECT at FROM moments WHERE seq >= ? ORDER BY seq LIMIT 1"
            if self._db.execute(first, (middle,)).fetchone()[0] <= until:
                low = middle
            else:
                high = middle - 1
        return low
