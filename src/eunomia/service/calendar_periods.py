"""Spans of time and the calendar periods in them, by the clocks of one time zone. Times are wall-clock seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from itertools import pairwise

from eunomia.service.job_document import FieldProblem, InvalidRequest
from eunomia.service.job_row import FIRST_S, LAST_S
from eunomia.service.usage import HOUR_S, hour_at

UNITS = ("hour", "day", "week", "month")
MOST_DAYS = 3660  # of a span
MOST_PERIODS = 10_000  # in it
EXAMPLE = "2026-10-01, or 2026-10-01T08:00"


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time that begins and ends with an hour, and the unit that it is divided into; "" = it is not."""

    begin: float
    end: float
    unit: str
    zone: tzinfo

    def periods(self) -> list[tuple[float, float]]:
        """Return the periods in order; the first and the last one may be parts of their day, week or month."""
        if not self.unit:
            return [(self.begin, self.end)]
        borders = [self.begin, *(at for at in self._borders() if self.begin < at < self.end), self.end]
        return list(pairwise(borders))

    def _borders(self) -> Iterator[float]:
        if self.unit == "hour":
            yield from range(int(self.begin), int(self.end), HOUR_S)
            return
        day = self._local(self.begin).date()
        day -= timedelta(days=day.weekday() if self.unit == "week" else day.day - 1 if self.unit == "month" else 0)
        while (at := _midnight(day, self.zone)) < self.end:
            yield at
            day = next_month(day) if self.unit == "month" else day + timedelta(days=7 if self.unit == "week" else 1)

    def shown(self, at: float) -> str:
        """Return a time in the zone, as ISO 8601 has it."""
        return self._local(at).isoformat()

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(min(max(at, FIRST_S), LAST_S), self.zone)


def next_month(day: date) -> date:
    """Return the first day of the next month."""
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def read_span(begin: str | None, end: str | None, unit: str, zone: tzinfo, now: float) -> Span:
    """Return the span between two texts; left out, from the beginning of this month until the end of this hour.

    A date or a time without a zone is by the clocks of `zone`. Raises InvalidRequest.
    """
    problems = list[FieldProblem]()
    first = datetime.fromtimestamp(now, zone).date().replace(day=1)
    from_s = _read(begin, "from", _midnight(first, zone), zone, problems)
    to_s = _read(end, "to", float(hour_at(now, zone) + HOUR_S), zone, problems)
    if not problems and not from_s < to_s:
        shown = begin if end is None else end
        problems.append(FieldProblem("to" if end else "from", shown, "the span ends before it begins", "swap them"))
    if not problems and to_s - from_s > MOST_DAYS * 86_400:
        problems.append(FieldProblem("from", begin, f"a span has at most {MOST_DAYS:,} days", "ask for a part of it"))
    length = {"hour": HOUR_S, "day": 86_400, "week": 7 * 86_400}.get(unit, 28 * 86_400)
    if not problems and unit and (to_s - from_s) / length > MOST_PERIODS:
        rule = f"the span has more than {MOST_PERIODS:,} periods"
        problems.append(FieldProblem("by", unit, rule, "ask for a shorter span, or for longer periods"))
    if problems:
        raise InvalidRequest(problems)
    return Span(from_s, to_s, unit, zone)


def _read(text: str | None, field: str, otherwise: float, zone: tzinfo, problems: list[FieldProblem]) -> float:
    if not text:
        return otherwise
    try:
        found = datetime.fromisoformat(text)
        at = (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
        if len(text) > 40 or not FIRST_S <= at <= LAST_S:
            raise ValueError
    except (ValueError, OverflowError):
        problems.append(FieldProblem(field, text[:40], "is a date, or a date and time", f"send one such as {EXAMPLE}"))
        return otherwise
    if hour_at(at, zone) != at:
        rule = f"sums are kept by the hour, and no hour begins then in the zone {zone}"
        problems.append(FieldProblem(field, text[:40], rule, "name a whole hour, or set time_zone in [service]"))
    return at
