"""The route that shows what users used: accelerator-hours, waits, ends of jobs, lost work and energy, by period."""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from contextlib import ExitStack
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from eunomia.service.calendar_periods import UNITS, Span, read_span
from eunomia.service.http.api import Refused, Service, whole_number
from eunomia.service.job_document import FieldProblem
from eunomia.service.job_row import JobRow, iso
from eunomia.service.messages import Principal
from eunomia.service.store.usage_sums import EXACT
from eunomia.service.usage import UsageKey, UsageSums, running

BY = ("tenant", "user", "type")
PAGE, MOST_PAGE = 1000, 10_000  # rows; all of a period are on one page
FORMATS = ("json", "csv")
COLUMNS = (
    "begins_at", "ends_at", "tenant", "user", "type", "accelerator_hours", "starts", "wait_s", "mean_wait_s",
    "succeeded", "failed", "cancelled", "refused", "failures", "lost_accelerator_hours", "energy_kwh",
    "metered_accelerator_hours",
)  # fmt: skip


def usage(service: Service, request: Request, who: Principal) -> Any:
    """Show what was used: a user's own, the tenant's to its administrator, all to an operator."""
    query = request.query_params
    by, unit = _grouping(query.get("by", ",".join(BY)))
    kind = query.get("format") or FORMATS[0]
    if kind not in FORMATS:
        problem = FieldProblem("format", kind[:40], f"is {' or '.join(FORMATS)}", "choose one, or leave it out")
        raise Refused(400, "a parameter cannot be used", (problem,))
    writer, site = service.writer, service.site
    now = writer.clock.now()
    span = read_span(query.get("from"), query.get("to"), unit, site.zone, writer.origin + now)
    limit = whole_number(query.get("limit"), "limit", PAGE if kind == "json" else MOST_PAGE, MOST_PAGE)
    first = whole_number(query.get("cursor"), "cursor", 0, 2**62)
    tenant = None if who.is_operator else who.tenant
    user = None if who.is_operator or who.role == "tenant-admin" else who.user
    with ExitStack() as kept:
        with writer.between_turns():  # so that each gang either runs or is among those that are added up
            counted = writer.controller.usage.counted
            rows_now = list(writer.controller.rows.values())
            live = [_held(row) for row in rows_now if row.held and _is_of(row, tenant, user)]
            kept.enter_context(service.reader.snapshot())
        extra = list(running(live, counted, now, writer.origin, site.zone))
        rows, following = _rows(service, span, by, extra, (tenant, user), first, limit)
        total = _sum(
            [*service.reader.usage(span.begin, span.end, tenant, user), *_between(extra, span.begin, span.end)]
        )
        exact = service.reader.fact(EXACT, 0.0)
    if kind == "csv":
        return _csv(rows, following)
    return {
        "from": span.shown(span.begin), "to": span.shown(span.end), "until": iso(writer.origin + now),
        "time_zone": site.service.time_zone, "by": [*by, *([unit] if unit else [])],
        "exact_from": iso(writer.origin + exact) if exact and span.begin < writer.origin + exact else None,
        "usage": rows, "total": shown(total),
        "next": None if following is None else str(following),
    }  # fmt: skip


def _held(row: JobRow) -> JobRow:
    """Return what must be known of a gang that runs, as it is now: its row may change while it is counted."""
    return JobRow(
        id=row.id, number=row.number, tenant=row.tenant, owner=row.owner, name="", spec={}, submitted=0.0,
        held=row.held, held_type=row.held_type,
    )  # fmt: skip


def _is_of(row: JobRow, tenant: str | None, user: str | None) -> bool:
    return tenant in (None, row.tenant) and user in (None, row.owner)


def _grouping(text: str) -> tuple[list[str], str]:
    """Return by what to group, and the unit of time, "" for none. Raises Refused."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    units = [name for name in names if name in UNITS]
    wrong = [name for name in names if name not in (*BY, *UNITS)]
    if wrong or len(units) > 1:
        rule = f"names {', '.join(BY)}, and at most one of {', '.join(UNITS)}"
        problem = FieldProblem("by", text[:80], rule, "send some of them, with commas: user,month")
        raise Refused(400, "a parameter cannot be used", (problem,))
    return [name for name in BY if name in names], units[0] if units else ""


def _between(found: list[tuple[UsageKey, UsageSums]], begin: float, end: float) -> list[tuple[UsageKey, UsageSums]]:
    return [one for one in found if begin <= one[0].hour < end]


def _sum(found: list[tuple[UsageKey, UsageSums]]) -> UsageSums:
    total = UsageSums()
    for _, sums in found:
        total.add(sums)
    return total


def _rows(
    service: Service, span: Span, by: list[str], extra: list[tuple[UsageKey, UsageSums]],
    whose: tuple[str | None, str | None], first: int, limit: int,
) -> tuple[list[dict[str, Any]], int | None]:  # fmt: skip
    """Return the rows of whole periods from one on, about `limit` of them, and which period comes next."""
    periods, rows = span.periods(), list[dict[str, Any]]()
    begins = [begin for begin, _ in periods]
    live: dict[int, list[tuple[UsageKey, UsageSums]]] = {}
    for key, sums in _between(extra, span.begin, span.end):
        live.setdefault(bisect_right(begins, key.hour) - 1, []).append((key, sums))
    for number in range(first, len(periods)):
        if len(rows) >= limit:
            return rows, number
        begin, end = periods[number]
        groups: dict[tuple[str, ...], UsageSums] = {}
        for key, sums in [*service.reader.usage(begin, end, *whose), *live.get(number, ())]:
            groups.setdefault(tuple(getattr(key, name) for name in by), UsageSums()).add(sums)
        for group in sorted(groups):
            named = {name: value or None for name, value in zip(by, group, strict=True)}
            rows.append({"begins_at": span.shown(begin), "ends_at": span.shown(end), **named, **shown(groups[group])})
    return rows, None


def shown(sums: UsageSums) -> dict[str, Any]:
    """Return sums as the API has them; energy is null where none was measured."""
    return {
        "accelerator_hours": sums.accelerator_s / 3600,
        "starts": sums.starts,
        "wait_s": sums.wait_s,
        "mean_wait_s": sums.wait_s / sums.starts if sums.starts else None,
        "succeeded": sums.succeeded,
        "failed": sums.failed,
        "cancelled": sums.cancelled,
        "refused": sums.refused,
        "failures": sums.failures,
        "lost_accelerator_hours": sums.lost_s / 3600,
        "energy_kwh": sums.energy_j / 3.6e6 if sums.metered_s > 0 else None,
        "metered_accelerator_hours": sums.metered_s / 3600,
    }


def _csv(rows: list[dict[str, Any]], following: int | None) -> Response:
    """Return rows as CSV; a header names the cursor of the next page."""
    text = io.StringIO()
    names = [name for name in COLUMNS if not rows or name in rows[0]]
    table = csv.DictWriter(text, names, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    headers = {} if following is None else {"X-Next-Cursor": str(following)}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")
