"""Routes that take nodes and accelerators out of service, now or for a span of maintenance."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.clock_times import RULE, moment_of
from eunomia.inputs.spans import RULE as SPAN_RULE
from eunomia.inputs.spans import seconds_of
from eunomia.service import living_state
from eunomia.service.controller import Controller
from eunomia.service.draining import NOW, named
from eunomia.service.http.api import JsonAnswer, Refused, Service, read_json, read_state, source_of
from eunomia.service.job_document import FieldProblem
from eunomia.service.messages import NODE_ACTIONS, CancelMaintenance, ChangeNode, PlanMaintenance, Principal
from eunomia.service.node_states import accelerator_problems, drain_preview, span_shown, spans_shown
from eunomia.service.out_of_service import NODE

KEYS = ("action", "reason", "when", "accelerator")
MOST_REASON = 200  # characters
MOST_NAMED = 10_000  # nodes of one maintenance
_SEND = 'send {"action": "drain", "reason": "…"}'


async def change_node(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Drain a node or an accelerator, remove or resume it; `dry_run=true` only shows what would become of each job."""
    problems: list[FieldProblem] = []
    data = _table(await read_json(request), KEYS, problems)
    action, reason = data.get("action"), _text(data, "reason", problems)
    if action not in NODE_ACTIONS:
        problems.insert(0, FieldProblem("action", _cut(action), "is drain, resume or remove", _SEND))
    until = _until(service, data, problems) if action == "drain" or "when" in data else math.inf
    if "when" in data and action in ("resume", "remove"):
        problems.append(FieldProblem("when", _cut(data["when"]), "is of a drain", "leave it out"))
    place = data.get("accelerator", NODE)
    if isinstance(place, bool) or not isinstance(place, int) or not NODE <= place < 2**31:
        problems.append(FieldProblem("accelerator", _cut(place), "is the number of an accelerator of the node, from 0",
                                     "count from 0, or leave it out for the whole node"))  # fmt: skip
        place = NODE
    if action == "remove" and place != NODE:
        problems.append(FieldProblem("accelerator", str(place), "a node is removed as a whole", "drain it instead"))
    if problems:
        raise Refused(422, "the node cannot be changed so", tuple(problems))
    change = ChangeNode(request.path_params["name"], str(action), reason, until, place)
    if request.query_params.get("dry_run") == "true":
        return await service.threads.run(_previewed, service, change)
    reply = await service.ask(change, who, source_of(request))
    return reply.body


def _table(data: Any, keys: tuple[str, ...], problems: list[FieldProblem]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Refused(422, "the body cannot be used", (FieldProblem("body", None, "is an object", _SEND),))
    problems += [FieldProblem(key[:40], None, "is no key here", f"send only {', '.join(keys)}")
                 for key in data if key not in keys]  # fmt: skip
    return data


def _cut(value: Any) -> str | None:
    return None if value is None else str(value)[:40]


def _text(data: dict[str, Any], key: str, problems: list[FieldProblem]) -> str:
    text = data.get(key, "")
    if not isinstance(text, str) or not text.isprintable():
        problems.append(FieldProblem(key, _cut(text), "is text without control characters", "send one line of text"))
        return ""
    return text[:MOST_REASON]


def _moment(service: Service, text: Any, field: str, problems: list[FieldProblem]) -> float:
    """Return a moment as seconds of the service's time."""
    found = moment_of(text, datetime.now(UTC)) if isinstance(text, str) and len(text) <= 100 else None
    at = math.nan if found is None else found.timestamp() - service.writer.origin
    if found is None or not -MOST_S <= at <= MOST_S:
        problems.append(FieldProblem(field, _cut(text), f"is {RULE}; in UTC without a zone", "send such a text"))
        return math.inf
    return at


def _until(service: Service, data: dict[str, Any], problems: list[FieldProblem]) -> float:
    """Return until when jobs may run, in seconds of the service's time."""
    when = data.get("when", "jobs_end")
    if when in ("jobs_end", "now"):
        return math.inf if when == "jobs_end" else NOW
    at, before = _moment(service, when, "when", problems), len(problems)
    if before == len(problems) and at <= service.writer.clock.now():
        problems.append(FieldProblem("when", _cut(when), "is over", 'name a later time, or "now"'))
    return at


def _previewed(service: Service, change: ChangeNode) -> dict[str, Any]:
    """Return what jobs would do if a node or an accelerator left, or came back."""
    with service.writer.lock:
        controller = service.writer.controller
        if change.node not in controller.nodes:
            raise Refused(404, "there is no such node")
        node, place = controller.nodes.index(change.node), change.accelerator
        if wrong := accelerator_problems(controller, node, place):
            raise Refused(422, "the accelerator cannot be changed so", wrong)
        name = named(controller, node, place)
        if change.action == "resume":
            return {"name": name, "would_move": [], "would_not_fit": [], "jobs": []}
        until = NOW if change.action == "remove" else change.until
        found = drain_preview(controller, node, place, until, service.writer.clock.now(), service.writer.origin)
        stuck = living_state.would_not_fit(controller, change.node, place)
    stopped = [one["id"] for one in found if one["stopped"]]
    ends = {one["id"] for one in found} - set(stopped)
    stuck = [job_id for job_id in stuck if job_id not in ends]
    return {"name": name, "would_move": stopped, "would_not_fit": stuck, "jobs": found}


# ---- maintenance -----------------------------------------------------------------------------------------------------


async def plan_maintenance(service: Service, request: Request, who: Principal) -> JsonAnswer:
    """Plan a span of maintenance of nodes."""
    problems: list[FieldProblem] = []
    data = _table(await read_json(request), ("nodes", "from", "for", "reason"), problems)
    nodes, reason = data.get("nodes"), _text(data, "reason", problems)
    is_named = isinstance(nodes, list) and 0 < len(nodes) <= MOST_NAMED and all(type(one) is str for one in nodes)
    if not is_named:
        problems.append(FieldProblem("nodes", _cut(nodes), f"is a list of 1 to {MOST_NAMED:,} names of nodes",
                                     'send {"nodes": ["a100-1"], "from": "18:00", "for": "2h"}'))  # fmt: skip
    begins = _moment(service, data.get("from"), "from", problems)
    length = data.get("for")
    span_s = seconds_of(length) if isinstance(length, str) else None
    if span_s is None or not 0 < span_s <= MOST_S:
        problems.append(FieldProblem("for", _cut(length), f"is {SPAN_RULE}, above 0", "send such as 2h"))
    elif begins + span_s <= service.writer.clock.now():
        problems.append(FieldProblem("from", _cut(data.get("from")), "the span is over", "name a later time"))
    if problems or span_s is None or nodes is None:
        raise Refused(422, "the maintenance cannot be planned", tuple(problems))
    change = PlanMaintenance(tuple(dict.fromkeys(nodes)), begins, span_s, reason)
    reply = await service.ask(change, who, source_of(request))
    return JsonAnswer(span_shown(reply.body["span"], service.writer.origin), reply.status)


def list_maintenance(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show the spans of maintenance that are not over."""
    return {"maintenance": read_state(service, spans_shown, service.writer.origin)}


async def cancel_maintenance(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Cancel a span of maintenance; nodes that it has drained come back."""
    text = request.path_params["id"]
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise Refused(404, "there is no such maintenance")
    reply = await service.ask(CancelMaintenance(int(text)), who, source_of(request))
    return {**span_shown(reply.body["span"], service.writer.origin), "state": "cancelled"}


def drain_assumptions(controller: Controller) -> list[str]:
    """Return what a forecast does not know of drains and maintenance."""
    texts = []
    if left := [key for key, one in controller.drains.items() if math.isnan(one.empty)]:
        names = ", ".join(named(controller, *key) for key in left[:5])
        texts.append(f"what is being drained ({names}) is counted as free once the jobs there have ended")
    if controller.maintenance:
        texts.append("planned maintenance is not counted, and nodes under maintenance are not counted as coming back")
    return texts
