"""Routes that change the site while it runs: policy, tenants, and the site file read anew."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request

from eunomia.inputs.problems import InvalidInput
from eunomia.model.tenant_names import EMPTY_PART, WHOLE_PATH, is_path
from eunomia.service.http.api import Refused, Service, read_json, source_of
from eunomia.service.job_document import FieldProblem
from eunomia.service.messages import Principal
from eunomia.service.site import Site, load_site
from eunomia.service.site_change import SiteChange, apply_site, difference, overridden
from eunomia.service.writer import Writer
from eunomia.setup.policy_settings import described, of_tenant, refused


async def change_policy(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Go on with another policy: the body is the table [policy] of a site; `dry_run=true` only shows what changes."""
    data = await read_json(request)
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        problem = FieldProblem("name", None, "names the policy", 'send {"name": "fifo"} and its parameters')
        raise Refused(422, "the policy cannot be changed so", (problem,))
    return await _override(service, request, who, {"policy": data})


async def change_tenant(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Give a tenant weight, quota, inner or may_borrow; `dry_run=true` only shows what changes."""
    data, name = await read_json(request), request.path_params["tenant"]
    if not isinstance(data, dict):
        problem = FieldProblem("body", None, "is an object", 'send {"weight": 2, "quota": 4}')
        raise Refused(422, "the tenant cannot be changed so", (problem,))
    if not is_path(name):
        raise Refused(422, "there can be no such tenant", (FieldProblem("tenant", name, EMPTY_PART, WHOLE_PATH),))
    info = service.site.setup.policy.info
    if unknown := refused(info, of_tenant(data)):
        keys = {setting: setting.partition(".")[2] for setting in unknown}
        problems = tuple(FieldProblem(key, str(data[key]), *described(info, one)) for one, key in keys.items())
        raise Refused(422, "the tenant cannot be changed so", problems, code="no_effect")
    return await _override(service, request, who, {"tenants": {name: data}})


async def reread_site(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Apply the site file, as it is now; what operators changed before through the API ends. See `dry_run`."""
    data, path = await read_json(request), service.site.path
    if not isinstance(data, dict) or set(data) - {"file"}:
        raise Refused(422, "the body is {} or names the file")
    if "file" in data and Path(str(data["file"])).resolve() != path.resolve():
        problem = FieldProblem("file", str(data["file"])[:200], f"the service runs {path.resolve()}", "give that one")
        raise Refused(422, "this is not the service's site file", (problem,))

    def read(writer: Writer) -> tuple[Site, None]:
        return load_site(path), None

    return await _apply(service, request, who, read)


async def _override(service: Service, request: Request, who: Principal, more: Mapping[str, Any]) -> dict[str, Any]:
    def read(writer: Writer) -> tuple[Site, dict[str, Any]]:
        return overridden(writer.store, writer.controller.site, more)

    return await _apply(service, request, who, read)


async def _apply(service: Service, request: Request, who: Principal, read: Any) -> dict[str, Any]:
    """Compare, and unless it is a dry run apply, in the writer's thread."""
    dry_run = request.query_params.get("dry_run") == "true"

    def change(writer: Writer) -> SiteChange:
        new, kept = read(writer)
        found = difference(writer.controller.site, new)
        if dry_run and not found.refused:
            return found
        return apply_site(writer, new, who, source_of(request), kept=kept)

    try:
        found: SiteChange = await asyncio.wrap_future(service.writer.change(change))
    except InvalidInput as error:
        problems = tuple(
            FieldProblem(one.column or "file", one.value or None, one.rule, one.fix) for one in error.problems
        )
        raise Refused(422, "the site cannot be changed so", problems, code="invalid_site") from None
    return {**found.shown, "applied": not dry_run}
