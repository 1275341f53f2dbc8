"""Estimates running times from completed runs of the same policy, or else of any policy.

The median of a policy is used, so that a first run that compiles kernels does not count.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from statistics import median

from eunomia.runs.simulation import simulate
from eunomia.scenario.schema_models import MeasureSection
from eunomia.sweeps.plan import PlannedRun
from eunomia.sweeps.store import Store

PILOT_JOBS = 100
PILOT_S = 10.0  # after this time no further policy is tried


class RunTimeEstimates:
    """Seconds per job, by policy. Running time is assumed proportional to the number of jobs."""

    def __init__(self, rows: Iterable[PlannedRun], store: Store):
        self._store = store
        self._rates: dict[str, list[float]] = defaultdict(list)  # seconds per job of each run
        self._medians: dict[str, float] = {}  # of the rates so far
        for row in rows:
            if store.finished(row.scenario_hash):
                self.learn(row)

    @property
    def known(self) -> bool:
        """Whether any run was timed."""
        return bool(self._rates)

    def learn(self, row: PlannedRun) -> None:
        """Add the running time of a finished run."""
        self._add(row.scenario.policy.name, row.jobs, float(self._store.timing(row.scenario_hash)["wall_s"]))

    def _add(self, policy: str, jobs: int, seconds: float) -> None:
        self._medians.clear()
        self._rates[policy].append(seconds / max(jobs, 1))

    def pilot(self, rows: Sequence[PlannedRun]) -> list[str]:
        """Run the first jobs of one run of each policy in this process; return the policies that were tried.

        Each is run twice and the second run timed, as the first loads what a worker loads only once.
        """
        started, tried = time.perf_counter(), []
        for policy, row in {row.scenario.policy.name: row for row in reversed(rows)}.items():
            if time.perf_counter() - started > PILOT_S:
                break
            work = row.scenario.workload
            reduced = {
                "workload": work.model_copy(update={"max_jobs": min(PILOT_JOBS, row.jobs)}),
                "measure": MeasureSection(),
            }
            scenario = row.scenario.model_copy(update=reduced)
            try:
                with redirect_stdout(sys.stderr):  # a policy may print, and stdout is for results
                    simulate(scenario)
                    seconds = simulate(scenario).timing["wall_s"]
            except Exception:
                continue  # a policy may raise anything; its run will fail and report it
            self._add(policy, min(PILOT_JOBS, row.jobs), float(seconds or 0.0))
            tried.append(policy)
        return tried

    def of(self, row: PlannedRun) -> float | None:
        """Return the estimated seconds of a run; None when no run was timed."""
        if not self._rates:
            return None
        name = row.scenario.policy.name
        if name not in self._medians:
            own = self._rates.get(name)
            self._medians[name] = median(own or [rate for rates in self._rates.values() for rate in rates])
        return row.jobs * self._medians[name]

    def wall(self, rows: Iterable[PlannedRun], workers: int) -> float | None:
        """Return the estimated seconds of these runs on `workers` processes, at least those of the longest run."""
        seconds = [estimate for row in rows if (estimate := self.of(row)) is not None]
        if not self._rates:
            return None
        return max(sum(seconds) / workers, max(seconds, default=0.0))
