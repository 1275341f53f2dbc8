"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

import re
from typing import Any

from eunomia import __version__
from eunomia.model.wait_reason import PUBLISHED
from eunomia.scenario.schema_models import TenantSection
from eunomia.service.http.api import ApiRoute
from eunomia.service.job_document import JobDocument
from eunomia.service.job_row import STATES
from eunomia.service.messages import NODE_ACTIONS, ROLES

_QUERY = {
    "children": ("string", "of the tokens that it made: revoke, or, for an operator, keep"),
    "state": ("string", f"states, separated by commas: {', '.join(STATES)}"),
    "tenant": ("string", "of one tenant; only operators see others"),
    "label": ("string", "key=value"),
    "limit": ("integer", "entries of a page"),
    "cursor": ("string", "`next` of the page before"),
    "from": ("integer", "byte to begin at, of all that was ever written"),
    "tail": ("integer", "begin so many lines before the end"),
    "since": ("string", "begin where the output was at about this time, such as 2026-11-23T16:00:00Z"),
    "stream": ("string", "output, or errors: standard error, where that is apart"),
    "follow": ("boolean", "go on as server-sent events until the job is over"),
    "days": ("integer", "days to look back; left out: 7 of a summary, 1 of tenants"),
    "dry_run": ("boolean", "only show what would change"),
    "arrivals": ("boolean", "tenants go on submitting jobs as they did before"),
    "played": ("boolean", "0: leave out what would let the job start, which has to be played"),
    "at": ("string", "a time as answers show it, such as 2026-11-23T16:00:00Z: what was decided until then"),
    "after": ("integer", "number of the last event that was seen; like Last-Event-ID"),
    "by": ("string", "tenant, user, type, and one of hour, day, week, month, with commas between them"),
    "format": ("string", "json or csv"),
    "to": ("string", "a date, or a date and time, before which the span ends"),
    "user": ("string", "of this user"),
    "action": ("string", "of this kind, such as cancel"),
    "object": ("string", "about this, such as the id of a job"),
    "source": ("string", "from this address, or unix socket"),
}
_BEGIN = ("string", "a date, or a date and time, at which the span begins")
_OF_ROUTE = {  # where a parameter means something else
    ("/v1/usage", "from"): _BEGIN,
    ("/v1/audit", "from"): _BEGIN,
    ("/v1/audit", "after"): ("integer", "number of the last entry that was seen: those after it, the oldest first"),
}


def document(routes: tuple[ApiRoute, ...]) -> dict[str, Any]:
    """Return the document."""
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path.replace(":path}", "}"), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Eunomia", "version": __version__, "description": "The scheduler of a shared cluster."},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)", route.path)
    ]
    for name in route.query:
        kind, text = _OF_ROUTE.get((route.path, name)) or _QUERY[name]
        parameters.append({"name": name, "in": "query", "description": text, "schema": {"type": kind}})
    if route.body == "Submission":
        schema = {"type": "string", "minLength": 8, "maxLength": 128}
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": schema})
    answers: dict[str, Any] = {str(status): _answer(route) for status in route.answers}
    answers["default"] = {
        "description": "refused, with the fields that are wrong",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "description": f"Role: {route.role or 'none'}.",
        "parameters": parameters,
        "responses": answers,
        "security": [{"token": []}] if route.role else [],
    }
    if route.body:
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{route.body}"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer(route: ApiRoute) -> dict[str, Any]:
    schema = {"type": "object"} if route.media == "application/json" else {"type": "string"}
    return {"description": route.summary, "content": {route.media: {"schema": schema}}}


def _schemas() -> dict[str, Any]:
    job = JobDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    inner = job.pop("$defs", {})
    text = {"type": "string"}
    return {
        "Job": job,
        **inner,
        "Submission": {
            "oneOf": [
                {"$ref": "#/components/schemas/Job"},
                {"type": "array", "items": {"$ref": "#/components/schemas/Job"}, "minItems": 1, "maxItems": 10_000},
            ]
        },
        "ChangeJob": {"type": "object", "minProperties": 1},
        "NodeChange": {
            "type": "object",
            "properties": {
                "action": {"enum": [*NODE_ACTIONS]},
                "reason": text,
                "when": text,
                "accelerator": {"type": "integer", "minimum": 0},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        "Maintenance": {
            "type": "object",
            "properties": {"nodes": {"type": "array", "items": text}, "from": text, "for": text, "reason": text},
            "required": ["nodes", "from", "for"],
            "additionalProperties": False,
        },
        "NoticeTest": {"type": "object", "properties": {"target": text, "address": text}, "required": ["target"]},
        "WhatIf": {
            "oneOf": [
                {"$ref": "#/components/schemas/Job"},
                {"type": "object", "properties": {"job": {"$ref": "#/components/schemas/Job"}}, "required": ["job"]},
                {"type": "object", "properties": {"policy": text}, "required": ["policy"]},
                {
                    "type": "object",
                    "properties": {"nodes": {"type": "object", "additionalProperties": {"type": "integer"}}},
                    "required": ["nodes"],
                },
            ]
        },
        "Progress": {
            "type": "object",
            "properties": {"steps": {"type": "number", "minimum": 0}},
            "required": ["steps"],
            "additionalProperties": False,
        },
        "TenantChange": TenantSection.model_json_schema(),
        "PolicyChange": {"type": "object", "properties": {"name": text}, "required": ["name"]},
        "SiteFile": {"type": "object", "properties": {"file": text}, "additionalProperties": False},
        "NewToken": {
            "type": "object",
            "properties": {
                "user": text,
                "tenant": text,
                "role": {"enum": [*ROLES]},
                "expires_days": {"type": "number"},
            },
        },
        "State": {"enum": [*STATES]},
        "ReasonCode": {"enum": [*PUBLISHED]},
        "Problem": {
            "type": "object",
            "properties": {
                "type": text,
                "title": text,
                "status": {"type": "integer"},
                "problems": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"field": text, "value": {"type": ["string", "null"]}, "rule": text, "fix": text},
                    },
                },
            },
            "required": ["title", "status", "problems"],
        },
    }
