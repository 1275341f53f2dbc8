"""The pages: read with the role of whoever is logged in, by a cookie that other sites cannot send."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from eunomia.service import pages
from eunomia.service.forecasts import NoForecast
from eunomia.service.http import routes as api
from eunomia.service.http.api import (
    COOKIE,
    Handler,
    Refused,
    Service,
    answered,
    authenticate,
    read_body,
    refusal_of,
    source_of,
    whole_number,
)
from eunomia.service.http.forecast_routes import forecast_score, forecast_shown, what_if_shown
from eunomia.service.http.log_routes import end_of_log
from eunomia.service.http.shared_pages import AFTER, SharedPages
from eunomia.service.http.tenant_routes import show_tenants
from eunomia.service.http.visible_jobs import visible
from eunomia.service.http.wait_routes import why_known, why_shown
from eunomia.service.job_row import TERMINAL
from eunomia.service.json_lines import REQUEST
from eunomia.service.messages import Cancel, ChangeNode, Principal
from eunomia.service.pages import render

SHOWN = 20  # jobs on the first page
SHOWN_NODES = 200  # on one page
TAIL = 8192  # bytes of a log
FORECAST_S = 0.2  # longer than that no page waits for a forecast
_FILES = Path(pages.__file__).parent


def now(service: Service, request: Request, who: Principal) -> Response:
    """Show types, running and waiting jobs, and the last decisions."""
    cluster = api.show_cluster(service, request, who)
    tenant = None if who.is_operator else who.tenant

    def some(*states: str) -> list[Any]:
        rows = service.reader.jobs(tenant=tenant, states=states, label=None, before=None, limit=SHOWN, first=True)
        return [api._shown(service, row) for row in rows]

    running, waiting = some(*render.ON_SEATS), some(*render.WAITING)
    for job in waiting:
        job["reason"] = job["reason"] or _why(service, job["id"], who)
    decided = (api.show_decisions(service, request, who))["decisions"]
    learnt = (api.show_throughputs(service, request, who))["throughputs"]
    return HTMLResponse(render.now_page(who.user, cluster, running, waiting, decided[:10], learnt))


def _why(service: Service, job_id: str, who: Principal) -> str:
    """Return why a job waits. The writer may take its turn between two of them."""
    row = service.reader.job(job_id)
    found = [] if row is None else why_known(service, row, who)["reasons"]
    return "; ".join(reason["text"] for reason in found)


def jobs(service: Service, request: Request, who: Principal) -> Response:
    """Show jobs, a page at a time."""
    found = api.list_jobs(service, request, who)
    return HTMLResponse(render.jobs_page(who.user, found["jobs"], found["next"], dict(request.query_params)))


async def job(service: Service, request: Request, who: Principal) -> Response:
    """Show one job."""
    run = service.threads.run
    found = await run(api.show_job, service, request, who)
    reasons = await why_shown(service, await run(visible, service, request, who), who, FORECAST_S)
    text = ""
    if who.owns(found["owner"], found["tenant"]):
        text = await run(end_of_log, service, found["id"], TAIL)
    forecast = await _forecast(service, found)
    return HTMLResponse(await run(render.job_page, who.user, found, reasons, text, found["history"], forecast))


async def _forecast(service: Service, job: dict[str, Any]) -> dict[str, Any] | None:
    """Return when a live job starts and finishes; nothing where it cannot be said, {} while it is computed."""
    if job["state"] in TERMINAL:
        return None
    try:
        async with asyncio.timeout(FORECAST_S):
            return forecast_shown(service, await service.forecasts.ask({"ask": "when", "job": job["id"]}))
    except TimeoutError:
        return {}
    except NoForecast:
        return None


def tenants(service: Service, request: Request, who: Principal) -> Response:
    """Show who received what."""
    return HTMLResponse(render.tenants_page(who.user, show_tenants(service, request, who)))


def nodes(service: Service, request: Request, who: Principal) -> Response:
    """Show the nodes."""
    first = whole_number(request.query_params.get("cursor"), "cursor", 0, 2**62)
    found = api.nodes_from(service, who, first, SHOWN_NODES)
    return HTMLResponse(render.nodes_page(who.user, found["nodes"], who.is_operator, found["next"]))


async def policy(service: Service, request: Request, who: Principal) -> Response:
    """Show the policy."""
    found = await service.threads.run(api.show_policy, service, request, who)
    score = await service.threads.run(forecast_score, service, request, who)
    answer = await _what_if(service, request, who)
    times = service.writer.turn_s
    return HTMLResponse(await service.threads.run(render.policy_page, who.user, found, times, score, answer))


async def _what_if(service: Service, request: Request, who: Principal) -> dict[str, Any] | None:
    """Return what the change in the address would do; None where none is asked about. Nothing is changed."""
    given = {key: request.query_params.get(key, "").strip() for key in ("try_policy", "try_nodes", "try_gpus")}
    if given["try_policy"]:
        return await what_if_shown(service, who, {"policy": given["try_policy"]})
    if given["try_nodes"]:
        kind, _, count = given["try_nodes"].rpartition("=")
        return await what_if_shown(service, who, {"nodes": {kind: _whole(count)}})
    if given["try_gpus"]:
        return await what_if_shown(service, who, {"job": {"accelerators": _whole(given["try_gpus"])}})
    return None


def _whole(text: str) -> int | str:
    """Return a whole number of the address; what is none as it is, for the rule that it breaks to be said."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


async def cancel(service: Service, request: Request, who: Principal) -> Response:
    """Cancel a job."""
    await service.ask(Cancel(request.path_params["id"]), who, source_of(request))
    return RedirectResponse(f"/jobs/{request.path_params['id']}", 303)


async def change_node(service: Service, request: Request, who: Principal) -> Response:
    """Drain or resume a node."""
    action = request.path_params["action"]
    if action not in ("drain", "resume"):
        raise Refused(404, "there is no such page")
    await service.ask(ChangeNode(request.path_params["name"], action), who, source_of(request))
    return RedirectResponse("/nodes", 303)


def _page(service: Service, handler: Handler, shared: SharedPages) -> Callable[[Request], Awaitable[Response]]:
    async def made(request: Request, who: Principal) -> Response:
        try:
            if request.method != "GET":
                service.refuse_when_full()
            return await answered(service, handler, request, who)
        except Exception as error:
            refusal = refusal_of(error, f"the page {request.method} {request.scope['route'].path}")
            named = f" (request {REQUEST.get()})" if refusal.status == 500 else ""
            said = "; ".join(f"{one.field} {one.rule}" for one in refusal.problems)
            text = render.refused_page(who.user, f"{refusal.title}{named}{said and f': {said}'}")
            return HTMLResponse(text, refusal.status)

    async def answer(request: Request) -> Response:
        try:
            found = authenticate(service, request)
        except Refused as refusal:
            return refusal.response()
        if found is None:
            return RedirectResponse("/login", 303)
        who, after = found[0], request.headers.get(AFTER, "")
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            return await made(request, who)
        if handler is not job:  # the others differ by user in their frame alone, which a tab that is open keeps
            who = replace(who, user="")
        key = (request.url.path, request.url.query, who.user, "" if who.is_operator else who.tenant, who.role)
        return await shared.answer(key, int(after), lambda: made(request, who))

    return answer


def page_routes(service: Service) -> list[Route]:
    """Return the routes of the pages."""

    async def login(request: Request) -> Response:
        if request.method == "GET":
            return HTMLResponse(render.login_page())
        try:
            form = parse_qs((await read_body(request, 4096)).decode("utf-8", "replace"))
        except Refused as refusal:
            return refusal.response()
        token = form.get("token", [""])[0].strip()
        if service.tokens.principal(token) is None:
            return HTMLResponse(render.login_page(wrong=True), 401)
        answer = RedirectResponse("/", 303)
        is_secure = request.url.scheme == "https" or service.site.service.tls == "elsewhere"
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=is_secure)
        return answer

    async def logout(request: Request) -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE)
        return answer

    def file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        content = (_FILES / name).read_bytes()

        async def answer(request: Request) -> Response:
            return Response(content, media_type=kind)

        return answer

    async def newest() -> int:
        return (await service.threads.run(service.reader.news_range))[1]

    shared = SharedPages(newest)
    gets: dict[str, Handler] = {
        "/": now,
        "/jobs": jobs,
        "/jobs/{id}": job,
        "/tenants": tenants,
        "/nodes": nodes,
        "/policy": policy,
    }
    posts: dict[str, Handler] = {"/jobs/{id}/cancel": cancel, "/nodes/{name}/{action}": change_node}
    return [
        *(Route(path, _page(service, handler, shared), methods=["GET"]) for path, handler in gets.items()),
        *(Route(path, _page(service, handler, shared), methods=["POST"]) for path, handler in posts.items()),
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
        Route("/style.css", file("style.css", "text/css"), methods=["GET"]),
        Route("/live.js", file("live.js", "text/javascript"), methods=["GET"]),
    ]
