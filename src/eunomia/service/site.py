"""The site file: a scenario without a workload, and a [service] table. The jobs come from users."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from eunomia.backends.processes.accounts import has_account, has_group
from eunomia.backends.processes.machine_limits import describe_room
from eunomia.backends.registry import BACKENDS
from eunomia.backends.registry import DEFAULT as SIMULATED
from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.inputs.time_zone import ZONE_FIX, zone_of
from eunomia.mechanisms import DEFAULT
from eunomia.model.policy import Policy
from eunomia.model.spelling_suggestions import nearest
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.scenario import toml
from eunomia.scenario.load import scenario_from_parts
from eunomia.scenario.model import Scenario
from eunomia.scenario.schema_models import Finite, Section
from eunomia.scenario.source_locations import SourceLocations, shown
from eunomia.service.debug_lane import DebugLane
from eunomia.service.limits import LimitsOf, LimitsSection
from eunomia.service.machine_check import refuse_other_machines
from eunomia.service.notices import MailSection, NotifySection, WebhookSection, described
from eunomia.service.typed_speeds import TypedSpeeds
from eunomia.setup.policy_lookup import find_policy
from eunomia.setup.run_config import set_up
from eunomia.setup.run_objects import RunConfig
from eunomia.setup.stated_throughputs import stated_throughputs
from eunomia.setup.workload import Workload

SERVING = tuple(name for name in BACKENDS if name != SIMULATED)  # backends behind a service
USERS = "jobs of users"  # stands for the trace of a scenario
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Table = TypeVar("Table", bound=Section)
Positive = Annotated[Finite, Field(gt=0, ge=1e-6, le=MOST_S)]


class ServiceSection(Section):
    """How the service listens, stores and limits."""

    state: Annotated[str, Field(min_length=1)] = Field(default="state", description="folder of the store, made 0700")
    database: str | None = Field(
        default=None, description="postgresql://user@host/name without a password: the store, instead of a file"
    )
    listen: Annotated[str, Field(min_length=1)] = Field(
        default="127.0.0.1:8642", description="host:port, or unix:/path; port 0 picks a free one"
    )
    socket: str = Field(
        default="", description="unix socket for all users of this machine beside `listen`: their user id is the login"
    )
    tls_cert: str | None = Field(default=None, description="certificate chain, PEM; needed beyond loopback")
    tls_key: str | None = Field(default=None, description="its private key, PEM")
    tls: Literal["elsewhere"] | None = Field(default=None, description="elsewhere: a proxy before it terminates TLS")
    proxies: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed"
    )
    metrics_without_token: bool = Field(default=False, description="whether /metrics answers whoever connects")
    allowed_hosts: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        default=(), description="further names by which it may be addressed, in Host and Origin"
    )
    history_days: Positive = Field(
        default=90.0, description="days for which ended jobs are kept, with their folders, events and forecasts"
    )
    decision_days: Positive | None = Field(
        default=None, description="days for which decisions are kept that no start needs; left out, history_days"
    )
    log_days: Positive | None = Field(
        default=None, description="days for which logs of ended jobs are kept; left out, history_days"
    )
    logs_gib: Positive | None = Field(
        default=None, description="most that the logs of ended jobs take together; left out, there is no limit"
    )
    audit_days: Annotated[Finite, Field(ge=1, le=MOST_S)] | None = Field(
        default=None, description="days after which entries of the audit log go into signed files; left out, never"
    )
    max_pending_per_tenant: Annotated[int, Field(ge=1, le=10**9)] = Field(default=100_000, description="jobs that wait")
    submit_per_second: Positive = Field(default=200.0, description="jobs that a tenant submits; bursts of 10 s")
    submit_mib_per_day: Positive = Field(default=1024.0, description="job documents of a tenant, in MiB")
    debug_lane: Annotated[Finite, Field(ge=0, le=1)] = Field(
        default=0.0, description="share of the accelerators that debug jobs may take at once; 0 = there is no lane"
    )
    restart_within_s: Annotated[Finite, Field(ge=0, le=MOST_S)] = Field(
        default=0.0,
        description="a job that cannot save may be preempted once, so many seconds after its first start at most; "
        "0 = never",
    )
    solver_seconds: Positive = Field(default=10.0, description="longest time for one answer of the policy")
    solver_memory_gib: Positive = Field(default=4.0, description="most memory of the process that asks the policy")
    forecast_every_s: Annotated[Finite, Field(ge=0, le=MOST_S)] = Field(
        default=30.0, description="how often forecasts of waiting jobs are recorded; 0 = never"
    )
    drain_timeout_s: Positive = Field(default=600.0, description="longest wait for jobs of a drained node")
    supervisor_lease_s: Annotated[Finite, Field(ge=2, le=MOST_S)] = Field(
        default=120.0, description="how long jobs run on without the service before they save and stop"
    )
    log_mib: Annotated[Finite, Field(gt=0, le=1e6)] = Field(
        default=64.0, description="a job's log is moved aside when it is longer; one old part is kept"
    )
    made_up: bool = Field(
        default=False, description="whether nodes and accelerators are taken that this machine does not have"
    )
    time_zone: str = Field(
        default="UTC", description="zone in which hours, days and months of `eunomia usage` begin, as Europe/Berlin"
    )
    account: str = Field(
        default="", description="account under which root runs jobs of users without one; empty: that of the service"
    )
    tenants_by_group: dict[str, Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=dict,
        description="tenant of those who come by a unix socket, by their groups; the first that fits holds, and who is "
        "in none is a tenant of its own",
    )
    accelerator_memory_gib: dict[str, Positive] = Field(
        default_factory=dict, description="memory of an accelerator by type; discovered ones need none"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A checked site: its [service] table, and the objects of its scheduler."""

    path: Path
    service: ServiceSection
    setup: RunConfig
    limits: LimitsSection = field(default_factory=LimitsSection)
    notify: NotifySection = field(default_factory=NotifySection)

    @property
    def state(self) -> Path:
        """The folder of the store."""
        return self.path.resolve().parent / Path(self.service.state).expanduser()

    @property
    def place(self) -> Path | str:
        """Where the store is: the state folder, or the address of a database."""
        return self.service.database or self.state

    @property
    def zone(self) -> tzinfo:
        """The time zone in which days and months are counted."""
        return zone_of(self.service.time_zone)

    @property
    def address(self) -> tuple[str, int] | Path:
        """Host and port, or the path of a unix socket."""
        listen = self.service.listen
        if listen.startswith("unix:"):
            return self.path.resolve().parent / listen.removeprefix("unix:")
        host, _, port = listen.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def users_socket(self) -> Path | None:
        """The unix socket for all users of this machine, beside the address."""
        return self.path.resolve().parent / self.service.socket if self.service.socket else None

    def node_names(self) -> tuple[str, ...]:
        """Return the name of each node: its type and its number among all."""
        return tuple(f"{node.type}-{n}" for n, node in enumerate(self.setup.nodes))


def load_site(path: Path | str, overrides: Mapping[str, Any] | None = None) -> Site:
    """Read and check a site file. Raises InvalidInput with the line and key of every problem.

    `overrides` are tables that take the place of those in the file; of tenants, those that are named.
    """
    path = Path(path)
    data, places = toml.read_file(path, "site")
    for name, table in (overrides or {}).items():
        data[name] = {**data.get(name, {}), **table} if name == "tenants" else dict(table)
    problems: list[Problem] = []
    service = _section(ServiceSection, "service", data.pop("service", {}), places, problems)
    if service is not None:
        _check_service(service, places, problems)
    limits = _section(LimitsSection, "limits", data.pop("limits", {}), places, problems)
    notify = _section(NotifySection, "notify", data.pop("notify", {}), places, problems)
    if notify is not None:
        for key, value, rule, fix in notify.contradictions(path.resolve().parent):
            file, row = places.where(("notify", *key))
            column = ".".join(("notify", *key))
            problems.append(Problem(file=file, row=row, column=column, value=shown(value), rule=rule, fix=fix))
    if "workload" in data:
        file, row = places.where(("workload",))
        rule, fix = "a site has no workload: its users submit the jobs", "remove the table"
        problems.append(Problem(file=file, row=row, column="workload", rule=rule, fix=fix))
    data["workload"] = {"trace": USERS}
    world = data.setdefault("world", {"backend": "local"})
    if isinstance(world, dict) and world.get("backend", "local") not in SERVING:
        file, row = places.where(("world", "backend"))
        rule, fix = "the service does not run jobs there", f"set one of {', '.join(SERVING)}"
        problems.append(
            Problem(file=file, row=row, column="world.backend", value=str(world["backend"]), rule=rule, fix=fix)
        )
    elif isinstance(world, dict):
        world.setdefault("backend", "local")
    cluster = data.get("cluster")
    given = set(cluster) if isinstance(cluster, dict) else set()
    is_found = isinstance(cluster, dict) and cluster.get("discover") is True
    memory = _discover(data, places, problems)
    data.setdefault("throughputs", {"source": "uniform"})
    scenario: Scenario | None = None
    try:
        scenario = scenario_from_parts(data, places, path.resolve().parent, path.stem)
    except InvalidInput as error:
        problems += error.problems
    if problems or scenario is None or service is None or limits is None or notify is None:
        raise InvalidInput(sorted(problems, key=lambda problem: problem.row or 0))
    setup = set_up(scenario, Workload(jobs=(), notes=()), policy_of(scenario, service))
    if setup.mechanism.name != DEFAULT:
        rule = f"the service cuts time with leases; {setup.mechanism.name} is for simulations"
        raise InvalidInput([scenario.problem(("mechanism", "name"), rule, 'write name = "leases"')])
    _check_throughputs(setup)
    if scenario.world.backend == "local" and not is_found and not service.made_up:
        refuse_other_machines(setup, names_nodes=not given.isdisjoint(("nodes", "accelerators_per_node")))
    service = service.model_copy(update={"accelerator_memory_gib": {**memory, **service.accelerator_memory_gib}})
    setup = replace(setup, believed=TypedSpeeds(setup.believed, service.accelerator_memory_gib))
    return Site(path=path, service=service, setup=setup, limits=limits, notify=notify)


def _check_throughputs(setup: RunConfig) -> None:
    """Raise InvalidInput with every unknown throughput that a job of a job type of the table may need."""
    speeds = stated_throughputs(setup.scenario, setup.topology)
    speeds.refuse_unknown(dict.fromkeys(((name, 1) for name in speeds.job_types), 0))


def policy_of(scenario: Scenario, service: ServiceSection) -> Policy | None:
    """Return the policy with a debug lane, if the site has one. Raises InvalidInput where it cannot have one."""
    if not service.debug_lane:
        return None
    named = scenario.policy
    inner = find_policy(named.name, named.parameters, scenario.base, scenario.where)
    try:
        return DebugLane(inner, service.debug_lane)
    except ValueError as error:
        fix = "choose a policy that answers with an order (eunomia policies), or leave debug_lane out"
        raise InvalidInput([scenario.problem(("policy", "name"), str(error), fix)]) from None


def _section(kind: type[Table], name: str, data: Any, places: SourceLocations, problems: list[Problem]) -> Table | None:
    """Check a table of the site that is none of a scenario; every problem is noted with its line."""

    def add(path: tuple[str, ...], value: Any, rule: str, fix: str) -> None:
        file, row = places.where((name, *path))
        column = ".".join((name, *path))
        problems.append(Problem(file=file, row=row, column=column, value=shown(value), rule=rule, fix=fix))

    if not isinstance(data, dict):
        add((), data, "must be a table", f"write [{name}] and its keys below it")
        return None
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            path = tuple(map(str, details["loc"]))
            unknown, fields = details["type"] == "extra_forbidden", _fields_at(kind, path[:-1])
            rule = f"is no key of [{'.'.join((name, *path[:-1]))}]" if unknown else details["msg"]
            add(path, details["input"], rule, nearest(path[-1], fields) if unknown else "change it")
        return None


def _fields_at(kind: type[Section], path: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a table, or of the tables in it."""
    inner: dict[str, type[Section]] = {"limits": LimitsOf, "mail": MailSection, "webhooks": WebhookSection}
    named = "limits" if path and kind is LimitsSection else path[0] if path else ""
    return tuple(inner.get(named, kind).model_fields)


def _check_service(service: ServiceSection, places: SourceLocations, problems: list[Problem]) -> None:
    """Note what no single key of [service] says."""

    def add(key: str, value: Any, rule: str, fix: str) -> None:
        file, row = places.where(("service", key))
        problems.append(Problem(file=file, row=row, column=f"service.{key}", value=shown(value), rule=rule, fix=fix))

    try:
        zone_of(service.time_zone)
    except ValueError as error:
        add("time_zone", service.time_zone, str(error), ZONE_FIX)
    _check_listen(service, add)
    _check_database(service.database, add)
    if service.account and not has_account(service.account):
        add("account", service.account, "this machine has no such account", "name one that getent passwd lists")
    for name, tenant in service.tenants_by_group.items():
        if not has_group(name):
            rule = "this machine has no such group"
            add(f"tenants_by_group.{name}", tenant, rule, "name one that getent group lists")
        elif not is_path(tenant):
            add(f"tenants_by_group.{name}", tenant, EMPTY_PART, WHOLE_PATH)


def _check_database(address: str | None, add: Any) -> None:
    if address is None:
        return
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        add("database", address, "is no address of a PostgreSQL database", 'write "postgresql://user@host/name"')
    elif parts.password is not None or "password" in parts.query:
        fix = "leave it out, and give it in PGPASSWORD or ~/.pgpass"
        add("database", f"{parts.scheme}://…", "holds a password, and site files are read and recorded", fix)


def _check_listen(service: ServiceSection, add: Any) -> None:
    if service.listen.startswith("unix:"):
        return
    match = re.fullmatch(r"(\[[0-9a-fA-F:]+\]|[^:\s]+):([0-9]{1,5})", service.listen)
    if match is None or int(match[2]) > 65535:
        add("listen", service.listen, "must be host:port or unix:/path", 'write listen = "127.0.0.1:8642"')
        return
    has_tls = service.tls_cert is not None and service.tls_key is not None
    if match[1].strip("[]") not in LOOPBACK and not has_tls and service.tls != "elsewhere":
        rule = "is reachable from other machines, and tokens would cross the network unencrypted"
        fix = 'give tls_cert and tls_key, or say tls = "elsewhere" if a proxy terminates TLS, or listen on 127.0.0.1'
        add("listen", service.listen, rule, fix)


def _discover(data: dict[str, Any], places: SourceLocations, problems: list[Problem]) -> dict[str, float]:
    """Replace `discover = true` by the accelerators that the driver of this machine reports; return their memory."""
    cluster = data.get("cluster")
    if not isinstance(cluster, dict) or cluster.pop("discover", False) is not True:
        return {}
    from eunomia.backends.processes.discovery import discovered

    backend = data["world"].get("backend", "local") if isinstance(data.get("world"), dict) else "local"
    try:
        if backend != "local" and backend in SERVING:
            cluster["nodes"] = BACKENDS.load(backend).discovered(data["world"].get(backend, {}))
            return {}
        cluster["nodes"], memory = discovered()
        return memory
    except InvalidInput as error:
        file, row = places.where(("cluster", "discover"))
        first = error.problems[0]
        problems.append(
            Problem(file=file, row=row, column="cluster.discover", value="true", rule=first.rule, fix=first.fix)
        )
        cluster["nodes"] = [{"type": "cpu", "accelerators": 1}]
        return {}


def plan(site: Site) -> list[str]:
    """Return in words who may connect, what would run where, and what is missing."""
    setup = site.setup
    address = site.address
    scheme = "https" if site.service.tls_cert and site.service.tls_key else "http"
    where = f"unix socket {address}" if isinstance(address, Path) else f"{scheme}://{address[0]}:{address[1]}"
    if site.users_socket is not None:
        where += f", unix socket {site.users_socket} for all users of this machine"
    capacity = ", ".join(
        f"{int(count)} {name}" for name, count in zip(setup.topology.types, setup.topology.capacity(), strict=True)
    )
    lease = setup.mechanism.lease_s
    cut = "until a job ends" if math.isinf(lease) else f"for {lease:g} s at a time"
    cut += ", or until it makes room for another" * bool(getattr(setup.mechanism, "recall", False))
    is_new = not (site.state / "store.db").exists()
    return [
        *([f"store:     {site.service.database}; one service acts, others stand by"] if site.service.database else []),
        f"state:     {site.state} ({'new: would be made with mode 0700' if is_new else 'exists'})",
        f"listens:   {where}, and the unix socket {site.state / 'service.sock'} for this machine's operator",
        "access:    bearer tokens with a role; there is no switch for off",
        f"cluster:   {capacity} on {setup.topology.nodes} node{'s' if setup.topology.nodes != 1 else ''}",
        f"policy:    {setup.policy.info.name} ({setup.policy.info.answer_type}); seats are given {cut}",
        f"jobs:      {jobs_run(site)}",
        f"preempted: {may_be_preempted(site)}",
        f"kept:      {kept(site.service)}",
        *([f"notices:   {to}"] if (to := described(site.notify)) else []),
        *([f"limits:    {limited}"] if (limited := site.limits.described()) else []),
        *(describe_room() if setup.scenario.world.backend == "local" else []),
        *(f"note:      {note}" for note in setup.notes),
    ]


def may_be_preempted(site: Site) -> str:
    """Return which running jobs the policy may stop."""
    mechanism, within_s = site.setup.mechanism, site.service.restart_within_s
    if math.isinf(mechanism.lease_s) and not getattr(mechanism, "recall", False):
        return "never, as the policy stops nothing that runs"
    others = f"once, in the first {within_s:g} s after their first start" if within_s else "never"
    return f"jobs that have shown or declared that they can save; others {others}"


def kept(service: ServiceSection) -> str:
    """Return for how long what has ended is kept."""
    log_days = service.history_days if service.log_days is None else service.log_days
    decision_days = service.history_days if service.decision_days is None else service.decision_days
    most = "" if service.logs_gib is None else f" and at most {service.logs_gib:g} GiB together"
    audit = "ever" if service.audit_days is None else f"{service.audit_days:g} days"
    return (
        f"ended jobs with their folders for {service.history_days:g} days, their logs for {log_days:g} days{most}, "
        f"decisions for {decision_days:g} days, the audit log for {audit}"
    )


def jobs_run(site: Site) -> str:
    """Return which user jobs run as."""
    backend = site.setup.scenario.world.backend
    if backend != "local":
        return f"as gangs of {backend}, submitted by user {_user()}; they go on without the service"
    who = f"user {_user()}"
    if os.geteuid() == 0:
        who = f"the user who submitted them, of users without an account here of user {site.service.account or _user()}"
    return f"as processes of {who}; they outlive the service by {site.service.supervisor_lease_s:g} s"


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "of this process"
