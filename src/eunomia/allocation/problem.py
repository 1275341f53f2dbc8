"""The input of one allocation decision: jobs, accelerators, and their throughputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.tenants import Tenants


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationProblem:
    """A validated problem. Axes: job m, type j, kind. None = not given. Built by `read_problem` and `problem_of`."""

    types: tuple[str, ...]
    capacity: Floats  # (type,) accelerators
    throughput: Floats  # (job, type) steps/s of the whole gang; 0 = cannot run there
    scale_factor: Ints  # (job,) accelerators
    weight: Floats  # (job,) above 0
    job_ids: Array | None = None  # (job,) texts
    steps_remaining: Floats | None = None  # (job,)
    elapsed_s: Floats | None = None  # (job,) since submission; does not change the order of jobs
    isolated_throughput: Floats | None = None  # (job,) steps/s on an equal share of the cluster
    isolated_time_s: Floats | None = None  # (job,) time that the steps done so far take on an equal share
    attained_service: Floats | None = None  # (job,) accelerator-seconds
    submitted_s: Floats | None = None  # (job,) on any clock; None = rows are in order of submission
    deadline_s: Floats | None = None  # (job,) from now; inf = none
    price: Floats | None = None  # (type,) US$ per accelerator-hour
    throughput_apart: Floats | None = None  # (job, type) steps/s of the gang when spread over machines
    throughput_estimated: Floats | None = None  # (job, type) 1 = an estimate, 0 = measured
    accelerators_per_node: Floats | None = None  # (type,) of each machine
    entity: Ints | None = None  # (job,) rows of `entities`
    entities: Tenants | None = None
    kind: Ints | None = None  # (job,) rows of `pairs`: jobs believed to behave alike
    pairs: Floats | None = None  # (kind, kind, type) steps/s of the first beside the second; 0 = they do not fit
    pairs_apart: Floats | None = None  # (kind, kind, type) the same of two that are spread over machines

    @property
    def jobs(self) -> int:
        return len(self.throughput)

    @property
    def placed_throughput(self) -> Floats:
        """(job, type) steps/s of the gang in its best place: on one machine, or on several where none holds it."""
        if self.throughput_apart is None or self.accelerators_per_node is None:
            return self.throughput
        return np.where(self.scale_factor[:, None] > self.accelerators_per_node, self.throughput_apart, self.throughput)

    @property
    def spread_pairs(self) -> Floats | None:
        """(kind, kind, type) steps/s of pairs spread over machines: as given, else slowed as the first is alone."""
        if self.pairs_apart is not None or self.pairs is None or self.kind is None or self.throughput_apart is None:
            return self.pairs_apart
        kind, first = np.unique(self.kind, return_index=True)
        alone, spread = self.throughput[first], self.throughput_apart[first]
        part = np.zeros((len(self.pairs), len(self.types)))
        part[kind] = np.divide(spread, alone, out=np.zeros_like(spread), where=alone > 0)
        return np.asarray(self.pairs * part[:, None])

    @property
    def placed_pairs(self) -> Floats | None:
        """(kind, kind, type) steps/s of pairs in their best place, as `placed_throughput`."""
        apart = self.spread_pairs
        if self.pairs is None or self.kind is None or apart is None or self.accelerators_per_node is None:
            return self.pairs
        size = np.ones(len(self.pairs), dtype=np.int64)
        size[self.kind] = self.scale_factor
        return np.where((size[:, None] > self.accelerators_per_node)[:, None], apart, self.pairs)

    def name(self, job: int) -> str | int:
        """Return the id of a job, or its row counted from 0 where jobs have none."""
        return job if self.job_ids is None else str(self.job_ids[job])

    def reordered(self, order: Ints) -> AllocationProblem:
        """Return the problem with row i equal to row order[i] of this one."""
        columns = ((name, getattr(self, name)) for name in BY_JOB)
        return replace(self, **{name: column[order] for name, column in columns if column is not None})

    def submission_order(self) -> Ints | None:
        """Return the jobs in order of submission, ties by row; None if the rows are in that order."""
        if self.submitted_s is None or bool((np.diff(self.submitted_s) >= 0).all()):
            return None
        return np.argsort(self.submitted_s, kind="stable")


BY_JOB = (
    "throughput", "scale_factor", "weight", "job_ids", "steps_remaining", "elapsed_s", "isolated_throughput",
    "isolated_time_s", "attained_service", "submitted_s", "deadline_s", "throughput_apart", "throughput_estimated",
    "entity", "kind",
)  # fmt: skip
