"""Prints the table of docs/physics.md: one scenario without physics, with each kind alone, and with all of it.

python tools/physics_table.py
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eunomia
from eunomia.metrics.lost_time import LOST, name_of

SCENARIO = Path(__file__).parent.parent / "examples" / "physics.toml"
SHOWN = ("restore", "placement", "neighbours", "rolled_back", "failed_jobs", "cancelled_jobs", "unheard",
         "fragmentation", "out_of_service")  # fmt: skip
HOUR_S = 3600.0
KINDS: dict[str, tuple[str, ...]] = {
    "places": ("placement",),
    "neighbours": ("neighbours",),
    "fates": ("fates",),
    "racks lost": ("rack_failures_per_hour",),
    "late word": ("report_delay_s", "report_lost"),
}


def scenarios() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each variant with its name."""
    asked = tomllib.loads(SCENARIO.read_text(encoding="utf-8"))
    physics = asked["physics"]
    calm = {key: value for key, value in asked["world"].items() if key != "node_failures_per_hour"}
    yield "none", {**asked, "world": calm, "physics": {}}
    yield "machines lost", {**asked, "physics": {}}
    for name, keys in KINDS.items():
        yield name, {**asked, "world": calm, "physics": {key: physics[key] for key in keys}}
    yield "all", asked


def main() -> None:
    """Print the table."""
    print(f"| physics | finished | mean JCT, h | useful | {' | '.join(what.replace('_', ' ') for what in SHOWN)} |")
    print(f"| --- | {' | '.join(['---:'] * (3 + len(SHOWN)))} |")
    for name, scenario in scenarios():
        reported = eunomia.simulate(scenario).summary
        whole = sum(reported[each] or 0.0 for each in ("useful_accelerator_s", *map(name_of, LOST)))
        parts = [f"{(reported[each] or 0.0) / whole:.1%}" for each in ("useful_accelerator_s", *map(name_of, SHOWN))]
        jct_h = (reported["jct_mean_s"] or 0.0) / HOUR_S
        print(f"| {name} | {reported['jobs_finished']} | {jct_h:.1f} | {' | '.join(parts)} |")


if __name__ == "__main__":
    main()
