"""Priority by weight, largest first.

    order jobs by  -w[m],  then by submission

w weight (job,), such as a priority set by users, or by a search for its trials: HyperDrive gives promising trials a
larger weight than opportunistic ones, and stops poor ones itself.

Example (examples/two_jobs.json). Both weights are 1, so the earlier submission is first: text gets the v100, image a
k80.

Reference: J. Rasley et al., "HyperDrive: Exploring Hyperparameters with POP Scheduling", Middleware 2017, section 3, in
which promising trials have reserved seats and the others take turns on the rest; here equal weights go by submission.
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
class ByWeight(RankedOrder):
    """Jobs run by weight, largest first; a job of larger weight preempts others.

    Use it when weights are meaningful priorities, such as HyperDrive's for its trials, and preemption is cheap.

    The worst-off is the job of least weight: every submission of larger weight preempts it, and it starves while these
    fill the cluster.
    """

    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="by_weight",
        answer_type="order",
        objective="serve by priority",
        technique="preemptive priority by weight",
        paper="Rasley et al., HyperDrive, Middleware 2017",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"weight"},
        memory_columns=REMEMBERS,
        mechanism=RECALLABLE,
    )

    @property
    def rank(self) -> Rank:
        """The weight, the largest first."""
        return Rank("weight")
