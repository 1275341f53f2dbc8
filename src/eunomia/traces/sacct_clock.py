"""Local times that sacct writes, in nights in which clocks are changed.

A local hour that the clock shows twice is decided by what must hold: a job is submitted before it starts, and between
Start and End lie the time that it ran and that for which it was suspended. What that leaves open is the first of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from eunomia.inputs.timestamps import EPOCH
from eunomia.model.arrays import Bools, Floats

DAY_S, HOUR_S = 86_400.0, 3600.0
CLOCK_S = 2.0  # by which two roundings to seconds may differ
TIMES = ("Submit", "Eligible", "Start", "End")
ZONES = (  # one for each rule by which clocks are changed
    "Europe/Berlin", "America/New_York", "Europe/London", "Europe/Helsinki", "Australia/Sydney", "Pacific/Auckland",
    "America/Santiago", "Asia/Jerusalem", "Africa/Cairo",
)  # fmt: skip


def with_zone(times: dict[str, Floats], lasted_s: Floats, zone: tzinfo) -> tuple[dict[str, Floats], Bools]:
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


def _first_and_second(local_s: Floats, zone: tzinfo) -> tuple[Floats, Floats]:
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


def _offset_s(date: datetime, zone: tzinfo) -> float:
    offset = date.replace(tzinfo=zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def guess_zone(times: dict[str, Floats], lasted_s: Floats) -> tuple[ZoneInfo | None, Bools]:
    """Return the zone whose changes of clocks explain most contradictions, and the lines that have them, (line,).

    Contradictions are an hour more or less between Start and End than a run lasted, and a start within an hour before
    its submission. None if no zone explains more of them than an unchanged clock does.
    """
    off_s = np.abs(np.abs(times["End"] - times["Start"] - lasted_s) - HOUR_S)
    early_s = times["Submit"] - times["Start"]
    suspects = (off_s <= CLOCK_S) | ((early_s > CLOCK_S) & (early_s <= HOUR_S))  # of nan: False
    best: ZoneInfo | None = None
    if not suspects.any():
        return best, suspects
    nights = np.unique(np.concatenate([times[name][suspects] // DAY_S for name in ("Start", "End")]))
    near = np.zeros(len(suspects), dtype=np.bool_)
    for name in ("Submit", "Start", "End"):
        near |= np.isin(times[name] // DAY_S, np.concatenate([nights - 1, nights, nights + 1]))
    rows = np.flatnonzero(near)
    here, lasted_here = {name: times[name][rows] for name in TIMES}, lasted_s[rows]
    least = _contradictions(here, lasted_here)
    for zone in _known_zones():
        count = _contradictions(with_zone(here, lasted_here, zone)[0], lasted_here)
        if count < least:
            least, best = count, zone
    return best, suspects


def _known_zones() -> Iterator[ZoneInfo]:
    """Yield a zone for each rule that this machine's tz database has."""
    for name in ZONES:
        with suppress(ZoneInfoNotFoundError):
            yield ZoneInfo(name)


def _contradictions(times: dict[str, Floats], lasted_s: Floats) -> int:
    off = np.abs(times["End"] - times["Start"] - lasted_s) > CLOCK_S
    return int(np.count_nonzero(off) + np.count_nonzero(times["Start"] < times["Submit"] - CLOCK_S))
