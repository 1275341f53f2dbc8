"""The ASGI application: who may do what, limits, and errors as problem documents; the routes are in `routes`."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eunomia.backends.processes.accounts import groups_of
from eunomia.inputs.json_text import NotJson, parse_json
from eunomia.service.credentials import JobTokens, TokenRegistry
from eunomia.service.forecast_log import ForecastReader, ForecastScores
from eunomia.service.forecasts import Forecasts
from eunomia.service.http.budgets import BodyBytes, Bucket, LargeSubmissions, Places, Submissions, seconds
from eunomia.service.http.event_feed import EventFeed
from eunomia.service.http.fair_threads import TENANT, FairThreads
from eunomia.service.http.loop_replies import LoopReplies
from eunomia.service.http.loop_turns import LoopTurns
from eunomia.service.http.open_reads import OpenReads
from eunomia.service.job_document import FieldProblem, InvalidRequest, refuse_unusable
from eunomia.service.json_lines import REQUEST
from eunomia.service.messages import JOB_ROLE, ROLES, Principal, Reply
from eunomia.service.messages import Request as Asked
from eunomia.service.notice_sender import NoticeSender
from eunomia.service.site import LOOPBACK, Site
from eunomia.service.store.disk_room import SPARE_BYTES, DiskFull
from eunomia.service.store.reader import Reader
from eunomia.service.writer import FAILED, Writer

BODY_BYTES, LIST_BYTES = 2**20, 16 * 2**20
BODY_S = 30.0  # longest time to receive a body
QUEUED = 5_000  # requests that wait for the writer before new work is refused
DISK_S = 0.02  # for so long the free space is believed
MOST_PACED = 20_000  # jobs whose reports are counted at once
COOKIE = "eunomia"
LIVENESS = ("/healthz", "/readyz")
WHAT_IF = "/v1/whatif"
REQUESTS_A_PASS = 16  # of the loop
CUT_S = 0.0009995  # what a time loses in an answer, which rounds to microseconds and cuts to milliseconds
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send Origin: null with forms
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}
_log = logging.getLogger("eunomia.service")


class Refused(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self, status: int, title: str, problems: tuple[FieldProblem, ...] = (), *, code: str = "", retry_s: int = 0,
        more: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(title)
        self.status, self.title, self.problems, self.code, self.retry_s = status, title, problems, code, retry_s
        self.more = more or {}

    def response(self) -> Response:
        """Return it as RFC 9457 says."""
        body = {
            "type": f"urn:eunomia:{self.code or self.status}",
            "title": self.title,
            "status": self.status,
            "problems": [asdict(problem) for problem in self.problems],
            **({"request": REQUEST.get()} if self.status == 500 else {}),  # by which the log names what happened
            **self.more,
        }
        headers = {"Retry-After": str(self.retry_s)} if self.retry_s else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        text = json.dumps(body)  # escaped: a refused value may be no text that UTF-8 can hold
        return Response(text, self.status, headers, media_type="application/problem+json")


@dataclass(slots=True)
class Service:
    """All that handlers need."""

    writer: Writer
    reader: Reader
    tokens: TokenRegistry
    job_tokens: JobTokens
    jobs: Path  # the folder of the jobs' folders
    hosts: frozenset[str]
    origins: frozenset[str]
    forecasts: Forecasts
    feed: EventFeed
    notices: NoticeSender
    overruns: Callable[[], int]  # asks of the policy that took too long
    renewals: Callable[[], int]  # of leases, by the world
    places: Places
    reads: OpenReads = field(default_factory=OpenReads)
    replies: LoopReplies = field(default_factory=LoopReplies)
    threads: FairThreads = field(default_factory=lambda: FairThreads(6, "requests"))
    parsing: FairThreads = field(default_factory=lambda: FairThreads(1, "parsing"))  # of large documents
    large: LargeSubmissions = field(default_factory=LargeSubmissions)
    bodies: BodyBytes = field(default_factory=BodyBytes)
    submissions: Submissions = field(default_factory=Submissions)
    job_buckets: dict[str, Bucket] = field(default_factory=dict)
    disk_free: int = 0  # bytes when it was asked last
    disk_asked: float = -math.inf
    ready: bool = False
    refused: int = 0
    scores: ForecastScores = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing that is kept."""
        self.scores = ForecastScores(ForecastReader(self.site.place))

    @property
    def site(self) -> Site:
        """The site as it is now."""
        return self.writer.controller.site

    async def ask(self, action: Any, who: Principal, source: str) -> Reply:
        """Hand an action to the writer; return the reply after the commit. Raises Refused for what it refuses."""
        answer = self.replies.awaited()
        self.writer.hand_over(Asked(action, who, source, REQUEST.get()), answer)
        reply = await answer.future
        if reply.status >= 300:
            body = dict(reply.body)
            title, code = str(body.pop("title", "refused")), str(body.pop("code", ""))
            raise Refused(reply.status, title, reply.problems, code=code, more=body)
        return reply

    def admit(self, tenant: str) -> None:
        """Refuse new work that is too much for the tenant's rates, the writer or the disk."""
        limits = self.site.service
        rate, mib = limits.submit_per_second, limits.submit_mib_per_day
        for wait_s, rule in zip(
            self.submissions.wait_s(tenant, rate, mib * 2**20),
            (f"{rate:g} jobs a second", f"{mib:g} MiB of documents a day"), strict=True,
        ):  # fmt: skip
            if wait_s > 0:
                title = f"tenant {tenant!r} submits more than {rule}"
                raise Refused(429, title, retry_s=seconds(wait_s), code="too_many_requests")
        if self.writer.waiting > QUEUED:
            raise Refused(503, "the service has more requests than it can store; try again", retry_s=1, code="overload")
        if self.is_disk_low():
            title = "the disk of the state folder is full; no job is accepted"
            raise Refused(507, title, code="storage_full", retry_s=30)

    def is_disk_low(self) -> bool:
        """Say whether the last free bytes of the disk are kept for the jobs that are there."""
        now = time.monotonic()
        if now >= self.disk_asked + DISK_S:
            self.disk_free, self.disk_asked = self.writer.store.room.free_bytes(), now
        return self.disk_free < SPARE_BYTES

    def refuse_when_full(self) -> None:
        """Refuse what would be stored while nothing can be."""
        if self.writer.store.room.is_waiting:
            title = (
                "the disk of the state folder is full, and its reserve is used; nothing is stored until there is room"
            )
            raise Refused(507, title, code="storage_full", retry_s=30)

    def pace_job(self, job_id: str) -> None:
        """Refuse reports of a job that come more often than once a second; ten may come at once."""
        now = time.monotonic()
        if len(self.job_buckets) > MOST_PACED:
            self.job_buckets.clear()
        wait_s = self.job_buckets.setdefault(job_id, Bucket(1.0, 10.0, 10.0, now)).take(now)
        if wait_s > 0:
            raise Refused(429, "a job reports at most once a second", retry_s=1, code="too_many_requests")


Handler = Callable[[Service, Request, Principal], Any]  # a plain function, which may read, runs in a thread
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One route: its least role ("" = anyone), what it is about ("job" = ids of others answer 404), its schema."""

    method: str
    path: str
    role: str
    about: str
    summary: str
    handler: Handler
    answers: tuple[int, ...] = (200,)
    query: tuple[str, ...] = ()
    body: str = ""  # name of the schema of the body
    media: str = "application/json"


def source_of(request: Request) -> str:
    """Return where a request came from, for the audit log."""
    return request.client.host if request.client else "unix socket"


async def read_json(request: Request, limit: int = BODY_BYTES) -> Any:
    """Return the body of a request as strict JSON. Raises Refused for one that is too long, too slow, or no JSON."""
    return json_of(await read_body(request, limit))


def json_of(raw: bytes) -> Any:
    """Return a body as strict JSON. Raises Refused for one that is none, InvalidRequest for texts that are none."""
    try:
        text = raw.decode("utf-8")
        data = parse_json(text)
        if "\\u" in text:  # nothing but an escape makes a text that cannot be used
            refuse_unusable(data)
        return data
    except UnicodeDecodeError as error:
        rule = f"it is not UTF-8 (byte {error.start})"
    except NotJson as error:
        rule = str(error)
    problem = FieldProblem("body", None, rule, "send strict JSON: UTF-8, no NaN, no key twice")
    raise Refused(400, "the body is not JSON", (problem,), code="not_json")


async def read_body(request: Request, limit: int, bodies: BodyBytes | None = None) -> bytes:
    """Return the body of a request; see `read_json`. `bodies` counts what is being received."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "bodies are sent without Content-Encoding")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise Refused(413, f"the body has at most {limit:,} bytes", code="too_large")
    raw, tenant = bytearray(), TENANT.get()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                if bodies is not None and not bodies.take(tenant, len(chunk)):
                    raise Refused(429, "too much is being sent at once; try again", retry_s=1, code="too_many_requests")
                raw += chunk
                if len(raw) > limit:
                    raise Refused(413, f"the body has at most {limit:,} bytes", code="too_large")
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {BODY_S:g} s") from None
    finally:
        if bodies is not None:
            bodies.take(tenant, -len(raw))
    return bytes(raw)


def authenticate(service: Service, request: Request) -> tuple[Principal, str] | None:
    """Return who asks, and the id of the token; by Authorization, by the cookie of the pages, or by the unix socket.

    The request takes one of its tenant's places until it is answered. Raises Refused where there is none.
    """
    found = _credential(service, request)
    if found is not None:
        who, state = found[0], request.scope.setdefault("state", {})
        _is_known(request)
        if "place" not in state:
            if not service.places.take(who.tenant, is_operator=who.is_operator):
                title = f"tenant {who.tenant!r} has too many requests and streams at once"
                raise Refused(429, title, retry_s=1, code="too_many_requests")
            state["place"] = who.tenant
            TENANT.set(who.tenant)
        if _only_reads(request.method, request.scope["path"]):
            service.reads.add(found[1])
    return found


def _only_reads(method: str, path: str) -> bool:
    """Say whether a request changes nothing, so that it can be ended with its token."""
    return method == "GET" or path == WHAT_IF


def _is_known(request: Request) -> None:
    """Note that the connection of a request has a credential: others are closed first where there are too many."""
    if (connection := request.scope.get("state", {}).get("connection")) is not None:
        connection.know()


def _credential(service: Service, request: Request) -> tuple[Principal, str] | None:
    header = request.headers.get("authorization", "")
    if header:
        scheme, _, text = header.partition(" ")
        return service.tokens.principal(text.strip()) if scheme.lower() == "bearer" else None
    if cookie := request.cookies.get(COOKIE):
        return service.tokens.principal(cookie)
    uid = request.scope.get("state", {}).get("peer_uid")
    return None if uid is None else (principal_of(uid, service.site.service.tenants_by_group), "")


def bearer(request: Request) -> str:
    """Return the token in the header of a request; "" if there is none."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def authenticate_job(service: Service, request: Request) -> Principal:
    """Return the start of a job that asks. Raises Refused for anybody else, whatever their role."""
    who = service.job_tokens.principal(bearer(request))
    if who is None:
        refuse_without_token(authenticate(service, request) is not None)
    _is_known(request)  # and it takes no place, as what jobs report is small and paced
    return who


def refuse_without_token(has_another: bool) -> NoReturn:
    """Raise Refused for a request without a token that may do this; `has_another`: with one of another kind."""
    if has_another:
        raise Refused(403, "a token of this kind may not do that: jobs have routes of their own", code="forbidden")
    raise Refused(401, "a valid token is needed: Authorization: Bearer TOKEN", code="unauthenticated")


def principal_of(uid: int, tenants_by_group: Mapping[str, str] | None = None) -> Principal:
    """Return who a user of this machine is: the operator, if the service runs as that user; else one of the tenant of
    the first of the groups that it is in, or a tenant of its own."""
    import pwd

    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid{uid}"
    is_operator = uid in (0, os.getuid())
    if is_operator:
        return Principal(name, "operators", "operator")
    mine = groups_of(name) if tenants_by_group else ()
    tenant = next((tenant for group, tenant in (tenants_by_group or {}).items() if group in mine), name)
    return Principal(name, tenant, "submitter")


def allows(role: str, least: str) -> bool:
    """Say whether a role is at least another one."""
    return ROLES.index(role) >= ROLES.index(least)


def endpoint(service: Service, route: ApiRoute) -> Endpoint:
    """Return the Starlette endpoint of a route: credentials and role first, then the handler."""

    async def answer(request: Request) -> Response:
        try:
            who = Principal("", "", "viewer")
            if route.role == JOB_ROLE:
                who = authenticate_job(service, request)
            elif route.role:
                found = authenticate(service, request)
                if found is None:
                    refuse_without_token(service.job_tokens.principal(bearer(request)) is not None)
                who, request.state.token_id = found
                if not allows(who.role, route.role):
                    raise Refused(
                        403, f"the role {who.role!r} may not do that; it takes {route.role!r}", code="forbidden"
                    )
            if route.method != "GET":
                service.refuse_when_full()
            return await answered(service, route.handler, request, who)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            service.refused += isinstance(error, Refused)
            return refusal_of(error, f"{request.method} {route.path}").response()

    return answer


async def answered(service: Service, handler: Handler, request: Request, who: Principal) -> Response:
    """Return the answer of a handler. Only a plain one reads store or state: in a thread, as the loop never waits."""
    if _waits(handler):
        return _rendered(await handler(service, request, who))
    return await service.threads.run(lambda: _rendered(handler(service, request, who)))


_waits = lru_cache(maxsize=None)(inspect.iscoroutinefunction)


def _rendered(body: Any) -> Response:
    return body if isinstance(body, Response) else JsonAnswer(body)


def refusal_of(error: Exception, what: str) -> Refused:
    """Return how a request is answered that raised an error: the log has all of an unexpected one."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, InvalidRequest):
        return Refused(422, "the request cannot be accepted", error.problems, code="invalid")
    if isinstance(error, DiskFull):
        title = "the disk of the state folder is full; what was asked for may still be done once there is room"
        return Refused(507, title, code="storage_full", retry_s=30)
    _log.error("%s failed", what, exc_info=error)
    return Refused(500, FAILED, code="failed")


class JsonAnswer(Response):
    """An answer as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return _encode(content).encode()


_NUL = re.compile(rb"%00|\0")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_SECURITY = tuple((name.lower().encode(), value.encode()) for name, value in HEADERS.items())


class Guard:
    """Checks Host and Origin of every request, whatever its method, and adds the security headers.

    Each pass of the loop begins a few requests, in turn by their credentials, so that one keeps no other waiting.

    A path without parameters goes to its endpoint at once, which answers errors itself; others go to `app`.
    """

    def __init__(self, app: ASGIApp, service: Service, fixed: Mapping[tuple[str, str], Endpoint]) -> None:
        self._app, self._service, self._fixed = app, service, fixed
        self._turns = LoopTurns(REQUESTS_A_PASS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = secrets.token_hex(6)
        REQUEST.set(request_id)  # each request is answered in a task of its own

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] += [(b"x-request-id", request_id.encode())]
                message["headers"] += [one for one in _SECURITY if one[0] not in given]
            await send(message)

        async def answered(send: Send) -> None:
            await self._answer(scope, receive, send, headers)

        async def revoked(send: Send) -> None:
            await Refused(401, "the token holds no more", code="unauthenticated").response()(scope, receive, send)

        refusal = self._refusal(scope, headers)
        try:
            if refusal is not None:
                await refusal.response()(scope, receive, guarded)
            elif _only_reads(scope["method"], scope["path"]):
                await self._service.reads.run(answered, guarded, revoked)
            else:
                await answered(guarded)
        finally:
            if (tenant := scope.get("state", {}).pop("place", None)) is not None:
                self._service.places.leave(tenant)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, headers: Mapping[bytes, bytes]) -> None:
        """Begin in the credential's turn, but for liveness, which has none."""
        if (answer := self._fixed.get((scope["method"], scope["path"]))) is not None:
            if scope["path"] not in LIVENESS:
                await self._turns.take(_credential_of(headers))
            response = await answer(Request(scope, receive, send))
            await response(scope, receive, send)
        else:
            await self._turns.take(_credential_of(headers))
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> Refused | None:
        if "\0" in scope["path"] or _NUL.search(scope["query_string"]):
            return Refused(400, "an address has no NUL characters", code="nul")
        is_local = scope.get("state", {}).get("peer_uid") is not None
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_local and host.lower() not in self._service.hosts:
            return Refused(421, "this service has another name; see allowed_hosts in [service]", code="wrong_host")
        origin = headers.get(b"origin")
        if origin is not None and _with_port(origin.decode("latin-1").lower()) not in self._service.origins:
            return Refused(403, "requests of other sites are refused", code="wrong_origin")
        return None


def _credential_of(headers: Mapping[bytes, bytes]) -> bytes:
    """Return what a request says who it is of, unchecked; many without share their turns."""
    return headers.get(b"authorization") or headers.get(b"cookie", b"")


def hosts_of(site: Site, port: int) -> frozenset[str]:
    """Return the values of Host that are answered."""
    names = {*LOOPBACK, "[::1]", *site.service.allowed_hosts}
    if not isinstance(site.address, Path):
        names.add(site.address[0])
    return frozenset({*names, *(f"{name}:{port}" for name in names)})


def origins_of(site: Site, port: int) -> frozenset[str]:
    """Return the values of Origin that are answered, each with its port: that of another port is another site."""
    names = {name for name in hosts_of(site, port) if name.endswith(f":{port}")}
    return frozenset({*names, *(f"{host}:{default}" for host in site.service.allowed_hosts for default in (80, 443))}
                     | set(site.service.allowed_hosts))  # fmt: skip


def _with_port(origin: str) -> str:
    """Return the host and the port of an origin, with the default port of its scheme where it names none."""
    scheme, _, host = origin.partition("://")
    if re.search(r":[0-9]+$", host):
        return host
    return f"{host}:{443 if scheme == 'https' else 80}"


def application(service: Service, routes: tuple[ApiRoute, ...], pages: Sequence[Route] = ()) -> ASGIApp:
    """Return the application with its routes and pages."""

    async def on_missing(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        titles = {404: "there is no such page", 405: "this page has no such method"}
        return Refused(status, titles.get(status, "refused")).response()

    async def on_failure(request: Request, error: Exception) -> Response:
        return refusal_of(error, f"{request.method} {request.url.path}").response()

    endpoints = {(route.method, route.path): endpoint(service, route) for route in routes}
    starlette = Starlette(
        routes=[Route(path, answer, methods=[method]) for (method, path), answer in endpoints.items()] + list(pages),
        exception_handlers={404: on_missing, 405: on_missing, Exception: on_failure},
    )
    return Guard(starlette, service, {key: answer for key, answer in endpoints.items() if "{" not in key[1]})


def whole_number(text: str | None, field: str, default: int, most: int) -> int:
    """Return a parameter of the address, `default` if it is left out. Raises Refused unless it is 1 to `most`."""
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or not 1 <= int(text) <= most:
        problem = FieldProblem(field, text[:40], f"is a whole number from 1 to {most}", "send one, or leave it out")
        raise Refused(400, "a parameter cannot be used", (problem,))
    return int(text)


def read_time(text: str | None, origin: float, field: str = "at") -> float | None:
    """Return a date and time as seconds of the service's time; without a zone it is in UTC.

    Answers show times cut to the millisecond, so it is the end of that: what a shown time is of has happened by then.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() - origin + CUT_S
    except (ValueError, OverflowError):
        fix = "send one as answers show it, such as 2026-11-23T16:00:00Z"
        problem = FieldProblem(field, text[:40], "is a date and time (ISO 8601)", fix)
        raise Refused(400, "a parameter cannot be used", (problem,)) from None


def read_state(service: Service, read: Any, *more: Any) -> Any:
    """Return `read(controller, *more)`, read while nothing changes; not in the loop."""
    with service.writer.lock:
        return read(service.writer.controller, *more)
