"""Lengths of time as people type them."""

from __future__ import annotations

import math
import re

from eunomia.inputs.slurm_values import seconds as slurm_seconds

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
RULE = "a length of time: seconds, or such as 90s, 10m, 1.5h, 2d, 10:30:00, 2-12 or 2-12:00:00 (days-hours)"
MOST = 100  # characters, so that no number is too large
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def seconds_of(text: str) -> float | None:
    """Return the seconds of a text such as `90`, `1h30m`, `MM:SS`, `HH:MM:SS` or `D-HH`; None for other texts."""
    text = text.strip()
    if len(text) > MOST:
        return None
    try:
        found = float(text)
    except ValueError:
        parts = _PART.findall(text)
        if parts and "".join(map("".join, parts)) == text:
            return sum(float(number) * UNITS[unit] for number, unit in parts)
        return slurm_seconds(text)
    return found if math.isfinite(found) else None
