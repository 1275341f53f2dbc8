"""Restricts job metrics to a measured window of jobs, between a warm-up and a drain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.metrics import Figures
from eunomia.metrics.summary import Metric, summarise
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, GiveUp, Refuse
from eunomia.model.events import JobCancelled, JobFinished, Moment
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.scenario import Scenario


def measured_rows(scenario: Scenario, submitted_s: Floats) -> Ints | None:
    """Return the rows of the measured jobs, in order of submission; None when every job is measured.

    Raises InvalidInput when the window exceeds the workload or contains no job.
    """
    window, jobs = scenario.measure, len(submitted_s)
    if window.everything:
        return None
    last = jobs - 1 if window.last_job is None else window.last_job
    for key, number in (("first_job", window.first_job), ("last_job", last)):
        if number >= jobs:
            rule = f"the workload has {jobs:,} jobs, the last of them number {jobs - 1}"
            fix = "choose a window within it, or give it more jobs"
            raise scenario.refused(("measure", key), rule, fix, number)
    inside = (submitted_s >= window.from_s) & (submitted_s < window.to_s)
    inside[: window.first_job] = inside[last + 1 :] = False
    rows = np.flatnonzero(inside)
    if not len(rows):
        key = "first_job" if window.from_s == 0 and window.to_s == np.inf else "from_s"
        rule = "no job is in the measured window"
        raise scenario.refused(("measure", key), rule, "choose a wider one", window.from_s)
    return rows


def measured_jobs(scenario: Scenario, jobs: Sequence[Job]) -> tuple[Job, ...] | None:
    """Return the measured jobs; None = all. Raises InvalidInput as `measured_rows` does."""
    rows = measured_rows(scenario, job_array(jobs, "submitted"))
    return None if rows is None else tuple(jobs[m] for m in rows.tolist())


def measured_note(measured: Sequence[Job] | None, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return a note on the window for readers of the results; none when every job is measured."""
    if measured is None:
        return ()
    first, last = measured[0], measured[-1]
    window = f"from {first.job_id} (submitted at {first.submitted:,.0f} s) to {last.job_id} ({last.submitted:,.0f} s)"
    note = f"Figures of jobs are of {len(measured):,} measured jobs of {len(jobs):,}, {window}"
    return (f"{note}; utilisation and cost are of the whole run, warm-up included.",)


class StopWhenMeasured:
    """A backend that ends when the given jobs have ended, even if others have not."""

    def __init__(self, world: Backend, jobs: Sequence[Job]):
        self._world = world
        self._left = set(job_values(jobs, "job_id"))  # jobs that have not ended

    def moments(self) -> Iterator[Moment]:
        """Yield the moments up to the last end of a given job."""
        for moment in self._world.moments():
            for event in moment.events:
                match event:
                    case JobFinished(name) | JobCancelled(name):
                        self._left.discard(name)
            yield moment
            if not self._left:
                return

    def carry_out(self, decision: Decision) -> None:
        """Forward the decision; a refused or abandoned job has ended."""
        match decision:
            case Refuse(name) | GiveUp(name):
                self._left.discard(name)
        self._world.carry_out(decision)


def measured_figures(figures: Figures, jobs: Sequence[Job] | None, metrics: Mapping[str, Metric]) -> Figures:
    """Return the metrics of these jobs only, None = all; utilisation, cost, curves and each job's ρ are unchanged."""
    if jobs is None:
        return figures
    names = set(job_values(jobs, "job_id"))
    rows = np.flatnonzero([name in names for name in figures.jobs["job_id"]])
    columns = {name: column[rows] for name, column in figures.jobs.items()}
    tables = replace(figures.tables, jobs=columns)
    summary = {**figures.summary, **summarise(tables, metrics)}
    return replace(figures, summary=summary, tables=tables, jobs=columns, alone_s=figures.alone_s[rows])
