"""The route that shows what tenants received and deserved, and how fair their jobs' finish times were, over time."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from eunomia.service import living_state
from eunomia.service.controller import Controller
from eunomia.service.http.api import Service, read_state, whole_number
from eunomia.service.job_row import iso
from eunomia.service.messages import Principal
from eunomia.service.tenant_fairness import HOUR_S, HOURS, TenantSums, empty_periods, split_days

UNKNOWN = {"weight": 1.0, "quota": None, "received_accelerator_s": 0.0, "holds": 0}  # to the scheduler: it has no job


def show_tenants(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show what each tenant received and holds; its own, unless an operator asks."""
    days = whole_number(request.query_params.get("days"), "days", 1, 3650)
    width, count = split_days(days)
    now, origin = service.writer.clock.now(), service.writer.origin
    found, hour = read_state(service, living_state.tenants, now, width, count)
    tenants: dict[str, dict[str, Any]] = {one["tenant"]: one for one in found if who.may_see(one["tenant"])}
    if width * count > HOURS:
        mine = None if who.is_operator else who.tenant
        for back, name, sums in service.reader.tenant_hours(hour, width, count, mine):
            one = tenants.setdefault(name, {"tenant": name, **UNKNOWN, "periods": empty_periods(count)})
            one["periods"][-1 - back].add(sums)
    first = hour + 1 - width * count
    begins = [iso(origin + HOUR_S * max(first + width * n, 0)) for n in range(count)]
    for one in tenants.values():
        sums = TenantSums()
        for part in one["periods"]:
            sums.add(part)
        one["sums"] = sums.shown()
        periods = zip(begins, one["periods"], strict=True)
        one["periods"] = [{"begins_at": begin, **part.shown()} for begin, part in periods]
    return {"days": days, "hours_of_a_period": width, "tenants": list(tenants.values())}


def show_limits(service: Service, request: Request, who: Principal) -> dict[str, Any]:
    """Show the limits of who asks and of its tenant, with what counts now; to an operator those of all."""

    def read(controller: Controller) -> list[dict[str, Any]]:
        book = controller.limits
        users, tenants = book.names() if who.is_operator else ([who.user], [who.tenant])
        return list(book.shown(users, tenants))

    return {"limits": read_state(service, read)}
