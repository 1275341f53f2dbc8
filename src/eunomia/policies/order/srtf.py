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

from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.rank import Rank
from eunomia.model.taxonomy import Taxonomy
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types


@dataclass(frozen=True)
class Srtf(RankedOrder):
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

    @property
    def rank(self) -> Rank:
        """The remaining time or service."""
        return Rank("remaining_time" if self.measure == "time" else "remaining_service", ties=self.ties)
