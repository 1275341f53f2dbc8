"""Least attained service.

    level[m] = ⌊ attained accelerator-seconds[m] / quantum ⌋;  order by level, then by submission

so that jobs of one level do not preempt each other; attained service (job,). The next ask is when a running job enters
a level behind a waiting job. Choose a quantum well above the cost of a preemption times the scale factor: a gang that
is preempted before it has restored its checkpoint makes no progress.

Example (examples/two_jobs.json). Text has attained 7560 accelerator-seconds, which is level ⌊7560 / 3600⌋ = 2; image is
new, level 0. Image is first and gets the v100, text a k80.

Reference: the two-dimensional least attained service of J. Gu et al., "Tiresias: A GPU Cluster Manager for Distributed
Deep Learning", NSDI 2019, section 3.2, with levels of equal width instead of queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from eunomia.inputs.field_rules import Rule
from eunomia.model.policy import RECALLABLE, PolicyInfo
from eunomia.model.rank import Rank
from eunomia.model.taxonomy import Taxonomy
from eunomia.policies.order.ranked_order import RankedOrder
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types


@dataclass(frozen=True)
class Las(RankedOrder):
    """Jobs run by attained service, least first, in steps of `quantum` accelerator-seconds.

    Use it when durations are unknown, many jobs are short and a few very long, and preemption is cheap.

    The worst-off is a job with much attained service: it waits behind every new job until that has attained as much,
    and starves while new jobs fill the cluster.
    """

    quantum: Annotated[float, Rule(above=0.0, what="a number of accelerator-seconds above 0")] = 3600.0
    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="las",
        answer_type="order",
        objective="low completion times without knowing durations",
        technique="preemptive priority by attained service",
        paper="Gu et al., Tiresias, NSDI 2019",
        taxonomy=Taxonomy(objectives=("jct",), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"service"},
        memory_columns=REMEMBERS,
        mechanism=RECALLABLE,
    )

    @property
    def rank(self) -> Rank:
        """The level of attained service."""
        return Rank("service", quantum=float(self.quantum))
