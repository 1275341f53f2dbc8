"""How fast jobs run alone on the cluster: the reference of every measure of sharing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eunomia.model.arrays import Floats
from eunomia.model.equal_share import usable_throughput
from eunomia.model.job import Job
from eunomia.model.job_table import job_array, job_values
from eunomia.model.speeds import Speeds


@dataclass(frozen=True, slots=True)
class StandaloneSpeeds:
    """Speeds of jobs that run alone on the whole cluster."""

    rate: Floats  # (job, type) steps/s of the whole gang; 0 where it is wider than the type
    best: Floats  # (job,) steps/s on the fastest type that can hold the gang
    steps: Floats  # (job,)

    @classmethod
    def of(cls, jobs: Sequence[Job], speeds: Speeds, capacity: Floats) -> StandaloneSpeeds:
        """Look up jobs on a cluster of `capacity` (type,) accelerators."""
        kinds: dict[tuple[str, int], int] = {}
        each = zip(job_values(jobs, "job_type"), job_values(jobs, "scale_factor"), strict=True)
        kind = np.array([kinds.setdefault(key, len(kinds)) for key in each], dtype=int)
        table = np.array([speeds.solo_throughput(*key) for key in kinds], dtype=float).reshape(
            len(kinds), len(capacity)
        )
        table = usable_throughput(table, np.array([size for _, size in kinds], dtype=float), capacity)
        best = table.max(axis=1, initial=0.0)
        return cls(table[kind], best[kind], job_array(jobs, "total_steps", float))

    @property
    def seconds(self) -> Floats:
        """Return the run time of each job on its fastest type, (job,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.steps / self.best)

    @property
    def worth(self) -> Floats:
        """Return the seconds on the fastest type that a second on each type is worth, (job, type)."""
        return np.divide(self.rate, self.best[:, None], out=np.zeros_like(self.rate), where=self.best[:, None] > 0)
