"""Columns about apps: a problem names none, so that every job is an app of its own."""

from __future__ import annotations

import numpy as np

from eunomia.allocation.problem import AllocationProblem
from eunomia.model.apps import Apps, PausedJobs
from eunomia.model.arrays import Floats

LEVELS = 4  # a slot, a machine, a rack or more hold a gang


def apps(problem: AllocationProblem) -> Apps:
    """Return one app for each job; those that are there are taken to have been there all the time."""
    assert problem.elapsed_s is not None  # `view_of` checked it
    n = problem.jobs
    names = tuple(str(problem.name(m)) for m in range(n))
    return Apps(names, -problem.elapsed_s, np.full(n, float(n)), np.zeros(n), PausedJobs.none(len(problem.types)))


def slowdown(problem: AllocationProblem) -> Floats:
    """Return (job, level) by what step time is multiplied: by nothing, a problem says none of it."""
    return np.ones((problem.jobs, LEVELS))
