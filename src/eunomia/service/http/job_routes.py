"""What a job itself may do, with the token of one of its starts: say how far its checkpoint is."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from eunomia.inputs.bounds import MOST_STEPS
from eunomia.service.http.api import Refused, Service, read_json, source_of
from eunomia.service.job_document import FieldProblem
from eunomia.service.messages import Principal, SaveProgress


async def save_progress(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Take the steps that are in the job's checkpoint; the answer says whether it is asked to save and stop."""
    if request.path_params["id"] != who.user:
        raise Refused(404, "there is no such job", code="no_such_job")
    service.pace_job(who.user)
    data = await read_json(request)
    steps = data.get("steps") if isinstance(data, dict) and set(data) == {"steps"} else None
    if isinstance(steps, bool) or not isinstance(steps, int | float) or not 0 <= steps <= MOST_STEPS:
        problem = FieldProblem(
            "steps", str(steps)[:40], f"is a number of steps, 0 to {MOST_STEPS:g}", 'send {"steps": 1200}'
        )
        raise Refused(422, "the progress cannot be taken", (problem,), code="invalid")
    reply = await service.ask(SaveProgress(who.user, who.epoch, float(steps)), who, source_of(request))
    return reply.body
