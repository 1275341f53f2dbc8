"""Why a job does not run, and what would let it start: played in the forecast process, so that no decision waits."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from eunomia.forecasts.start_conditions import MOST_PLAYS
from eunomia.model.wait_reason import describe_condition
from eunomia.records.queue_position import QueuePosition
from eunomia.service import living_state
from eunomia.service.forecasts import NoForecast
from eunomia.service.http.api import Service, read_state
from eunomia.service.http.forecast_routes import new_row
from eunomia.service.http.visible_jobs import visible
from eunomia.service.job_document import InvalidRequest, parse_job
from eunomia.service.job_row import JobRow, iso
from eunomia.service.messages import Principal

LIMIT_S = 15.0  # for what is played; without it the answer is only what is known of the state
NOT_PLAYED = "what would let it start was not played"


async def why(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Say why a job does not run, and what would let it start; `played=0` leaves the second out."""
    limit_s = 0.0 if request.query_params.get("played") in ("0", "false") else LIMIT_S
    return await why_shown(service, await service.threads.run(visible, service, request, who), who, limit_s)


async def why_shown(service: Service, row: JobRow, who: Principal, limit_s: float) -> dict[str, Any]:
    """Return why a job does not run, as the API shows it; what is played takes at most so long, and 0 means none."""

    found = await service.threads.run(why_known, service, row, who)
    if limit_s > 0 and "free" in found:  # it waits for accelerators
        smaller = await service.threads.run(_smaller, service, row, found["free"])
        question = {"ask": "why", "job": row.id, "smaller": smaller, "tenant": None if who.is_operator else who.tenant}
        try:
            async with asyncio.timeout(limit_s):
                played = await service.forecasts.ask(question)
            if (behind := played["position"]) is not None:
                at = QueuePosition(**{**behind, "names": tuple(behind["names"])})
                found = await service.threads.run(why_known, service, row, who, at)
            found |= _played(service, played, who)
        except TimeoutError:
            found["note"] = f"{NOT_PLAYED} in time; ask again"
        except NoForecast as error:
            found["note"] = f"{NOT_PLAYED}: {error}"
    return found


def why_known(service: Service, row: JobRow, who: Principal, position: QueuePosition | None = None) -> dict[str, Any]:
    """Return why a job does not run as far as it is known of the state, where nothing has to be played."""
    origin = service.writer.origin
    return dict(read_state(service, living_state.why, row, origin, who.may_see, position))


def _smaller(service: Service, row: JobRow, free: dict[str, int]) -> list[str]:
    """Return the rows of the same job with fewer accelerators, the most first: it may be submitted again so."""
    size = int(row.spec.get("accelerators", 1))
    sizes = sorted({*free.values(), size // 2, 1} - {0}, reverse=True)
    found = list[str]()
    for fewer in [one for one in sizes if one < size][: MOST_PLAYS["fewer"]]:
        try:
            document = parse_job({**row.spec, "accelerators": fewer})
        except InvalidRequest:
            continue  # such as a size below its `min_accelerators`
        again, problems = new_row(service, document, row.tenant, Principal(row.owner, row.tenant, "submitter"))
        if not problems:
            found.append(again.body())
    return found


def _played(service: Service, found: dict[str, Any], who: Principal) -> dict[str, Any]:
    """Return what was played, as the API shows it."""

    def when(at: float | None) -> str | None:
        return None if at is None else iso(service.writer.origin + at)

    conditions = []
    for one in found["conditions"]:
        jobs = [name for name, tenant in zip(one["jobs"], one["tenants"], strict=True) if who.may_see(tenant)]
        node = service.site.node_names()[one["node"]] if one["node"] >= 0 else ""
        hidden, starts = len(one["jobs"]) - len(jobs), when(one["starts"])
        conditions.append({
            "kind": one["kind"], "jobs": jobs, "jobs_of_others": hidden, "node": node or None,
            "accelerators": one["accelerators"] or None, "tenant": one["tenant"] or None, "starts": starts,
            "text": describe_condition(one["kind"], jobs, hidden, one["accelerators"], node, one["tenant"], starts),
        })  # fmt: skip
    texts = list(dict.fromkeys(one["text"] for one in conditions))
    unchanged, tried = when(found["unchanged"]), found["changes"]
    return {"starts_unchanged": unchanged, "would_run_if": texts, "conditions": conditions, "changes_played": tried}
