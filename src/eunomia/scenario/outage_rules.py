"""How often things may break: where nothing stays in service, no run would ever end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from eunomia.scenario.schema_models import PhysicsSection, Section, WorldSection
from eunomia.scenario.source_locations import Finding, KeyPath

MOST_PER_HOUR = 60.0  # losses of one thing
LEAST_IN_SERVICE = 0.01  # part of the time
HOUR_S = 3600.0
RATES: Mapping[KeyPath, KeyPath | None] = {  # losses per hour, and how long each lasts
    ("world", "job_failures_per_hour"): None,
    ("world", "node_failures_per_hour"): ("world", "node_repair_s"),
    ("physics", "rack_failures_per_hour"): ("physics", "rack_repair_s"),
}
_SECTIONS: Mapping[str, type[Section]] = {"world": WorldSection, "physics": PhysicsSection}


def outage_findings(data: dict[str, Any]) -> Iterator[Finding]:
    """Yield what breaks too often, or is repaired too slowly."""
    for rate, repair in RATES.items():
        per_hour = _number(data, rate)
        away_s = 0.0 if repair is None else _number(data, repair)
        if per_hour > MOST_PER_HOUR:
            rule = f"must be at most {MOST_PER_HOUR:g}: what breaks more often than once a minute gets nothing done"
            yield Finding(rate, per_hour, rule, "give a lower rate")
        elif repair is not None and 1.0 / (1.0 + per_hour * away_s / HOUR_S) < LEAST_IN_SERVICE:
            rule = (
                f"with {per_hour:g} losses an hour that leaves less than {LEAST_IN_SERVICE:.0%} of the time in service"
            )
            yield Finding(repair, away_s, rule, f"give a shorter time, or a lower {rate[-1]}")


def _number(data: dict[str, Any], path: KeyPath) -> float:
    """Return a number of the scenario; what is none, or is out of its own range, has its own complaint, and is 0."""
    section, key = (str(part) for part in path)
    table = data.get(section)
    value = table.get(key, _SECTIONS[section].model_fields[key].default) if isinstance(table, dict) else 0.0
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    return float(value) if good else 0.0
