"""Sentences about the jobs and apps that each setting finished, and how the others ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eunomia.verdict.number_format import shown
from eunomia.verdict.seed_groups import Kind, SeedGroup

OTHER_OUTCOMES: Mapping[str, tuple[str, str]] = {  # field of summary.json → verb for several jobs, for one
    "jobs_failed": ("failed", "failed"),
    "jobs_cancelled": ("were cancelled", "was cancelled"),
    "jobs_cancelled_by_tuner": ("were ended by their searches", "was ended by its search"),
    "jobs_rejected": ("were rejected", "was rejected"),
    "jobs_unfinished": ("were left unfinished", "was left unfinished"),
}


@dataclass(frozen=True)
class Average:
    """An average over finished jobs or apps by which settings are compared."""

    kind: Kind
    name: str  # in summary.json
    what: str  # in sentences


JOBS = Average("jobs", "jct_mean_s", "average completion time")
APPS = Average("apps", "app_jct_mean_s", "average time of an app")


def averages(group: Sequence[SeedGroup]) -> tuple[Average, ...]:
    """Return the averages to compare by; where there are apps, theirs comes first: users wait for the model."""
    return (APPS, JOBS) if any(setting.mean("apps_submitted") for setting in group) else (JOBS,)


def count(setting: SeedGroup, kind: Kind) -> str:
    """Return `12 of 15 jobs`, averaged over seeds."""
    finished, submitted = (shown(setting.mean(f"{kind}_{name}"), "count") for name in ("finished", "submitted"))
    return f"{finished} of {submitted} {kind}"


def others(setting: SeedGroup, kind: Kind) -> str:
    """Return `; 12 failed, 8 were cancelled`, averaged over seeds; "" when all finished."""
    text = other_outcomes(setting.mean) if kind == "jobs" else without_model(setting.mean("apps_without_model") or 0)
    return f"; {text}" if text else ""


def other_outcomes(number: Callable[[str], float | int | None]) -> str:
    """Return `12 failed, 8 were cancelled`, or "" when all finished; `number` returns a field of summary.json."""
    counts = {name: number(name) or 0 for name in OTHER_OUTCOMES}
    counts["jobs_cancelled"] -= counts["jobs_cancelled_by_tuner"]
    verbs = ((count, OTHER_OUTCOMES[name]) for name, count in counts.items() if count)
    return ", ".join(f"{shown(count, 'count')} {verb[count == 1]}" for count, verb in verbs)


def ended_by_searches(setting: SeedGroup, kind: Kind) -> str:
    """Return ` and its searches ended 41`, or "" when tuners cancelled no job."""
    trials = setting.mean("jobs_cancelled_by_tuner") if kind == "jobs" else None
    return f" and its searches ended {shown(trials, 'count')}" if trials else ""


def without_model(searches: float) -> str:
    """Return `3 searches ended without a model`, or "" when none did."""
    return f"{shown(searches, 'count')} search{'es' * (searches != 1)} ended without a model" if searches else ""


def how_many(group: Sequence[SeedGroup], average: Average) -> list[str]:
    """Return how many jobs or apps ended how, one sentence for equal settings; none where all jobs finished."""
    settings_by_text: dict[str, list[SeedGroup]] = {}
    for setting in group:
        if average is APPS or others(setting, "jobs"):
            text = f"finished {count(setting, average.kind)}{others(setting, average.kind)}"
            settings_by_text.setdefault(text, []).append(setting)
    parts = (f"{joined(equal)} {'each ' * (len(equal) > 1)}{text}" for text, equal in settings_by_text.items())
    return [f"Averages are of finished {average.kind}: {'. '.join(parts)}."] if settings_by_text else []


def left_out(group: Sequence[SeedGroup], able: Sequence[SeedGroup], average: Average) -> list[str]:
    """Return a warning for each setting that did not finish its jobs, or apps."""
    warnings = []
    for setting in group:
        if setting not in able:
            ended = ended_by_searches(setting, average.kind)
            warnings.append(
                f"{setting.label} finished only {count(setting, average.kind)}{ended}, fewer than "
                f"others{' in all' * bool(ended)}: its averages leave "
                f"out the {average.kind} that it did not finish, so it is not compared."
            )
    return warnings


def joined(group: Sequence[SeedGroup]) -> str:
    """Return the labels as an English list: `a, b and c`."""
    names = [setting.label for setting in group]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
