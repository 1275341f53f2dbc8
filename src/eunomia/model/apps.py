"""Apps: sets of jobs with one goal, such as the trials of one search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class PausedJobs:
    """Paused jobs of the apps, which have no row in the view. Axes: paused job p, type j."""

    app: Ints  # (p,) rows of `Apps`
    scale_factor: Ints  # (p,) accelerators
    remaining: Floats  # (p,) steps
    total: Floats  # (p,) steps
    throughput: Floats  # (p, j) steps/s of the whole gang

    @classmethod
    def none(cls, types: int) -> PausedJobs:
        """Return the table of no paused job."""
        rows, steps = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(rows, rows, steps, steps, np.zeros((0, types)))


@dataclass(frozen=True, slots=True)
class Apps:
    """The apps of the jobs in a view; a job that names none is an app of its own."""

    names: tuple[str, ...]
    submitted: Floats  # (app,) submission of its first job, seconds
    # (app,) time average of the number of active apps since it was submitted, itself included; at least 1
    mean_rivals: Floats
    service: Floats  # (app,) accelerator-seconds attained by its ended jobs
    paused: PausedJobs
