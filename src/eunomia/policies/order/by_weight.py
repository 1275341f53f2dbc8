"""Heaviest first: the order that somebody else has decided.

    order jobs by  -w[m],  then by submission

w weight (job,), such as a priority of the cluster's users, or what a search gives its trials: HyperDrive's are
promising, with a larger weight, or opportunistic; poor ones it gives up itself.

Example (examples/two_jobs.json). Both weigh the same, so the earlier submission is first: text takes the v100, image a
k80.

Reference: J. Rasley et al., "HyperDrive: Exploring Hyperparameters with POP Scheduling", Middleware 2017, section 3, in
which promising trials have seats of their own and the others take turns on the rest; here they go by submission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eunomia.model.answers import Order
from eunomia.model.policy import RECALLABLE, PolicyInfo, promises
from eunomia.model.rounding import rising
from eunomia.model.taxonomy import Taxonomy
from eunomia.model.view import View
from eunomia.policies.order.type_choice import NEEDS, REMEMBERS, Types, candidates, check_types


@dataclass(frozen=True)
class ByWeight:
    """Who weighs most runs first; a heavier job interrupts a lighter one.

    Use it when weights are priorities that somebody has thought about, such as a search by HyperDrive about its trials,
    and stopping a job is cheap.

    The worst-off is the lightest job: it is stopped for every heavier one that comes, and starves while they keep
    coming.
    """

    types: Types = "fastest"

    info: ClassVar[PolicyInfo] = PolicyInfo(
        name="by_weight",
        door="order",
        objective="serve by priority",
        technique="preemptive priority by weight",
        paper="Rasley et al., HyperDrive, Middleware 2017",
        taxonomy=Taxonomy(objectives=(), heterogeneity="partial", preemptive=True),
        needs=NEEDS | {"weight"},
        remembers=REMEMBERS,
        mechanism=RECALLABLE,
    )

    def __post_init__(self) -> None:
        check_types(self.types)
        promises(self, complete=self.types == "fastest", separable=True)

    def decide(self, view: View) -> Order:
        """Return all jobs, the heaviest first."""
        rows, memory = candidates(view, rising(-view.weight), self.types)
        return Order(rows, memory=memory)
