"""Numbers for people: three significant digits, a unit, and a dash for unknown values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from eunomia.model import elementary

Unit = Literal["s", "share", "count", "ratio", "usd", "plain"]

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
ABSENT = "–"
MOST_PLACES = 6  # after the point; a smaller number is shown as 1.20e-09, as it is not 0


def three_digits(value: float) -> str:
    """Return `value` with three significant digits, or more before the point: 0.0123, 4.20, 42.1, 4,213."""
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    places = 1 if size >= 10 else 2 if size >= 1 else 2 - math.floor(elementary.log10(size))
    return f"{value:.{places}f}" if places <= MOST_PLACES else f"{value:.2e}"


def duration(seconds: float) -> str:
    """Return `seconds` in the unit that keeps the number small: s, min, h or d."""
    size = abs(seconds)
    if size < 100:
        return f"{three_digits(seconds)} s"
    if size < 100 * MINUTE:
        return f"{three_digits(seconds / MINUTE)} min"
    if size < 2 * DAY:
        return f"{three_digits(seconds / HOUR)} h"
    return f"{three_digits(seconds / DAY)} d"


def common_scale(values: Iterable[float | None]) -> tuple[float, str]:
    """Return the unit of time, in s, that suits a whole column of durations, and its name."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value) and value]
    middle = math.sqrt(min(known) * max(known)) if known else 0.0
    return next(
        ((size, name) for size, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")) if middle >= size), (1.0, "s")
    )


def shown(value: float | None, unit: Unit) -> str:
    """Return `value` with its unit; a dash where it is None or not finite."""
    if value is None or not math.isfinite(value):
        return ABSENT
    match unit:
        case "s":
            return duration(value)
        case "share":
            return f"{100 * value:.1f} %" if abs(value) >= 0.0005 or value == 0 else f"{three_digits(100 * value)} %"
        case "usd":
            return f"${value:,.0f}" if value >= 1000 else f"${value:,.2f}" if value >= 1 else f"${_cents(value)}"
        case "count":
            return f"{value:,.0f}" if float(value).is_integer() else three_digits(value)
        case "ratio":
            return three_digits(value)
        case "plain":
            return f"{value:g}"


def _cents(value: float) -> str:
    """Return an amount below one dollar with two places, or more where it has three digits only then."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else three_digits(value)


def plural(count: int, noun: str) -> str:
    """Return `1 run`, `1,200 runs`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
