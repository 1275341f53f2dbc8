"""Compares today's cluster with a changed one on the same weeks of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eunomia.history.cluster_change import ClusterChange, can_run, changed
from eunomia.history.paired_runs import ALL, PeriodRun, PeriodRuns, on_period, outcomes_of
from eunomia.history.turning_point import CostRange, with_costs
from eunomia.history.weeks import (
    NO_STARTS,
    LoggedWait,
    Period,
    baseline_of,
    choose_periods,
    described,
    logged_wait,
    write_periods,
)
from eunomia.inputs.problems import refused
from eunomia.metrics.statistics import PairedDifference, paired
from eunomia.model import elementary
from eunomia.runs.scenario_variants import spelling
from eunomia.scenario import Scenario
from eunomia.setup.workload import read_trace
from eunomia.traces import Trace
from eunomia.verdict.number_format import duration, plural, shown

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeChange:
    """The relative change of a mean, −0.2 for a fifth less, with its interval over periods; None with one period."""

    mean: float
    low: float | None
    high: float | None

    @property
    def is_real(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, kw_only=True)
class TenantChange:
    """The change of one tenant's mean completion time."""

    tenant: str
    jobs: int
    jct: RelativeChange


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The answer: both clusters on the same periods."""

    change: str
    periods: tuple[Period, ...]
    before: tuple[PeriodRun, ...]
    after: tuple[PeriodRun, ...]
    jct: RelativeChange
    tenants: tuple[TenantChange, ...]  # those that have jobs in two periods, the largest gain first
    never: int  # jobs of the history that do not fit one of the clusters, and were left out
    notes: tuple[str, ...]
    assumed: tuple[str, ...]
    log: LoggedWait | None  # what the history itself shows; None = it has no starts
    baseline: str  # the policy of today's cluster, and whether it knows durations
    turn: str  # at which cost of a preemption a change of the policy turns; "" = not looked for, or it does not

    def sentence(self) -> str:
        """Return what changes, and for which tenants."""
        return describe(self)

    def beside_log(self) -> str:
        """Return how far the simulation of today's cluster explains the wait of the log."""
        return NO_STARTS if self.log is None else self.log.beside(mean_wait_s(self.before), self.baseline)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "change": self.change,
            "sentence": self.sentence(),
            "log": None if self.log is None else self.log.as_dict(),
            "log_sentence": self.beside_log(),
            "baseline": self.baseline,
            "preemption_turn": self.turn,
            "assumed": list(self.assumed),
            "jct_change": asdict(self.jct),
            "confidence": CONFIDENCE,
            "periods": [
                {"from": period.name, "jobs": period.jobs, "before": _run_dict(one), "after": _run_dict(two)}
                for period, one, two in zip(self.periods, self.before, self.after, strict=True)
            ],
            "tenants": [{"tenant": t.tenant, "jobs": t.jobs, **asdict(t.jct)} for t in self.tenants],
            "jobs_that_never_fit": self.never,
            "notes": list(self.notes),
        }


def _run_dict(run: PeriodRun) -> dict[str, Any]:
    return {**asdict(run.all), "utilization": run.utilization, "jobs_unfinished": run.unfinished}


def prepare(
    scenarios: Sequence[Scenario], weeks: int, folder: Path
) -> tuple[Trace, tuple[Period, ...], tuple[Path, ...], int]:
    """Return the jobs that fit all the scenarios, their periods and files in `folder`, and how many do not fit.

    The jobs are those of the first scenario. Raises InvalidInput if none fits all.
    """
    trace = read_trace(scenarios[0])
    fits = np.logical_and.reduce([can_run(scenario, trace) for scenario in scenarios])
    if not fits.any():
        raise refused(trace.source, None, None, "no job fits the changed cluster", "remove fewer accelerators")
    kept = trace if fits.all() else trace.take(np.flatnonzero(fits))
    periods = choose_periods(kept, weeks)
    return kept, periods, write_periods(kept, periods, folder), int((~fits).sum())


def what_if(
    scenario: Scenario,
    change: ClusterChange,
    *,
    weeks: int,
    folder: Path,
    runs: PeriodRuns,
    looks_for_turn: bool = True,
) -> WhatIf:
    """Return the answer. Weeks are written into `folder`. Raises InvalidInput for a change that cannot be made.

    `looks_for_turn`: where the policy changes, say at which cost of a preemption the answer turns.
    """
    priced = with_costs(scenario)
    scenario = priced.scenario
    other = changed(scenario, change)
    trace, periods, files, never = prepare((scenario, other), weeks, folder)
    pairs = [
        on_period(one, period, file) for one in (scenario, other) for period, file in zip(periods, files, strict=True)
    ]
    done = runs.run(pairs)
    before, after = tuple(done[: len(periods)]), tuple(done[len(periods) :])
    return WhatIf(
        change=str(change),
        periods=periods,
        before=before,
        after=after,
        jct=jct_change(before, after),
        tenants=_tenants(before, after),
        never=never,
        notes=_notes(before, after),
        assumed=priced.assumed,
        log=logged_wait(trace, periods),
        baseline=baseline_of(scenario),
        turn=_turn(pairs, periods, change, runs) if looks_for_turn and change.policy else "",
    )


def _turn(pairs: Sequence[Scenario], periods: Sequence[Period], change: ClusterChange, runs: PeriodRuns) -> str:
    """Return at which cost of a preemption the better of the two policies turns, on the period with the most jobs."""
    busiest = max(range(len(periods)), key=lambda k: periods[k].jobs)
    one, two = pairs[busiest], pairs[len(periods) + busiest]
    both = {spelling(one): one, str(change.policy): two}
    if len(both) < 2:
        return ""
    found = outcomes_of(list(both.values()), runs)
    chosen = min(zip(found, both, strict=True))[1]
    where = f"the period from {periods[busiest].name}" if len(periods) > 1 else ""
    return CostRange(both, chosen, lambda scenarios: outcomes_of(scenarios, runs)).sentence(where)


def mean_wait_s(runs: Sequence[PeriodRun]) -> float:
    """Return the mean wait to the first start of the jobs of all the periods."""
    return float(np.average([run.all.queueing_mean_s for run in runs], weights=[run.all.jobs for run in runs]))


def jct_change(
    before: Sequence[PeriodRun], after: Sequence[PeriodRun], tenant: str = ALL, confidence: float = CONFIDENCE
) -> RelativeChange:
    """Return the relative change of the mean completion time, of one tenant or all, over the periods of both."""
    difference = paired(_jct(after, tenant), _jct(before, tenant), confidence)
    assert difference is not None and difference.log_ratio is not None  # times are above 0
    return _relative(difference)


def _jct(runs: Sequence[PeriodRun], tenant: str) -> dict[int, float]:
    return {k: run.by_tenant[tenant].jct_mean_s for k, run in enumerate(runs) if tenant in run.by_tenant}


def _relative(difference: PairedDifference) -> RelativeChange:
    ratio = difference.log_ratio
    assert ratio is not None
    low, high = (None if end is None else elementary.expm1(end) for end in (ratio.low, ratio.high))
    return RelativeChange(mean=elementary.expm1(ratio.mean), low=low, high=high)


def _tenants(before: Sequence[PeriodRun], after: Sequence[PeriodRun]) -> tuple[TenantChange, ...]:
    """Return the change for each tenant that has jobs in two periods.

    The confidence is raised with the number of tenants, so that all intervals hold together.
    """
    jobs: dict[str, list[int]] = {}
    for run in before:
        for name, numbers in run.by_tenant.items():
            jobs.setdefault(name, []).append(numbers.jobs)
    names = [name for name, counts in jobs.items() if name != ALL and len(counts) > 1]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(names))
    changes = [
        TenantChange(tenant=name, jobs=sum(jobs[name]), jct=jct_change(before, after, name, confidence))
        for name in names
    ]
    return tuple(sorted(changes, key=lambda one: one.jct.mean))


def _notes(before: Sequence[PeriodRun], after: Sequence[PeriodRun]) -> tuple[str, ...]:
    left = [sum(run.unfinished for run in runs) for runs in (before, after)]
    if not any(left):
        return ()
    return (
        f"{left[0]:,} jobs are unfinished at the end of the runs of today's cluster, {left[1]:,} of the changed one",
    )


def describe(found: WhatIf) -> str:
    """Return the answer in one sentence: what changes, for which tenants, and how sure that is."""
    jct, weeks = found.jct, described(found.periods)
    before, after = map(duration, map(mean_wait_s, (found.before, found.after)))
    wait = f"is {after} instead of {before}" if before != after else f"stays at {after}"
    if jct.low is None or jct.high is None:
        head = f"jobs are done {sooner(jct.mean)} on average (one period, so no interval)"
    elif jct.is_real:
        ends = " to ".join(sooner(end) for end in sorted((jct.low, jct.high), key=abs))
        head = f"jobs are done {sooner(jct.mean)} on average ({100 * CONFIDENCE:g} % interval over {weeks}: {ends})"
    else:
        ends = f"{sooner(jct.low)} to {sooner(jct.high)}"
        head = f"the mean time to completion does not change by more than weeks differ (over {weeks}: {ends})"
    never = f"; {plural(found.never, 'job')} would not fit one of the two clusters and are left out" * bool(found.never)
    return f"With {found.change}, {head}, the mean wait to the first start {wait}{_by_tenant(found.tenants)}{never}."


def _by_tenant(tenants: Sequence[TenantChange]) -> str:
    """Return who gains most and who loses, of the tenants whose intervals exclude 0."""
    real = [one for one in tenants if one.jct.is_real]
    gain = [one for one in real if one.jct.mean < 0]
    lose = [one for one in reversed(real) if one.jct.mean > 0]
    parts = [f"{gain[0].tenant} gains most ({sooner(gain[0].jct.mean)})"] if gain else []
    parts += [f"{', '.join(f'{one.tenant} ({sooner(one.jct.mean)})' for one in lose[:3])} lose"] if lose else []
    if parts and not lose:
        parts.append("no tenant loses for certain")
    return "".join(f"; {part}" for part in parts)


def sooner(change: float) -> str:
    """Return "23 % sooner" for −0.23."""
    return f"{shown(abs(change), 'share')} {'sooner' if change < 0 else 'later'}"
