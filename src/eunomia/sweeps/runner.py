"""Carries a sweep out: what is not done yet is run, and everything that is done becomes one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eunomia.sweeps.cost_of_fairness import prices_of
from eunomia.sweeps.estimate import RunTimeEstimates
from eunomia.sweeps.plan import PlannedRun
from eunomia.sweeps.pool import Answer, Pool, Task
from eunomia.sweeps.store import Store
from eunomia.sweeps.sweep_file import SweepFile
from eunomia.sweeps.table import write_table

TABLE = "sweep.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that failed, and why."""

    row: PlannedRun
    error: str
    traceback: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {
            "scenario_hash": self.row.scenario_hash,
            **self.row.labels,
            "error": self.error,
            "traceback": list(self.traceback),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A run that ended and left jobs unfinished, and why."""

    row: PlannedRun
    why: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what is printed of it."""
        return {"scenario_hash": self.row.scenario_hash, **self.row.labels, "why": list(self.why)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepProgress:
    """How far a sweep is."""

    done: int  # those of earlier times included
    failed: int
    runs: int
    remaining_s: float | None  # None = nobody knows yet
    last: str  # the run that ended last


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What a sweep came to."""

    rows: tuple[PlannedRun, ...]  # those that are done
    summaries: tuple[dict[str, float | int | None], ...]  # of these
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]
    found_done: int  # rows that needed no run
    unfinished: tuple[Unfinished, ...] = ()  # done, with jobs left over


def carry_out(
    sweep: SweepFile,
    rows: Sequence[PlannedRun],
    out: Path,
    workers: int,
    tell: Callable[[SweepProgress], None] | None = None,
) -> SweepResult:
    """Run what is not done yet, and write sweep.parquet. A run that fails does not stop the others.

    Whenever this is stopped, what was finished stays and is not run again. Raises InvalidInput when `out` is no place,
    and OSError when its disk is full.
    """
    store = Store(out)
    with store.opened(sweep.text), Pool(workers) as pool:
        watch = _Watch(sweep, rows, store, workers, tell)
        pool.run([watch.task(row) for row in watch.waiting], watch.hear)
        done = [row for row in rows if row.scenario_hash not in watch.failures]
        summaries = tuple(store.summary(row.scenario_hash) for row in done)
        service_s = [store.service_s(row.scenario_hash) for row in done]
        write_table(out / TABLE, done, summaries, prices_of(done, summaries, service_s))
        notes = dict.fromkeys(note for row in done for note in store.notes(row.scenario_hash))
        failures = tuple(watch.failures[row.scenario_hash] for row in rows if row.scenario_hash in watch.failures)
        why_unfinished = [(row, tuple(store.unfinished(row.scenario_hash))) for row in done]
        return SweepResult(
            rows=tuple(done),
            summaries=summaries,
            notes=tuple(notes),
            failures=failures,
            found_done=watch.found_done,
            unfinished=tuple(Unfinished(row=row, why=why) for row, why in why_unfinished if why),
        )


class _Watch:
    """Hears of every run that ends, keeps what failed, and tells how far the sweep is."""

    def __init__(
        self,
        sweep: SweepFile,
        rows: Sequence[PlannedRun],
        store: Store,
        workers: int,
        tell: Callable[[SweepProgress], None] | None,
    ):
        self._store, self._workers, self._tell, self._keep = store, workers, tell, sweep.keep_jobs
        self.failures: dict[str, Failure] = {}
        self.waiting = [row for row in rows if not store.finished(row.scenario_hash, jobs=sweep.keep_jobs)]
        self._left = {row.scenario_hash: row for row in self.waiting}
        self.found_done = len(rows) - len(self.waiting)
        self._runs = len(rows)
        self._costs = RunTimeEstimates(rows, store)

    def task(self, row: PlannedRun) -> Task:
        """Return what a worker needs to know of a run."""
        return self._store.task(row.scenario_hash, row.scenario, jobs=self._keep)

    def hear(self, task: Task, answer: Answer) -> None:
        """Note how a run ended."""
        if "errno" in answer and self._store.holds(answer["file"]):  # the other runs would fail as this one did
            raise OSError(answer["errno"], os.strerror(answer["errno"]), str(self._store.out))
        row = self._left.pop(task["hash"])
        if "error" in answer:
            failure = Failure(row=row, error=answer["error"], traceback=tuple(answer["traceback"]))
            self.failures[row.scenario_hash] = failure
            self._store.fail(row.scenario_hash, failure.as_dict())
        else:
            self._store.forget_failure(row.scenario_hash)
            self._costs.learn(row)
        if self._tell is not None:
            self._tell(self._progress(row))

    def _progress(self, last: PlannedRun) -> SweepProgress:
        return SweepProgress(
            done=self._runs - len(self._left) - len(self.failures),
            failed=len(self.failures),
            runs=self._runs,
            remaining_s=self._costs.wall(self._left.values(), self._workers),
            last=last.name,
        )
