"""One question to a policy: who is there, what there is to share, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from eunomia.model.arrays import Array, Floats, Ints
from eunomia.model.tenants import Tenants


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationProblem:
    """A moment of a cluster, checked. Axes: job m, type j, kind. What is None was not said.

    Built by `read_problem` and `problem_of`, which name everything that is wrong with their input.
    """

    types: tuple[str, ...]
    capacity: Floats  # (type,) accelerators
    throughput: Floats  # (job, type) steps/s of the whole gang; 0 = cannot run there
    scale_factor: Ints  # (job,) accelerators
    weight: Floats  # (job,) above 0
    job_ids: Array | None = None  # (job,) texts
    steps_remaining: Floats | None = None  # (job,)
    elapsed_s: Floats | None = None  # (job,) since submission; changes no order
    isolated_throughput: Floats | None = None  # (job,) steps/s on an equal part of the cluster
    isolated_time_s: Floats | None = None  # (job,) what isolation would have taken for what was done so far
    attained_service: Floats | None = None  # (job,) accelerator-seconds
    submitted_s: Floats | None = None  # (job,) on any clock; the order of rows where it is not said
    deadline_s: Floats | None = None  # (job,) from now; inf = none
    price: Floats | None = None  # (type,) US$ per accelerator-hour
    throughput_apart: Floats | None = None  # (job, type) steps/s of the gang when spread over machines
    accelerators_per_node: Floats | None = None  # (type,) of each machine
    entity: Ints | None = None  # (job,) rows of `entities`
    entities: Tenants | None = None
    kind: Ints | None = None  # (job,) rows of `pairs`: jobs believed to behave alike
    pairs: Floats | None = None  # (kind, kind, type) steps/s of the first beside the second; 0 = they do not fit

    @property
    def jobs(self) -> int:
        return len(self.throughput)

    def name(self, job: int) -> str | int:
        """Return what a job is called: its id, or its row counted from 0 where it has none."""
        return job if self.job_ids is None else str(self.job_ids[job])

    def take(self, order: Ints) -> AllocationProblem:
        """Return the problem with job rows in another order: row i is what row order[i] was."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {name: columns[name][order] for name in BY_JOB if columns[name] is not None}
        return replace(self, **moved)

    def arrival(self) -> Ints | None:
        """Return the jobs in order of submission, ties by row; None if that is how the rows stand."""
        if self.submitted_s is None or bool((np.diff(self.submitted_s) >= 0).all()):
            return None
        return np.argsort(self.submitted_s, kind="stable")


BY_JOB = (
    "throughput", "scale_factor", "weight", "job_ids", "steps_remaining", "elapsed_s", "isolated_throughput",
    "isolated_time_s", "attained_service", "submitted_s", "deadline_s", "throughput_apart", "entity", "kind",
)  # fmt: skip
