"""What one step of the controller changes, and what it asks of the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from eunomia.model.answers import Answer
from eunomia.model.decisions import Ask
from eunomia.service.job_row import JobRow
from eunomia.service.messages import LongSubmission, Order, Reply
from eunomia.service.notices import Notice
from eunomia.service.out_of_service import Drain, DrainKey, Maintenance
from eunomia.service.tenant_fairness import ActiveTime, TenantHour
from eunomia.service.usage import UsageKey, UsageSums


class Lookup(Protocol):
    """What the controller asks of the store: jobs that are over, and submissions made before."""

    def key(self, tenant: str, key: str) -> tuple[str, list[str]] | None:
        """Return body digest and job ids of an earlier submission with this idempotency key."""
        ...

    def job(self, job_id: str) -> JobRow | None:
        """Return any job; None for an unknown id."""
        ...


class ServicePolicyRunner(Protocol):
    """Answers the scheduler's asks, at once or later."""

    def answer(self, ask: Ask) -> Answer | None:
        """Return the answer; None = it is reported later, see `solver_reports`."""
        ...


@dataclass(slots=True)
class LoggedMoment:
    """One moment as it is stored: lines of a record, and the digest of the state after it if it was due."""

    at: float
    lines: str
    digest: str | None


@dataclass(slots=True)
class Turn:
    """All that one step changes: written in one transaction, before replies and orders leave."""

    at: float
    moments: list[LoggedMoment] = field(default_factory=list)
    rows: dict[str, JobRow] = field(default_factory=dict)
    news: list[tuple[str, str, str, str]] = field(default_factory=list)  # job, tenant, kind, detail
    keys: list[tuple[str, str, str, list[str]]] = field(default_factory=list)  # tenant, key, digest, ids
    long: list[LongSubmission] = field(default_factory=list)  # of which jobs were entered, as they are then
    orders: list[Order] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)  # orders that the world has received
    audit: list[tuple[str, str, str, str, str]] = field(default_factory=list)  # user, role, source, action, object
    notices: list[Notice] = field(default_factory=list)  # to be sent
    nodes: dict[int, str] = field(default_factory=dict)  # drained nodes and why; "" = in service
    drains: dict[DrainKey, Drain | None] = field(default_factory=dict)  # None = in service again
    maintenance: dict[int, Maintenance] = field(default_factory=dict)
    hours: list[TenantHour] = field(default_factory=list)  # sums of tenants
    active_time: ActiveTime | None = None  # None = as it was
    usage: list[tuple[UsageKey, UsageSums]] = field(default_factory=list)  # to be added to what is stored
    usage_counted: float = 0.0  # with `usage`: up to here that of gangs that run is added up
    # one an input: None for reports, and of a submission that goes on in further turns how far it is
    replies: list[Reply | LongSubmission | None] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        changes = (self.moments, self.rows, self.news, self.keys, self.taken, self.audit, self.orders, self.hours)
        return not (any(changes) or self.usage or self.drains or self.maintenance)
