"""The other side of the table: the programs of Gavel's policies written in cvxpy, as a user writes them.

Expressions are vectorised, solvers run at their default tolerances on one thread, and a solve counts from the arrays
to the objective. D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads",
OSDI 2020, sections 4.1 to 4.3. Needs the `bench` extra.
"""

from __future__ import annotations

import time
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from eunomia.model.arrays import Bools, Floats, Ints
from eunomia.solvers.water_filling.tree import Tree

SECONDS = 120.0  # wall time after which a solver, or a sequence of programs, is stopped
_SETTINGS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"max_threads": 1},
    "HIGHS": {"threads": 1, "parallel": "off"},
}
_BISECTION = 1e-6  # relative width at which a bisection ends
_SLACK = 1e-7  # relative: what levels reached may lose again, as solvers keep constraints to about so much
_BOUND = 1e-6  # of the largest dual: a row below it can rise further


class Unsolved(RuntimeError):
    """The solver ended without an optimum."""


def solve(problem: Any, solver: str, seconds: float = SECONDS) -> float:
    """Return the optimal value. Raises Unsolved when the solver gives none in so many seconds."""
    if seconds <= 0:
        raise Unsolved(f"not in {SECONDS:.0f} s")
    began = time.monotonic()
    try:
        value = problem.solve(solver=solver, time_limit=seconds, **_SETTINGS[solver])
    except cp.error.SolverError:
        value = None
    if problem.status == cp.OPTIMAL and value is not None:
        return float(value)
    raise Unsolved(f"not in {SECONDS:.0f} s" if time.monotonic() - began > seconds else f"ends {problem.status}")


def _shares(throughput: Floats, size: Floats, capacity: Floats) -> tuple[Any, list[Any], Any]:
    """Return X (job, type), its constraints, and the effective throughput (job,)."""
    X = cp.Variable(throughput.shape, nonneg=True)
    fits = [cp.sum(X, axis=1) <= 1, size @ X <= capacity]
    return X, fits, cp.sum(cp.multiply(throughput, X), axis=1)


def max_min(throughput: Floats, size: Floats, capacity: Floats, need: Floats, solver: str) -> float:
    """Return the highest common level; with need = steps, one over the least makespan."""
    _, fits, effective = _shares(throughput / need[:, None], size, capacity)
    return solve(cp.Problem(cp.Maximize(cp.min(effective)), fits), solver)


def finish_time_fairness(
    throughput: Floats, size: Floats, capacity: Floats, steps: Floats, age: Floats, alone: Floats
) -> float:
    """Return the least worst ρ by one cone program, in Clarabel."""
    _, fits, effective = _shares(throughput / steps[:, None], size, capacity)
    rho = cp.multiply(1 / alone, age + cp.inv_pos(effective))
    return solve(cp.Problem(cp.Minimize(cp.max(rho)), fits), "CLARABEL")


def finish_time_fairness_by_bisection(
    throughput: Floats, size: Floats, capacity: Floats, steps: Floats, age: Floats, alone: Floats
) -> float:
    """Return the least worst ρ by a sequence of linear programs, in HiGHS: can all jobs be served ρ fast enough?"""
    until = time.monotonic() + SECONDS
    low, high = float((age / alone).max()), float((age / alone).max()) * 2 + 1
    while not _reachable(throughput, size, capacity, steps / (high * alone - age), until):
        low, high = high, high * 4
    while high - low > _BISECTION * high:
        middle = (low + high) / 2
        if _reachable(throughput, size, capacity, steps / (middle * alone - age), until):
            high = middle
        else:
            low = middle
    return high


def _reachable(throughput: Floats, size: Floats, capacity: Floats, floor: Floats, until: float) -> bool:
    """Return whether each job can have its floor."""
    if (floor > throughput.max(axis=1)).any():
        return False
    _, fits, effective = _shares(throughput / floor[:, None], size, capacity)
    problem = cp.Problem(cp.Minimize(0), [*fits, effective >= 1])
    try:
        solve(problem, "HIGHS", until - time.monotonic())
    except Unsolved:
        if problem.status not in {cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}:
            raise
        return False
    return True


def proportional_fairness(throughput: Floats, size: Floats, capacity: Floats, weight: Floats) -> float:
    """Return the largest Σ w log(effective throughput), in Clarabel."""
    _, fits, effective = _shares(throughput, size, capacity)
    return solve(cp.Problem(cp.Maximize(weight @ cp.log(effective)), fits), "CLARABEL")


def max_throughput(throughput: Floats, size: Floats, capacity: Floats, solver: str) -> float:
    """Return the largest sum of effective throughputs."""
    _, fits, effective = _shares(throughput, size, capacity)
    return solve(cp.Problem(cp.Maximize(cp.sum(effective)), fits), solver)


def min_cost(throughput: Floats, size: Floats, capacity: Floats, cost: Floats, floor: Floats, solver: str) -> float:
    """Return the least cost per second, (type,) per accelerator, at which each job has its floor."""
    X, fits, effective = _shares(throughput, size, capacity)
    return solve(cp.Problem(cp.Minimize(size @ X @ cost), [*fits, effective >= floor]), solver)


def water_filling(throughput: Floats, size: Floats, capacity: Floats, need: Floats, tree: Tree, solver: str) -> Floats:
    """Return the lexicographically largest levels (job,) by one program a level; who pays for the level stops there.

    tree has tenants of one floor, fair inside: a tenant's weight is split among those of its jobs that still rise.
    """
    level, rising = np.zeros(len(need)), np.ones(len(need), dtype=bool)
    tenants, until = len(tree.weight), time.monotonic() + SECONDS
    while rising.any():
        weight = tree.row_weight * rising
        inside = np.bincount(tree.group_of, weights=weight, minlength=tenants)
        pace = weight * (tree.weight / np.where(inside > 0, inside, 1.0))[tree.group_of]
        risen, stopped = _one_level(throughput, size, capacity, need * level, need * pace, solver, until)
        level, rising = level + risen * pace, rising & ~stopped
    return level


def _one_level(
    throughput: Floats, size: Floats, capacity: Floats, done: Floats, step: Floats, solver: str, until: float
) -> tuple[float, Bools]:
    """Return how far all can rise from `done` in their steps, and which of them cannot rise further."""
    level = cp.Variable()
    _, fits, effective = _shares(throughput, size, capacity)
    enough = effective >= done * (1 - _SLACK) + level * step
    solve(cp.Problem(cp.Maximize(level), [*fits, enough]), solver, until - time.monotonic())
    paid = np.abs(enough.dual_value) * step
    return float(level.value), (step > 0) & (paid > _BOUND * paid.max())


def max_min_sharing(rate: Floats, beside: Floats, size: Floats, capacity: Floats, need: Floats, solver: str) -> float:
    """Return the highest common level where two jobs may share an accelerator.

    rate (job, type) alone; beside (job, job, type): of the first while it shares with the second.
    """
    jobs, types = rate.shape
    first, second = np.triu_indices(jobs, 1)
    alike = size[first] == size[second]
    first, second = first[alike], second[alike]
    one, two = _chooser(first, jobs), _chooser(second, jobs)
    X, P = cp.Variable((jobs, types), nonneg=True), cp.Variable((len(first), types), nonneg=True)
    effective = cp.sum(
        cp.multiply(rate, X)
        + one @ cp.multiply(beside[first, second], P)
        + two @ cp.multiply(beside[second, first], P),
        axis=1,
    )
    time = cp.sum(X + one @ P + two @ P, axis=1)
    fits = [time <= 1, size @ X + size[first] @ P <= capacity]
    return solve(cp.Problem(cp.Maximize(cp.min(cp.multiply(1 / need, effective))), fits), solver)


def _chooser(of: Ints, jobs: int) -> Any:
    """Return the 0-1 matrix (job, pair) of a member of each pair."""
    return csr_array((np.ones(len(of)), (of, np.arange(len(of)))), shape=(jobs, len(of)))


def queues(time: Floats, machines: Ints) -> float:
    """Return the least sum of completion times: jobs matched to (accelerator, position from the end of its queue)."""
    jobs = len(time)
    each = np.repeat(time, machines, axis=1)  # (job, accelerator)
    cost = (each[:, :, None] * np.arange(1, jobs + 1)).reshape(jobs, -1)
    row, column = linear_sum_assignment(cost)
    return float(cost[row, column].sum())
