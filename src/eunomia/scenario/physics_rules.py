"""Checks of faults and [physics]: rates at which no run would end, and keys without effect or in contradiction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from eunomia.backends.registry import runs_processes
from eunomia.scenario.schema_models import PhysicsSection, Section, WorldSection
from eunomia.scenario.source_locations import Finding, KeyPath

MOST_PER_HOUR = 60.0  # failures of one job, machine or rack
LEAST_IN_SERVICE = 0.01  # fraction of the time
HOUR_S = 3600.0
RATES: Mapping[KeyPath, KeyPath | None] = {  # failures per hour, and the repair time of each
    ("world", "job_failures_per_hour"): None,
    ("world", "node_failures_per_hour"): ("world", "node_repair_s"),
    ("physics", "rack_failures_per_hour"): ("physics", "rack_repair_s"),
}
_SECTIONS: Mapping[str, type[Section]] = {"world": WorldSection, "physics": PhysicsSection}
# key → (key that enables it, value that disables it, example that enables it)
ENABLED_BY: dict[str, tuple[str, object, str]] = {
    "accelerators_per_slot": ("placement", "off", 'placement = "themis"'),
    "failing": ("fates", "off", 'fates = "philly"'),
    "killed": ("fates", "off", 'fates = "philly"'),
    "retries": ("fates", "off", 'fates = "philly"'),
    "rack_repair_s": ("rack_failures_per_hour", 0, "rack_failures_per_hour"),
    "reconcile_s": ("report_lost", 0, "report_lost"),
}


def outage_findings(data: dict[str, Any]) -> Iterator[Finding]:
    """Yield the failure rates that are too high and the repairs that are too slow for a run to end."""
    for rate, repair in RATES.items():
        per_hour = _read_number(data, rate)
        repair_s = 0.0 if repair is None else _read_number(data, repair)
        if per_hour > MOST_PER_HOUR:
            rule = f"must be at most {MOST_PER_HOUR:g}: what breaks more often than once a minute gets nothing done"
            yield Finding(rate, per_hour, rule, "give a lower rate")
        elif repair is not None and 1.0 / (1.0 + per_hour * repair_s / HOUR_S) < LEAST_IN_SERVICE:
            rule = (
                f"with {per_hour:g} losses an hour that leaves less than {LEAST_IN_SERVICE:.0%} of the time in service"
            )
            yield Finding(repair, repair_s, rule, f"give a shorter time, or a lower {rate[-1]}")


def _read_number(data: dict[str, Any], path: KeyPath) -> float:
    """Return a number of the scenario; 0 for an invalid one, which has its own finding."""
    section, key = (str(part) for part in path)
    table = data.get(section)
    value = table.get(key, _SECTIONS[section].model_fields[key].default) if isinstance(table, dict) else 0.0
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    return float(value) if is_valid else 0.0


def overheads_findings(table: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield what a preemption saves where jobs really run: what they write is theirs to say."""
    if runs_processes(backend) and table.get("saves", "checkpoint") != "checkpoint":
        rule = "real processes save what their program saves"
        fix = 'leave it out, or set backend = "simulated" in [world]'
        yield Finding(("overheads", "saves"), table["saves"], rule, fix)


def physics_findings(table: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield keys of [physics] that have no effect with this backend or beside the others, or contradict them."""
    if runs_processes(backend):
        for key in (key for key in PhysicsSection.model_fields if table.get(key, _default(key)) not in _nothing(key)):
            fix = 'leave it out, or set backend = "simulated" in [world]'
            yield Finding(("physics", key), table[key], "real processes are not simulated", fix)
    for key, (needs, off, example) in ENABLED_BY.items():
        if table.get(key, _default(key)) != _default(key) and table.get(needs, off) == off:
            fix = f"write {example} beside it, or leave {key} out"
            yield Finding(("physics", key), table[key], f"does nothing without {needs}", fix)
    shares = [table.get(key, _default(key)) for key in ("failing", "killed")]
    if all(isinstance(share, int | float) for share in shares) and sum(shares) > 1:
        rule = "fractions of jobs that fail and that are killed add up to at most 1"
        yield Finding(("physics", "failing"), shares[0], rule, "lower one of them")


def _nothing(key: str) -> tuple[Any, ...]:
    """Return the values of a key that simulate nothing."""
    return (_default(key), "off") if key == "placement" else (_default(key),)


def _default(key: str) -> Any:
    return PhysicsSection.model_fields[key].default
