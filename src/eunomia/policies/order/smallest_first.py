"""Narrowest gang first.

    order jobs by z[m], then by submission

z scale factor (job,). A narrower gang preempts a wider one.

Example (examples/two_jobs.json). Both need one accelerator, so the earlier submission is first: text gets the v100,
image a k80.

Reference: "sjf" (smallest job first) in the simulator of J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed
Deep Learning", NSDI 2019; "smallestfirst" in Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for Multi-Tenant
GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.rank import Rank
from eunomia.model.taxonomy import Taxonomy
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types


@dataclass(frozen=True)
class SmallestFirst(RankedOrder):
    """Jobs run by scale factor, smallest first.

    Use it when durations are unknown, preemption is cheap, and narrow jobs should never wait for wide ones.

    The worst-off is the widest gang: every submission of a narrower one preempts it, and it starves while these fill
    the cluster.
    """

    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="smallest_first",
        answer_type="order",
        objective="narrow jobs never wait for wide ones",
        technique="preemptive priority by scale factor",
        paper="Gu et al., Tiresias, NSDI 2019 (its sjf)",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", preemptive=True),
        needs=NEEDS,
        memory_columns=REMEMBERS,
        mechanism=RECALLABLE,
    )

    @property
    def rank(self) -> Rank:
        """The scale factor."""
        return Rank("scale_factor")
