"""Routes of forecasts: when a job starts, what a change would do, and how good forecasts were."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from eunomia.forecasts.scoring import score
from eunomia.service.forecasts import NoForecast
from eunomia.service.http.api import Refused, Service, read_json, read_state
from eunomia.service.http.node_routes import drain_assumptions
from eunomia.service.http.visible_jobs import visible
from eunomia.service.job_admission import check_job
from eunomia.service.job_document import FieldProblem, JobDocument, parse_job
from eunomia.service.job_row import JobRow, iso
from eunomia.service.messages import Principal

CHANGES = ("job", "policy", "nodes")
POINTS = ("p10", "p50", "p90")
_STATUS = {"invalid": 422, "busy": 503, "site_changed": 409, "failed": 503}


async def _asked(service: Service, question: dict[str, Any]) -> dict[str, Any]:
    """Ask the forecast process. Raises Refused for a question without an answer."""
    try:
        return await service.forecasts.ask(question)
    except NoForecast as error:
        found = error.found
        problems: tuple[FieldProblem, ...] = ()
        if found["code"] == "invalid":
            problems = (FieldProblem(str(found["field"]), found["value"], found["error"], str(found["fix"])),)
        status = _STATUS[found["code"]]
        retry_s = 5 if status == 503 else 0
        raise Refused(status, str(found["error"]), problems, code=found["code"], retry_s=retry_s) from None


async def when(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Say when a job starts and finishes, each with its 80 % interval."""
    row = await service.threads.run(visible, service, request, who)
    shown = {"id": row.id, "state": row.state}
    if row.is_over:
        return {**shown, "start": None, "finish": None, "how": "it is over", "assumes": []}
    arrivals = request.query_params.get("arrivals") in ("1", "true")
    found = forecast_shown(service, await _asked(service, {"ask": "when", "job": row.id, "arrivals": arrivals}))
    more = await service.threads.run(read_state, service, drain_assumptions)
    return {**shown, **found, "assumes": [*found["assumes"], *more]}


def forecast_shown(service: Service, found: dict[str, Any]) -> dict[str, Any]:
    """Return a forecast as the API shows it."""
    points = {
        name: None if found[name] is None else {
            point: _when(service, at) for point, at in zip(POINTS, found[name], strict=True)
        }
        for name in ("start", "finish")
    }  # fmt: skip
    return {
        **points,
        "as_of": _when(service, found["at"]),
        "how": _how(found["futures"], ""),
        "assumes": found["assumes"],
    }


def _how(futures: int, what: str) -> str:
    if futures == 1:
        return f"simulated the one future of the present state{what}, as no run time in it is drawn"
    return f"simulated {futures} futures of the present state{what}"


def _when(service: Service, at: float | None) -> str | None:
    return None if at is None else iso(service.writer.origin + at)


async def what_if(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Say what a further job, another policy or other nodes would change, and for which jobs; nothing is changed."""
    data = await read_json(request)
    if isinstance(data, dict) and not set(data) & set(CHANGES):
        data = {"job": data}  # a job document by itself
    return await what_if_shown(service, who, data)


async def what_if_shown(service: Service, who: Principal, data: Any) -> dict[str, Any]:
    """Return what a change would do, as the API shows it. Raises Refused for a change that cannot be made."""
    question = await service.threads.run(_question, service, who, data)
    found = await _asked(service, {"ask": "whatif", **question})
    mine = [one for one in found["changed"] if who.may_see(one["tenant"])]
    new = [one for one in mine if one["id"] == found["new_job"]]
    return {
        "as_of": _when(service, found["at"]),
        "how": _how(found["futures"], ", with and without the change"),
        "complete": found["complete"],
        "until": _when(service, found["until"]),
        "assumes": _compared(found["until"] is not None),
        "jobs_compared": found["jobs_compared"],
        "new_job": None if not new else _pair(service, new[0]["after"]),
        "changed": [
            {
                "id": one["id"],
                "tenant": one["tenant"],
                "before": _pair(service, one["before"]),
                "after": _pair(service, one["after"]),
                "later_s": None if None in (one["before"][1], one["after"][1]) else one["after"][1] - one["before"][1],
            }
            for one in mine
            if one["before"] is not None
        ],
        "changed_count": found["changed_count"] - len(new),
        "tenants": [one for one in found["tenants"] if who.may_see(one["tenant"])],
    }


def _compared(is_cut: bool) -> list[str]:
    """Return what a comparison assumes."""
    texts = ["run times are the same with and without the change", "no further job is submitted, and no node is lost"]
    if is_cut:
        texts.append(
            "jobs are compared up to `until`, to which both were played: a time that is null is later than that"
        )
    return texts


def _pair(service: Service, times: list[float | None]) -> dict[str, str | None]:
    return dict(zip(("start", "finish"), (_when(service, at) for at in times), strict=True))


def _question(service: Service, who: Principal, data: Any) -> dict[str, Any]:
    """Return a checked change. Raises Refused for any other."""
    kinds = set(data) & set(CHANGES) if isinstance(data, dict) else set[str]()
    if len(kinds) != 1 or set(data) != kinds:
        rule, fix = f"has exactly one of {', '.join(CHANGES)}", 'send for example {"policy": "las"}'
        raise Refused(422, "the change cannot be made", (FieldProblem("body", None, rule, fix),), code="invalid")
    kind = kinds.pop()
    if kind == "job":
        return {"job": _new_job(service, who, data["job"])}
    value = data[kind]
    is_policy = kind == "policy" and isinstance(value, str) and 0 < len(value) <= 1000
    is_nodes = kind == "nodes" and isinstance(value, dict) and bool(value) and all(
        isinstance(count, int) and not isinstance(count, bool) and count for count in value.values()
    )  # fmt: skip
    if is_policy and ".py" in value:  # asking must not run code from a file, whoever asks
        rule, fix = "must be a policy that is installed", "try a file's class with eunomia whatif SCENARIO.toml"
        raise Refused(422, "the change cannot be made", (FieldProblem(kind, value[:200], rule, fix),), code="invalid")
    if not (is_policy or is_nodes):
        rule = "is the name of a policy" if kind == "policy" else "is an object of types and nodes more or fewer"
        fix = 'send for example {"policy": "las"} or {"nodes": {"v100": -1}}'
        raise Refused(
            422, "the change cannot be made", (FieldProblem(kind, str(value)[:200], rule, fix),), code="invalid"
        )
    return {kind: value}


def _new_job(service: Service, who: Principal, given: Any) -> dict[str, Any]:
    document = parse_job({"command": ["true"], **given} if isinstance(given, dict) else given)
    row, problems = new_row(service, document, document.tenant or who.tenant, who)
    if problems:
        raise Refused(422, "the job could not be accepted", tuple(problems), code="invalid")
    return {"row": row.body()}


def new_row(service: Service, document: JobDocument, tenant: str, who: Principal) -> tuple[JobRow, list[FieldProblem]]:
    """Return the row that a job would have if it were submitted now, and what is wrong with it."""
    with service.writer.lock:
        controller = service.writer.controller
        problems, total, estimated, shapes = check_job(controller, document, tenant, who, {})
        number, at = controller.next_job, controller.at
        row = JobRow(
            id=f"{number}-what-if", number=number, tenant=tenant, owner=who.user, name="what-if", spec=document.spec(),
            submitted=at, total_steps=total, estimated=estimated, other_shapes=shapes,
            memory_gib=controller.believed_memory(document.job_type, document.accelerator_memory_gib),
            restart_within_s=service.site.service.restart_within_s,
        )  # fmt: skip
        if estimated and not problems:
            row.estimate = controller.estimate_of(row)
    return row, problems


def forecast_score(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Say how good the forecasts of jobs that have started were."""
    tenant = None if who.is_operator else who.tenant
    found = service.scores.outcomes()
    return score(one for one in found if tenant in (None, one.tenant))
