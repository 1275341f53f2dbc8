"""Runs what is not done of a sweep, and writes all results as one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eunomia.runs.compare import prices_of_fairness
from eunomia.sweeps.estimate import RunTimeEstimates
from eunomia.sweeps.plan import PlannedRun
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia.sweeps.store import TENANTS, Resamples, Store, remove_runs
from eunomia.sweeps.sweep_file import SweepFile
from eunomia.sweeps.table import write_table, write_tenants

if TYPE_CHECKING:
    from eunomia.sweeps.ray_pool import RayPool

TABLE = "sweep.parquet"
LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failed run and its error."""

    row: PlannedRun
    error: str
    traceback: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        why = {"error": self.error, "traceback": list(self.traceback)}
        return {"scenario_hash": self.row.scenario_hash, **self.row.labels, **why}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A completed run with unfinished jobs, and the reasons."""

    row: PlannedRun
    why: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"scenario_hash": self.row.scenario_hash, **self.row.labels, "why": list(self.why)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProgress:
    """The progress of a sweep."""

    done: int  # runs of earlier invocations included
    failed: int
    runs: int
    remaining_s: float | None  # None = not known yet
    last: str  # name of the run that ended last


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """The results of a sweep."""

    rows: tuple[PlannedRun, ...]  # done
    summaries: tuple[dict[str, float | int | None], ...]  # of `rows`
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]
    found_done: int  # rows done before
    unfinished: tuple[Unfinished, ...] = ()  # done, but with unfinished jobs
    offered_load: tuple[float | None, ...] = ()  # of `rows`
    resamples: tuple[Resamples | None, ...] = ()  # of `rows`


def carry_out(
    sweep: SweepFile,
    rows: Sequence[PlannedRun],
    out: Path,
    workers: int,
    report: Callable[[SweepProgress], None] | None = None,
    *,
    on: str = LOCAL,
    anew: bool = False,
) -> SweepResult:
    """Run what is not done, and write sweep.parquet and tenants.csv. A failed run does not stop the others.

    workers: runs at a time; on Ray 0 = one for each of its cores.
    on: "local", in processes of this machine, or the address of a Ray cluster, "auto" that which runs here.
    anew: remove the runs of an earlier sweep in `out` first.

    If interrupted, finished runs are kept and not repeated. Raises InvalidInput when `out` cannot be used, and OSError
    when its disk is full.
    """
    store = Store(out)
    with _pool(on, store, workers) as pool, _begun(store, sweep, anew):
        tracker = _Tracker(sweep, rows, store, pool.workers, report)
        pool.run([tracker.task(row) for row in tracker.waiting], tracker.on_answer)
        done = [row for row in rows if row.scenario_hash not in tracker.failures]
        summaries = tuple(store.summary(row.scenario_hash) for row in done)
        service_s = [store.service_s(row.scenario_hash) for row in done]
        groups = [tuple((key, value) for key, value in row.labels.items() if key != "policy") for row in done]
        write_table(out / TABLE, done, summaries, prices_of_fairness(groups, summaries, service_s))
        tenants = [store.tenants(row.scenario_hash) for row in done]
        write_tenants(out / TENANTS, done, tenants, sweep.confidence)
        notes = dict.fromkeys(note for row in done for note in store.notes(row.scenario_hash))
        failures = tuple(tracker.failures[row.scenario_hash] for row in rows if row.scenario_hash in tracker.failures)
        why_unfinished = [(row, tuple(store.unfinished(row.scenario_hash))) for row in done]
        return SweepResult(
            rows=tuple(done),
            summaries=summaries,
            notes=tuple(notes),
            failures=failures,
            found_done=tracker.found_done,
            unfinished=tuple(Unfinished(row=row, why=why) for row, why in why_unfinished if why),
            offered_load=tuple(store.offered_load(row.scenario_hash) for row in done),
            resamples=tuple(store.resamples(row.scenario_hash) for row in done),
        )


@contextmanager
def _begun(store: Store, sweep: SweepFile, anew: bool) -> Iterator[None]:
    """Open the folder of the sweep, with `anew` without its runs; only when there is something to run them on."""
    if anew:
        remove_runs(store.out)
    with store.opened(sweep.text):
        yield


def _pool(on: str, store: Store, workers: int) -> Pool | RayPool:
    if on == LOCAL:
        return Pool(workers)
    from eunomia.sweeps.ray_pool import RayPool

    return RayPool(on, store, workers)


class _Tracker:
    """Handles the end of each run: keeps failures and reports progress."""

    def __init__(
        self,
        sweep: SweepFile,
        rows: Sequence[PlannedRun],
        store: Store,
        workers: int,
        report: Callable[[SweepProgress], None] | None,
    ):
        self._store, self._workers, self._report, self._keep = store, workers, report, sweep.keep_jobs
        self.failures: dict[str, Failure] = {}
        self.waiting = [row for row in rows if not store.finished(row.scenario_hash, jobs=sweep.keep_jobs)]
        self._left = {row.scenario_hash: row for row in self.waiting}
        self.found_done = len(rows) - len(self.waiting)
        self._runs = len(rows)
        self._costs = RunTimeEstimates(rows, store)

    def task(self, row: PlannedRun) -> Task:
        """Return the task of a run."""
        return self._store.task(row.scenario_hash, row.scenario, jobs=self._keep)

    def on_answer(self, task: Task, answer: Answer) -> None:
        """Handle the end of a run. Raises OSError if the disk of the sweep is full."""
        if "errno" in answer and self._store.holds(answer["file"]):  # the other runs would fail in the same way
            raise OSError(answer["errno"], os.strerror(answer["errno"]), str(self._store.out))
        row = self._left.pop(task["hash"])
        if "error" in answer:
            failure = Failure(row=row, error=answer["error"], traceback=tuple(answer["traceback"]))
            self.failures[row.scenario_hash] = failure
            self._store.write_failure(row.scenario_hash, failure.as_dict())
        else:
            self._store.remove_failure(row.scenario_hash)
            self._costs.learn(row)
        if self._report is not None:
            self._report(self._progress(row))

    def _progress(self, last: PlannedRun) -> SweepProgress:
        return SweepProgress(
            done=self._runs - len(self._left) - len(self.failures),
            failed=len(self.failures),
            runs=self._runs,
            remaining_s=self._costs.wall(self._left.values(), self._workers),
            last=last.name,
        )
