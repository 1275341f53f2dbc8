"""How much of its work each setting finished, of jobs and of apps, in words: averages are of what finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eunomia.report.number_format import shown
from eunomia.report.seed_groups import Kind, SeedGroup
from eunomia.report.unfinished_text import other_ends


@dataclass(frozen=True)
class Average:
    """An average over what finished by which settings are compared."""

    kind: Kind
    name: str  # in summary.json
    what: str


JOBS = Average("jobs", "jct_mean_s", "average completion time")
APPS = Average("apps", "app_jct_mean_s", "average time of an app")


def averages(group: Sequence[SeedGroup]) -> tuple[Average, ...]:
    """Return those to compare by, the foremost first: a user of a search waits for its model and not for its trials."""
    return (APPS, JOBS) if any(setting.mean("apps_submitted") for setting in group) else (JOBS,)


def count(setting: SeedGroup, kind: Kind) -> str:
    """Return `12 of 15 jobs`, averaged over seeds."""
    finished, submitted = (shown(setting.mean(f"{kind}_{name}"), "count") for name in ("finished", "submitted"))
    return f"{finished} of {submitted} {kind}"


def others(setting: SeedGroup, kind: Kind) -> str:
    """Return `; 12 failed, 8 were cancelled`, averaged over seeds; nothing when all finished."""
    told = other_ends(setting.mean) if kind == "jobs" else without_model(setting.mean("apps_without_model") or 0)
    return f"; {told}" if told else ""


def given_up(setting: SeedGroup, kind: Kind) -> str:
    """Return ` and its searches ended 41`, trials that nobody left behind; nothing where there are none."""
    trials = setting.mean("jobs_cancelled_by_tuner") if kind == "jobs" else None
    return f" and its searches ended {shown(trials, 'count')}" if trials else ""


def without_model(searches: float) -> str:
    """Return `3 searches ended without a model`; nothing where none did."""
    return f"{shown(searches, 'count')} search{'es' * (searches != 1)} ended without a model" if searches else ""


def how_many(group: Sequence[SeedGroup], average: Average) -> list[str]:
    """Return what finished and what became of the rest, in one sentence for those that fared alike.

    Nothing of jobs where all of them finished.
    """
    labels: dict[str, list[SeedGroup]] = {}
    for setting in group:
        if average is APPS or others(setting, "jobs"):
            said = f"finished {count(setting, average.kind)}{others(setting, average.kind)}"
            labels.setdefault(said, []).append(setting)
    told = (f"{joined(alike)} {'each ' * (len(alike) > 1)}{said}" for said, alike in labels.items())
    return [f"Averages are of finished {average.kind}: {'. '.join(told)}."] if labels else []


def left_out(group: Sequence[SeedGroup], able: Sequence[SeedGroup], average: Average) -> list[str]:
    """Return a warning for each setting that did not finish its jobs, or apps."""
    return [
        f"{setting.label} finished only {count(setting, average.kind)}{given_up(setting, average.kind)}, fewer than "
        f"others{' in all' * bool(given_up(setting, average.kind))}: its averages leave "
        f"out the {average.kind} it left behind, so it is not compared."
        for setting in group
        if setting not in able
    ]


def joined(group: Sequence[SeedGroup]) -> str:
    """Return the labels as English lists them."""
    names = [setting.label for setting in group]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
