"""The route that tries where notices go."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request

from eunomia.service.http.api import Refused, Service, read_json
from eunomia.service.job_document import FieldProblem
from eunomia.service.messages import Principal
from eunomia.service.notice_sender import NotTaken
from eunomia.service.notices import ADDRESS, MAIL


async def test_notice(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Send a test to a target of the site, and return what its receiver answers."""
    data = await read_json(request)
    target = data.get("target") if isinstance(data, dict) else None
    known, problems = service.site.notify.targets, list[FieldProblem]()
    if target not in known:
        tables = "give the site a table [notify.mail] or [notify.webhooks.NAME]"
        has = f"name one of {', '.join(known)}" if known else tables
        problems.append(FieldProblem("target", str(target)[:60], "the site does not send there", has))
    address = data.get("address", "") if isinstance(data, dict) else ""
    if target == MAIL and not re.fullmatch(ADDRESS, str(address)):
        problems.append(FieldProblem("address", str(address)[:60], "is no address of mail", "write ann@example.org"))
    if problems:
        raise Refused(422, "the test cannot be sent", tuple(problems), code="invalid")
    try:
        return {"target": target, "answer": await service.threads.run(service.notices.test, str(target), str(address))}
    except NotTaken as error:
        problem = FieldProblem("target", str(target), str(error), "look at its table in [notify], and at its receiver")
        raise Refused(502, "the receiver did not take it", (problem,), code="not_taken") from None
