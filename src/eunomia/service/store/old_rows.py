"""The rows that a store no longer needs: what goes, how much it is, and its removal in pieces between two turns.

Times of moments and events rise with their numbers, so the oldest have the lowest. The last of each stays, as the next
number follows it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.service.store.audit_log import KEPT_LAST, TAKEN
from eunomia.service.store.job_sums import Database, add_counts, in_groups, places
from eunomia.service.tenant_fairness import HISTORY_DAYS, HOUR_S

PIECE_S = 0.008  # of statements in one transaction beside a service's turns; its commit comes to it
BATCH = 16  # rows of one statement, between looks at the time
ENDED = "live = 0 AND ended < ?"
_NEEDLESS = "seq <= (SELECT min(seq) FROM snapshots) AND seq < (SELECT max(seq) FROM moments)"
_READ = "seq < (SELECT max(seq) FROM news)"
_ENTERED = "NOT EXISTS (SELECT 1 FROM lists WHERE lists.tenant = keys.tenant AND lists.key = keys.key)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Up to which time of the service rows go; -inf = none of them."""

    history: float  # ended jobs, their forecasts, events, keys and sums
    decisions: float  # moments that no start needs
    audit: float = -math.inf  # entries of the audit log, in whole parts: the beginning of a day


@dataclass(frozen=True, slots=True)
class OldRows:
    """How many rows go, and about how many bytes of the store they are."""

    what: str
    count: int
    size: int


def old_rows(db: Database, limits: Limits) -> list[OldRows]:
    """Return what goes from the store."""
    jobs = f"(SELECT number FROM jobs WHERE {ENDED})"
    found = []
    for what, size, where, at in (
        ("ended jobs", "length(body) + 100", f"jobs WHERE {ENDED}", limits.history),
        ("forecasts", "length(said) + 40", f"forecasts WHERE number IN {jobs}", limits.history),
        ("events", "length(detail) + 80", f"news WHERE at < ? AND {_READ}", limits.history),
        ("idempotency keys", "length(ids) + 150", f"keys WHERE at < ? AND {_ENTERED}", limits.history),
        ("decisions", "length(lines) + 40", f"moments WHERE at < ? AND {_NEEDLESS}", limits.decisions),
        ("audit entries", "length(object) + 200", f"audit WHERE at < ? AND {KEPT_LAST}", limits.audit),
    ):
        count, total = db.execute(f"SELECT count(*), coalesce(sum({size}), 0) FROM {where}", (at,)).fetchone()
        found.append(OldRows(what, int(count), int(total)))
    return found


def ended_jobs(
    db: Database, since: float, until: float, count: int, after: tuple[float, int] = (-math.inf, 0)
) -> list[tuple[float, int, str]]:
    """Return end, number and id of jobs that ended in a span, the first first, from behind one of them on."""
    text = (
        f"SELECT ended, number, id FROM jobs WHERE {ENDED} AND ended >= ? AND (ended > ? OR number > ?) "
        "ORDER BY ended, number LIMIT ?"
    )
    return list(db.execute(text, (until, max(since, after[0]), after[0], after[1], count)).fetchall())


def remove_jobs(db: Database, numbers: Sequence[int]) -> int:
    """Remove those of the jobs that have ended, with their labels and forecasts; return how many there were."""
    gone = Counter[tuple[str, str]]()
    for group in in_groups(numbers):
        found = db.execute(
            f"SELECT number, tenant, state FROM jobs WHERE number IN ({places(group)}) AND live = 0", group
        ).fetchall()
        for few in in_groups([number for number, _, _ in found]):
            for table in ("labels", "forecasts", "jobs"):
                db.execute(f"DELETE FROM {table} WHERE number IN ({places(few)})", few)
        gone.subtract((tenant, state) for _, tenant, state in found)
    add_counts(db, gone)
    return -gone.total()


def remove_aged(db: Database, limits: Limits, piece_s: float) -> int:
    """Remove old rows besides those of jobs for so long; return how many, 0 if there are no more."""
    end, gone = time.perf_counter() + piece_s, 0
    for text, values in _removals(limits):  # of each a few, also where that takes long
        while count := int(db.execute(text, values).rowcount):
            gone += count
            if time.perf_counter() >= end:
                break
    return gone


def _removals(limits: Limits) -> list[tuple[str, tuple[float, ...]]]:
    """Return the statements that each remove a few of the oldest rows, with their values."""
    hour = int(max(limits.history, 0.0) // HOUR_S)
    first = "seq IN (SELECT seq FROM {0} ORDER BY seq LIMIT ?)"
    oldest = f"{first} AND at < ?"
    keys = f"SELECT tenant, key FROM keys WHERE at < ? AND {_ENTERED} ORDER BY at LIMIT ?"
    hours = "DELETE FROM {0} WHERE ({1}) IN (SELECT {1} FROM {0} WHERE hour < ? ORDER BY {1} LIMIT ?)"
    return [
        (f"DELETE FROM moments WHERE {oldest.format('moments')} AND {_NEEDLESS}", (BATCH, limits.decisions)),
        (f"DELETE FROM news WHERE {oldest.format('news')} AND {_READ}", (BATCH, limits.history)),
        (f"DELETE FROM audit WHERE {first.format('audit')} AND {TAKEN}", (BATCH,)),
        (f"DELETE FROM keys WHERE (tenant, key) IN ({keys})", (limits.history, BATCH)),
        (hours.format("ended_hours", 'hour, tenant, "user", state'), (hour, BATCH)),
        (hours.format("tenant_hours", "hour, tenant"), (hour - 24 * HISTORY_DAYS, BATCH)),
    ]
