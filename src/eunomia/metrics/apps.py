"""Apps: jobs with one goal, such as the trials of a search, judged as one. A job that names none is one by itself.

An app has finished when its user has what it was for, or, where no user says so, when all of its jobs have finished.
One whose search ended without a model, as no trial came to its end, has not finished: it is gone.
Its work is what its jobs needed: all steps of a job that finished, and of one that was given up what it had done by
then, as accelerator-seconds on its fastest type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eunomia.metrics.fairness import rho_themis
from eunomia.model.arrays import Array, Bools, Floats, Ints
from eunomia.model.job import Job


class AppEnd(NamedTuple):
    """What its user said when an app had what it was for, or when nothing of it was left."""

    at: float
    best: str  # the job that found the best model, "" = none did
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOutcomes:
    """The apps of a run that is over."""

    of: Ints  # (job,) number of each job's app, in order of first submission
    submitted: Floats  # (app,) its first job's
    finished: Floats  # (app,) nan = it did not
    left: Floats  # (app,) when nothing of it was there any more
    rho: Floats  # (app,) Themis' finish-time fairness
    empty: Bools  # (app,) its search ended without a model

    @classmethod
    def judged(
        cls,
        jobs: Sequence[Job],
        said: Mapping[str, AppEnd],
        *,
        ended: Floats,
        finished: Floats,
        alone_s: Floats,
        done_s: Floats,
        devices: int,
        end_s: float,
    ) -> AppOutcomes:
        """Judge the apps of these jobs, (job,) each; `done_s` is the run time on the fastest type of what was done."""
        app = numbered(jobs)
        apps = int(app.max(initial=-1)) + 1
        begin, last, gone = np.full(apps, np.inf), np.full(apps, -np.inf), np.full(apps, -np.inf)
        np.minimum.at(begin, app, np.array([job.submitted for job in jobs], dtype=float))
        with np.errstate(invalid="ignore"):
            np.maximum.at(last, app, finished)  # nan spreads: the app has not finished
            np.maximum.at(gone, app, ended)
        empty = np.zeros(apps, dtype=bool)
        for number, end in _ends(jobs, app, said):
            last[number], gone[number], empty[number] = (end.at if end.best else np.nan), end.at, not end.best
        left = np.where(np.isnan(last), np.where(np.isnan(gone), end_s, gone), last)
        needed_s = np.where(np.isnan(finished), np.minimum(done_s, alone_s), alone_s)
        size = np.array([job.scale_factor for job in jobs], dtype=float)
        rho = rho_themis(app, begin, last, left, size, needed_s, devices)
        return cls(of=app, submitted=begin, finished=last, left=left, rho=rho, empty=empty)

    def table(self, jobs: Sequence[Job], said: Mapping[str, AppEnd], service: Floats) -> dict[str, Array]:
        """Return the columns of apps.csv; nothing when no app has several jobs."""
        count = np.bincount(self.of, minlength=len(self.rho))
        if count.max(initial=0) < 2:
            return {}
        first = np.unique(self.of, return_index=True)[1]
        shown = np.array([app for app, row in enumerate(first.tolist()) if jobs[row].app], dtype=np.int64)
        heads = [jobs[row] for row in first[shown].tolist()]
        ends = [said.get(job.app, AppEnd(np.nan, "", np.nan)) for job in heads]
        return {
            "app": np.array([job.app for job in heads], dtype=object),
            "tenant": np.array([job.tenant for job in heads], dtype=object),
            "jobs": count[shown],
            "submitted_s": self.submitted[shown],
            "finished_s": self.finished[shown],
            "jct_s": (self.finished - self.submitted)[shown],
            "best_job": np.array([end.best for end in ends], dtype=object),
            "best_loss": np.array([end.loss if end.best else np.nan for end in ends], dtype=float),
            "attained_service_s": np.bincount(self.of, service, minlength=len(self.rho))[shown],
            "rho_themis": self.rho[shown],
        }


def numbered(jobs: Sequence[Job]) -> Ints:
    """Number the apps of jobs, (job,)."""
    keys: dict[str | int, int] = {}
    return np.array([keys.setdefault(job.app or m, len(keys)) for m, job in enumerate(jobs)], dtype=np.int64)


def _ends(jobs: Sequence[Job], app: Ints, said: Mapping[str, AppEnd]) -> list[tuple[int, AppEnd]]:
    number = {job.app: row for job, row in zip(jobs, app.tolist(), strict=True)} if said else {}
    return [(number[name], end) for name, end in said.items() if name in number]
