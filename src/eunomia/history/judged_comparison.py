"""A comparison of policies on a history: what preemption costs there, and at which cost the verdict turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eunomia.history.imported_files import POLICY_BY_ENGINE
from eunomia.history.paired_runs import on_period
from eunomia.history.turning_point import CostRange, Outcome, with_costs
from eunomia.history.weeks import DAY_S, WEEK_S, Period, baseline_of, logged_wait, write_periods
from eunomia.inputs.interruption import is_interruption
from eunomia.inputs.problems import InvalidInput
from eunomia.runs.as_it_was import AS_IT_WAS
from eunomia.runs.compare import Case
from eunomia.runs.scenario_variants import spelling, varied
from eunomia.runs.simulation import Result, simulate
from eunomia.scenario import Scenario
from eunomia.setup.workload import read_trace
from eunomia.traces import Trace
from eunomia.verdict.findings import findings
from eunomia.verdict.run_figures import HistoryNotes, ReportContent
from eunomia.verdict.seed_groups import comparable, loads, seed_groups

ACCOUNTING = frozenset({"native", *POLICY_BY_ENGINE})  # formats that hold a site's own history
MOST_JOBS = 2000  # of a history that is run again as a whole; else its busiest week, or day
MOST_RIVALS = 3  # policies beside the chosen one whose runs are repeated


@dataclass(frozen=True, kw_only=True)
class JudgedHistory:
    """A scenario whose jobs are a history, with a cost of preemption, and what was assumed of that."""

    scenario: Scenario
    assumed: tuple[str, ...]
    looks_for_turn: bool

    def judge(
        self, results: Sequence[tuple[Case, Result]], names: Mapping[str, str]
    ) -> Callable[[ReportContent], HistoryNotes]:
        """Return what finds the notes on a report about these runs; `names` are the labels of policies by spelling."""
        policy_by_label = {names.get(case.policy, case.policy): case.policy for case, _ in results}
        return lambda content: self.notes(content, policy_by_label)

    def notes(self, content: ReportContent, policy_by_label: Mapping[str, str]) -> HistoryNotes:
        """Return what is said beside the verdict on these runs, of policies spelt so."""
        costs = "; ".join(self.assumed)
        said = f"Assumed: {costs}."
        if self.looks_for_turn:
            try:
                turn = self._turn(content, policy_by_label)
            except (KeyboardInterrupt, SystemError) as error:  # what is finished is written
                if not is_interruption(error):
                    raise
                turn = "At which cost of a preemption this turns is not known: the search was interrupted."
            said = f"{said} {turn}".rstrip()
        return HistoryNotes(wait=self._wait(content, policy_by_label), preemption=said)

    def _wait(self, content: ReportContent, policy_by_label: Mapping[str, str]) -> str:
        """Return the log's own wait, where the schedule as it was is not among the runs."""
        if any(run.policy == AS_IT_WAS for run in content.runs) or self.scenario.workload.load != 1:
            return ""
        trace, own = read_trace(self.scenario), spelling(self.scenario)
        log = logged_wait(trace, (_whole(trace),))
        if log is None:
            return ""
        waits = [run.summary["queueing_mean_s"] for run in content.runs if policy_by_label[run.label] == own]
        if not waits or waits[0] is None:
            return f"{log}; policies are compared with each other here, not with that."
        return log.beside(float(waits[0]), baseline_of(self.scenario))

    def _turn(self, content: ReportContent, policy_by_label: Mapping[str, str]) -> str:
        """Return at which cost of a preemption the verdict turns, at the highest load; "" where nothing preempts."""
        load = loads(content)[-1]
        group = [one for one in seed_groups(content) if one.load == load and one.runs[0].policy != AS_IT_WAS]
        took = {one.label: one.mean("jct_mean_s") for one in comparable(tuple(group))}
        ranked = sorted((value, label) for label, value in took.items() if value is not None)
        if len(ranked) < 2:
            return ""
        stops = {one.label: one.mean("preemptions") or 0.0 for one in group}
        chosen = findings(content).chosen
        if chosen not in took:  # a tie
            return ""
        # The policy that preempts least is where the verdict goes once a preemption costs enough.
        calm = min(took, key=lambda label: stops[label])
        names = list(dict.fromkeys([chosen, calm, *(label for _, label in ranked)]))[: MOST_RIVALS + 1]
        scenario = varied(self.scenario, load=load)
        trace = read_trace(scenario)
        where, period = sample_of(trace)
        with TemporaryDirectory() as folder:
            (file,) = write_periods(trace, (period,), Path(folder))
            base = on_period(scenario, period, file)
            runs = {name: varied(base, policy=policy_by_label[name]) for name in names}
            return CostRange(runs, chosen, run_each).sentence(where)


def judged(scenario: Scenario, *, looks_for_turn: bool) -> JudgedHistory | None:
    """Return the scenario as it is judged if its jobs are a history, which says when jobs started; else None."""
    work = scenario.workload
    if work.trace is None or work.format not in ACCOUNTING or np.isnan(read_trace(scenario).started_s).all():
        return None
    priced = with_costs(scenario)
    return JudgedHistory(scenario=priced.scenario, assumed=priced.assumed, looks_for_turn=looks_for_turn)


def sample_of(trace: Trace) -> tuple[str, Period]:
    """Return the part of a history that is run again and its name: "" all of it, or its busiest week or day."""
    whole = _whole(trace)
    if len(trace) <= MOST_JOBS:
        return "", whole
    for length_s, name in ((WEEK_S, "week"), (DAY_S, "day")):
        of = ((trace.submitted_s - whole.start_s) // length_s).astype(np.int64)
        jobs = np.bincount(of)
        busiest = int(np.argmax(jobs))
        if jobs[busiest] <= MOST_JOBS or name == "day":
            break
    start_s = whole.start_s + busiest * length_s
    period = Period(name="", start_s=start_s, end_s=start_s + length_s, warm_up_s=0.0, jobs=int(jobs[busiest]))
    return f"the busiest {name} ({name} {busiest + 1})", period


def _whole(trace: Trace) -> Period:
    first, last = float(trace.submitted_s[0]), float(trace.submitted_s[-1])
    return Period(name="", start_s=first, end_s=last + 1.0, warm_up_s=0.0, jobs=len(trace))


def run_each(scenarios: Sequence[Scenario]) -> list[Outcome]:
    """Simulate scenarios one after the other; one that cannot run, or leaves jobs unfinished, takes for ever."""
    found = []
    for scenario in scenarios:
        try:
            result = simulate(scenario)
        except InvalidInput:
            found.append(Outcome(math.inf, 0))
            continue
        jct_s = result.summary["jct_mean_s"]
        ended = jct_s is not None and not result.unfinished
        found.append(Outcome(float(jct_s) if ended and jct_s else math.inf, int(result.summary["preemptions"] or 0)))
    return found
