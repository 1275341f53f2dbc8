"""Max-min fairness: one linear program over distinct jobs against the textbook's over all jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import highspy
import numpy as np

from benchmarks.side_by_side import Comparison, compare, demand_equal
from eunomia.model.arrays import Floats
from eunomia.policies.shares.share_inputs import relative_speed
from eunomia.solvers.max_min import highest_level

JOBS = (100, 1_000, 5_000)
TYPES, JOB_TYPES = 3, 26
SIZES = (1, 2, 4, 8)


def _problem(jobs: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return gain (job, type), size (job,), capacity (type,), second (job, type): jobs of 26 types in 4 sizes."""
    rng = np.random.default_rng(jobs)
    speed = rng.uniform(0.1, 1.0, (JOB_TYPES, TYPES)) * np.array([5.0, 2.0, 1.0])
    throughput = speed[rng.integers(JOB_TYPES, size=jobs)]
    size = rng.choice(SIZES, jobs, p=(0.7, 0.1, 0.15, 0.05)).astype(float)
    capacity = np.full(TYPES, np.ceil(size.sum() / TYPES / 2))
    equal = throughput @ (capacity / capacity.sum())
    gain = throughput * (size / equal)[:, None]
    return gain, size, capacity, throughput / throughput.max(axis=1, keepdims=True)


def textbook(gain: Floats, size: Floats, capacity: Floats, second: Floats) -> float:
    """Return the highest common level by the program as it is written: two rows and a variable per type for each job.

    Like ours it is solved twice: for the level, then for the best use of what is left over.
    """
    jobs, types = gain.shape
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.passModel(_model(gain, size, capacity))
    highs.run()
    level = float(highs.getObjectiveValue())
    n = jobs * types
    highs.changeColBounds(n, level * (1 - 1e-9), highspy.kHighsInf)
    highs.changeColsCost(n + 1, np.arange(n + 1, dtype=np.int32), np.append(second.ravel(), 0.0))
    highs.run()
    return level


def _model(gain: Floats, size: Floats, capacity: Floats) -> Any:
    """Return the first program. Rows: each job's level, each job's time, each type's capacity; columns: x, then t."""
    jobs, types = gain.shape
    n, inf = jobs * types, highspy.kHighsInf
    job, type = np.divmod(np.arange(n), types)
    rows = np.stack((job, jobs + job, 2 * jobs + type), axis=1).ravel()
    values = np.stack((gain.ravel(), np.ones(n), size[job]), axis=1).ravel()
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n + 1, 2 * jobs + types
    lp.col_cost_ = np.append(np.zeros(n), 1.0)
    lp.col_lower_, lp.col_upper_ = np.zeros(n + 1), np.full(n + 1, inf)
    lp.row_lower_ = np.concatenate((np.zeros(jobs), np.full(jobs + types, -inf)))
    lp.row_upper_ = np.concatenate((np.full(jobs, inf), np.ones(jobs), capacity))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.append(3 * np.arange(n + 1), 3 * n + jobs)
    lp.a_matrix_.index_ = np.append(rows, np.arange(jobs))
    lp.a_matrix_.value_ = np.append(values, -np.ones(jobs))
    lp.sense_ = highspy.ObjSense.kMaximize
    return lp


def cases() -> Iterator[Comparison]:
    """Yield one comparison for each number of jobs."""
    for jobs in JOBS:
        problem = _problem(jobs)
        gain, size, capacity, _ = problem
        ours = partial(highest_level, gain, size, capacity, np.ones(jobs), second=relative_speed)
        other = partial(textbook, *problem)
        demand_equal(abs(ours().objective / other() - 1) < 1e-6, "max-min", jobs)  # the warm-up too
        yield compare("max-min fairness: one decision", jobs, ours, other, "LP with a row per job, HiGHS")
