"""Dates of seconds, as far as dates reach."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from eunomia.model.arrays import Floats

EPOCH = datetime(1970, 1, 1)


def date_at(seconds: float, since: datetime = EPOCH) -> datetime | None:
    """Return the date and time `seconds` after `since`; None where there is none, before year 1 or after 9999."""
    try:
        return since + timedelta(seconds=seconds)
    except OverflowError:
        return None


def is_date(date: datetime | None) -> bool:
    """Say whether a date is one: times counted from a start of their own look like seconds since 1970."""
    return date is not None and date.year > EPOCH.year


def since_first(times: Floats) -> tuple[Floats, datetime | None]:
    """Return times counted from the first of them, and its date; `times` are seconds since 1970, nan where invalid."""
    first = float(np.nanmin(times)) if np.isfinite(times).any() else 0.0
    return times - first, date_at(first)
