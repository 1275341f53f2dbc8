"""True throughputs of gangs by kind, as tables that kernels read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eunomia.model.arrays import Floats, Ints
from eunomia.model.job import Job
from eunomia.model.job_table import job_values
from eunomia.model.speeds import Speeds


class Rates:
    """Speeds by kind, which is a job type at a gang size. A pair is looked up when it first starts."""

    def __init__(self, speeds: Speeds, jobs: Sequence[Job]):
        self._speeds = speeds
        names, others = job_values(jobs, "job_type"), job_values(jobs, "other_shapes")
        models = {name: row for row, name in enumerate(dict.fromkeys(names))}
        self.model = np.array([models[name] for name in names], dtype=np.int64)  # (job,)
        sizes = set(zip(names, job_values(jobs, "scale_factor"), strict=True))
        sizes |= {(name, size) for name, shapes in zip(names, others, strict=True) for size in shapes}
        self._kinds = sorted(sizes)
        self.widest = max((size for _, size in self._kinds), default=1)
        self.kind_of = np.full((max(len(models), 1), self.widest + 1), -1)  # (job type, size), -1 = no job has it
        for kind, (name, size) in enumerate(self._kinds):
            self.kind_of[models[name], size] = kind
        alone = [speeds.solo_throughput(name, size) for name, size in self._kinds]
        self.alone: Floats = np.array(alone, dtype=float).reshape(-1, len(speeds.types))  # (kind, type) steps/s
        self.pair_of: Ints = np.empty((0, 0), dtype=np.int64)  # (kind, kind), -1 = not looked up yet
        self.beside: Floats = np.empty((0, len(speeds.types)))  # (pair, type) steps/s of the first

    def look_up_pairs(self, mine: Ints, others: Ints) -> None:
        """Look up the speeds of these kinds beside those, both ways; (pair,) each."""
        if len(self.pair_of) == 0:
            self.pair_of = np.full((len(self._kinds), len(self._kinds)), -1)
        unknown = (self.pair_of[mine, others] < 0) | (self.pair_of[others, mine] < 0)
        for one, other in zip(mine[unknown].tolist(), others[unknown].tolist(), strict=True):
            for kind, beside in ((one, other), (other, one)):
                if self.pair_of[kind, beside] < 0:
                    (name, size), (partner, _) = self._kinds[kind], self._kinds[beside]
                    self.pair_of[kind, beside] = len(self.beside)
                    self.beside = np.vstack((self.beside, self._speeds.packed_throughput(name, partner, size)))
