"""Apps: jobs with one goal, such as the trials of a search. A job without an app is an app of its own.

An app finishes when its user reports a model or, without a report, when all its jobs have finished. An app whose search
ended without a model never finishes. Its work is all steps of its finished jobs and the steps done of its others, in
accelerator-seconds on each job's fastest type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eunomia.metrics.fairness import rho_themis
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.finish_time import IDEAL_TIMES, SHARE, IdealTime
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values


class AppEnd(NamedTuple):
    """The end of an app as its user reported it."""

    at: float
    best: str  # job with the best model, "" = none
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOutcomes:
    """The apps of a run that is over."""

    of: Ints  # (job,) number of each job's app, in order of first submission
    submitted: Floats  # (app,) of its first job
    finished: Floats  # (app,) nan = it did not
    left: Floats  # (app,) when its last job left the cluster
    rho: Floats  # (app,) Themis' finish-time fairness
    rho_by_ideal: Mapping[IdealTime, Floats]  # (app,) the same by each reading of T_id
    empty: Bools  # (app,) its search ended without a model

    @classmethod
    def of_jobs(
        cls,
        jobs: Sequence[Job],
        ends: Mapping[str, AppEnd],
        *,
        ended: Floats,
        finished: Floats,
        alone_s: Floats,
        done_s: Floats,
        devices: int,
        end_s: float,
        ideal: IdealTime = SHARE,
    ) -> AppOutcomes:
        """Return the apps of `jobs`; arrays (job,), `done_s` is the run time of the done steps on the fastest type."""
        app = number_apps(jobs)
        apps = int(app.max(initial=-1)) + 1
        begin, last, left = np.full(apps, np.inf), np.full(apps, -np.inf), np.full(apps, -np.inf)
        np.minimum.at(begin, app, job_array(jobs, "submitted", float))
        with np.errstate(invalid="ignore"):
            np.maximum.at(last, app, finished)  # nan spreads: the app has not finished
            np.maximum.at(left, app, ended)
        empty = np.zeros(apps, dtype=bool)
        number_of = dict(zip(job_values(jobs, "app"), app.tolist(), strict=True)) if ends else {}
        for name, end in ends.items():
            if (app_row := number_of.get(name)) is not None:
                last[app_row], left[app_row], empty[app_row] = (end.at if end.best else np.nan), end.at, not end.best
        left = np.where(np.isnan(last), np.where(np.isnan(left), end_s, left), last)
        needed_s = np.where(np.isnan(finished), np.minimum(done_s, alone_s), alone_s)
        size = job_array(jobs, "scale_factor", float)
        rho = {each: rho_themis(app, begin, last, left, size, needed_s, devices, each) for each in IDEAL_TIMES}
        return cls(of=app, submitted=begin, finished=last, left=left, rho=rho[ideal], rho_by_ideal=rho, empty=empty)

    def table(self, jobs: Sequence[Job], ends: Mapping[str, AppEnd], service: Floats) -> dict[str, Array]:
        """Return the columns of apps.csv; none when no app has several jobs. `service` (job,) accelerator-seconds."""
        count = np.bincount(self.of, minlength=len(self.rho))
        if count.max(initial=0) < 2:
            return {}
        first = np.unique(self.of, return_index=True)[1]
        shown = np.array([app for app, row in enumerate(first.tolist()) if jobs[row].app], dtype=np.int64)
        first_jobs = [jobs[row] for row in first[shown].tolist()]
        app_ends = [ends.get(job.app, AppEnd(np.nan, "", np.nan)) for job in first_jobs]
        return {
            "app": np.array([job.app for job in first_jobs], dtype=object),
            "tenant": np.array([job.tenant for job in first_jobs], dtype=object),
            "jobs": count[shown],
            "submitted_s": self.submitted[shown],
            "finished_s": self.finished[shown],
            "jct_s": (self.finished - self.submitted)[shown],
            "best_job": np.array([end.best for end in app_ends], dtype=object),
            "best_loss": np.array([end.loss if end.best else np.nan for end in app_ends], dtype=float),
            "attained_service_s": np.bincount(self.of, service, minlength=len(self.rho))[shown],
            "rho_themis": self.rho[shown],
        }


def number_apps(jobs: Sequence[Job]) -> Ints:
    """Return the number of each job's app, (job,)."""
    names = job_values(jobs, "app")
    if not any(names):
        return np.arange(len(jobs))
    keys: dict[str | int, int] = {}
    return np.array([keys.setdefault(name or m, len(keys)) for m, name in enumerate(names)], dtype=np.int64)
