"""Runs clusters on the same periods of a history, and the numbers of each run, of all jobs and of each tenant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv

from eunomia.history.turning_point import Outcome
from eunomia.history.weeks import Period
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.runs.fingerprint import scenario_hash
from eunomia.scenario import Scenario, scenario_from_dict
from eunomia.sweeps import RunsFailed
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia.sweeps.store import Store

Progress = Callable[[int, int], None]  # runs done, runs in all
ALL = ""  # the name of all tenants together


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNumbers:
    """Averages over the jobs that were submitted in one period, and finished."""

    jobs: int
    jct_mean_s: float
    queueing_mean_s: float  # submission to first start
    queueing_p95_s: float


@dataclass(frozen=True, kw_only=True)
class PeriodRun:
    """One cluster on one period."""

    by_tenant: Mapping[str, RunNumbers]  # ALL: of all jobs
    utilization: float | None
    unfinished: int
    preemptions: int

    @property
    def all(self) -> RunNumbers:
        """The numbers of all jobs."""
        return self.by_tenant[ALL]


def on_period(scenario: Scenario, period: Period, file: Path) -> Scenario:
    """Return the scenario with the jobs of a period, which alone are measured."""
    data = scenario.as_dict()
    kept = ("job_types", "missing_vc", "tenant_weights", "elastic", "interruptible")
    work = {key: value for key, value in data["workload"].items() if key in kept}
    if work.get("tenant_weights") not in (None, "philly"):
        work["tenant_weights"] = str(scenario.resolve(work["tenant_weights"]))
    data["workload"] = {**work, "trace": str(file.resolve()), "format": "native"}
    data["measure"] = {"from_s": period.warm_up_s, "stop": True} if period.warm_up_s else {}
    return scenario_from_dict(data, scenario.base, f"{scenario.name} from {period.name}")


class NothingFinished(RunsFailed):
    """A run that ended without a finished job."""


class PeriodRuns:
    """Runs scenarios in processes, each once; the results are kept in a folder."""

    def __init__(self, store: Store, workers: int, progress: Progress | None):
        self._store, self._workers, self._progress = store, workers, progress
        self._numbers: dict[str, PeriodRun] = {}

    def run(self, scenarios: Sequence[Scenario]) -> list[PeriodRun]:
        """Return the numbers of each scenario, in that order.

        Raises RunsFailed after all have ended if one failed,
        and InvalidInput if the policy is refused in each that failed.
        """
        keys = [scenario_hash(scenario) for scenario in scenarios]
        by_key = dict(zip(keys, scenarios, strict=True))
        waiting = {key: one for key, one in by_key.items() if not self._store.finished(key, jobs=True)}
        failed, refused = dict[str, str](), list[Problem]()
        done = len(by_key) - len(waiting)

        def on_answer(task: Task, answer: Answer) -> None:
            nonlocal done
            done += 1
            if "error" in answer:
                failed[task["hash"]] = answer["error"]
                refused.extend([Problem(**answer["problem"])] if "problem" in answer else [])
            if self._progress is not None:
                self._progress(done, len(by_key))

        with Pool(self._workers) as pool:
            pool.run([self._store.task(key, one, jobs=True) for key, one in waiting.items()], on_answer)
        if failed and len(refused) == len(failed):  # the policy is wrong, whatever the cluster
            raise InvalidInput(list({(one.rule, one.fix): one for one in refused}.values()))
        if failed:
            names: dict[str, list[str]] = {}  # of the runs that failed for the same reason
            for key, error in failed.items():
                names.setdefault(error, []).append(by_key[key].name)
            more = {error: f" and {len(same) - 1} more" * (len(same) > 1) for error, same in names.items()}
            raise RunsFailed("; ".join(f"{same[0]}{more[error]}: {error}" for error, same in names.items()))
        return [self._read(key) for key in keys]

    def _read(self, key: str) -> PeriodRun:
        if key not in self._numbers:
            summary = self._store.summary(key)
            numbers = _numbers(self._store.out / "runs" / key / "jobs.csv")
            if ALL not in numbers:
                raise NothingFinished("no job of a period finished, so there is no completion time to compare")
            self._numbers[key] = PeriodRun(
                by_tenant=numbers,
                utilization=summary["utilization"],
                unfinished=int(summary["jobs_unfinished"] or 0),
                preemptions=int(summary["preemptions"] or 0),
            )
        return self._numbers[key]


def outcomes_of(scenarios: Sequence[Scenario], runs: PeriodRuns) -> list[Outcome]:
    """Return how policies do on one period; one that cannot run takes for ever."""
    found = []
    for scenario in scenarios:
        try:
            (run,) = runs.run([scenario])
        except RunsFailed:
            found.append(Outcome(math.inf, 0))
            continue
        found.append(Outcome(math.inf if run.unfinished else run.all.jct_mean_s, run.preemptions))
    return found


@contextmanager
def opened(out: Path, workers: int, progress: Progress | None = None) -> Iterator[PeriodRuns]:
    """Yield runs that are kept in the folder `out`; those of an earlier invocation are not repeated.

    Raises InvalidInput if the folder cannot be used.
    """
    store = Store(out)
    with store.opened(""):
        yield PeriodRuns(store, workers, progress)


def _numbers(path: Path) -> dict[str, RunNumbers]:
    """Return the numbers of a jobs.csv, of all its jobs and by tenant."""
    wanted = ("tenant", "status", "submitted_s", "first_started_s", "jct_s", "wait_not_eligible_s")
    types = dict.fromkeys(wanted[2:], "float64") | dict.fromkeys(wanted[:2], "string")
    options = pa_csv.ConvertOptions(include_columns=list(wanted), column_types=types, include_missing_columns=True)
    table = pa_csv.read_csv(path, convert_options=options)
    tenant, status = (np.array(table[name].to_pylist(), dtype=object) for name in wanted[:2])
    submitted_s, started_s, jct_s, before_s = (table[name].to_numpy() for name in wanted[2:])
    submitted_s = submitted_s + np.nan_to_num(before_s)  # when it was eligible to start
    done = status == "finished"
    tenant, queueing_s, jct_s = tenant[done], (started_s - submitted_s)[done], jct_s[done]
    names = [ALL, *sorted({str(name) for name in tenant.tolist() if name})]
    rows_by_name = {name: np.flatnonzero(tenant == name) if name else np.arange(len(tenant)) for name in names}
    return {
        name: RunNumbers(
            jobs=len(rows),
            jct_mean_s=float(np.mean(jct_s[rows])),
            queueing_mean_s=float(np.mean(queueing_s[rows])),
            queueing_p95_s=float(np.percentile(queueing_s[rows], 95)),
        )
        for name, rows in rows_by_name.items()
        if len(rows)
    }
