"""Dates of seconds, as far as dates reach."""

from __future__ import annotations

from datetime import datetime, timedelta

EPOCH = datetime(1970, 1, 1)


def date_at(seconds: float, since: datetime = EPOCH) -> datetime | None:
    """Return the date and time `seconds` after `since`; None where there is none, before year 1 or after 9999."""
    try:
        return since + timedelta(seconds=seconds)
    except OverflowError:
        return None
