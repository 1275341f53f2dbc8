"""Shapes and learning curves of jobs as columns; each job is read once, when a policy first asks for it."""

from __future__ import annotations

import numpy as np

from eunomia.core.columns import GrowingColumns
from eunomia.model.arrays import Floats, Ints
from eunomia.model.curves import Curve
from eunomia.model.job_table import SubmittedJobs


class JobShapes(GrowingColumns):
    """Jobs of one type and with the same shapes are of one `group`; most workloads have few."""

    group: Ints
    curve: Floats  # (job, 3) the learning curve; the median where none is given

    def __init__(self, jobs: SubmittedJobs):
        super().__init__({"group": (np.int64, 0), "curve": (np.float64, 0.0, 3)})
        self._jobs = jobs
        self.groups: dict[tuple[str, tuple[int, ...]], int] = {}  # by job type and shapes
        self._sizes: Ints = np.zeros((0, 1), dtype=np.int64)  # (group, shape) accelerators, 0 = no such shape

    def groups_of(self, rows: Ints) -> Ints:
        """Return the group of each job, (row,)."""
        self._read()
        return np.asarray(self.group[rows])

    def sizes_of(self, rows: Ints) -> Ints:
        """Return accelerators of each shape, (row, shape), 0 where a job has no more; as wide as the most of any."""
        groups = self.groups_of(rows)
        sizes = self._sizes[groups]
        return np.asarray(sizes[:, : max(int((sizes > 0).sum(axis=1).max(initial=0)), 1)])

    def size_in(self, rows: Ints, shape: Ints) -> Ints:
        """Return the accelerators of each job in one of its shapes, (row,); 0 where it has no such shape."""
        groups = self.groups_of(rows)
        there = (shape >= 0) & (shape < self._sizes.shape[1])
        return np.where(there, self._sizes[groups, np.where(there, shape, 0)], 0)

    def counts_of(self, rows: Ints) -> Ints:
        """Return how many shapes each job has, (row,)."""
        groups = self.groups_of(rows)
        return np.asarray((self._sizes[groups] > 0).sum(axis=1))

    def curves_of(self, rows: Ints) -> Floats:
        """Return the learning curve of each job, (row, 3)."""
        self._read()
        return np.asarray(self.curve[rows])

    def _read(self) -> None:
        """Read the jobs that were submitted meanwhile."""
        known = len(self)
        if known == len(self._jobs):
            return
        fresh, groups = self._jobs[known:], self.groups
        rows = self.add_many(len(fresh))
        self.group[rows] = [groups.setdefault((job.job_type, job.shapes), len(groups)) for job in fresh]
        self.curve[rows] = [job.loss or Curve() for job in fresh]
        if len(groups) > len(self._sizes):
            shapes = [shapes for _, shapes in groups]
            self._sizes = np.zeros((len(shapes), max(map(len, shapes))), dtype=np.int64)
            for row, sizes in enumerate(shapes):
                self._sizes[row, : len(sizes)] = sizes
