"""View columns that are derived from a problem: service so far, entitlement, and apps. No job runs in a problem."""

from __future__ import annotations

import numpy as np

from eunomia.allocation.problem import AllocationProblem
from eunomia.model.apps import Apps, PausedJobs
from eunomia.model.arrays import Floats
from eunomia.model.fair_share import FairShares, of_jobs

LEVELS = 4  # slot, machine, rack, more


def run_time(problem: AllocationProblem) -> Floats:
    """Return the seconds that each job held accelerators, (job,)."""
    assert problem.attained_service is not None
    return np.asarray(problem.attained_service / problem.scale_factor)


def first_started(problem: AllocationProblem) -> Floats:
    """Return when each job first ran, (job,): at its submission if it attained any service, else inf."""
    assert problem.attained_service is not None and problem.elapsed_s is not None
    return np.where(problem.attained_service > 0, -problem.elapsed_s, np.inf)


def deserved(problem: AllocationProblem) -> Floats:
    """Return the accelerator-seconds that each job was entitled to, (job,), as if the present jobs had not changed."""
    assert problem.entities is not None and problem.entity is not None and problem.elapsed_s is not None
    tenants = len(problem.entities.names)
    demand, weight = (np.bincount(problem.entity, of, tenants) for of in (problem.scale_factor, problem.weight))
    own = FairShares(problem.entities).owned(float(problem.capacity.sum()), demand)
    rate = of_jobs(problem.scale_factor, problem.weight, weight[problem.entity], own[problem.entity])
    return np.asarray(rate * problem.elapsed_s)


def apps(problem: AllocationProblem) -> Apps:
    """Return one app for each job, as if the present jobs had always been present."""
    assert problem.elapsed_s is not None  # `view_of` checked it
    n = problem.jobs
    names = tuple(str(problem.name(m)) for m in range(n))
    return Apps(names, -problem.elapsed_s, np.full(n, float(n)), np.zeros(n), PausedJobs.none(len(problem.types)))
