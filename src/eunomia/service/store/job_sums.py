"""Counts of jobs by tenant and state, and hourly sums over those that have ended, kept by the turns that change them.

So the summary of users and the counts of jobs cost what they show, however many jobs are stored.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from eunomia.inputs.bounds import MOST, MOST_S
from eunomia.service.job_row import JobRow
from eunomia.service.tenant_fairness import HOUR_S

AT_ONCE = (256, 64, 16, 4, 1)  # jobs that one statement asks for: few texts, so that each is prepared once
MOST_RUN_S = MOST * MOST_S  # accelerator-seconds of one job: a row that is set aside may say more, or nan
PAGE = 5000  # jobs that are read at once where all are
COUNTED = (
    "INSERT INTO job_counts (tenant, state, jobs) VALUES (?, ?, ?) "
    "ON CONFLICT (tenant, state) DO UPDATE SET jobs = job_counts.jobs + excluded.jobs"
)
SUMMED = (
    'INSERT INTO ended_hours (hour, tenant, "user", state, jobs, accelerator_s, waits, wait_s) '
    'VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (hour, tenant, "user", state) DO UPDATE SET '
    "jobs = ended_hours.jobs + excluded.jobs, accelerator_s = ended_hours.accelerator_s + excluded.accelerator_s, "
    "waits = ended_hours.waits + excluded.waits, wait_s = ended_hours.wait_s + excluded.wait_s"
)


class Database(Protocol):
    """What the sums need of a connection."""

    def execute(self, text: str, values: Sequence[Any] = ..., /) -> Any:
        """Run one statement, and return its cursor."""
        ...

    def executemany(self, text: str, rows: Sequence[Sequence[Any]], /) -> Any:
        """Run a statement once for each row."""
        ...


class EndedHours:
    """Sums over ended jobs by hour, tenant, user and state: jobs, accelerator-seconds, waits and their sum."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, str, str, str], list[float]] = {}

    def add(self, row: JobRow) -> None:
        """Count one that will not change any more."""
        if math.isnan(row.ended):
            return
        key = (int(row.ended // HOUR_S), row.tenant, row.owner, row.state)
        sums = self._sums.setdefault(key, [0, 0.0, 0, 0.0])
        sums[0] += 1
        run_s, wait_s = row.run_s * row.spec.get("accelerators", 1), row.first_started - row.submitted
        if 0 <= run_s <= MOST_RUN_S:
            sums[1] += run_s
        if 0 <= wait_s <= MOST_S:
            sums[2] += 1
            sums[3] += wait_s

    def write(self, db: Database) -> None:
        """Add them to what is stored."""
        db.executemany(SUMMED, [(*key, *sums) for key, sums in self._sums.items()])


def in_groups(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the values in groups of a few sizes."""
    begin = 0
    for size in AT_ONCE:
        while len(values) - begin >= size:
            yield values[begin : begin + size]
            begin += size


def places(values: Sequence[Any]) -> str:
    """Return a place in a statement for each value."""
    return ", ".join("?" * len(values))


def count_changed(db: Database, rows: Sequence[JobRow]) -> None:
    """Bring counts and sums up to date with rows of jobs that are about to be stored; ended ones are added up once."""
    stored: dict[int, tuple[str, int]] = {}
    last = db.execute("SELECT coalesce(max(number), 0) FROM jobs").fetchone()[0]
    for numbers in in_groups([row.number for row in rows if row.number <= last]):
        text = f"SELECT number, state, live FROM jobs WHERE number IN ({places(numbers)})"
        stored.update((number, (state, live)) for number, state, live in db.execute(text, numbers).fetchall())
    counts, ended = Counter[tuple[str, str]](), EndedHours()
    for row in rows:
        before, was_live = stored.get(row.number, ("", 1))
        if before != row.state:
            counts[row.tenant, row.state] += 1
            if before:
                counts[row.tenant, before] -= 1
        if was_live and not row.is_live:
            ended.add(row)
    add_counts(db, counts)
    ended.write(db)


def add_counts(db: Database, counts: Counter[tuple[str, str]]) -> None:
    """Add to the counts of jobs by tenant and state."""
    db.executemany(COUNTED, [(*key, count) for key, count in sorted(counts.items()) if count])


def sum_up(db: Database) -> None:
    """Count and add up the jobs of a store that has no counts yet; rows that cannot be read are only counted."""
    db.execute("DELETE FROM job_counts")
    db.execute("DELETE FROM ended_hours")
    db.execute("INSERT INTO job_counts SELECT tenant, state, count(*) FROM jobs GROUP BY tenant, state")
    ended, last = EndedHours(), -1
    text = "SELECT number, body FROM jobs WHERE live = 0 AND number > ? ORDER BY number LIMIT ?"
    while page := db.execute(text, (last, PAGE)).fetchall():  # PostgreSQL's driver has all that one returns in memory
        for _, body in page:
            with contextlib.suppress(ValueError, TypeError, LookupError, OverflowError):
                ended.add(JobRow.of(body))
        last = page[-1][0]
    ended.write(db)
