"""How long runs will take, judged by runs that were made: of the same policy where there are some, else of any.

A policy's middle value counts, so that a first run that compiled something does not.
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
PILOT_S = 10.0  # after so long no further policy is tried


class RunTimeEstimates:
    """Seconds per job, by policy. Time is taken to grow with the number of jobs, and with nothing else."""

    def __init__(self, rows: Iterable[PlannedRun], store: Store):
        self._store = store
        self._rates: dict[str, list[float]] = defaultdict(list)  # seconds per job of each run
        self._medians: dict[str, float] = {}  # of the rates so far
        for row in rows:
            if store.finished(row.scenario_hash):
                self.learn(row)

    @property
    def known(self) -> bool:
        """Whether anything was ever timed."""
        return bool(self._rates)

    def learn(self, row: PlannedRun) -> None:
        """Take in what a finished run took."""
        self._add(row.scenario.policy.name, row.jobs, float(self._store.timing(row.scenario_hash)["wall_s"]))

    def _add(self, policy: str, jobs: int, seconds: float) -> None:
        self._medians.clear()
        self._rates[policy].append(seconds / max(jobs, 1))

    def pilot(self, rows: Sequence[PlannedRun]) -> list[str]:
        """Run the first jobs of one run of each policy, here and now; return the policies that were tried.

        Each is run twice and the second timed: the first one loads what a worker loads only once.
        """
        begun, tried = time.perf_counter(), []
        for policy, row in {row.scenario.policy.name: row for row in reversed(rows)}.items():
            if time.perf_counter() - begun > PILOT_S:
                break
            work = row.scenario.workload
            few = {
                "workload": work.model_copy(update={"max_jobs": min(PILOT_JOBS, row.jobs)}),
                "measure": MeasureSection(),
            }
            scenario = row.scenario.model_copy(update=few)
            try:
                with redirect_stdout(sys.stderr):  # a policy may print, and stdout is for results
                    simulate(scenario)
                    seconds = simulate(scenario).timing["wall_s"]
            except Exception:
                continue  # a policy may raise anything; what fails in a pilot fails in its run, and is told there
            self._add(policy, min(PILOT_JOBS, row.jobs), float(seconds or 0.0))
            tried.append(policy)
        return tried

    def of(self, row: PlannedRun) -> float | None:
        """Return the seconds that a run takes; None when nothing was timed."""
        if not self._rates:
            return None
        name = row.scenario.policy.name
        if name not in self._medians:
            own = self._rates.get(name)
            self._medians[name] = median(own or [rate for rates in self._rates.values() for rate in rates])
        return row.jobs * self._medians[name]

    def wall(self, rows: Iterable[PlannedRun], workers: int) -> float | None:
        """Return the seconds that so many workers need for these runs; at least the longest run."""
        seconds = [found for row in rows if (found := self.of(row)) is not None]
        if not self._rates:
            return None
        return max(sum(seconds) / workers, max(seconds, default=0.0))
