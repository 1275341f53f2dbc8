"""Local times that sacct writes, in nights in which clocks are changed: with a time zone exactly, without one in part.

A local hour that the clock shows twice is decided by what must hold: a job is submitted before it starts, and between
Start and End lie the time that it ran and that for which it was suspended. What that leaves open is the first of both.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.inputs.timestamps import EPOCH, date_at
from eunomia.model.arrays import Bools, Floats

DAY_S, HOUR_S = 86_400.0, 3600.0
CLOCK_S = 2.0  # by which two roundings to seconds may differ
TIMES = ("Submit", "Eligible", "Start", "End")
MONTHS_SET_BACK = (3, 4, 9, 10, 11)  # in the south, in the north


def find_zone(source: str, name: str) -> ZoneInfo | None:
    """Return the time zone of this name, None for none. Raises InvalidInput for an unknown one."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        fix = "write a name of the tz database, such as Europe/Berlin or America/New_York"
        raise refused(source, "timezone", name, "there is no such time zone here", fix) from None


def local_date(seconds: float, zone: ZoneInfo | None) -> datetime | None:
    """Return the local date and time of seconds since 1970, which are local ones where there is no zone."""
    date = date_at(seconds)
    if date is None or zone is None:
        return date
    return date + (datetime.fromtimestamp(seconds, zone).utcoffset() or timedelta())


def with_zone(times: dict[str, Floats], lasted_s: Floats, zone: ZoneInfo) -> tuple[dict[str, Floats], Bools]:
    """Return seconds since 1970 of local times, and the lines in which an hour that occurs twice stays undecided.

    Axes: (line,). `lasted_s` is the time between Start and End that the line states, nan where it does not.
    """
    both = {name: _first_and_second(times[name], zone) for name in TIMES}
    first, second = ({name: both[name][k] for name in TIMES} for k in (0, 1))
    if not any((first[name] < second[name]).any() for name in TIMES):
        return first, np.zeros(len(lasted_s), dtype=np.bool_)
    errors = {
        (s, e): np.abs(both["End"][e] - both["Start"][s] - lasted_s) > CLOCK_S for s in (0, 1) for e in (0, 1)
    }  # of nan: False
    wrong = [errors[s, 0] & errors[s, 1] for s in (0, 1)]
    from_second = (wrong[0] & ~wrong[1]) | (first["Start"] < first["Submit"])
    start = np.where(from_second, second["Start"], first["Start"])
    known = ~np.isnan(lasted_s)
    to_second = np.where(known, np.abs(first["End"] - start - lasted_s) > CLOCK_S, first["End"] < start)
    end = np.where(to_second, second["End"], first["End"])
    eligible = np.where(first["Eligible"] < first["Submit"], second["Eligible"], first["Eligible"])
    undecided = (first["Submit"] < second["Submit"]) & (second["Submit"] <= start)
    undecided |= (first["Eligible"] < second["Eligible"]) & (second["Eligible"] <= start)
    undecided |= (first["Start"] < second["Start"]) & ~from_second & ~wrong[1]
    return {"Submit": first["Submit"], "Eligible": eligible, "Start": start, "End": end}, undecided


def _first_and_second(local_s: Floats, zone: ZoneInfo) -> tuple[Floats, Floats]:
    """Return seconds since 1970 of local times, where they occur twice of both; a skipped time is read as later."""
    known = ~np.isnan(local_s)
    days, place = np.unique(local_s[known] // DAY_S, return_inverse=True)
    dates = [EPOCH + timedelta(days=day) for day in days.tolist()]
    offset = np.array([_offset_s(date, zone) for date in dates])
    changes = np.array([_offset_s(date + timedelta(days=1), zone) for date in dates]) != offset
    offsets = [np.full(len(local_s), np.nan) for _ in range(2)]
    for each in offsets:
        each[known] = offset[place]
    rows = np.flatnonzero(known)[changes[place]]
    for m, seconds in zip(rows.tolist(), local_s[rows].tolist(), strict=True):
        date = EPOCH + timedelta(seconds=seconds)
        offsets[0][m], offsets[1][m] = (_offset_s(date.replace(fold=fold), zone) for fold in (0, 1))
    first, second = local_s - offsets[0], local_s - offsets[1]
    return first, np.maximum(first, second)


def _offset_s(date: datetime, zone: ZoneInfo) -> float:
    offset = date.replace(tzinfo=zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def set_back(times: dict[str, Floats]) -> tuple[dict[str, Floats], Bools]:
    """Return times with starts and ends an hour later where a start precedes its submission as clocks are set back.

    Also returns these lines, (line,). They start within an hour before they were submitted, in the first four hours of
    a Sunday of the months in which clocks are set back.
    """
    early_s = times["Submit"] - times["Start"]
    rows = np.flatnonzero((early_s > CLOCK_S) & (early_s <= HOUR_S))  # of nan: False
    moved = np.zeros(len(early_s), dtype=np.bool_)
    for m in rows.tolist():
        date = date_at(float(times["Start"][m]))
        moved[m] = date is not None and date.weekday() == 6 and date.hour < 4 and date.month in MONTHS_SET_BACK
    if not moved.any():
        return times, moved
    return times | {name: np.where(moved, times[name] + HOUR_S, times[name]) for name in ("Start", "End")}, moved
