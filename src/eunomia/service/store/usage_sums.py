"""The table of what users used by hour: what turns add to it, what is read of it, and what an older store has of it."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from eunomia.service.job_row import SEATED, STATES, JobRow
from eunomia.service.store.job_sums import PAGE, Database
from eunomia.service.store.row_sums import row_sum
from eunomia.service.usage import NAMES, UsageCounter, UsageKey, UsageSums, hours_between, stored

COUNTED = "usage_counted"  # of `meta`: up to when the time of gangs that run is added up
EXACT = "usage_exact"  # of `meta`: before this time the sums are what an earlier version left; 0 where it is not there
FACTS = (COUNTED, EXACT)
_WHOLE = ("starts", "succeeded", "failed", "cancelled", "refused", "failures")
_ADD = (
    f'INSERT INTO usage_hours (hour, tenant, "user", type, {", ".join(NAMES)}) '
    f"VALUES ({', '.join('?' * (4 + len(NAMES)))}) "
    'ON CONFLICT (hour, tenant, "user", type) DO UPDATE SET '
    + ", ".join(f"{name} = usage_hours.{name} + excluded.{name}" for name in NAMES)
)
MOST_HOURS = 24 * 366 * 10  # of what is added up anew for one job: what a damaged event says may be longer


def add(db: Database, usage: Iterable[tuple[UsageKey, UsageSums]]) -> None:
    """Add to what is stored."""
    db.executemany(_ADD, [stored(key, sums) for key, sums in usage])


def read(
    db: Database, begin: float, end: float, tenant: str | None = None, user: str | None = None
) -> list[tuple[UsageKey, UsageSums]]:
    """Return the sums of the hours that begin between two wall-clock times; the hour of each is `begin`."""
    mine = " AND tenant = ?" * (tenant is not None) + ' AND "user" = ?' * (user is not None)
    values = (
        math.ceil(begin),
        math.ceil(end),
        *([] if tenant is None else [tenant]),
        *([] if user is None else [user]),
    )
    found = db.execute(
        f'SELECT tenant, "user", type, {", ".join(f"sum({name})" for name in NAMES)} FROM usage_hours '
        f'WHERE hour >= ? AND hour < ?{mine} GROUP BY tenant, "user", type', values
    )  # fmt: skip
    return [
        (UsageKey(math.ceil(begin), name, owner, kind), _sums(sums)) for name, owner, kind, *sums in found.fetchall()
    ]


def _sums(values: Iterable[Any]) -> UsageSums:
    sums = UsageSums()
    for name, value in zip(NAMES, values, strict=True):
        setattr(sums, name, int(value) if name in _WHOLE else float(value))
    return sums


# ---- a store of an earlier version -----------------------------------------------------------------------------------


def sum_up_usage(db: Database) -> None:
    """Add up what a store that has no sums of usage knows of its jobs, and note that it is exact from now on.

    Time on accelerators is that between the events of each job, and types are known where the site has only one.
    """
    db.execute("DELETE FROM usage_hours")
    found = db.execute("SELECT at FROM clock").fetchone()
    now = 0.0 if found is None else float(found[0])
    counter, kind = UsageCounter(_number(db, "origin")), _only_type(db)
    rows = dict[str, JobRow]()
    for row in _rows(db):
        row.held_type = kind if row.epoch else ""
        rows[row.id] = row
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            _count_row(counter, row, now)
    since = dict[str, float]()
    sums = dict[UsageKey, UsageSums]()
    for at, job, state in _moves(db):
        if job not in rows:
            continue
        if (begun := since.pop(job, None)) is not None:
            _count_held(counter, rows[job], begun, at, sums)
        if state in SEATED:
            since[job] = at
    for job, begun in since.items():
        if rows[job].state in SEATED:
            _count_held(counter, rows[job], begun, now, sums)
    add(db, [*counter.take(), *sorted(sums.items(), key=lambda one: one[0])])
    if rows:
        facts = [(key, repr(now)) for key in FACTS]
        db.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key, _ in facts])
        text = "INSERT INTO meta (key, value, row_sum) VALUES (?, ?, ?)"
        db.executemany(text, [(*one, row_sum(one)) for one in facts])


def _number(db: Database, key: str) -> float:
    found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    try:
        value = 0.0 if found is None else float(found[0])
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _only_type(db: Database) -> str:
    """Return the accelerator type of the last site, "" where it had several."""
    found = db.execute("SELECT value FROM meta WHERE key = 'setup'").fetchone()
    try:
        kinds = {str(kind) for kind, *_ in json.loads(found[0])["nodes"]}
    except (TypeError, ValueError, LookupError):
        return ""
    return kinds.pop() if len(kinds) == 1 else ""


def _rows(db: Database) -> Iterable[JobRow]:
    """Yield the jobs that can be read."""
    last, text = -1, "SELECT number, body FROM jobs WHERE number > ? ORDER BY number LIMIT ?"
    while page := db.execute(text, (last, PAGE)).fetchall():
        for _, body in page:
            with contextlib.suppress(ValueError, TypeError, LookupError, OverflowError):
                yield JobRow.of(body)
        last = page[-1][0]


def _moves(db: Database) -> Iterable[tuple[float, str, str]]:
    """Yield when jobs came into which states, in order."""
    last, text = 0, "SELECT seq, at, job, kind FROM news WHERE seq > ? ORDER BY seq LIMIT ?"
    while page := db.execute(text, (last, PAGE)).fetchall():
        for _, at, job, kind in page:
            if kind in STATES and isinstance(at, float | int) and math.isfinite(at):
                yield float(at), str(job), str(kind)
        last = page[-1][0]


def _count_row(counter: UsageCounter, row: JobRow, now: float) -> None:
    """Count start, end, failures and lost work of a job, the last two when it ended."""
    at = now if math.isnan(row.ended) else row.ended
    if not math.isnan(row.first_started):
        counter.starts(row, row.first_started)
    if row.is_over:
        counter.ends(row, row.state, at)
    for _ in range(min(row.failures, 10_000)):
        counter.fails(row, at)
    if row.lost_s > 0:
        counter.loses(row, row.lost_s, at)


def _count_held(counter: UsageCounter, row: JobRow, begin: float, end: float, sums: dict[UsageKey, UsageSums]) -> None:
    count = float(row.spec.get("accelerators", 1)) if not row.seats else float(len(row.seats))
    begin = max(begin, end - MOST_HOURS * 3600.0)
    for hour, seconds in hours_between(counter.origin + begin, counter.origin + end, UTC):
        key = UsageKey(hour, row.tenant, row.owner, row.held_type)
        sums.setdefault(key, UsageSums()).add(UsageSums(seconds * count))
