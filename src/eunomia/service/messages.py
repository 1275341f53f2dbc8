"""What goes into the controller and what comes out: requests, reports of the world, replies and orders."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

from eunomia.backends.orders import DrainNode, Halt, Launch, Order
from eunomia.backends.reports import Report
from eunomia.model.answers import Answer
from eunomia.model.tenants import Tenant
from eunomia.service.job_document import FieldProblem, JobDocument
from eunomia.service.out_of_service import NODE

AT_ONCE = 250  # jobs of submissions that one turn of the writer takes
MOST_SPAN = 10_000
NODE_ACTIONS = ("drain", "resume", "remove")
JOB_ROLE = "job"  # of one start of one job; it may do what its own routes say, and nothing of the others
ROLES = ("viewer", "submitter", "tenant-admin", "operator")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a user of a tenant, with a role. With the role `job`, `user` is the job's id."""

    user: str
    tenant: str
    role: str
    epoch: int = 0  # of the role `job`: the start that it may speak of

    @property
    def is_operator(self) -> bool:
        return self.role == "operator"

    def may_see(self, tenant: str) -> bool:
        """Say whether jobs of a tenant are visible."""
        return self.is_operator or tenant == self.tenant

    def owns(self, owner: str, tenant: str) -> bool:
        """Say whether a job may be changed: by its submitter, the tenant's administrator, or an operator."""
        if self.is_operator:
            return True
        return tenant == self.tenant and (self.role == "tenant-admin" or (self.role != "viewer" and owner == self.user))


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit jobs, all or none. `key` makes a repetition return the same ids; `digest` is that of the body."""

    jobs: tuple[JobDocument, ...]
    key: str
    digest: str
    several: bool = False  # the body was a list or an array
    body: str = ""  # the documents as JSON; left out, it is made from them where it is needed
    is_unkeyed: bool = False  # the key was drawn here: as no caller knows it, nothing repeats it, and it is not kept
    count: int = field(init=False)  # jobs that it makes

    def __post_init__(self) -> None:
        """Count the jobs once."""
        object.__setattr__(self, "count", sum(job.count for job in self.jobs))


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold a job: it keeps its progress and asks for nothing until it is released."""

    job_id: str


@dataclass(frozen=True, slots=True)
class Release:
    """Release a held job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ChangeJob:
    """Change keys of a job: weight, deadline_s, name, labels, max_run_s, priority."""

    job_id: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attach:
    """Be let into the terminal or the notebook of an interactive job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class ChangeNode:
    """Drain a node or an accelerator, resume it, or remove a node, which also takes it off the cluster's totals.

    A drain lets jobs end; those that are left at `until` save and stop. A removal stops them at once.
    """

    node: str
    action: str  # one of NODE_ACTIONS
    reason: str = ""
    until: float = math.inf  # seconds of the service's time, of a drain; −inf = at once
    accelerator: int = NODE  # its place on the node; `NODE` = the whole node
    maintenance: int = 0  # number of the maintenance that a drain is for, where a changed site drains again; 0 = none


@dataclass(frozen=True, slots=True)
class PlanMaintenance:
    """Keep nodes free of jobs for a span."""

    nodes: tuple[str, ...]
    begins: float  # seconds of the service's time
    span_s: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CancelMaintenance:
    """End a span of maintenance, or do without it."""

    number: int


@dataclass(frozen=True, slots=True)
class ChangeTenant:
    """Give a tenant other options."""

    name: str
    tenant: Tenant


@dataclass(frozen=True, slots=True)
class SaveProgress:
    """Say how many steps are in the checkpoint of a job; asked for by its own start of that epoch."""

    job_id: str
    epoch: int
    steps: float


_Action: TypeAlias = SaveProgress | Submit | Cancel | Hold | Release | ChangeJob | Attach | ChangeNode | ChangeTenant
Action: TypeAlias = _Action | PlanMaintenance | CancelMaintenance


@dataclass(frozen=True, slots=True)
class Request:
    """An action of a user. `source` is where it came from, for the audit log; `request_id` names it in the log."""

    action: Action
    who: Principal
    source: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A document of a submission on this cluster: what is wrong with it, and how long its jobs are believed to be."""

    tenant: str
    problems: tuple[FieldProblem, ...]
    total_steps: float
    estimated: bool
    other_sizes: tuple[int, ...]
    array_group: str = ""  # see `JobRow`


@dataclass(frozen=True, slots=True)
class LongSubmission:
    """A submission of more jobs than a turn takes, and how far it is; see `submitted_jobs`.

    Its turns check the documents part by part, accept it as a whole, and then enter its jobs part by part.
    """

    request: Request
    ends: tuple[int, ...]  # how many jobs the documents up to each make together
    most: int = AT_ONCE  # documents that a turn checks, jobs that it enters
    plans: tuple[JobPlan, ...] = ()  # of the documents that were checked
    entered: int = 0  # jobs; none before it is accepted
    spans: tuple[str, ...] = ()  # of their ids, see `ids_in`
    site: object = None  # for which it was checked
    fault: str = ""  # why the next job cannot be entered: it is set aside

    @classmethod
    def of(cls, request: Request, *, entered: int = 0, spans: tuple[str, ...] = ()) -> LongSubmission:
        """Return one of which so many jobs were entered."""
        assert isinstance(request.action, Submit)
        ends = tuple(accumulate(job.count for job in request.action.jobs))
        return cls(request, ends, entered=entered, spans=spans)

    @property
    def submit(self) -> Submit:
        """What is asked for."""
        assert isinstance(self.request.action, Submit)
        return self.request.action

    @property
    def is_complete(self) -> bool:
        """Whether all its jobs were entered."""
        return self.entered == self.ends[-1]


def ids_in(spans: Iterable[str]) -> list[str]:
    """Return the ids of jobs that spans stand for: `7..9-k3f9a` is `7-k3f9a`, `8-k3f9a` and `9-k3f9a`.

    Raises ValueError for a span that is none.
    """
    found = list[str]()
    for span in spans:
        numbers, _, incarnation = span.partition("-")
        first, dots, last = numbers.partition("..")
        if dots and int(last) - int(first) >= MOST_SPAN:
            raise ValueError(f"{span[:40]!r} stands for too many jobs")
        found += [f"{number}-{incarnation}" for number in range(int(first), int(last) + 1)] if dots else [span]
    return found


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request: an HTTP status and a body; it leaves after the commit."""

    status: int
    body: dict[str, Any]
    problems: tuple[FieldProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyAnswered:
    """The policy has answered the ask of that number."""

    asked: int
    answer: Answer
    runner: object = None  # that gave it; None = the present one


@dataclass(frozen=True, slots=True)
class PolicyOverran:
    """The ask of that number has no answer: it took too long, too much memory, or the policy failed."""

    asked: int
    reason: str
    runner: object = None  # likewise


Input: TypeAlias = Request | LongSubmission | Report | PolicyAnswered | PolicyOverran

__all__ = ["AT_ONCE", "Action", "Attach", "Cancel", "CancelMaintenance", "ChangeJob", "ChangeNode", "ChangeTenant",
           "DrainNode", "Halt", "Hold", "Input", "JobPlan", "Launch", "LongSubmission", "Order", "PlanMaintenance",
           "PolicyAnswered", "PolicyOverran", "Principal", "Release", "Reply", "Report", "Request", "SaveProgress",
           "Submit"]  # fmt: skip
