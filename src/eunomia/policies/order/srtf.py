"""Shortest remaining time first.

    order jobs by  min_j remaining[m] / T[m, j]

over the types j that can hold the gang; ties go to the earlier submission. T throughput (job, type), remaining steps
(job,), which only an oracle knows.

Example (examples/two_jobs.json). Image has 12600 / 4 = 3150 s left on the v100, text 12600 / 2 = 6300 s. Image is first
and takes the v100; text takes a k80.

Reference: L. E. Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations
Research 16(3), 1968 (one machine); the baseline of most papers on clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.view import View
from eunomia.policies.order.preference import NEEDS, REMEMBERS, Types, candidates, check_types


@dataclass(frozen=True, slots=True)
class Srtf:
    """Who will be done first runs first; a shorter job interrupts a longer one.

    Use it when it is known how much work is left, stopping a job is cheap, and the mean completion time is all that
    counts. It is the yardstick for policies that do not know durations.

    The worst-off is the longest job: it is stopped for every shorter one that comes, and starves while they keep
    coming.
    """

    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="srtf",
        door="order",
        objective="least mean completion time",
        technique="preemptive priority by remaining time",
        paper="Schrage, Operations Research 1968",
        needs=NEEDS | {"remaining"},
        oracle=True,
        remembers=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_types(self.types)

    def decide(self, view: View) -> Order:
        """Return all jobs, the least remaining time on their best type first."""
        usable = np.where(view.scale_factor <= view.capacity[:, None], view.throughput.T, 0.0)  # (type, job)
        best = usable.max(axis=0, initial=0.0)
        left = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
        rows, memory = candidates(view, np.argsort(left, kind="stable"), self.types)
        return Order(rows, memory=memory)
