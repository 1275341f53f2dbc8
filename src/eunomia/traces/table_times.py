"""Times in the cells of tables of any system: seconds, dates, and the ways to write that there is none."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from math import isfinite, nan
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eunomia.inputs.columns import numbers
from eunomia.inputs.problems import refused
from eunomia.inputs.table import InputTable
from eunomia.model.arrays import Bools, Floats

ABSENT = ("", "-", "nan", "nat", "none", "null", "n/a", "na", "unknown", "(null)", "<na>", "0000-00-00 00:00:00")
DATED, PLAIN = r"^\d{4}[-/]", r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}$"  # a date, and one that is read at once
ZERO_S = 172_800.0  # a date up to here is the zero of a clock, in whatever zone it was written
UNITS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))  # seconds since 1970


def read_zone(name: str, option: str, file: str = "command line") -> tzinfo:
    """Return the zone of a name such as Europe/Berlin, UTC for "". Raises InvalidInput for a name that is not known.

    The problem is that of an `option` given for a `file`.
    """
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        fix = "write a name of the tz database, such as Europe/Berlin or America/New_York"
        raise refused(file, option, name, "this time zone is not known", fix) from error


def read_times(sheet: InputTable, name: str, zone: tzinfo = UTC, *, fold: int = 0) -> Floats:
    """Return a column of seconds or dates, (row,), in s; nan where the cell holds no time.

    Dates without a zone are those of `zone`; where its clock is set back, `fold` says which of the two is meant.
    """
    if name not in sheet.columns:
        return np.full(len(sheet), nan)
    cells = _array(sheet, name)
    plain = pc.match_substring_regex(cells, PLAIN) if zone is UTC else pa.array(np.zeros(len(cells), dtype=np.bool_))
    values = numbers(pc.if_else(pc.match_substring_regex(cells, DATED), "", cells))
    values[~np.isfinite(values)] = nan
    with suppress(pa.ArrowInvalid):  # a month 13, or an hour 25: then each is looked at
        values[_mask(plain)] = np.asarray(pc.cast(cells.filter(plain), pa.timestamp("s")).cast(pa.int64()), dtype=float)
    rest = np.flatnonzero(np.isnan(values))
    if len(rest):
        texts = sheet.text(name)
        values[rest] = [_seconds(texts[m], zone, fold) for m in rest.tolist()]
    return values


def _array(sheet: InputTable, name: str) -> pa.StringArray:
    cells = sheet.columns[name]
    return pa.array(cells, pa.string()) if isinstance(cells, tuple) else cells


def _mask(array: pa.Array) -> Bools:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _seconds(text: str, zone: tzinfo, fold: int) -> float:
    if not text or text.lower() in ABSENT:
        return nan
    try:
        date = datetime.fromisoformat(text.replace("/", "-") if text[4:5] == "/" else text)
        return (date if date.tzinfo else date.replace(tzinfo=zone, fold=fold)).timestamp()
    except (ValueError, OverflowError):
        return nan


def absent(sheet: InputTable, name: str) -> Bools:
    """Return (row,): True where the cell holds nothing, or a word for nothing."""
    return _mask(pc.is_in(pc.utf8_lower(_array(sheet, name)), pa.array(ABSENT)))


def never(times: Floats, dated: Bools, earliest: Floats) -> Bools:
    """Return (row,): True where a time stands for none: −1, or the zero of a clock, 0 or a date of 1970.

    `dated` are the rows in which it is written as a date. Zero is none only if it is before the `earliest` possible.
    """
    zero = (times == 0) | (dated & (times < ZERO_S))
    return np.asarray((times == -1) | (zero & (times < earliest)))


def is_dated(sheet: InputTable, name: str) -> Bools:
    """Return (row,): True where the cell is a date."""
    return _mask(pc.match_substring_regex(_array(sheet, name), DATED))


def unit_of(times: Floats) -> tuple[float, str]:
    """Return how many of the unit of these times make a second, and its name; 1 for seconds."""
    known = times[np.isfinite(times)]
    middle = float(np.median(known)) if len(known) else 0.0
    return next(
        ((per_s, name) for least, per_s, name in UNITS if isfinite(middle) and middle > least), (1.0, "seconds")
    )


def offset_s(times: Floats, zone: tzinfo) -> float:
    """Return what the zone's clock is ahead of UTC at the first of these times, in s: dates of a trace are local."""
    first = float(np.nanmin(times)) if np.isfinite(times).any() else nan
    try:
        ahead = datetime.fromtimestamp(first, zone).utcoffset()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return 0.0 if ahead is None else ahead.total_seconds()
