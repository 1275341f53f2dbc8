"""What jobs and tenants of a problem received and could claim so far: as told, with nobody running."""

from __future__ import annotations

import numpy as np

from eunomia.allocation.problem import AllocationProblem
from eunomia.model.arrays import Floats
from eunomia.model.fair_share import of_jobs, owned, rows_below


def run_time(problem: AllocationProblem) -> Floats:
    """Return the seconds that each job held its gang's seats, (job,)."""
    assert problem.attained_service is not None
    return np.asarray(problem.attained_service / problem.scale_factor)


def first_started(problem: AllocationProblem) -> Floats:
    """Return when each job first ran, (job,): at its submission if it attained anything; inf = never."""
    assert problem.attained_service is not None and problem.elapsed_s is not None
    return np.where(problem.attained_service > 0, -problem.elapsed_s, np.inf)


def deserved(problem: AllocationProblem) -> Floats:
    """Return the accelerator-seconds that each could claim of its tenant's quota, (job,), with the jobs there are."""
    assert problem.entities is not None and problem.entity is not None and problem.elapsed_s is not None
    quota = problem.entities.quota(float(problem.capacity.sum()))
    demand, together = (np.bincount(problem.entity, of, len(quota)) for of in (problem.scale_factor, problem.weight))
    own = owned(demand, quota, rows_below(problem.entities.parent))
    rate = of_jobs(problem.scale_factor, problem.weight, together[problem.entity], own[problem.entity])
    return np.asarray(rate * problem.elapsed_s)


def hourly(problem: AllocationProblem) -> Floats:
    """Return tenants' sums by hour, (1, tenant, 3): none are told."""
    assert problem.entities is not None
    return np.zeros((1, len(problem.entities.names), 3))
