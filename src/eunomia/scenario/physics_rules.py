"""Keys of [physics] that say nothing beside the others, or contradict them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eunomia.scenario.schema_models import PhysicsSection
from eunomia.scenario.source_locations import Finding

# key → the key that must not have this value for it to matter, and what to write
IDLE: dict[str, tuple[str, object, str]] = {
    "accelerators_per_slot": ("placement", "off", 'placement = "themis"'),
    "failing": ("fates", "off", 'fates = "philly"'),
    "killed": ("fates", "off", 'fates = "philly"'),
    "retries": ("fates", "off", 'fates = "philly"'),
    "rack_repair_s": ("rack_failures_per_hour", 0, "rack_failures_per_hour"),
    "reconcile_s": ("report_lost", 0, "report_lost"),
}


def physics_findings(table: dict[str, Any], backend: Any) -> Iterator[Finding]:
    """Yield what is wrong with the table as a whole, for such a world."""
    if backend == "local":
        for key in (
            key for key, field in PhysicsSection.model_fields.items() if table.get(key, field.default) != field.default
        ):
            fix = 'leave it out, or set backend = "simulated" in [world]'
            yield Finding(("physics", key), table[key], "real processes have physics of their own", fix)
    for key, (needs, off, example) in IDLE.items():
        if table.get(key, _default(key)) != _default(key) and table.get(needs, off) == off:
            fix = f"write {example} beside it, or leave {key} out"
            yield Finding(("physics", key), table[key], f"does nothing without {needs}", fix)
    shares = [table.get(key, _default(key)) for key in ("failing", "killed")]
    if all(isinstance(share, int | float) for share in shares) and sum(shares) > 1:
        rule = "fractions of jobs that fail and that are killed add up to at most 1"
        yield Finding(("physics", "failing"), shares[0], rule, "lower one of them")


def _default(key: str) -> Any:
    return PhysicsSection.model_fields[key].default
