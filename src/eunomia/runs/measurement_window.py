"""The measured window of papers: a warm-up and a drain around the jobs whose figures count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from eunomia.backends.protocol import Backend
from eunomia.inputs.problems import InvalidInput, Problem
from eunomia.metrics import Figures
from eunomia.metrics.job_summary import job_numbers
from eunomia.model.arrays import Floats, Ints
from eunomia.model.decisions import Decision, GiveUp, Refuse
from eunomia.model.events import JobCancelled, JobFinished, Moment
from eunomia.model.job import Job
from eunomia.scenario import Scenario


def measured_rows(scenario: Scenario, submitted_s: Floats) -> Ints | None:
    """Return the places of the measured jobs, in order of submission; None when every job is measured.

    Raises InvalidInput when the window reaches beyond the workload, or no job is in it.
    """
    asked, jobs = scenario.measure, len(submitted_s)
    if asked.everything:
        return None
    last = jobs - 1 if asked.last_job is None else asked.last_job
    for key, number in (("first_job", asked.first_job), ("last_job", last)):
        if number >= jobs:
            rule = f"the workload has {jobs:,} jobs, the last of them number {jobs - 1}"
            raise _refusal(scenario, key, number, rule, "choose a window within it, or give it more jobs")
    inside = (submitted_s >= asked.from_s) & (submitted_s < asked.to_s)
    inside[: asked.first_job] = inside[last + 1 :] = False
    rows = np.flatnonzero(inside)
    if not len(rows):
        key = "first_job" if asked.from_s == 0 and asked.to_s == np.inf else "from_s"
        raise _refusal(scenario, key, asked.from_s, "no job is in the measured window", "choose a wider one")
    return rows


def _refusal(scenario: Scenario, key: str, value: object, rule: str, fix: str) -> InvalidInput:
    file, row = scenario.where(("measure", key))
    problem = Problem(file=file, row=row, column=f"measure.{key}", value=str(value), rule=rule, fix=fix)
    return InvalidInput([problem])


def measured_jobs(scenario: Scenario, jobs: Sequence[Job]) -> tuple[Job, ...] | None:
    """Return the jobs that are measured, None = all. Raises InvalidInput as `measured_rows` does."""
    rows = measured_rows(scenario, np.array([job.submitted for job in jobs]))
    return None if rows is None else tuple(jobs[m] for m in rows.tolist())


def measured_note(measured: Sequence[Job] | None, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return what a reader of the figures must know of the window; nothing when every job is measured."""
    if measured is None:
        return ()
    first, last = measured[0], measured[-1]
    window = f"from {first.job_id} (submitted at {first.submitted:,.0f} s) to {last.job_id} ({last.submitted:,.0f} s)"
    told = f"Figures of jobs are of {len(measured):,} measured jobs of {len(jobs):,}, {window}"
    return (f"{told}; utilisation and cost are of the whole run, warm-up included.",)


class StopWhenMeasured:
    """A world that ends when some jobs have ended, however many others would still come."""

    def __init__(self, world: Backend, jobs: Iterable[Job]):
        self._world = world
        self._left = {job.job_id for job in jobs}  # those that have not ended

    def moments(self) -> Iterator[Moment]:
        """Yield the world's moments up to that of the last end."""
        for moment in self._world.moments():
            for event in moment.events:
                match event:
                    case JobFinished(name) | JobCancelled(name):
                        self._left.discard(name)
            yield moment
            if not self._left:
                return

    def carry_out(self, decision: Decision) -> None:
        """Hand the decision on; a job that is refused or given up has ended."""
        match decision:
            case Refuse(name) | GiveUp(name):
                self._left.discard(name)
        self._world.carry_out(decision)


def measured_figures(figures: Figures, jobs: Iterable[Job] | None) -> Figures:
    """Return the figures of these jobs alone, None = all; utilisation, cost and curves stay those of the whole run.

    A job's ρ stays what it was among all jobs.
    """
    if jobs is None:
        return figures
    names = {job.job_id for job in jobs}
    rows = np.flatnonzero([name in names for name in figures.jobs["job_id"]])
    columns = {name: column[rows] for name, column in figures.jobs.items()}
    of_jobs = job_numbers(columns)
    summary = {name: of_jobs.get(name, number) for name, number in figures.summary.items()}
    return replace(figures, summary=summary, jobs=columns, alone_s=figures.alone_s[rows])
