"""Rows of the store as values that can be used: each is read by one function, which says what is wrong with it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.json_text import unusable_texts
from eunomia.service.job_document import parse_job
from eunomia.service.job_row import MOST_STORED, STATES, JobRow
from eunomia.service.messages import ROLES, LongSubmission, Principal, Request, Submit, ids_in
from eunomia.service.out_of_service import BEGUN, CANCELLED, ENDED, PLANNED, Drain, Maintenance
from eunomia.service.store.row_sums import COLUMNS, of_row
from eunomia.service.store.schema import StoredClock, Token
from eunomia.service.tenant_fairness import TenantHour, TenantSums

RESTORE = "restore a backup: eunomia store restore"
WITHOUT_LOG = (
    "start the version of Eunomia that wrote the store, restore a backup, or change the site file, such as a "
    "parameter of the policy: live jobs are then scheduled anew, from their rows and without the log"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """The row of a job that cannot be used: what stands beside its body, why, and the body."""

    number: int
    id: str
    tenant: str
    reason: str
    body: str


def number(value: Any, most: float = MOST_STORED) -> float:
    """Return a number of a row. Raises ValueError for what is none, or too large."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -most <= value <= most:
        raise ValueError(f"{str(value)[:40]!r} is no number that can be used")
    return float(value)


def text(value: Any) -> str:
    """Return a text of a row. Raises ValueError for what is none."""
    if not isinstance(value, str) or unusable_texts(value):
        raise ValueError(f"{str(value)[:40]!r} is no text that can be used")
    return value


def job_row(number: int, job_id: str, tenant: str, state: str, body: str) -> JobRow:
    """Return a job. Raises ValueError or TypeError for a row that cannot be used."""
    row = JobRow.of(body)
    if (row.number, row.id, row.tenant, row.state) != (number, job_id, tenant, state):
        raise ValueError("its columns number, id, tenant and state are not those of its body")
    return row


def clock_of(row: Sequence[Any]) -> StoredClock:
    """Return the clock. Raises ValueError for one that cannot be used."""
    at, boot, monotonic, wall = of_row(row)
    if number(at) < 0:
        raise ValueError("it is before the service's time")
    return StoredClock(number(at, MOST_S), text(boot), number(monotonic, MOST_S), number(wall, MOST_S))


def token_of(row: Sequence[Any]) -> Token:
    """Return a token. Raises ValueError for one that cannot be used."""
    token_id, hashed, user, tenant, role, created, *ends, parent = of_row(row)
    if role not in ROLES:
        raise ValueError(f"its role is {str(role)[:40]!r}")
    expires, revoked = (None if at is None else number(at, MOST_S) for at in ends)
    made_by = None if parent is None else text(parent)
    return Token(
        text(token_id), text(hashed), text(user), text(tenant), role, number(created, MOST_S), expires, revoked, made_by
    )


def tenant_hour_of(row: Sequence[Any]) -> TenantHour:
    """Return the sums of a tenant in an hour. Raises ValueError for some that cannot be used."""
    hour, tenant, *sums = of_row(row)
    received, deserved, succeeded, total, most = map(number, sums)
    return TenantHour(int(number(hour)), str(tenant), TenantSums(received, deserved, int(succeeded), total, most))


def node_of(row: Sequence[Any]) -> tuple[int, str]:
    """Return a drained node, and why it is. Raises ValueError for a row that cannot be used."""
    node, reason = of_row(row)
    return int(number(node)), str(reason).replace("\0", "")


def drain_of(row: Sequence[Any]) -> Drain:
    """Return what is drained. Raises ValueError for a row that cannot be used."""
    node, place, reason, user, since, until, empty, maintenance = of_row(row)
    return Drain(
        node=int(number(node)), place=int(number(place)), reason=text(reason), user=text(user),
        since=number(since, MOST_S), until=math.inf if until is None else number(until, MOST_S),
        empty=math.nan if empty is None else number(empty, MOST_S), maintenance=int(number(maintenance)),
    )  # fmt: skip


def maintenance_of(row: Sequence[Any]) -> Maintenance:
    """Return a span of maintenance. Raises ValueError for a row that cannot be used."""
    count, nodes, begins, ends, reason, user, state = of_row(row)
    names = json.loads(nodes)
    if not isinstance(names, list) or state not in (PLANNED, BEGUN, ENDED, CANCELLED):
        raise ValueError(f"its nodes are {str(nodes)[:40]!r}, and its state {str(state)[:40]!r}")
    return Maintenance(
        number=int(number(count)), nodes=tuple(map(text, names)), begins=number(begins, MOST_S),
        ends=number(ends, MOST_S), reason=text(reason), user=text(user), state=state,
    )  # fmt: skip


def ids_of(row: Sequence[Any]) -> tuple[str, list[str]]:
    """Return what an Idempotency-Key stands for. Raises ValueError where it cannot be read."""
    *_, digest, ids = of_row(row)
    found = json.loads(ids)
    if not isinstance(found, list) or not found:
        raise ValueError("it names no jobs")
    return text(digest), ids_in(text(one) for one in found)


def unfinished_of(row: Sequence[Any]) -> LongSubmission:
    """Return a submission with jobs that are still to be entered. Raises ValueError for one that cannot be used."""
    count = len(COLUMNS["lists"]) + 1
    tenant, key, user, role, source, body = of_row(row[1 : count + 1])
    if role not in ROLES:
        raise ValueError(f"its role is {str(role)[:40]!r}")
    who = Principal(text(user), text(tenant), role)
    documents = json.loads(body)
    jobs = tuple(parse_job(one) for one in (documents if isinstance(documents, list) else [documents]))
    (shown, entered), ids = ids_of(row[count + 1 :]), row[-2]
    submit = Submit(jobs, text(key), shown, several=True)
    if len(entered) >= submit.count:
        raise ValueError("it has no further jobs")
    return LongSubmission.of(Request(submit, who, text(source)), entered=len(entered), spans=tuple(json.loads(ids)))


def usable(rows: Iterable[Sequence[Any]], read: Callable[[Sequence[Any]], T], note: Callable[[str], None]) -> list[T]:
    """Return the rows that can be used; of each other one `note` gets what is wrong, after its first column."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except (ValueError, TypeError, OverflowError) as error:
            note(f"{str(row[0])[:40]!r} ({error})")
    return found


def state_of(value: Any) -> str:
    """Return a state of a column, such as of a row whose body cannot be read."""
    return value if value in STATES else "unknown"


def is_finite(value: Any) -> bool:
    """Say whether a value is a number that can be used."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
