"""The job that a path names, if the caller may see it."""

from __future__ import annotations

from starlette.requests import Request

from eunomia.service.http.api import Refused, Service
from eunomia.service.job_row import JobRow
from eunomia.service.messages import Principal


def visible(service: Service, request: Request, who: Principal) -> JobRow:
    """Return the job of the path. Raises Refused for an unknown id and for one of another tenant alike."""
    row = service.reader.job(request.path_params["id"])
    if row is None or not who.may_see(row.tenant):
        raise Refused(404, "there is no such job", code="no_such_job")
    return row


def owned(service: Service, request: Request, who: Principal) -> JobRow:
    """Return the job of the path if the principal may read its output; see `visible`."""
    row = visible(service, request, who)
    if not who.owns(row.owner, row.tenant):
        raise Refused(403, "only its submitter, an administrator of its tenant or an operator may do that")
    return row
