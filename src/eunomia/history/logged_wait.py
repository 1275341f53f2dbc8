"""The wait that the history itself shows, beside that of the simulated baseline: what no policy is credited with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eunomia.history.weeks import Period
from eunomia.model.tolerance import is_at_least
from eunomia.runs.scenario_variants import spelling
from eunomia.scenario import Scenario
from eunomia.setup.policy_lookup import find_policy, knows_durations
from eunomia.traces import Trace
from eunomia.verdict.number_format import duration, shown

MUCH_LONGER, LONGER_S = 2.0, 600.0  # times, and more than, the wait of the log: such a baseline is of another cluster


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


NO_STARTS = "the history does not say when jobs started, so the simulated baseline stands without the log's own wait"
