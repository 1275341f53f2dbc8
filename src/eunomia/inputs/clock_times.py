"""Moments as people type them: a time of day, a date and time, or a length of time from now."""

from __future__ import annotations

from datetime import datetime, timedelta

from eunomia.inputs.bounds import MOST_S
from eunomia.inputs.spans import seconds_of

RULE = "a time of day such as 18:00, a date and time such as 2026-12-01T08:00, or a length of time such as 90m or 2h"
LAST_YEAR = 9999


def moment_of(text: str, now: datetime) -> datetime | None:
    """Return the moment that a text names, in the time zone of `now`; None for other texts.

    A time of day is the next one; a date is its midnight; one without a zone is in that of `now`.
    """
    text = text.strip()
    for form in ("%H:%M", "%H:%M:%S"):
        try:
            of_day = datetime.strptime(text, form).time()
        except ValueError:
            continue
        found = now.replace(hour=of_day.hour, minute=of_day.minute, second=of_day.second, microsecond=0)
        return found if found > now else found + timedelta(days=1)
    length_s = seconds_of(text)
    try:
        if length_s is not None:
            return now + timedelta(seconds=length_s) if 0 <= length_s <= MOST_S else None
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=now.tzinfo)
