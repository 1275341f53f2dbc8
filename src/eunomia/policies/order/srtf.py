"""Shortest remaining time first.

    order jobs by  min_j remaining[m] / T[m, j]

over the types j that can hold the gang; ties go to the earlier submission. T throughput (job, type), remaining steps
(job,), which only an oracle knows. With `measure=service` the time is multiplied by z[m], the scale factor (job,): the
shortest remaining service of Tiresias' comparison.

Example (examples/two_jobs.json). Image has 12600 / 4 = 3150 s left on the v100, text 12600 / 2 = 6300 s. Image is first
and gets the v100; text gets a k80.

Reference: L. E. Schrage, "A proof of the optimality of the shortest remaining processing time discipline", Operations
Research 16(3), 1968 (one machine); the baseline of most papers on clusters. Service: J. Gu et al., "Tiresias: A GPU
Cluster Manager for Distributed Deep Learning", NSDI 2019, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from eunomia.inputs.declared_fields import check_fields
from eunomia.model.answers import Order
from eunomia.model.arrays import Floats, Ints
from eunomia.model.policy import RECALLABLE, PolicyInfo, RanksBy, set_promises
from eunomia.model.rounding import rising, rounded
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates


@dataclass(frozen=True)
class Srtf:
    """Jobs run by remaining time, shortest first; a shorter job preempts a longer one.

    `measure=service` counts accelerator-seconds, so that a wide gang is long too. Ties go by submission; with
    `ties=last` by the place in the last order, as in a program that keeps a sorted list.

    Use it when remaining work is known, preemption is cheap, and only the mean completion time counts. It is the
    benchmark for policies that do not know durations.

    The worst-off is the longest job: every submission of a shorter one preempts it, and it starves while these fill
    the cluster.
    """

    types: Types = "fastest"
    measure: Annotated[Literal["time", "service"], "'time' (seconds) or 'service' (accelerator-seconds)"] = "time"
    ties: Annotated[Literal["submission", "last"], "'submission' or 'last' (as in the last order)"] = "submission"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="srtf",
        answer_type="order",
        objective="least mean completion time",
        technique="preemptive priority by remaining time",
        paper="Schrage, Operations Research 1968",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"remaining"},
        oracle=True,
        memory_columns={**REMEMBERS, "place": -1.0},
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        stateless = self.ties == "submission"  # the place in the last order requires that no ask is skipped
        fastest = stateless and self.types == "fastest"
        ranks_by: RanksBy = "remaining_time" if self.measure == "time" else "remaining_service"
        set_promises(self, covers_all_jobs=fastest, jobs_independent=stateless, ranks_by=ranks_by, of=Srtf)

    def decide(self, view: View) -> Order:
        """Return all jobs, the least remaining time (or service) on their best type first."""
        order = self._sort(view, self._left(view))
        rows, memory = candidates(view, order, self.types)
        if self.ties == "last":
            memory = {**memory, "place": np.argsort(order, kind="stable").astype(np.float64)}
        return Order(rows, memory=memory)

    def _left(self, view: View) -> Floats:
        usable = np.where(view.scale_factor <= view.capacity[:, None], view.throughput.T, 0.0)  # (type, job)
        best = usable.max(axis=0, initial=0.0)
        left = np.divide(view.remaining, best, out=np.full(view.jobs, np.inf), where=best > 0)
        return np.asarray(left * view.scale_factor) if self.measure == "service" else left

    def _sort(self, view: View, left: Floats) -> Ints:
        if self.ties == "submission":
            return rising(left)
        place = view.memory["place"]
        return np.lexsort((np.where(place < 0, np.inf, place), rounded(left)))
