"""The route that shows the audit log to operators."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request

from eunomia.service.audit_entries import AuditQuery, find_entries
from eunomia.service.http.api import CUT_S, Service, read_time, whole_number
from eunomia.service.messages import Principal

PAGE, MOST_PAGE = 50, 1000


def show_audit(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show entries of the audit log, the newest first, each verified; and which parts were taken away."""
    query, origin = request.query_params, service.writer.origin
    begin, end = (read_time(query.get(name), origin, name) for name in ("from", "to"))
    after = query.get("after")
    wanted = AuditQuery(
        user=query.get("user", ""), action=query.get("action", ""), object=query.get("object", ""),
        source=query.get("source", ""),
        begin=-math.inf if begin is None else begin - CUT_S, end=math.inf if end is None else end - CUT_S,
        limit=whole_number(query.get("limit"), "limit", PAGE, MOST_PAGE),
        before=whole_number(query.get("cursor"), "cursor", 2**62, 2**62),
        after=None if after is None else 0 if after == "0" else whole_number(after, "after", 0, 2**62),
    )  # fmt: skip
    return find_entries(service.reader, service.site.state, origin, wanted).shown()
