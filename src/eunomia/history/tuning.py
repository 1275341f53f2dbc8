"""Searches parameters of a scenario on the first half of its weeks, and judges the best on the second half.

The objective is the geometric mean over the weeks of the mean completion time, relative to the scenario's own values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eunomia.history.paired_runs import NothingFinished, PeriodRun, PeriodRuns, on_period
from eunomia.history.tuning_space import TuningSpace
from eunomia.history.turning_point import with_costs
from eunomia.history.weeks import Period, described
from eunomia.history.whatif import CONFIDENCE, RelativeChange, jct_change, prepare, sooner
from eunomia.inputs.problems import InvalidInput, refused
from eunomia.scenario import Scenario
from eunomia.solvers.bayesian import GridSearch

WORTHWHILE = 0.05  # relative change of the mean completion time that tuning should reach


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One combination of values on the weeks of the search."""

    number: int  # 1, 2, …
    settings: Mapping[str, Any]
    ratio: float  # of mean completion times: this ÷ the scenario's own values
    best: float  # least ratio so far, that of the scenario's own values (1) included


@dataclass(frozen=True, kw_only=True)
class TuningResult:
    """What was measured, and the best judged on other weeks; `unseen` is None before the end."""

    method: str
    seed: int
    measurements: tuple[Measurement, ...]
    refused: int  # combinations that the scenario does not accept
    unfinished: int = 0  # combinations under which more jobs stay unfinished than under the scenario's own values
    searched: tuple[Period, ...]
    judged: tuple[Period, ...]
    winner: Mapping[str, Any]  # settings; empty: the scenario's own values are best
    assumed: tuple[str, ...] = ()
    unseen: RelativeChange | None = None

    def sentence(self) -> str:
        """Return what the search found."""
        count, weeks = len(self.measurements), described(self.searched)
        if not self.winner:
            return f"None of {count} measured combinations is better than the scenario's own values over {weeks}."
        found = f"Best of {count} measured over {weeks}: {settings_text(self.winner)}"
        if self.unseen is None:
            return f"{found}."
        return f"{found}. {_judged(self.unseen, described(self.judged))}"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "method": self.method,
            "seed": self.seed,
            "sentence": self.sentence(),
            "winner": _json(self.winner),
            "jct_change_unseen": None if self.unseen is None else asdict(self.unseen),
            "confidence": CONFIDENCE,
            "weeks_searched": [period.name for period in self.searched],
            "weeks_judged": [period.name for period in self.judged],
            "combinations_refused": self.refused,
            "combinations_unfinished": self.unfinished,
            "assumed": list(self.assumed),
            "measurements": [
                {"measurement": one.number, **_json(one.settings), "ratio": one.ratio, "best": one.best}
                for one in self.measurements
            ],
        }


def _json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for JSON, which has no infinity, as text."""
    return {key: str(one) if isinstance(one, float) and math.isinf(one) else one for key, one in settings.items()}


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return `policy.queues = 3, policy.slot_s = 600`."""
    return ", ".join(f"{key} = {value}" for key, value in settings.items())


def _judged(change: RelativeChange, weeks: str) -> str:
    if change.low is None or change.high is None:
        return f"On {weeks} that the search did not see, jobs are done {sooner(change.mean)} (no interval)."
    ends = f"{100 * CONFIDENCE:g} % interval {sooner(change.low)} to {sooner(change.high)}"
    verdict = "" if change.is_real else "; that is within what weeks differ by, so keep the scenario's own values"
    if change.is_real and change.mean > 0:
        verdict = ", so keep the scenario's own values"
    small = f"; less than the {100 * WORTHWHILE:g} % that would be worth a change" if change.is_real else ""
    verdict = small if change.is_real and -WORTHWHILE < change.mean <= 0 else verdict
    return f"On {weeks} that the search did not see, jobs are done {sooner(change.mean)} ({ends}){verdict}."


@dataclass(frozen=True, kw_only=True)
class TuningRequest:
    """What to search and how."""

    scenario: Scenario
    space: TuningSpace
    method: str
    budget: int
    seed: int
    weeks: int
    epsilon: float


def tune(
    request: TuningRequest, folder: Path, runs: PeriodRuns, report: Callable[[TuningResult], None]
) -> TuningResult:
    """Search, and judge the best on the later weeks; `report` receives the result so far after every measurement.

    Weeks are written into `folder`. Raises InvalidInput for a history of fewer than two periods.
    """
    priced = with_costs(request.scenario)
    request = replace(request, scenario=priced.scenario)
    trace, periods, files, _ = prepare((request.scenario,), request.weeks, folder)
    if len(periods) < 2:
        rule = "the search needs a week to search on and another one to judge"
        raise refused(trace.source, "--weeks", len(periods), rule, "use a longer history, or --weeks 2 or more")
    half = len(periods) // 2

    def run(scenario: Scenario, part: slice) -> list[PeriodRun]:
        return runs.run([on_period(scenario, *one) for one in zip(periods[part], files[part], strict=True)])

    begun = TuningResult(
        method=request.method,
        seed=request.seed,
        measurements=(),
        refused=0,
        searched=periods[:half],
        judged=periods[half:],
        winner={},
        assumed=priced.assumed,
    )
    result = _search(request, begun, lambda scenario: run(scenario, slice(half)), report)
    if not result.winner:
        return result
    winner = request.space.apply(request.scenario, result.winner)
    before, after = (run(scenario, slice(half, None)) for scenario in (request.scenario, winner))
    return replace(result, unseen=jct_change(before, after))


def _search(
    request: TuningRequest,
    result: TuningResult,
    run: Callable[[Scenario], list[PeriodRun]],
    report: Callable[[TuningResult], None],
) -> TuningResult:
    """Return the result before the judgement; `result` has no measurement yet."""
    own = run(request.scenario)
    search = GridSearch(
        request.space.grid(), request.method, budget=request.budget, seed=request.seed, epsilon=request.epsilon
    )
    while len(result.measurements) < request.budget and (point := search.ask()) is not None:
        settings = request.space.settings(point)
        try:
            changed = request.space.apply(request.scenario, settings)
        except InvalidInput:
            search.exclude(point)
            result = replace(result, refused=result.refused + 1)
            continue
        try:
            done = run(changed)
        except NothingFinished:
            done = []
        if not done or sum(one.unfinished for one in done) > sum(one.unfinished for one in own):
            search.exclude(point)  # jobs that it leaves behind would be missing in its mean
            result = replace(result, unfinished=result.unfinished + 1)
            continue
        ratio = 1 + jct_change(own, done).mean
        search.tell(point, ratio)
        best = min([1.0, ratio, *(one.ratio for one in result.measurements)])
        one = Measurement(number=len(result.measurements) + 1, settings=settings, ratio=ratio, best=best)
        is_best = ratio == best < 1.0 and all(ratio < other.ratio for other in result.measurements)
        result = replace(
            result, measurements=(*result.measurements, one), winner=settings if is_best else result.winner
        )
        report(result)
    return result
