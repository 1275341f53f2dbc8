"""Time zones by their names in the tz database."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from eunomia.inputs.problems import refused

ZONE_RULE = "this time zone is not known"
ZONE_FIX = "write a name of the tz database, such as Europe/Berlin or America/New_York"


def zone_of(name: str) -> tzinfo:
    """Return the zone of a name such as Europe/Berlin, UTC for "". Raises ValueError for a name that is not known."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(ZONE_RULE) from error


def read_zone(name: str, option: str, file: str = "command line") -> tzinfo:
    """Return the zone of a name, see `zone_of`. Raises InvalidInput, about an `option` given for a `file`."""
    try:
        return zone_of(name)
    except ValueError as error:
        raise refused(file, option, name, ZONE_RULE, ZONE_FIX) from error
