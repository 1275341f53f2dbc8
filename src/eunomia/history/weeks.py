"""Splits a history into weeks, each a workload of its own, and finds the wait that each week really had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.inputs.problems import refused
from eunomia.model.tolerance import is_at_least
from eunomia.runs.scenario_variants import spelling
from eunomia.scenario import Scenario
from eunomia.setup.policy_lookup import find_policy, knows_durations
from eunomia.traces import Trace, window, write_native
from eunomia.verdict.number_format import duration, shown

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
WARM_UP = 1 / 4  # of a period: its last jobs before the period run too, and are not measured
LEAST_JOBS = 5  # of a period that is compared
LEAST_SHARE = 0.2  # of the median period's jobs: the first and last weeks of a history may be there in part only
MUCH_LONGER, LONGER_S = 2.0, 600.0  # times, and more than, the wait of the log: such a baseline is of another cluster
NO_STARTS = "the history does not say when jobs started, so the simulated baseline stands without the log's own wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of the history, a week where the history is long enough. Its run begins `warm_up_s` before it."""

    name: str  # date or number of its first day
    start_s: float
    end_s: float
    warm_up_s: float
    jobs: int


def choose_periods(trace: Trace, count: int) -> tuple[Period, ...]:
    """Return up to `count` periods, spread evenly over the history.

    Periods are weeks, or shorter where the history has fewer weeks than `count`; those with far fewer jobs than most
    are not used. Raises InvalidInput if no period has jobs enough.
    """
    first, last = float(trace.submitted_s[0]), float(trace.submitted_s[-1])
    length_s = min(WEEK_S, max((last - first) / count, 1.0))
    whole = max(1, int((last - first) / length_s + 1e-9))
    periods = []
    for k in range(whole):
        start_s = first + k * length_s
        end_s = start_s + length_s if k + 1 < whole or length_s == WEEK_S else last + 1.0
        warm_up_s = min(WARM_UP * length_s, start_s - first)
        jobs = int(np.searchsorted(trace.submitted_s, end_s) - np.searchsorted(trace.submitted_s, start_s))
        periods.append(Period(name=_name(trace, start_s), start_s=start_s, end_s=end_s, warm_up_s=warm_up_s, jobs=jobs))
    least = max(LEAST_JOBS, LEAST_SHARE * float(np.median([period.jobs for period in periods])))
    usable = [period for period in periods if period.jobs >= least]
    if not usable:
        rule = f"the history has {len(trace):,} jobs, and no period of it has {LEAST_JOBS}"
        raise refused(trace.source, None, None, rule, "use a longer history, or --weeks 1")
    places = np.unique(np.round(np.linspace(0, len(usable) - 1, min(count, len(usable)))).astype(int))
    return tuple(usable[k] for k in places.tolist())


def _name(trace: Trace, start_s: float) -> str:
    """Return the date of a second of the history, else its day."""
    if trace.began is not None:
        return (trace.began + timedelta(seconds=start_s)).strftime("%Y-%m-%d")
    return f"day {start_s / DAY_S:.4g}"


def write_periods(trace: Trace, periods: Sequence[Period], folder: Path) -> tuple[Path, ...]:
    """Write the jobs of each period, its warm-up included, as a native trace, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for period in periods:
        part = window(trace, start_s=period.start_s - period.warm_up_s, end_s=period.end_s)
        path = folder / f"from-{period.start_s:.0f}-s.parquet"
        write_native(replace(part, began=None), path)
        paths.append(path)
    return tuple(paths)


def described(periods: Sequence[Period]) -> str:
    """Return "4 weeks", or "4 periods of 2.5 days"."""
    length_s = periods[0].end_s - periods[0].start_s
    if length_s == WEEK_S:
        return f"{len(periods)} week{'s' * (len(periods) != 1)}"
    days, hours = length_s / DAY_S, length_s / 3600
    size = f"{days:.3g} days" if days >= 1 else f"{hours:.3g} hours"
    return f"{len(periods)} period{'s' * (len(periods) != 1)} of {size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedWait:
    """The mean wait to the first start in the log, of the jobs of some periods whose start it says."""

    mean_s: float  # mean over these jobs, as of the simulated runs
    jobs: int

    def __str__(self) -> str:
        return f"The log itself shows a mean wait of {duration(self.mean_s)} to the first start ({self.jobs:,} jobs)"

    def beside(self, simulated_s: float, baseline: str) -> str:
        """Return how far a simulated baseline, named with how it orders jobs, explains the wait of the log."""
        head, own = str(self), duration(simulated_s)
        if simulated_s > max(MUCH_LONGER * self.mean_s, self.mean_s + LONGER_S):
            return (
                f"{head}; the simulated baseline, {baseline}, makes them wait {own}: the cluster as it was is not that "
                "of the scenario, and what a change does to it says little. Correct its machines, or the jobs' types."
            )
        if is_at_least(simulated_s, self.mean_s):
            return f"{head}; the simulated baseline, {baseline}, makes them wait {own}, so it explains all of that."
        if not simulated_s:
            return (
                f"{head}; the simulated baseline, {baseline}, explains none of that: it has other causes, and none of "
                "it is credited to the change."
            )
        return (
            f"{head}; the simulated baseline, {baseline}, explains {own} of that "
            f"({shown(simulated_s / self.mean_s, 'share')}): the rest has other causes, and is not credited to the "
            "change."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"wait_mean_s": self.mean_s, "jobs": self.jobs}


def logged_wait(trace: Trace, periods: Sequence[Period]) -> LoggedWait | None:
    """Return the wait of the log in these periods; None where it says no start of a job in any."""
    inside = np.zeros(len(trace.submitted_s), dtype=bool)
    for period in periods:
        inside |= (trace.submitted_s >= period.start_s) & (trace.submitted_s < period.end_s)
    waits = (trace.started_s - trace.may_start_s)[inside & ~np.isnan(trace.started_s)]
    return LoggedWait(mean_s=float(np.mean(waits)), jobs=len(waits)) if len(waits) else None


def baseline_of(scenario: Scenario) -> str:
    """Return the scenario's policy as it is spelt, and whether it knows how long jobs run."""
    section = scenario.policy
    policy = find_policy(section.name, section.parameters, scenario.base, scenario.where)
    known = knows_durations(policy, scenario)
    return f"{spelling(scenario)} with durations known" if known else spelling(scenario)
