"""The routes of the API, one table: the application, OpenAPI and the matrix of roles are made from it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from eunomia import __version__
from eunomia.kernels import load_compiler
from eunomia.service import living_state
from eunomia.service.credentials import MOST_MAKERS, MOST_TOKENS, TokenRegistry, new_token, write_tokens
from eunomia.service.http.api import (
    BODY_BYTES,
    LIST_BYTES,
    WHAT_IF,
    ApiRoute,
    JsonAnswer,
    Refused,
    Service,
    allows,
    authenticate,
    bearer,
    json_of,
    read_body,
    read_json,
    read_state,
    read_time,
    refuse_without_token,
    source_of,
    whole_number,
)
from eunomia.service.http.audit_routes import show_audit
from eunomia.service.http.forecast_routes import forecast_score, what_if, when
from eunomia.service.http.job_routes import save_progress
from eunomia.service.http.log_routes import log
from eunomia.service.http.metrics import metrics_text
from eunomia.service.http.node_routes import cancel_maintenance, change_node, list_maintenance, plan_maintenance
from eunomia.service.http.notice_routes import test_notice
from eunomia.service.http.operator_routes import rotate_token
from eunomia.service.http.session_routes import attach, send_input
from eunomia.service.http.site_routes import change_policy, change_tenant, reread_site
from eunomia.service.http.tenant_routes import show_limits, show_tenants
from eunomia.service.http.usage_routes import usage
from eunomia.service.http.visible_jobs import owned, visible
from eunomia.service.http.wait_routes import why
from eunomia.service.job_document import FieldProblem, InvalidRequest, JobDocument, parse_job
from eunomia.service.job_row import STATES, JobRow, iso
from eunomia.service.messages import (
    ROLES,
    Cancel,
    ChangeJob,
    Hold,
    Principal,
    Release,
    Submit,
)
from eunomia.service.store.reader import detail_of
from eunomia.service.store.schema import Token

PAGE, MOST_PAGE = 100, 1000
MOST_NODES = 10_000  # of one page
MOST_JOBS = 10_000  # in one list
LARGE_BYTES = 2**14  # of a submission that is read beside the loop
MANY_JOBS = 500  # in one submission: what decides about them may be compiled
BYTES_A_JOB = 400  # of a list that cannot be read: as if it had so many jobs
STORED_BYTES = 64 * 2**20  # of the jobs of one submission
_sorted = json.JSONEncoder(sort_keys=True).encode
SUBMITTED = ("id", "state", "spec", "submitted_at", "name", "tenant")


# ---- jobs ------------------------------------------------------------------------------------------------------------


async def submit(service: Service, request: Request, who: Principal) -> Response:
    """Accept one job, an array, or a list, whole or not at all; the answer leaves after the commit."""
    service.admit(who.tenant)
    key = _key(request)
    raw = await read_body(request, LIST_BYTES, service.bodies)
    if len(raw) <= LARGE_BYTES:
        return await _submitted(service, request, who, key, raw)
    async with service.large.place(who.tenant):
        return await _submitted(service, request, who, key, raw)


def _key(request: Request) -> str | None:
    """Return the key with which a submission may be repeated. Raises Refused for one that cannot be used."""
    key: str | None = request.headers.get("idempotency-key")
    if key is not None and not (8 <= len(key) <= 128 and key.isascii() and key.isprintable()):
        problem = FieldProblem("Idempotency-Key", key[:40], "has 8 to 128 printable characters", "send a UUID")
        raise Refused(400, "the Idempotency-Key cannot be used", (problem,))
    return key


async def resubmit(service: Service, request: Request, who: Principal) -> Response:
    """Submit a job once more, with what the body changes of its document; jobs that it followed are not waited for."""
    service.admit(who.tenant)
    raw = await read_body(request, BODY_BYTES, service.bodies)
    changes = json_of(raw) if raw else {}
    row = await service.threads.run(owned, service, request, who)
    if not isinstance(changes, dict):
        fix = 'send {"max_run_s": 3600}, or {}'
        raise InvalidRequest([FieldProblem("body", None, "what changes is a JSON object of keys of a job", fix)])
    if row.spec.get("env") and "env" not in changes and not who.is_operator and who.user != row.owner:
        rule = f"values of variables are those of user {row.owner}, whose job it is"
        raise InvalidRequest(
            [FieldProblem("env", ", ".join(row.spec["env"])[:200], rule, "send others, or {} for none")]
        )
    again = {key: value for key, value in row.spec.items() if key != "after"}
    if row.array_index is not None:
        again["array"] = f"{row.array_index}-{row.array_index}"
    again = {key: value for key, value in {**again, **changes}.items() if value is not None}
    if who.tenant != row.tenant:
        again.setdefault("tenant", row.tenant)
    return await _submitted(service, request, who, _key(request), json.dumps(again).encode())


async def _submitted(service: Service, request: Request, who: Principal, key: str | None, raw: bytes) -> Response:
    """Read the body of a submission, large ones beside the loop, and hand it to the writer."""
    try:
        if len(raw) <= LARGE_BYTES:
            read, stored_bytes = _submission(raw, key)
        else:
            read, stored_bytes = await service.parsing.run(_submission, raw, key)
    except (Refused, InvalidRequest):
        service.submissions.charge(who.tenant, 1 + len(raw) // BYTES_A_JOB, 0)  # it was read all the same
        raise
    service.submissions.charge(who.tenant, read.count, stored_bytes)
    if read.count >= MANY_JOBS:
        await service.threads.run(load_compiler)  # beside the turn that takes them
    reply = await service.ask(read, who, source_of(request))
    body = reply.body
    if "job" in body:
        body = {name: body["job"][name] for name in SUBMITTED} | ({"notes": body["notes"]} if "notes" in body else {})
    return JsonAnswer(body, reply.status)


def _submission(raw: bytes, key: str | None) -> tuple[Submit, int]:
    """Return what a body submits, and about how many bytes its jobs take in the store.

    Raises Refused, and InvalidRequest with the problems of all jobs.
    """
    data = json_of(raw)
    is_list = isinstance(data, list)
    if not is_list and len(raw) > BODY_BYTES:
        raise Refused(413, "one job has at most 1 MiB", code="too_large")
    jobs = _parsed(data) if is_list else (parse_job(data),)
    documents, stored = data if is_list else [data], len(raw)
    for document, job in zip(documents, jobs, strict=True):
        if job.count > 1:  # each job of an array has the whole document
            stored += (job.count - 1) * len(_sorted(document))
    if stored > STORED_BYTES:
        rule = (
            f"jobs of one submission take at most {STORED_BYTES // 2**20} MiB in the store, and these {stored:,} bytes"
        )
        fix = "shorten the document, such as its env, or the array"
        raise InvalidRequest([FieldProblem("array", None, rule, fix)])
    several = is_list or jobs[0].array is not None
    submit = Submit(jobs, key or secrets.token_hex(16), _digest(data), several, raw.decode(), is_unkeyed=key is None)
    return submit, stored


def _digest(data: Any) -> str:
    """Return the digest of a body; of a list document by document, as one long call would stop all other threads."""
    if not isinstance(data, list):
        return hashlib.sha256(_sorted(data).encode()).hexdigest()
    found = hashlib.sha256(b"[")
    for place, each in enumerate(data):
        found.update((", " * (place > 0) + _sorted(each)).encode())
    found.update(b"]")
    return found.hexdigest()


def _parsed(data: list[Any]) -> tuple[JobDocument, ...]:
    """Return the jobs of a list. Raises InvalidRequest with the problems of all of them."""
    if not 1 <= len(data) <= MOST_JOBS:
        rule = f"a list has 1 to {MOST_JOBS:,} jobs"
        raise InvalidRequest([FieldProblem("body", str(len(data)), rule, "send several lists")])
    jobs: list[JobDocument] = []
    problems: list[FieldProblem] = []
    for place, each in enumerate(data):
        try:
            jobs.append(parse_job(each, f"[{place}]."))
        except InvalidRequest as error:
            problems += error.problems
            if len(problems) > 100:
                break
    if problems:
        raise InvalidRequest(problems)
    if sum(job.count for job in jobs) > MOST_JOBS:
        raise InvalidRequest([FieldProblem("array", None, f"a list makes at most {MOST_JOBS:,} jobs", "send several")])
    return tuple(jobs)


def list_jobs(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """List jobs, the newest first, a page at a time."""
    query = request.query_params
    states = [state for state in query.get("state", "").split(",") if state]
    wrong = [state for state in states if state not in STATES]
    if wrong:
        raise Refused(400, "no such state", (FieldProblem("state", wrong[0], "no such state", ", ".join(STATES)),))
    key, _, value = query.get("label", "").partition("=")
    tenant = query.get("tenant") if who.is_operator else who.tenant
    limit = whole_number(query.get("limit"), "limit", PAGE, MOST_PAGE)
    before = whole_number(query.get("cursor"), "cursor", 0, 2**62) or None
    rows = service.reader.jobs(
        tenant=tenant, states=states, label=(key, value) if key else None, before=before, limit=limit + 1
    )
    page, more = rows[:limit], len(rows) > limit
    return {"jobs": [_shown(service, row) for row in page], "next": str(page[-1].number) if more else None}


def _shown(service: Service, row: JobRow) -> dict[str, Any]:
    return row.shown(service.writer.origin, service.writer.controller.device_types)


def show_job(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show one job with its history."""
    row = visible(service, request, who)
    history = [
        {"at": iso(service.writer.origin + at), "kind": kind, **detail_of(detail)}
        for _, at, kind, detail in service.reader.job_news(row.id)
    ]
    return {**_shown(service, row), "history": history}


async def _act(service: Service, request: Request, who: Principal, action: Any) -> dict[str, Any]:
    reply = await service.ask(action, who, source_of(request))
    shown: dict[str, Any] = reply.body["job"]
    if "notes" in reply.body:
        shown["notes"] = reply.body["notes"]
    return shown


async def cancel(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Cancel a job; once this is answered it never starts again."""
    return await _act(service, request, who, Cancel(request.path_params["id"]))


async def hold(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Hold a job; a running one saves and stops."""
    return await _act(service, request, who, Hold(request.path_params["id"]))


async def release(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Release a held job."""
    return await _act(service, request, who, Release(request.path_params["id"]))


async def change(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Change weight, deadline_s, name, labels, max_run_s or priority of a job."""
    data = await read_json(request)
    if not isinstance(data, dict) or not data:
        raise Refused(422, "the body is an object with the keys to change")
    return await _act(service, request, who, ChangeJob(request.path_params["id"], data))


# ---- cluster ---------------------------------------------------------------------------------------------------------


def show_cluster(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show free and busy accelerators by type, and jobs by state."""
    found: dict[str, Any] = read_state(service, living_state.cluster)
    return {**found, "jobs": service.reader.counts(), "version": __version__}


def show_throughputs(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show what is believed of throughputs, where they are learnt from jobs."""
    return {"throughputs": read_state(service, living_state.throughputs)}


def show_nodes(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show the nodes, all or a page of them; operators see all their jobs."""
    query = request.query_params
    limit = whole_number(query.get("limit"), "limit", 0, MOST_NODES) or None
    return nodes_from(service, who, whole_number(query.get("cursor"), "cursor", 0, 2**62), limit)


def nodes_from(service: Service, who: Principal, first: int, limit: int | None) -> dict[str, Any]:
    """Return so many nodes from one on, and where the next page begins."""
    found = read_state(service, living_state.nodes, first, limit, who.may_see, service.writer.origin)
    last, count = first + len(found), len(service.writer.controller.nodes)
    return {"nodes": found, "next": str(last) if found and last < count else None}


def summary(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show what each user got in the last days: of jobs that ended in them, and of those that still run."""
    days = whole_number(request.query_params.get("days"), "days", 7, 3650)
    now, tenant = service.writer.clock.now(), None if who.is_operator else who.tenant
    with ExitStack() as kept:
        with service.writer.between_turns():  # so each job is either live or among those that have ended
            rows = list(service.writer.controller.rows.values())
            kept.enter_context(service.reader.snapshot())
        sums, ended = service.reader.ended_since(now - days * 86_400, tenant)
    live = [row for row in rows if tenant in (None, row.tenant)]
    return {"days": days, "users": living_state.summary([*ended, *live], now, sums)}


def show_policy(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show the policy and the certificate of its last answer."""
    found: dict[str, Any] = read_state(service, living_state.policy)
    return found


def show_decisions(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show the last moments until a time and what was decided; only operators see jobs of others."""
    origin, shown = service.writer.origin, []
    limit = whole_number(request.query_params.get("limit"), "limit", 20, 200)
    until = read_time(request.query_params.get("at"), origin)
    for one in service.reader.decisions(limit, until):
        decided = [decision for decision in one.decisions if decision["is"] != "Ask"]
        if not who.is_operator:
            decided = [{"is": decision["is"]} for decision in decided]
        kinds = [kind for kind, count in one.events for _ in range(count)]
        shown.append({"at": iso(origin + one.at), "events": kinds, "decisions": decided})
    return {"decisions": shown}


async def events(service: Service, request: Request, who: Principal) -> Response:
    """Stream what happens to the jobs that the caller may see, gapless from `Last-Event-ID` on, else from now on."""
    oldest, newest = await service.threads.run(service.reader.news_range)
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    after = newest
    if text is not None:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Refused(400, "Last-Event-ID is the number of an event")
        after = int(text)
        if oldest and after < oldest - 1:
            raise Refused(
                410, f"events before {oldest} are no longer kept; list the jobs, then begin again", code="gone"
            )
        if after > newest:  # as after a backup was restored
            raise Refused(410, f"the newest event is {newest}; list the jobs, then begin again", code="gone")
    stream = service.feed.stream(None if who.is_operator else who.tenant, after)
    return StreamingResponse(stream, media_type="text/event-stream")


# ---- tokens ----------------------------------------------------------------------------------------------------------


async def create_token(service: Service, request: Request, who: Principal) -> Response:
    """Create a token, whose secret is shown once; only operators make some for others."""
    data = await read_json(request)
    known = {"user", "tenant", "role", "expires_days"}
    if not isinstance(data, dict) or set(data) - known:
        raise Refused(422, "a token has user, tenant, role and expires_days")
    user, tenant, role = (str(data.get(key) or getattr(who, key)) for key in ("user", "tenant", "role"))
    days = data.get("expires_days")
    if role not in ROLES or not 0 < len(user) <= 200 or not 0 < len(tenant) <= 200:
        raise Refused(422, "no such role", (FieldProblem("role", role, f"is one of {', '.join(ROLES)}", "choose one"),))
    if days is not None and not (isinstance(days, int | float) and not isinstance(days, bool) and 0 < days < 36_500):
        raise Refused(422, "expires_days is a number above 0")
    if not who.is_operator and ((user, tenant) != (who.user, who.tenant) or not allows(who.role, role)):
        raise Refused(403, "only an operator makes tokens for others, or with a higher role", code="forbidden")
    now, parent = time.time(), service.tokens.by_id.get(request.state.token_id)  # none by the unix socket
    if parent is not None and service.tokens.depth(parent) >= MOST_MAKERS:
        rule = f"a token comes from another by at most {MOST_MAKERS} steps"
        raise Refused(422, rule, (FieldProblem("token", parent.id, rule, "let one make it that was made earlier"),))
    if not who.is_operator and service.tokens.count(user, tenant) >= MOST_TOKENS:
        title = f"a user has at most {MOST_TOKENS} tokens that hold or were made within a day"
        raise Refused(429, title, retry_s=3600, code="too_many_requests")
    ends = [] if days is None else [now + days * 86_400]
    if parent is not None and parent.expires is not None:
        ends.append(parent.expires)
    made_by = None if parent is None else parent.id
    token, text = new_token(user, tenant, role, now, min(ends, default=None), made_by)
    await _change_tokens(service, request, who, "create token", [token])
    return JsonAnswer({"id": token.id, "token": text, "user": user, "tenant": tenant, "role": role}, 201)


async def list_tokens(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """List tokens without their secrets: all for an operator, else the caller's own."""
    mine = [t for t in service.tokens.by_id.values() if who.is_operator or (t.user, t.tenant) == (who.user, who.tenant)]
    return {
        "tokens": [
            {
                "id": token.id, "user": token.user, "tenant": token.tenant, "role": token.role,
                "created_at": iso(token.created), "expires_at": None if token.expires is None else iso(token.expires),
                "revoked": token.revoked is not None, "made_by": token.parent, "holds": service.tokens.holds(token),
            }
            for token in mine
        ]
    }  # fmt: skip


async def revoke_token(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Revoke a token at once, and with it those that it made; `children=keep` lets an operator keep these."""
    token = service.tokens.by_id.get(request.path_params["id"])
    if token is None or not (who.is_operator or (token.user, token.tenant) == (who.user, who.tenant)):
        raise Refused(404, "there is no such token")
    children, keep = service.tokens.made_by(token), request.query_params.get("children", "revoke")
    if keep not in ("revoke", "keep") or (keep == "keep" and not who.is_operator):
        rule = "is revoke, or, for an operator, keep"
        raise Refused(422, "no such choice", (FieldProblem("children", keep, rule, "leave it out"),))
    kept = [replace(one, parent=token.parent) for one in children if one.parent == token.id and keep == "keep"]
    await _change_tokens(service, request, who, "revoke token", [replace(token, revoked=time.time()), *kept])
    return {"id": token.id, "revoked": True, "ended": [] if kept else [one.id for one in children]}


async def _change_tokens(service: Service, request: Request, who: Principal, action: str, tokens: list[Token]) -> None:
    """Store tokens, the first of which the action is about."""

    def store(writer: Any) -> TokenRegistry:
        with writer.store.transaction() as db:
            write_tokens(db, tokens)
            entry = (who.user, who.role, source_of(request), action, tokens[0].id)
            writer.store.write_audit(db, writer.controller.at, [entry])
        return TokenRegistry(writer.store.tokens())

    service.tokens = await asyncio.wrap_future(service.writer.change(store, who))
    service.reads.end(service.tokens)


# ---- the service itself ----------------------------------------------------------------------------------------------


async def health(service: Service, request: Request, who: Principal) -> Response:
    """Say that the process answers, and whether the disk is full; nothing else."""
    if service.writer.store.room.is_waiting:
        return PlainTextResponse("disk full: nothing is stored until there is room\n")
    if service.is_disk_low():
        return PlainTextResponse("disk nearly full: no new job is accepted\n")
    return PlainTextResponse("ok\n")


async def ready(service: Service, request: Request, who: Principal) -> Response:
    """Say whether the service accepts work."""
    if not service.ready or service.writer.failure is not None:
        raise Refused(503, "the service is not ready", retry_s=1)
    service.refuse_when_full()
    return PlainTextResponse("ready\n")


async def metrics(service: Service, request: Request, who: Principal) -> Response:
    """Return figures for Prometheus; with a token, or without where the site says so."""
    if not service.site.service.metrics_without_token and authenticate(service, request) is None:
        refuse_without_token(service.job_tokens.principal(bearer(request)) is not None)
    text = await service.threads.run(metrics_text, service)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def openapi(service: Service, request: Request, who: Principal) -> Response:
    """Return the description of this API."""
    return Response(_described(), media_type="application/json")


@cache
def _described() -> bytes:
    """Return the description, which is made once: anybody may ask for it."""
    from eunomia.service.http.openapi import document

    return bytes(JsonAnswer(document(ROUTES)).body)


_JOB = "/v1/jobs/{id}"
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("POST", "/v1/jobs", "submitter", "", "Submit one job, an array, or a list of jobs", submit, (200, 201),
             body="Submission"),
    ApiRoute("GET", "/v1/jobs", "viewer", "", "List jobs, the newest first", list_jobs,
             query=("state", "tenant", "label", "limit", "cursor")),
    ApiRoute("GET", _JOB, "viewer", "job", "Show a job with its history", show_job),
    ApiRoute("DELETE", _JOB, "submitter", "owned job", "Cancel a job", cancel),
    ApiRoute("PATCH", _JOB, "submitter", "owned job", "Change keys of a job", change, body="ChangeJob"),
    ApiRoute("POST", f"{_JOB}/resubmit", "submitter", "owned job", "Submit a job once more, with changes", resubmit,
             (200, 201), body="ChangeJob"),
    ApiRoute("POST", f"{_JOB}/hold", "submitter", "owned job", "Hold a job", hold),
    ApiRoute("POST", f"{_JOB}/release", "submitter", "owned job", "Release a held job", release),
    ApiRoute("GET", f"{_JOB}/log", "viewer", "owned job", "Read the output of a job", log,
             query=("from", "tail", "since", "stream", "follow"),
             media="text/plain"),
    ApiRoute("GET", f"{_JOB}/why", "viewer", "job", "Say why a job does not run", why, query=("played",)),
    ApiRoute("GET", f"{_JOB}/when", "viewer", "job", "Say when a job starts and finishes", when, query=("arrivals",)),
    ApiRoute("POST", f"{_JOB}/progress", "job", "job", "Report the steps in a checkpoint", save_progress,
             body="Progress"),
    ApiRoute("GET", f"{_JOB}/session", "submitter", "own session", "Attach to a terminal or a notebook", attach,
             query=("rows", "columns", "open"), media="application/octet-stream"),
    ApiRoute("POST", f"{_JOB}/session/{{stream}}", "submitter", "own session", "Send input to what was attached to",
             send_input, query=("at",)),
    ApiRoute("POST", WHAT_IF, "viewer", "", "Say what a change would do; nothing changes", what_if, body="WhatIf"),
    ApiRoute("GET", "/v1/forecasts", "viewer", "", "Say how good forecasts were", forecast_score),
    ApiRoute("GET", "/v1/cluster", "viewer", "", "Show accelerators by type and jobs by state", show_cluster),
    ApiRoute("GET", "/v1/throughputs", "viewer", "", "Show throughputs that are learnt from jobs", show_throughputs),
    ApiRoute("GET", "/v1/nodes", "viewer", "", "Show the nodes", show_nodes,
             query=("limit", "cursor")),
    ApiRoute("PUT", "/v1/nodes/{name}", "operator", "", "Drain, resume or remove a node or an accelerator", change_node,
             query=("dry_run",), body="NodeChange"),
    ApiRoute("POST", "/v1/maintenance", "operator", "", "Plan maintenance of nodes", plan_maintenance, (201,),
             body="Maintenance"),
    ApiRoute("GET", "/v1/maintenance", "viewer", "", "List maintenance that is not over", list_maintenance),
    ApiRoute("DELETE", "/v1/maintenance/{id}", "operator", "", "Cancel maintenance", cancel_maintenance),
    ApiRoute("GET", "/v1/limits", "viewer", "", "Show limits of users and tenants, and what counts now", show_limits),
    ApiRoute("GET", "/v1/tenants", "viewer", "", "Show what tenants received and hold", show_tenants,
             query=("days",)),
    ApiRoute("GET", "/v1/summary", "viewer", "", "Show what each user got in the last days", summary, query=("days",)),
    ApiRoute("GET", "/v1/usage", "viewer", "", "Show what users used, by calendar periods", usage,
             query=("from", "to", "by", "format", "limit", "cursor")),
    ApiRoute("GET", "/v1/audit", "operator", "", "Show the audit log, the newest entries first, verified", show_audit,
             query=("user", "action", "object", "source", "from", "to", "after", "limit", "cursor")),
    ApiRoute("PUT", "/v1/tenants/{tenant:path}", "operator", "", "Change weight and quota of a tenant", change_tenant,
             query=("dry_run",), body="TenantChange"),
    ApiRoute("GET", "/v1/policy", "viewer", "", "Show the policy and its last certificate", show_policy),
    ApiRoute("PUT", "/v1/policy", "operator", "", "Go on with another policy", change_policy, query=("dry_run",),
             body="PolicyChange"),
    ApiRoute("PUT", "/v1/site", "operator", "", "Apply the site file as it is now", reread_site, query=("dry_run",),
             body="SiteFile"),
    ApiRoute("GET", "/v1/decisions", "viewer", "", "Show the last decisions, or those until a time", show_decisions,
             query=("at", "limit")),
    ApiRoute("GET", "/v1/events", "viewer", "", "Stream what happens, gapless", events, query=("after",),
             media="text/event-stream"),
    ApiRoute("POST", "/v1/tokens", "viewer", "", "Create a token", create_token, (201,), body="NewToken"),
    ApiRoute("POST", "/v1/notify/test", "operator", "", "Send a test where notices go", test_notice, body="NoticeTest"),
    ApiRoute("GET", "/v1/tokens", "viewer", "", "List tokens", list_tokens),
    ApiRoute("DELETE", "/v1/tokens/{id}", "viewer", "token", "Revoke a token and those that it made", revoke_token,
             query=("children",)),
    ApiRoute("POST", "/v1/tokens/rotate", "operator", "", "Put a new operator's token in its file, and end the old one",
             rotate_token),
    ApiRoute("GET", "/metrics", "", "", "Figures for Prometheus", metrics, media="text/plain"),
    ApiRoute("GET", "/healthz", "", "", "Liveness", health, media="text/plain"),
    ApiRoute("GET", "/readyz", "", "", "Readiness", ready, media="text/plain"),
    ApiRoute("GET", "/openapi.json", "", "", "This description", openapi),
)  # fmt: skip
