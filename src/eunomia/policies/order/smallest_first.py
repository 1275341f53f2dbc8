"""Narrowest gang first.

    order jobs by z[m], then by submission

z scale factor (job,). A narrower gang interrupts a wider one.

Example (examples/two_jobs.json). Both ask for one accelerator, so the earlier submission is first: text takes the v100,
image a k80.

Reference: "sjf" (smallest job first) in the simulator of J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed
Deep Learning", NSDI 2019; "smallestfirst" in Z. Ye et al., "ASTRAEA: A Fair Deep Learning Scheduler for Multi-Tenant
GPU Clusters", TPDS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eunomia.model.answers import Order
from eunomia.model.policy import RECALLABLE, PolicyInfo, promises
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, check_types


@dataclass(frozen=True)
class SmallestFirst:
    """Who asks for the fewest accelerators runs first.

    Use it when durations are unknown, stopping a job is cheap, and narrow jobs should never wait for wide ones.

    The worst-off is the widest gang: it is stopped for every narrower one that comes, and starves while they keep
    coming.
    """

    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="smallest_first",
        door="order",
        objective="narrow jobs never wait for wide ones",
        technique="preemptive priority by scale factor",
        paper="Gu et al., Tiresias, NSDI 2019 (its sjf)",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", preemptive=True),
        needs=NEEDS,
        remembers=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_types(self.types)
        promises(self, complete=self.types == "fastest", separable=True)

    def decide(self, view: View) -> Order:
        """Return all jobs, the narrowest first."""
        rows, memory = candidates(view, np.argsort(view.scale_factor, kind="stable"), self.types)
        return Order(rows, memory=memory)
