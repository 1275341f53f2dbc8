"""Further sentences of a verdict: on an idle cluster, estimates, the history, and policies that know durations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING

from eunomia.model.speeds import ESTIMATED, USED
from eunomia.verdict.completion_text import joined
from eunomia.verdict.judgement import comparisons, tied
from eunomia.verdict.number_format import Unit, shown
from eunomia.verdict.ranking import COLUMNS, MEASURES, policies_of, ranking
from eunomia.verdict.run_figures import ReportContent
from eunomia.verdict.seed_groups import SeedGroup, comparable

if TYPE_CHECKING:
    from eunomia.verdict.findings import Findings

BUSY = 0.9  # offered load at which queues are to be expected
IDLE_WAIT = 0.02  # of the completion time: where no policy makes jobs wait longer, the cluster is idle
OWN_MEASURES: dict[str, tuple[str, Unit]] = {  # that policies are meant to keep small
    **{name: (what, unit) for name, what, unit in MEASURES},
    "rho_isolated_max": ("worst ρ against an even split of the cluster", "ratio"),
    "deadlines_missed": ("number of deadlines missed", "count"),
}
MOST_RIVALS = 2  # of which the worst is not worth a sentence
KNOWS = "durations, which a real cluster does not"


def idle(tie: Sequence[SeedGroup]) -> list[str]:
    """Return the warning that policies tie as the cluster is idle, with a load at which it would not be."""
    offered = max((setting.offered_load or 0.0 for setting in tie), default=0.0)
    waits = [(setting.mean("queueing_mean_s") or 0.0, setting.mean("jct_mean_s") or 0.0) for setting in tie]
    if not 0 < offered < BUSY or any(wait > IDLE_WAIT * jct for wait, jct in waits):
        return []
    enough = math.ceil(10 * tie[0].load * BUSY / offered) / 10
    longest = max(wait for wait, _ in waits)
    wait = f"wait {shown(longest, 's')} at most on average" if longest > 0 else "do not wait"
    return [
        f"The cluster is too idle to tell policies apart: the jobs ask for {shown(offered, 'share')} of it, and {wait} "
        f"to their first start. Queues, and with them differences, are to be expected from about load {enough:g} on "
        f"(--load {enough:g})."
    ]


def wait_of_history(group: Sequence[SeedGroup]) -> list[str]:
    """Return how much of the wait as it was the simulation explains: the rest is to no policy's credit."""
    policies = policies_of(group)
    found = []
    for history in (setting for setting in group if setting.is_history):
        wait, took = history.mean("queueing_mean_s"), history.mean("jct_mean_s")
        ranked = ranking(policies, "queueing_mean_s")
        if wait is not None and ranked:
            most, longest = ranked[-1]
            found.append(sentences_on_history(took, wait, most, longest.label))
    return found


def sentences_on_history(took: float | None, wait: float, most: float, longest: str) -> str:
    """Return how long jobs took and waited as it was, s, and what a wait of `most` explains of that.

    `longest` is the policy here under which jobs wait longest to their first start.
    """
    completed = "" if took is None else f"completed after {shown(took, 's')} and "
    text = f"As it was, jobs {completed}waited {shown(wait, 's')} to the first start on average."
    return f"{text} {_explained(wait, most, longest)}" if wait > 0 else text


def _explained(wait: float, most: float, longest: str) -> str:
    credit = "causes that are not simulated, and no policy is credited with it"
    if most <= 0:
        return f"The simulation explains none of that, as jobs wait under no policy here: it has {credit}."
    where = f"under {longest}, the policy here under which they wait longest"
    if most >= wait:
        return f"A queue can explain that: {where}, it is {shown(most, 's')}."
    part = f"at most {shown(most, 's')} of that, {shown(most / wait, 'share')}"
    return f"The simulation explains {part}: so long they wait {where}. The rest has {credit}."


def durations_known(group: Sequence[SeedGroup]) -> list[str]:
    """Return a sentence about the policies that know durations."""
    knowing = [setting for setting in group if setting.knows_durations]
    return [f"{joined(knowing)} know{'s' * (len(knowing) == 1)} {KNOWS}."] if knowing else []


def worst_at_own_measure(group: Sequence[SeedGroup]) -> list[str]:
    """Return a sentence about each policy that is the worst of at least three at what it is meant to keep small."""
    found = []
    for setting in group:
        name = setting.runs[0].own_measure
        ranked = ranking(comparable(group), name)
        if len(ranked) > MOST_RIVALS and ranked[-1][1] is setting and not tied(setting, ranked[-2][1], name):
            what, unit = OWN_MEASURES[name]
            value, least = shown(ranked[-1][0], unit), shown(ranked[0][0], unit)
            found.append(
                f"{setting.label} is the worst of {len(ranked)} at what it is meant to keep small, the {what}: "
                f"{value}, {least} under {ranked[0][1].label}."
            )
    return found


def identical(group: Sequence[SeedGroup]) -> list[str]:
    """Return a sentence about each set of policies that made the very same run."""
    labels_by_run: dict[object, list[SeedGroup]] = {}
    for setting in group:
        key = tuple((tuple(run.summary.items()), run.jct_s.tobytes(), run.queueing_s.tobytes()) for run in setting.runs)
        labels_by_run.setdefault(key, []).append(setting)
    same = [equal for equal in labels_by_run.values() if len(equal) > 1]
    return [f"{joined(equal)} made the very same run: nothing in these jobs tells them apart." for equal in same]


def multiplicity(settings: Sequence[SeedGroup]) -> list[str]:
    """Return how many differences were judged, and how many would look real by chance."""
    judged = comparisons(settings, [column.name for column in COLUMNS if column.better])
    if judged < 2:
        return []
    return [
        f"{judged:,} differences were judged at 95 %: if there were none, about {0.05 * judged:.2g} would still look "
        "real."
    ]


def beside_history(findings: Callable[[ReportContent], Findings]) -> Callable[[ReportContent], Findings]:
    """Return a function whose verdict also has the wait of the history first, and the cost of preemption last."""

    @wraps(findings)
    def with_history(content: ReportContent) -> Findings:
        found, history = findings(content), content.history
        warnings = (*found.warnings, *filter(None, [history.wait]))
        certainty = " ".join(filter(None, (found.certainty, history.preemption)))
        return replace(found, warnings=warnings, certainty=certainty)

    return with_history


def on_estimates(counts: Iterable[Mapping[str, float | int | None]]) -> tuple[str, ...]:
    """Return the sentence about results with these counts, as in summary.json; none where nothing is estimated.

    Of results that differ, as those of several loads may, the one with the most estimates is described.
    """
    found = [(int(each.get(ESTIMATED) or 0), int(each.get(USED) or 0)) for each in counts]
    estimated, used = max(found, default=(0, 0))
    return (f"{estimated:,} of {used:,} throughputs are estimates, not measurements.",) if estimated else ()
