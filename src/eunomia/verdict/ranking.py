"""The measures of a verdict, settings in order of one of them, and how certain that order is, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eunomia.metrics.statistics import NEGLIGIBLE
from eunomia.verdict.completion_text import Average
from eunomia.verdict.judgement import JudgedDifference, judge, tied, why_no_interval
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.seed_groups import Kind, SeedGroup, comparable

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


@dataclass(frozen=True)
class Column:
    """One field of summary.json: its name, its heading, and whether low or high is better."""

    name: str
    heading: str
    unit: Unit
    better: Literal["low", "high"] | None = "low"
    kind: Kind = "jobs"  # what it is an average of


COLUMNS = (
    Column("apps_finished", "Apps finished", "count", None),
    Column("app_jct_mean_s", "App time average", "s", kind="apps"),
    Column("jct_mean_s", "JCT average", "s"),
    Column("jct_p50_s", "JCT median", "s"),
    Column("jct_p95_s", "JCT 95th pct.", "s"),
    Column("jct_p99_s", "JCT 99th pct.", "s"),
    Column("queueing_mean_s", "Queueing average", "s"),
    Column("total_wait_mean_s", "Total wait average", "s"),
    Column("makespan_s", "Makespan", "s"),
    Column("utilization", "Utilisation", "share", "high"),
    Column("offered_load", "Offered load", "share", None),
    Column("rho_themis_max", "ρ worst", "ratio"),
    Column("rho_themis_mean", "ρ average", "ratio"),
    Column("preemptions", "Preemptions", "count"),
    Column("cost_usd", "Cost", "usd"),
    Column("jobs_finished", "Finished", "count", None),
    Column("jobs_submitted", "Submitted", "count", None),
)


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


def certainty(chosen: SeedGroup, other: SeedGroup, average: Average) -> str:
    """Return how certain the advantage of `chosen` over `other` is, which is no tie."""
    found = judge(chosen, other, average.name)
    if found is None:
        return ""
    if found.judged:
        return f"Certain at 95 %, over {found.basis}: the difference to {other.label} is {_interval(found)}."
    jobs = int(chosen.mean("jobs_submitted") or 0)
    seeds = len(chosen.runs)
    one = f"the {seeds} seeds draw nothing and count as one" if seeds > 1 else "there is one seed"
    why = why_no_interval(chosen, other, average.name)
    these = f"these {jobs:,} jobs" if jobs != 1 else "this job"
    return f"This holds for {these}. How far other jobs would change it is not known: {one}, and {why}."


def certainty_of_tie(ranked: Ranked, average: Average) -> str:
    """Return how certain it is that all of `ranked` tie."""
    found = judge(ranked[0][1], ranked[-1][1], average.name)
    if found is None or not found.judged:
        return "Differences below 1 % are ties."
    text = f"Lowest against highest, over {found.basis}: {signed(found.change)} ({_interval(found)} at 95 %)"
    if not found.agrees:
        return f"{text}: the averages differ in one direction, and the ratios under each seed in the other."
    if not found.includes_0:
        return f"{text}. Differences below 1 % are ties."
    low, high = found.low or 0.0, found.high or 0.0
    if max(-low, high) <= NEGLIGIBLE:
        return f"{text}, which is below 1 % at either end."
    what = found.basis.split()[-1]  # seeds, weeks or days
    more = "more seeds (--seed 0 1 2 …)" if what == "seeds" else "a longer trace"
    return f"{text}: other {what} might reverse it; {more} would tell."


def _interval(found: JudgedDifference) -> str:
    low, high = found.low or 0.0, found.high or 0.0
    if found.relative:
        return f"{signed(low)} to {signed(high)}"
    return f"{low:+.3g} to {high:+.3g}".replace("-", "−")


def less(value: float, other: float) -> str:
    """Return how far `value` is below `other`, in per cent of it."""
    part = 100 * (1 - value / other) if other > 0 else 0.0
    return f"{part:.0f} % sooner" if part >= 10 else f"{part:.1f} % sooner"


def signed(part: float) -> str:
    """Return a change in per cent with its sign, never 0 for one that is not; from ten times on as a multiple."""
    percent = 100 * part
    if percent > 1000:
        return f"{part + 1:,.0f} times"
    size = abs(percent)
    text = f"{percent:+.0f}" if size >= 10 else f"{percent:+.1f}" if size >= 0.05 or size < 1e-9 else f"{percent:+.1g}"
    return f"{text} %".replace("-", "−")
