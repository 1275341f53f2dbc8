"""AlloX's assignment: a column for each type and position against one for each machine and position."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats, Ints
from eunomia.solvers.assignment import held, soonest

CASES = ((128, (11, 11, 10)), (256, (43, 43, 42)))


def draw(jobs: int) -> Floats:
    """Return the seconds (job, type) that each job has to go."""
    rng = np.random.default_rng(jobs)
    return rng.lognormal(8, 1.5, (jobs, 1)) * np.array([1.0, 2.0, 5.0]) * rng.lognormal(0, 0.35, (jobs, 3))


def by_soonest(time: Floats, machines: Ints) -> float:
    """Return the sum of finish times over columns with copies."""
    column, position = soonest(time, machines)
    return float((time[np.arange(len(time)), column] * position).sum())


def by_matrix(time: Floats, machines: Ints) -> float:
    """Return the same over the whole matrix of jobs by machines and positions."""
    places = np.tile(np.arange(1.0, len(time) + 1), int(machines.sum()))
    matrix = np.repeat(time, machines * len(time), axis=1) * places
    slots = np.arange(len(places)), np.ones(len(places)), np.ones(len(places), dtype=np.int64)
    return float(matrix[np.arange(len(time)), held(matrix, *slots)].sum())


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each number of jobs."""
    for jobs, machines in CASES:
        ours = partial(by_soonest, draw(jobs), np.array(machines))
        other = partial(by_matrix, draw(jobs), np.array(machines))
        demand_equal(abs(ours() / other() - 1) < 1e-9, "AlloX", jobs)  # the warm-up too
        yield compare("AlloX: one assignment", jobs, ours, other, "the matrix of jobs by machines and positions")
