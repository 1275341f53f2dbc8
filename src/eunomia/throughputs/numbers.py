"""Numbers of a table, checked at the border."""

from __future__ import annotations

import math

from eunomia.inputs.problems import Problems

LARGEST_GANG = 1_000_000


def rate_of(value: object, problems: Problems, *, column: str, row: int | None = None) -> float | None:
    """Return a rate in steps/s, finite and at least 0; None, with the problem noted, if it is none."""
    rate = _number(value)
    if rate is None or not math.isfinite(rate) or rate < 0:
        problems.add(
            "a throughput is a finite number of steps/s, at least 0",
            "give the measured rate, or 0 for cannot run",
            row=row,
            column=column,
            value=_shown(value),
        )
        return None
    return rate


def size_of(value: object, problems: Problems, *, column: str, row: int | None = None) -> int | None:
    """Return a scale factor, a whole number of at least 1; None, with the problem noted, if it is none."""
    size = _number(value)
    if size is None or not 1 <= size <= LARGEST_GANG or size != int(size):
        problems.add(
            "a scale factor is a whole number of accelerators, at least 1",
            "give the size of the gang",
            row=row,
            column=column,
            value=_shown(value),
        )
        return None
    return int(size)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and "_" in value:  # Python would read 1_000 as a number
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _shown(value: object) -> str:
    return repr(value) if value in (None, "") else str(value)[:80]
