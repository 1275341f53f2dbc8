"""The measures of a verdict, and settings in order of one of them."""

from __future__ import annotations

from collections.abc import Sequence

from eunomia.verdict.columns import COLUMNS
from eunomia.verdict.judgement import tied
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.seed_groups import SeedGroup, comparable

Ranked = list[tuple[float, SeedGroup]]

MEASURES: tuple[tuple[str, str, Unit], ...] = (
    ("app_jct_mean_s", "average time of an app", "s"),
    ("jct_mean_s", "average completion time", "s"),
    ("jct_p99_s", "99th percentile of completion time", "s"),
    ("rho_themis_max", "worst finish-time fairness ρ", "ratio"),
    ("queueing_mean_s", "average wait to the first start", "s"),
    ("total_wait_mean_s", "average wait in all", "s"),
    ("makespan_s", "makespan", "s"),
    ("preemptions", "preemptions", "count"),
    ("cost_usd", "cost", "usd"),
)
WORDS = {  # of every column of the table of runs that has a better end
    **{name: what for name, what, _ in MEASURES},
    "jct_p50_s": "median completion time",
    "jct_p95_s": "95th percentile of completion time",
    "rho_themis_mean": "average finish-time fairness ρ",
    "utilization": "utilisation",
}


def policies_of(group: Sequence[SeedGroup]) -> tuple[SeedGroup, ...]:
    """Return the settings that a policy decided: all but the schedule as it was."""
    return tuple(setting for setting in group if not setting.is_history)


def ranking(group: Sequence[SeedGroup], name: str) -> Ranked:
    """Return the settings that have a value of `name`, least first; equal ones keep their order."""
    known = [(value, setting) for setting in group if (value := setting.mean(name)) is not None]
    return sorted(known, key=lambda pair: pair[0])


def level_with(setting: SeedGroup, ranked: Ranked, name: str) -> list[SeedGroup]:
    """Return `setting` and the settings that tie with it."""
    return [other for _, other in ranked if other is setting or tied(setting, other, name)]


def worse_measures(group: Sequence[SeedGroup], chosen: SeedGroup) -> list[str]:
    """Return the columns of the table of runs in which another setting is better than `chosen`, and no tie."""
    found = []
    for column in COLUMNS:
        able = [setting for setting in comparable(group, column.kind) if setting.mean(column.name) is not None]
        if column.better is None or chosen not in able:
            continue
        sign = 1 if column.better == "low" else -1
        best = min(able, key=lambda setting: sign * (setting.mean(column.name) or 0.0))
        if best is not chosen and not tied(best, chosen, column.name):
            found.append(column.name)
    return found


def span(least: float, most: float, unit: Unit) -> str:
    """Return `least to most`, or one number where both are shown alike."""
    first, last = shown(least, unit), shown(most, unit)
    return first if first == last else f"{first} to {last}"
