"""The route that shows what tenants received and deserved, and how fair their jobs' finish times were, over time."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from eunomia.service import living_state
from eunomia.service.http.api import Service, read_living, whole_number
from eunomia.service.job_row import iso
from eunomia.service.messages import Principal
from eunomia.service.tenant_fairness import HOUR_S, HOURS, TenantSums, empty, stretches

NO_JOBS = {"weight": 1.0, "quota": None, "received_accelerator_s": 0.0, "holds": 0}  # since the start


async def show_tenants(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show what each tenant received and holds; its own, unless an operator asks."""
    days = whole_number(request.query_params.get("days"), "days", 1, 3650)
    width, count = stretches(days)
    now, origin = service.writer.clock.now(), service.writer.origin
    found, hour = await read_living(service, living_state.tenants, now, width, count)
    curves: dict[str, list[TenantSums]] = {one["tenant"]: one["periods"] for one in found}
    if width * count > HOURS:
        for ago, name, earlier in await asyncio.to_thread(service.reader.tenant_hours, hour, width, count):
            if name not in curves:
                curves[name] = empty(count)
                found.append({**NO_JOBS, "tenant": name, "periods": curves[name]})
            curves[name][-1 - ago].add(earlier)
    first = hour + 1 - width * count
    begins = [iso(origin + HOUR_S * max(first + width * n, 0)) for n in range(count)]
    for one in found:
        sums = TenantSums()
        for part in one["periods"]:
            sums.add(part)
        one["sums"] = sums.shown()
        one["periods"] = [
            {"begins_at": begin, **part.shown()} for begin, part in zip(begins, one["periods"], strict=True)
        ]
    seen = [one for one in found if who.may_see(one["tenant"])]
    return {"days": days, "hours_of_a_period": width, "tenants": seen}
